"""Calls that copy plain images ``[n, c, h, w]`` with padding."""

from cgraph.kernels.calls.lowered import chunk_of
from cgraph.kernels.kernel import Call, Kernel, Pointer, View, contiguous


def padded_plain(x: View, pad: tuple[int, int, int, int], at: Pointer | None) -> View:
    """The contiguous view at `at` that holds `x` and its padding. ValueError without an address."""
    if at is None:
        raise ValueError("padding plain images needs scratch")
    n, c, h, w = x.shape
    return contiguous(at, (n, c, pad[0] + h + pad[2], pad[1] + w + pad[3]), x.dtype)


def pad_plain_calls(out: View, x: View, pad: tuple[int, int, int, int]) -> list[Call]:
    """``out`` (contiguous) = `x` in a frame of zeros ``(top, left, bottom, right)``; pixels of `x` lie side by side."""
    n, c, h, w = x.shape
    if x.strides[3] != x.itemsize and w > 1:
        raise ValueError(f"pixels {x.strides[3]} bytes apart; plain images need them side by side")
    rows, columns = out.shape[2:]
    tasks = n * c * rows
    args: tuple[int | Pointer, ...] = (x.at, *x.strides[:3], c, h, w, pad[0], pad[1], out.at, rows, columns)
    return [Call(Kernel("plain.pad_rows", (x.itemsize,)), args, tasks, chunk_of(tasks, columns * x.itemsize / 20))]
