"""How close is equal, by dtype: one place, never tuned in a test."""

import numpy as np

RTOL = {"float32": 2e-5, "float64": 1e-11, "complex64": 2e-5, "complex128": 1e-11}


def assert_close(got: np.ndarray, want: np.ndarray, scale: float = 1.0) -> None:
    """Same shape and dtype; floats and complex numbers within `scale` times the tolerance of their dtype, everything
    else exact."""
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, got.dtype, want.shape, want.dtype)
    if want.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want)
        return
    rtol = RTOL[str(want.dtype)] * scale
    with np.errstate(over="ignore"):
        size = np.abs(want)  # of a complex number perhaps an infinity, where its parts are finite
    atol = rtol * max(1.0, float(size[np.isfinite(size)].max(initial=0.0)))
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
