"""Calls that pack matrices of bytes for the tiles of int8 products."""

from cgraph.kernels.conv8.calls import GROUP, ByteShape
from cgraph.kernels.kernel import Call, Pointer, View
from cgraph.kernels.pack8.signature import ACROSS, ALONG_K, ROWS
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.kernel_calls import chunk_of
from cgraph.kernels.views.matrices import Operand


def pack_rows_calls(out: BlockedView, x: View) -> list[Call]:
    """Copy the rows of `x` ``[..., k]``, contiguous, to `out`, an image of one row."""
    return pack_matrices_calls(out, Operand(x.at, 0, x.shape[-1], 1, x.dtype))


def pack_matrices_calls(out: BlockedView, x: Operand, terms: Pointer | None = None, factor: int = 0) -> list[Call]:
    """Copy the rows of matrices to `out`, an image of one row each; `terms`: the sum of each row times `factor`."""
    tasks = out.n * out.w
    call = ROWS.call(
        (x.column == 1, terms is not None), tasks, chunk_of(tasks, out.blocks * 1.0),
        x=x.at, rows=out.w, x_image=x.batch, x_row=x.row, x_step=x.column,
        out=out.origin, o_image=out.image, o_plane=out.plane, k=out.c, blocks=out.blocks, terms=terms, factor=factor,
    )  # fmt: skip
    return [call] if tasks else []


def pack_columns_calls(
    shape: ByteShape, count: int, y: Operand, out: Pointer, starts: Pointer, factor: int, first: int
) -> list[Call]:
    """Pack `count` matrices ``[k, n]``, minus 128, at `out`, as `pack_conv8` packs filters; and compute their start
    sums.

    Parameters
        shape: of the product, a 1 x 1 convolution
        starts: int32 for each column of each matrix, to the last panel's end: ``sum of its bytes * factor + first``
    """
    groups = shape.panel_weights // (GROUP * shape.panel_channels)
    tasks = count * shape.panels
    is_across = y.column == 1 or y.row != 1
    family, params = (ACROSS, (shape.vectors, y.column == 1)) if is_across else (ALONG_K, (shape.vectors,))
    call = family.call(
        params, tasks, chunk_of(tasks, shape.c * shape.vectors * 1.0),
        y=y.at, y_image=y.batch, y_row=y.row, y_step=y.column, k=shape.c, n=shape.k,
        out=out, o_image=shape.panels * groups * shape.panel_channels, groups=groups, panels=shape.panels,
        starts=starts, s_image=shape.panels * shape.panel_channels, factor=factor, first=first,
    )  # fmt: skip
    return [call] if tasks else []
