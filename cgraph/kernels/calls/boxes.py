"""Calls that choose boxes."""

from cgraph.kernels.kernel import Call, Kernel, View


def suppress_calls(
    places: View, count: View, boxes: View, scores: View, order: View, share: float, least: float
) -> list[Call]:
    """Non-maximum suppression; see `cgraph.kernels.llvm.boxes.suppress`. All views contiguous."""
    pointers = (boxes.at, scores.at, order.at, places.at, count.at)
    args = (*pointers, boxes.shape[0], places.shape[0], float(share), float(least))
    return [Call(Kernel("boxes.suppress", (boxes.dtype,)), args, 1)]
