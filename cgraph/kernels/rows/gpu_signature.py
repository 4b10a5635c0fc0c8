"""Rows at a position that is data, an item for each thread."""

from cgraph.kernels.signature import Args, Signature

# as in `rows`, but `items` of a row in the place of its bytes; `count` items in all
ARGS: Args = {
    "count": "i8", "x": "address", "y": "address", "start": "i8*", "start_step": "i8",
    "blocks": "i8", "n": "i8", "m": "i8", "items": "i8",
}  # fmt: skip
SET = Signature("rows.gpu.set", ("itemsize",), ARGS)
TAKE = Signature("rows.gpu.take", ("itemsize",), ARGS)
