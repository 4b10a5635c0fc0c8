"""Reductions by teams of threads: the results of a block, over one part of the reduced elements."""

from cgraph.kernels.signature import Signature, Words
from cgraph.kernels.walk.signature import axes


def arrays(values) -> int:
    """Operands and results."""
    return values.operands + len(values.outs)


# a task: one of `parts` parts, `each` of `size` elements, of as many results as a block has teams; `part_steps`: bytes
# between the results of one part and those of the next; kept_axes have all arrays, reduced_axes the operands alone;
# `ranks`: their numbers; `team`: threads of a team, and whether neighbours belong to different teams
TEAMS = Signature(
    "reduce.gpu.teams",
    ("kind", "program", "results", "outs", "operands", "ranks", "team"),
    {
        "outputs": "i8", "size": "i8", "each": "i8", "parts": "i8",
        "part_steps": Words(("i8",), lambda values: len(values.outs)), "arrays": Words(("address",), arrays),
        "kept_axes": axes(lambda values: values.ranks[0], arrays),
        "reduced_axes": axes(lambda values: values.ranks[1], lambda values: values.operands),
    },
)  # fmt: skip
