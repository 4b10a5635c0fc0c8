"""Arrays in files, as dask's readers read them. A test skips where the reader's package is missing."""

from pathlib import Path

import numpy as np
import pytest


def numpy_stack(array: np.ndarray, path: Path, rows: int = 7):
    """Memory-mapped files of a folder, with a ragged end."""
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    da.to_npy_stack(str(path), da.from_array(array, chunks=(rows, *array.shape[1:])))
    return da.from_npy_stack(str(path))


def zarr(array: np.ndarray, path: Path, rows: int = 7):
    """A Zarr array with a chunk for so many rows."""
    pytest.importorskip("zarr", reason="zarr is not installed")
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    da.from_array(array, chunks=(rows, *array.shape[1:])).to_zarr(str(path))
    return da.from_zarr(str(path))


def parquet(array: np.ndarray, path: Path, rows: int = 7):
    """Parquet files of so many rows, with a column for each number of a row."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    table = pandas.DataFrame(array.reshape(len(array), -1)).rename(columns=str)
    dd.from_pandas(table, chunksize=rows).to_parquet(str(path))
    rows_of_file = dd.read_parquet(str(path)).to_dask_array()
    return rows_of_file.compute_chunk_sizes().reshape((len(array), *array.shape[1:]))


STORES = {"NumPy": numpy_stack, "Zarr": zarr, "Parquet": parquet}
