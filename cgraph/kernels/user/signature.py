"""Users' functions, compiled by Numba. `function` is a `cgraph.kernels.user_function.UserFunction`."""

from cgraph.kernels.signature import Signature, Words
from cgraph.kernels.walk.signature import axes, operands_and_outputs, streams

# one number of each operand makes one of the result; `dtypes` are the operands' and the result's, `ins` and `outs` how
# a row of each is read, as in `pointwise`. A task is some rows and one of `blocks` blocks of columns.
EACH = Signature(
    "user.each",
    ("function", "dtypes", "ins", "outs"),
    {
        "rows": "i8", "columns": "i8", "block": "i8", "blocks": "i8", "rows_each": "i8", "rank": "i8",
        "streams": streams(operands_and_outputs), "axes": axes("rank", operands_and_outputs),
    },
)  # fmt: skip

# the function receives the number of a task, the result and the operands, all in C order; `dtypes` and `ranks` are
# theirs, `extents` all their axes. A task is a call of it.
TASKS = Signature(
    "user.tasks",
    ("function", "dtypes", "ranks"),
    {
        "arrays": Words(("address",), lambda values: len(values.dtypes), is_unrolled=True),
        "extents": Words(("i8",), lambda values: sum(values.ranks), is_unrolled=True),
    },
)
