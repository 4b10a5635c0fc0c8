"""A preload of dask's workers: this one has another version of cgraph."""

from nn.parallel import messages


def dask_setup(worker) -> None:
    messages.__version__ = "0.0.1"
