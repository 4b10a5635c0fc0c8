"""The difference of outputs from reference outputs, as one number."""

import numpy as np

from cgraph.dtypes.convert import computing_dtype, convert


def difference(x: np.ndarray, y: np.ndarray) -> float:
    """Return the largest difference of two outputs, relative to the largest finite value of `y`.

    Infinite if shapes differ, or if an infinity or a NaN stands on one side only.
    """
    if x.shape != y.shape:
        return float("inf")
    wide_x, wide_y = (a.astype(np.result_type(a.dtype, np.float64)) for a in (x, y))
    same = (wide_x == wide_y) | (np.isnan(wide_x) & np.isnan(wide_y))
    with np.errstate(invalid="ignore"):
        gap = float(np.abs(np.where(same, 0.0, wide_x - wide_y)).max(initial=0.0))
    scale = float(np.abs(wide_y[np.isfinite(wide_y)]).max(initial=0.0))
    return gap / max(scale, 1e-30) if np.isfinite(gap) else float("inf")


def output_error(x: np.ndarray, y: np.ndarray) -> float:
    """Return the `difference` of floats; of anything else the share of elements that differ."""
    x, y = (convert(a, computing_dtype(a.dtype)) for a in (x, y))
    if y.dtype.kind in "fc":
        return difference(x, y)
    return float(np.mean(x != y)) if x.shape == y.shape and x.size else float(x.shape != y.shape)
