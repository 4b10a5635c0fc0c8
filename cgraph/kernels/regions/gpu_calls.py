"""Calls that read boxes from images, and that sum their gradient, in blocks of a GPU's threads."""

from cgraph.kernels.kernel import Call
from cgraph.kernels.regions.gpu_signature import ALIGN, EACH, SPREAD
from cgraph.kernels.signature import Signature
from cgraph.kernels.team.gpu_calls import MOST_ELEMENTS
from cgraph.kernels.team.gpu_signature import ELEMENTS
from cgraph.record import replace


def align_calls(call: Call, cells: int, planes: int) -> list[Call] | None:
    """Replace a call of `cgraph.kernels.regions.calls` by one with threads for the `cells` of all boxes."""
    return in_threads(call, ALIGN, cells * -(-planes // EACH))


def spread_calls(call: Call, images: int, pixels: int, planes: int) -> list[Call] | None:
    """Return a call with threads for the pixels of all images; each thread visits all boxes in order."""
    with_images = replace(call, args=(images, *call.args))
    return in_threads(with_images, SPREAD, images * pixels * -(-planes // EACH))


def in_threads(call: Call, family: Signature, threads: int) -> list[Call] | None:
    """Return the call for `threads` threads; None if they are too many."""
    if threads >= MOST_ELEMENTS:
        return None
    return [replace(call, kernel=replace(call.kernel, family=family.family), tasks=-(-threads // ELEMENTS), chunk=1)]
