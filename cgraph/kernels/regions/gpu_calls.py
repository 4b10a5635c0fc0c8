"""Calls that read boxes from images, and that add up the gradient for these, in blocks of threads."""

from cgraph.kernels.kernel import Call
from cgraph.kernels.regions.gpu_signature import ALIGN, EACH, SPREAD
from cgraph.kernels.signature import Signature
from cgraph.kernels.team.gpu_calls import MOST_ELEMENTS
from cgraph.kernels.team.gpu_signature import ELEMENTS
from cgraph.record import replace


def align_calls(call: Call, cells: int, planes: int) -> list[Call] | None:
    """Threads for the `cells` of all boxes in the place of a call of `cgraph.kernels.regions.calls`."""
    return in_threads(call, ALIGN, cells * -(-planes // EACH))


def spread_calls(call: Call, images: int, pixels: int, planes: int) -> list[Call] | None:
    """Threads for the pixels of all images, `pixels` of each, which go through all boxes in order."""
    with_images = replace(call, args=(images, *call.args))
    return in_threads(with_images, SPREAD, images * pixels * -(-planes // EACH))


def in_threads(call: Call, family: Signature, threads: int) -> list[Call] | None:
    """None for more places than threads can count."""
    if threads >= MOST_ELEMENTS:
        return None
    return [replace(call, kernel=replace(call.kernel, family=family.family), tasks=-(-threads // ELEMENTS), chunk=1)]
