"""Calls of reductions by teams of a GPU's threads."""

from cgraph.kernels.expression import Program
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.reduce.gpu_signature import TEAMS
from cgraph.kernels.team.gpu_calls import extents, fits, lies_along, table, team_of
from cgraph.kernels.team.gpu_signature import THREADS


def reduced_calls(
    kind: str,
    program: Program,
    results: tuple[int, ...],
    over_kept: tuple[View, ...],
    reduced: tuple[View, ...],
    each: int,
) -> list[Call] | None:
    """Reduce ``program(xs)`` in parts of `each` elements; their results follow one another in `out`.

    Operands
        over_kept: operands and outputs over the axes that are not reduced; reduced: the operands over the others
    None where walks are long
    """
    if not fits(over_kept[0], reduced[0]):
        return None
    outs, size, outputs = over_kept[len(reduced) :], reduced[0].size, over_kept[0].size
    parts = -(-size // max(each, 1)) or 1
    across = not any(map(lies_along, reduced)) and any(map(lies_along, over_kept[: len(reduced)]))
    team = team_of(each, outputs, across)
    ranks = len(extents(over_kept[0])), len(extents(reduced[0]))
    params = (kind, program, results, tuple(v.dtype for v in outs), len(reduced), ranks, team)
    call = TEAMS.call(
        params, -(-outputs // (THREADS // team[0])) * parts,
        outputs=outputs, size=size, each=each, parts=parts, part_steps=[v.size * v.itemsize for v in outs],
        arrays=[v.at for v in over_kept], kept_axes=table(over_kept), reduced_axes=table(reduced),
    )  # fmt: skip
    return [call]
