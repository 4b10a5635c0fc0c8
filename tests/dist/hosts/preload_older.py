"""A preload of dask's workers: this process has another version of cgraph."""

from tests.dist.dying import other_version


def dask_setup(worker: object) -> None:
    other_version()
