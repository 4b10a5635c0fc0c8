"""Rows at a position that is data: `n` rows of `nbytes` bytes in each block of `x`, `m` in each of `y`."""

from cgraph.kernels.signature import Args, Signature

ARGS: Args = {
    # so many blocks one after the other share a position; positions are `start_step` int64 apart
    "x": "u1*", "y": "u1*", "start": "i8*", "start_step": "i8", "blocks": "i8", "n": "i8", "m": "i8", "nbytes": "i8",
}  # fmt: skip
SET = Signature("rows.set", (), ARGS)
TAKE = Signature("rows.take", (), ARGS)
