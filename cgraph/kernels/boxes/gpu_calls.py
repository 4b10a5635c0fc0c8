"""Calls that choose boxes in blocks of threads."""

from cgraph.kernels.boxes.gpu_signature import SUPPRESS
from cgraph.kernels.kernel import Call
from cgraph.record import replace


def suppress_calls(calls: list[Call]) -> list[Call]:
    """Calls of `cgraph.kernels.boxes.calls`, a block for what is a task there."""
    return [replace(call, kernel=replace(call.kernel, family=SUPPRESS.family)) for call in calls]
