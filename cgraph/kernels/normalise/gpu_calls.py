"""Calls of normalisation by teams of threads."""

from cgraph.kernels.kernel import Call, View
from cgraph.kernels.normalise.gpu_signature import CHANNELS, TEAMS
from cgraph.kernels.team.gpu_calls import MOST_ELEMENTS, team_of
from cgraph.kernels.team.gpu_signature import ELEMENTS, THREADS
from cgraph.record import replace


def normalised_calls(
    out: View, x: View, scale: View | None, shift: View | None, scales: str, rows: int, shape: tuple[int, int, int],
    epsilon: float,
) -> list[Call] | None:  # fmt: skip
    """Return calls over rows of ``shape = (groups, segments, length)``; None for rows longer than a walk."""
    groups, segments, length = shape
    if segments * length >= MOST_ELEMENTS:
        return None
    team, _ = team_of(segments * length, rows, False)
    call = TEAMS.call(
        (x.dtype, scales, team), -(-rows // (THREADS // team)),
        rows=rows, groups=groups, segments=segments, length=length,
        x=x.at, out=out.at, scale=(scale or x).at, shift=(shift or x).at, epsilon=float(epsilon),
    )  # fmt: skip
    return [call]


def channels_call(call: Call, count: int) -> Call | None:
    """Return a call with a thread for each of `count` elements; None if there are too many."""
    if count >= MOST_ELEMENTS:
        return None
    kernel = replace(call.kernel, family=CHANNELS.family)
    return replace(call, kernel=kernel, args=(count, *call.args), tasks=-(-count // ELEMENTS), chunk=1)
