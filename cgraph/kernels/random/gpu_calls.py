"""Calls of random numbers in blocks of threads."""

from cgraph.kernels.kernel import Call, View
from cgraph.kernels.philox import LANES
from cgraph.kernels.random.gpu_signature import FILL
from cgraph.kernels.team.gpu_signature import ELEMENTS


def random_calls(kind: str, out: View, key: View, probability: float, group: int) -> list[Call]:
    """As `cgraph.kernels.random.calls.random_calls`. A thread computes one of the 16 blocks of a `group`."""
    blocks = -(-out.size // group) * LANES
    call = FILL.call(
        (kind, out.dtype), -(-blocks // ELEMENTS),
        count=out.size, key=key.at, out=out.at, probability=float(probability),
    )  # fmt: skip
    return [call]
