"""Reductions over any axes of any layout."""

from cgraph.kernels.signature import Args, Signature, Words
from cgraph.kernels.walk.signature import axes, operands_and_outputs, streams

PART_STEPS = Words(("i8",), lambda values: len(values.outs), is_unrolled=True)

# part_steps: bytes between the results of one part and those of the next, per output; kept_axes have all arrays,
# reduced_axes only the operands
TAIL: Args = {
    "kept_rank": "i8", "reduced_rank": "i8", "part_steps": PART_STEPS,
    "streams": streams(operands_and_outputs), "kept_axes": axes("kept_rank", operands_and_outputs),
    "reduced_axes": axes("reduced_rank", lambda values: len(values.ins)),
}  # fmt: skip

# a task: `each` outputs, or one of `parts` of one, which is `rows_each` rows and `block` columns
ALONG = Signature(
    "reduce.along",
    ("kind", "program", "results", "ins", "outs", "registers", "traits"),
    {
        "outputs": "i8", "each": "i8", "parts": "i8", "blocks": "i8", "block": "i8", "rows_each": "i8",
        "rows": "i8", "columns": "i8",
        **TAIL,
    },
)  # fmt: skip

# a task: `each` rows of outputs, one of `blocks` blocks of columns, one of `parts` parts of the reduced rows
ACROSS = Signature(
    "reduce.across",
    ("kind", "program", "results", "ins", "outs", "written", "group"),
    {
        "kept_rows": "i8", "each": "i8", "parts": "i8", "blocks": "i8", "block": "i8", "rows_each": "i8",
        "rows": "i8", "columns": "i8",
        **TAIL,
    },
)  # fmt: skip
