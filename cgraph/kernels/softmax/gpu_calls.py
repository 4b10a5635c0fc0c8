"""Calls of softmax, log_softmax and logsumexp by teams of a GPU's threads."""

from cgraph.kernels.kernel import Call, View
from cgraph.kernels.softmax.gpu_signature import TEAMS
from cgraph.kernels.team.gpu_calls import extents, fits, lies_along, table, team_of
from cgraph.kernels.team.gpu_signature import THREADS


def softmax_calls(kind: str, over_kept: tuple[View, View], steps: tuple[int, int], length: int) -> list[Call] | None:
    """`over_kept`: operand and result over the other axes; `steps`: their bytes along the reduced one."""
    x, out = over_kept
    if not fits(x):
        return None
    team, across = team_of(length, x.size, steps[0] != x.itemsize and lies_along(x))
    call = TEAMS.call(
        (kind, x.dtype, len(extents(x)), team, across), -(-x.size // (THREADS // team)),
        rows=x.size, length=length, x=x.at, x_step=steps[0], out=out.at, out_step=steps[1], axes=table(over_kept),
    )  # fmt: skip
    return [call]
