"""Arrays of any strides for the tests of kernels."""

import numpy as np
from hypothesis import strategies as st

from cgraph.kernels.kernel import Pointer, View

SEED = 7


@st.composite
def strided(draw, shape: tuple[int, ...], dtype: str, fixed: bool = False) -> tuple[np.ndarray, View]:
    """An array of this shape inside a larger one: axes in any order, steps, flips; repeated ones unless `fixed`."""
    rank = len(shape)
    order = draw(st.permutations(range(rank)))
    steps = [draw(st.sampled_from([1, 1, 1, 2, -1, -3] if fixed else [1, 1, 2, -1, -3, 0])) for _ in range(rank)]
    extents = [max(1, abs(step) * n) + draw(st.integers(0, 2)) if step else 1 for n, step in zip(shape, steps)]
    whole = np.random.default_rng(SEED).integers(0, 256, [extents[a] for a in order] + [np.dtype(dtype).itemsize])
    base = np.ascontiguousarray(whole, np.uint8).view(dtype)[..., 0]
    seen = base.transpose(np.argsort(order)) if rank else base
    for axis, (n, step) in enumerate(zip(shape, steps)):
        index = [slice(None)] * rank
        if step == 0:
            seen = (
                np.repeat(seen, n, axis)
                if n == 0
                else np.broadcast_to(seen, (*seen.shape[:axis], n, *seen.shape[axis + 1 :]))
            )
            continue
        index[axis] = slice(0, n * step, step) if step > 0 else slice(extents[axis] - 1, None, step)
        seen = seen[tuple(index)]
        seen = seen[tuple(slice(0, n) if a == axis else slice(None) for a in range(rank))]
    offset = seen.__array_interface__["data"][0] - base.ctypes.data if seen.size else 0
    return seen, View(Pointer(base, offset), shape, seen.strides, dtype)


def filled(like: np.ndarray) -> np.ndarray:
    """An array of the same shape whose bytes are all ones: NaN in floats."""
    out = np.empty(like.shape, like.dtype)
    out.reshape(-1).view(np.uint8)[...] = 0xFF
    return out
