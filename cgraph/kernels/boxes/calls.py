"""Call builders of non-maximum suppression."""

from collections.abc import Sequence
from math import prod

from cgraph.kernels.boxes.signature import SUPPRESS
from cgraph.kernels.kernel import Call, View


def suppress_calls(
    out: tuple[View, View], boxes: View, scores: View, rest: Sequence[View], share: float, least: float
) -> list[Call]:
    """Return the calls of non-maximum suppression; see `cgraph.kernels.boxes.emit.suppress`. Views are contiguous.

    Parameters
        out: indices and counts
        rest: the order by falling score and, where boxes have them, their groups
    """
    places, counts = out
    pictures = prod(counts.shape)
    call = SUPPRESS.call(
        (boxes.dtype, len(rest) > 1), pictures,
        boxes=boxes.at, scores=scores.at, order=rest[0].at, groups=rest[1].at if len(rest) > 1 else None,
        places=places.at, counts=counts.at,
        n=boxes.shape[-2], most=places.shape[-1], share=float(share), least=float(least),
    )  # fmt: skip
    return [call] if pictures else []
