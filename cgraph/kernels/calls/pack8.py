"""Calls that put rows of bytes in lanes."""

from cgraph.kernels.calls.laned import Laned
from cgraph.kernels.calls.lowered import chunk_of
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.signatures.pack8 import ROWS


def pack_rows_calls(out: Laned, x: View) -> list[Call]:
    """``out``, an image of one row, = the rows of `x` ``[..., k]`` in one piece."""
    call = ROWS.call(
        (), out.w, chunk_of(out.w, out.blocks * 1.0),
        x=x.at, x_row=x.shape[-1], out=out.origin, o_plane=out.plane, k=x.shape[-1], blocks=out.blocks,
    )  # fmt: skip
    return [call] if out.w else []
