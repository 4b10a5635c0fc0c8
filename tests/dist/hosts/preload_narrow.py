"""A preload of dask's workers: this machine's processor runs the portable target alone."""

from importlib import import_module

from cgraph.kernels.isa import architectures

NEEDS = architectures.host_architecture().needs["portable"]
architectures.host_features = lambda: frozenset(NEEDS)  # before other modules import it
target = import_module("cgraph.kernels.target")
(PORTABLE,) = (x for x in architectures.architecture_of(target.host_target()).targets if x.name == "portable")
target.host_target = lambda: PORTABLE


def dask_setup(worker: object) -> None:
    """The import has done it."""
