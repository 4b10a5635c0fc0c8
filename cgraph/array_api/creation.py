"""New Arrays, whose values exist at once."""

from typing import Any

import numpy as np

from cgraph.array_api.array import Array
from cgraph.array_api.calls import call_lazily_or_eagerly, function


def array_of(value: Any) -> Array:
    return Array(None, np.asarray(value))


def check_device(device: Any) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f"there is no device {device!r}. Use 'cpu'")


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
    """Return an Array of numbers, lists or another array; NumPy's arrays are copied unless `copy` is false."""
    check_device(device)
    if not isinstance(obj, Array):
        foreign = not isinstance(obj, np.ndarray) and hasattr(obj, "__dlpack__")
        value = np.from_dlpack(obj) if foreign else obj
        return array_of(np.array(plain(value), dtype=dtype, copy=copy if copy is False else True))
    dtype = obj.dtype if dtype is None else np.dtype(dtype)
    if copy is False and obj.dtype != dtype:
        raise ValueError(f"{obj.dtype} becomes {dtype} by a copy only. Pass copy=None or copy=True")
    return astype(obj, dtype, copy=bool(copy))


def plain(obj: Any) -> Any:
    """Return arrays inside lists as their values."""
    if isinstance(obj, Array):
        return obj.value
    return [plain(x) for x in obj] if isinstance(obj, list | tuple) else obj


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Return another library's array without copying it."""
    check_device(device)
    return array_of(np.from_dlpack(x, copy=copy))


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Array:
    check_device(device)
    low, high = (0, start) if stop is None else (start, stop)
    return array_of(np.arange(low, high, step, dtype=dtype))


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    return full(shape, 0, dtype=dtype or np.float64, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    return full(shape, 0, dtype=dtype or np.float64, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    return full(shape, 1, dtype=dtype or np.float64, device=device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    check_device(device)
    return array_of(np.full(shape, plain(fill_value), dtype=dtype))


def empty_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    return empty(x.shape, dtype=dtype or x.dtype, device=device)


def zeros_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    return zeros(x.shape, dtype=dtype or x.dtype, device=device)


def ones_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    return ones(x.shape, dtype=dtype or x.dtype, device=device)


def full_like(x: Array, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Array:
    check_device(device)
    return array_of(np.eye(n_rows, n_cols, k=k, dtype=dtype or np.float64))


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Array:
    check_device(device)
    return array_of(np.linspace(plain(start), plain(stop), num, dtype=dtype, endpoint=endpoint))


def meshgrid(*arrays: Array, indexing: str = "xy") -> list[Array]:
    return list(call_lazily_or_eagerly("meshgrid", None, np.meshgrid, arrays, {"indexing": indexing}))


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """Return the array in another dtype."""
    check_device(device)
    dtype = np.dtype(dtype)
    return x if x.dtype == dtype and not copy else _astype(x, dtype)


_astype = function("astype", "x, dtype, /", lambda x, dtype: x.astype(dtype), lambda x, dtype: x.astype(dtype))
