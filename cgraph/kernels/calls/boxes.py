"""Calls that choose boxes."""

from collections.abc import Sequence
from math import prod

from cgraph.kernels.kernel import Call, Kernel, View


def suppress_calls(
    out: tuple[View, View], boxes: View, scores: View, rest: Sequence[View], share: float, least: float
) -> list[Call]:
    """Non-maximum suppression; see `cgraph.kernels.llvm.boxes.suppress`. All views contiguous.

    Parameters
        out: places and counts
        rest: the order by falling score and, where boxes have them, their groups
    """
    places, counts = out
    pictures = prod(counts.shape)
    groups = rest[1].at if len(rest) > 1 else 0
    pointers = (boxes.at, scores.at, rest[0].at, groups, places.at, counts.at)
    args = (*pointers, boxes.shape[-2], places.shape[-1], float(share), float(least))
    return [Call(Kernel("boxes.suppress", (boxes.dtype, len(rest) > 1)), args, pictures)] if pictures else []
