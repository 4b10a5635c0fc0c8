"""Call builders of non-maximum suppression."""

from collections.abc import Sequence
from math import prod

from cgraph.kernels.boxes.signature import SUPPRESS
from cgraph.kernels.kernel import Call, View, aligned, split_scratch
from cgraph.kernels.target import Target


def suppress_calls(
    target: Target,
    out: tuple[View, View],
    boxes: View,
    scores: View,
    rest: Sequence[View],
    limits: tuple[float, float],
    workspace: View | None,
) -> list[Call]:
    """Return the calls of non-maximum suppression; see `cgraph.kernels.boxes.emit.suppress`. Views are contiguous.

    Parameters
        out: indices and counts
        rest: the order by falling score and, where boxes have them, their groups
        limits: the largest intersection over union, and the score that a selected box exceeds
    """
    places, counts = out
    pictures, most, grouped = prod(counts.shape), places.shape[-1], len(rest) > 1
    corners, labels = split_scratch(workspace, *pieces(target, counts.shape, most, boxes.dtype, grouped))
    lanes = lanes_for(target, boxes.dtype)
    call = SUPPRESS.call(
        (boxes.dtype, grouped, lanes), pictures,
        boxes=boxes.at, scores=scores.at, order=rest[0].at, groups=rest[1].at if grouped else None,
        places=places.at, counts=counts.at,
        corners=corners.at if corners else None, labels=labels.at if labels else None, room=room_for(most, lanes),
        n=boxes.shape[-2], most=most, share=float(limits[0]), least=float(limits[1]),
    )  # fmt: skip
    return [call] if pictures else []


def suppress_nbytes(target: Target, leading: tuple[int, ...], most: int, dtype: str, grouped: bool) -> int:
    """Return the bytes of workspace for `most` selected boxes of each picture."""
    return sum(map(aligned, pieces(target, leading, most, dtype, grouped)))


def pieces(target: Target, leading: tuple[int, ...], most: int, dtype: str, grouped: bool) -> tuple[int, int]:
    """Return the bytes of corners and of groups; none in blocks of threads, each of which compares one box."""
    count = 0 if target.has_blocks else prod(leading) * room_for(most, lanes_for(target, dtype))
    return count * 4 * int(dtype[1:]), count * 8 * grouped


def lanes_for(target: Target, dtype: str) -> int:
    """Return the number of selected boxes that are compared at once; 0 for one at a time."""
    lanes = 1 if target.has_blocks else target.lanes_of(dtype)
    return lanes if lanes > 1 else 0


def room_for(most: int, lanes: int) -> int:
    """Return `most`, rounded up to whole vectors."""
    return -(-most // max(lanes, 1)) * max(lanes, 1)
