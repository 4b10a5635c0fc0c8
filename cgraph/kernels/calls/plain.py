"""Calls that copy plain images ``[n, c, h, w]`` with padding."""

from math import prod

from cgraph.kernels.calls.lowered import chunk_of
from cgraph.kernels.kernel import Call, Kernel, Pointer, View, contiguous, room


def padded_plain(x: View, pad: tuple[int, int, int, int], workspace: View | None) -> View:
    """The contiguous view in a workspace that holds `x` and its padding. ValueError where it is too small."""
    n, c, h, w = x.shape
    shape = (n, c, pad[0] + h + pad[2], pad[1] + w + pad[3])
    return contiguous(room(workspace, prod(shape) * x.itemsize), shape, x.dtype)


def pad_plain_calls(out: View, x: View, pad: tuple[int, int, int, int]) -> list[Call]:
    """``out`` (contiguous) = `x` in a frame of zeros ``(top, left, bottom, right)``; pixels of `x` lie side by side."""
    n, c, h, w = x.shape
    if x.strides[3] != x.itemsize and w > 1:
        raise ValueError(f"pixels {x.strides[3]} bytes apart; plain images need them side by side")
    rows, columns = out.shape[2:]
    tasks = n * c * rows
    args: tuple[int | Pointer, ...] = (x.at, *x.strides[:3], c, h, w, pad[0], pad[1], out.at, rows, columns)
    return [Call(Kernel("plain.pad_rows", (x.itemsize,)), args, tasks, chunk_of(tasks, columns * x.itemsize / 20))]
