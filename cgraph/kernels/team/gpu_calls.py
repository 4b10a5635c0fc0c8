"""The number of threads for each result, and tables of axes for them."""

from collections.abc import Sequence
from typing import Any

from cgraph.kernels.kernel import Call, Param, View
from cgraph.kernels.signature import Signature
from cgraph.kernels.team.gpu_signature import COLUMNS, ELEMENTS, FEW, MANY, THREADS, WARP

MOST_RANK = 4  # axes of a walk; each more is a division for each element
MOST_ELEMENTS = 1 << 31  # positions are 32-bit numbers


def fits(*views: View) -> bool:
    """Return True if teams can walk these views."""
    return all(v.size < MOST_ELEMENTS and len(extents(v)) <= MOST_RANK for v in views)


def extents(view: View) -> tuple[int, ...]:
    """Return the shape without leading axes of one element; at least one axis."""
    first = next((i for i, n in enumerate(view.shape[:-1]) if n != 1), len(view.shape) - 1)
    return view.shape[first:]


def table(views: Sequence[View]) -> list[int]:
    """Return the axes, fastest first: the extent, then the stride of each view."""
    rank = len(extents(views[0]))
    shape, strides = views[0].shape[-rank:], [v.strides[-rank:] for v in views]
    return [x for a in range(rank - 1, -1, -1) for x in (shape[a], *(s[a] for s in strides))]


def team_of(length: int, results: int, across: bool) -> tuple[int, bool]:
    """Threads for each of `results` results of `length` elements, and whether neighbours belong to different teams.

    `across`: results lie side by side in memory, and elements of one of them do not.
    """
    if across and results >= COLUMNS:
        return (THREADS // COLUMNS if length >= FEW else 1), True
    return (THREADS if length >= MANY else WARP if length >= FEW else 1), False


def lies_along(view: View) -> bool:
    """Return True if elements of the last axis are contiguous."""
    return view.strides[-1] == view.itemsize


def element_call(family: Signature, params: tuple[Param, ...], arrays: dict[str, View], **more: Any) -> Call:
    """Return a call with a thread for each position of the arrays, views of one shape that `fits`."""
    views = tuple(arrays.values())
    count, places = views[0].size, {name: v.at for name, v in arrays.items()}
    params = (*params, len(extents(views[0])))
    return family.call(params, -(-count // ELEMENTS), count=count, **places, **more, axes=table(views))
