"""A pointwise program whose result goes into the array that it reads around each element; strides are bytes."""

from cgraph.kernels.signature import Args, Signature, Words
from cgraph.kernels.walk.signature import Count, axes, streams


def arguments(arrays: Count) -> Args:
    """Return the arguments of both families for `arrays` arrays, the written one last."""
    return {
        # bands along the swept axis, of `each` of its `rows`; rows read above and below
        "bands": "i8", "each": "i8", "rows": "i8", "up": "i8", "down": "i8",
        # of a row; elements of the border before and after a line, and the address of their value
        "columns": "i8", "last_columns": "i8", "before": "i8", "behind": "i8", "border": "address",
        "slots": "address", "slot_nbytes": "i8", "line_nbytes": "i8",
        "streams": streams(arrays), "row_steps": Words(("i8",), arrays, is_unrolled=True),
        # the axes of the lines of a row, outermost first, and those outside the swept axis
        "inner": axes("inner_rank", arrays), "outer_rank": "i8",
        "outer": axes("outer_rank", arrays),
    }  # fmt: skip


SWEEP = Signature(
    "stencil.sweep",
    ("program", "ins", "registers", "inner_rank"),
    arguments(lambda values: len(values.ins) + 1),
)
FINISH = Signature("stencil.finish", ("itemsize", "inner_rank"), arguments(lambda _: 1))
