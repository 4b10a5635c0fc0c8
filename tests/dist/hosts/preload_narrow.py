"""A preload of dask's workers: this machine's processor runs the portable target alone."""

from cgraph.kernels import target
from cgraph.kernels.isa.architectures import architecture_of

WIDEST = target.host_target()
(PORTABLE,) = (x for x in architecture_of(WIDEST).targets if x.name == "portable")


def dask_setup(worker: object) -> None:
    target.host_target = lambda: PORTABLE
    from nn.parallel import targets

    targets.host_target = target.host_target
