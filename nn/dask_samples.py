"""Samples that dask's readers read: of Zarr, Parquet, HDF5 or NumPy files, on each host from its own disk."""

from typing import Any

import numpy as np

from cgraph import InputError
from nn.loader import SampleSource


class DaskSamples(SampleSource):
    """Rows of a dask array. A batch reads the blocks in which its rows lie, in the process that needs the batch.

    In `nn.data_parallel` the array's graph is sent to the workers, not its data, so the files are at the same path on
    each host. Blocks of few rows suit a shuffled order: without support of the format for parts of a block, each row of
    a batch reads its whole block.

    Fields
        array: a dask array ``[samples, ...]`` of known size, such as ``dask.array.from_zarr(path)``

    Example
        x, classes = (nn.DaskSamples(da.from_npy_stack(path)) for path in ("pictures", "classes"))
        nn.Loader((x, classes), batch=32, prefetch=2)
    """

    array: Any

    def __post_init__(self) -> None:
        shape = getattr(self.array, "shape", ())
        if not hasattr(self.array, "compute") or not shape:
            raise InputError(
                f"array is {self.array!r:.60}. Pass a dask array whose first axis counts the samples, such as "
                "dask.array.from_zarr returns."
            )
        if np.isnan(shape[0]):
            raise InputError("the number of rows of the array is not known. Call its compute_chunk_sizes() first.")

    def __len__(self) -> int:
        return self.array.shape[0]

    def read(self, numbers: np.ndarray) -> np.ndarray:
        rows, places = np.unique(numbers, return_inverse=True)  # each block once, in the order of the file
        return np.asarray(self.array[rows].compute(scheduler="synchronous"))[places]
