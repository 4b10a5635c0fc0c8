"""Calls of normalisation by teams of threads."""

from cgraph.kernels.calls.gpu.team import MOST_ELEMENTS, team_of
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.signatures.gpu.normalise import TEAMS
from cgraph.kernels.signatures.gpu.team import THREADS


def normalised_calls(
    out: View, x: View, scale: View | None, shift: View | None, scales: str, rows: int, shape: tuple[int, int, int],
    epsilon: float,
) -> list[Call] | None:  # fmt: skip
    """Rows of ``shape = (groups, segments, length)``; None for such that are longer than a walk."""
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
