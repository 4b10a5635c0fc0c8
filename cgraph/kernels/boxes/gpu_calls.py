"""Call builders of non-maximum suppression in blocks of threads."""

from cgraph.kernels.boxes.gpu_signature import SUPPRESS
from cgraph.kernels.kernel import Call
from cgraph.record import replace


def suppress_calls(calls: list[Call]) -> list[Call]:
    """Return the calls of `cgraph.kernels.boxes.calls` with a block of threads for each task."""
    return [replace(call, kernel=replace(call.kernel, family=SUPPRESS.family)) for call in calls]
