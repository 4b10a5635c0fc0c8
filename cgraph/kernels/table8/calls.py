"""Calls that look up bytes in a table."""

from itertools import product

from cgraph.kernels.kernel import Call, View, collapse
from cgraph.kernels.table8.signature import LOOK_UP
from cgraph.kernels.target import Target
from cgraph.kernels.views.kernel_calls import chunk_of

BLOCK = 1 << 15  # bytes of a task


def table_calls(target: Target, out: View, x: View, table: View) -> list[Call]:
    """Compute ``out[...] = table[x[...]]`` of bytes in any strides; `out` may be the very view `x`."""
    if not out.size:
        return []
    shape, (to, source) = collapse(out.shape, out.strides, x.strides)
    shape, to, source = ((1, 1, *shape)[-max(len(shape), 2) :], (0, 0, *to), (0, 0, *source))
    to, source = to[-len(shape) :], source[-len(shape) :]
    rows, columns = shape[-2:]
    blocks, near = -(-columns // BLOCK), columns == 1 or to[-1] == source[-1] == 1
    calls = []
    for index in product(*map(range, shape[:-2])):
        places = (v.at + sum(i * step for i, step in zip(index, steps)) for v, steps in ((out, to), (x, source)))
        o, at = places
        call = LOOK_UP.call(
            (near,), rows * blocks, chunk_of(rows * blocks, min(columns, BLOCK) * 0.05),
            x=at, x_row=source[-2], x_step=source[-1], out=o, o_row=to[-2], o_step=to[-1],
            table=table.at, columns=columns, block=BLOCK, blocks=blocks,
        )  # fmt: skip
        calls.append(call)
    return calls
