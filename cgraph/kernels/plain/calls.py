"""Calls that copy plain images ``[n, c, h, w]`` with padding."""

from math import prod

from cgraph.kernels.kernel import Call, View, contiguous, scratch_pointer
from cgraph.kernels.plain.signature import PAD_ROWS
from cgraph.kernels.views.kernel_calls import chunk_of


def padded_plain(x: View, pad: tuple[int, int, int, int], workspace: View | None) -> View:
    """Return the contiguous view in a workspace for `x` and its padding. ValueError if the workspace is too small."""
    n, c, h, w = x.shape
    shape = (n, c, pad[0] + h + pad[2], pad[1] + w + pad[3])
    return contiguous(scratch_pointer(workspace, prod(shape) * x.itemsize), shape, x.dtype)


def pad_plain_calls(out: View, x: View, pad: tuple[int, int, int, int]) -> list[Call]:
    """Copy `x` to `out` with zeros around: ``(top, left, bottom, right)``. `out` and pixels of `x` are contiguous."""
    n, c, h, w = x.shape
    if x.strides[3] != x.itemsize and w > 1:
        raise ValueError(f"pixels are {x.strides[3]} bytes apart; plain images need {x.itemsize}. Copy the image first")
    rows, columns = out.shape[2:]
    tasks = n * c * rows
    call = PAD_ROWS.call(
        (x.itemsize,), tasks, chunk_of(tasks, columns * x.itemsize / 20),
        x=x.at, x_image=x.strides[0], x_plane=x.strides[1], x_row=x.strides[2], c=c, h=h, w=w,
        top=pad[0], left=pad[1], out=out.at, rows=rows, columns=columns,
    )  # fmt: skip
    return [call]
