"""Application of a fixed-batch function to any number of rows."""

from collections.abc import Callable, Sequence

import numpy as np

from cgraph.ir.spec import Spec


def in_batches(
    function: Callable[..., Sequence[np.ndarray]], arrays: Sequence[np.ndarray], batch: int, results: Sequence[Spec]
) -> list[np.ndarray]:
    """Return a function's results for all rows, batch by batch. The last batch is padded with zeros and cut again.

    Parameters
        function: called with ``copy=False``; returns a list
        arrays: arrays with equally many rows, ``[rows, ...]``
        batch: number of rows of a call
        results: specs of the results
    """
    count = len(arrays[0])
    outputs = [np.empty((count, *x.shape[1:]), x.dtype) for x in results]
    for first in range(0, count, batch):
        rows = slice(first, min(first + batch, count))
        parts = function(*(pad_rows(x[rows], batch) for x in arrays), copy=False)
        for whole, part in zip(outputs, parts):
            whole[rows] = np.asarray(part)[: rows.stop - first]
    return outputs


def pad_rows(rows: np.ndarray, count: int) -> np.ndarray:
    """Return `rows` padded with zeros to `count` rows."""
    if len(rows) == count:
        return rows
    return np.concatenate([rows, np.zeros((count - len(rows), *rows.shape[1:]), rows.dtype)])
