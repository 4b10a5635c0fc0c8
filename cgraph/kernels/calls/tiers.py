"""Which families have kernels that are written for blocks of a GPU's threads: one table.

What a family's call builder asks for in vain is computed by the CPU's kernel, a task for each thread.
"""

from collections.abc import Callable, Mapping
from typing import Any

from cgraph.kernels.calls.gpu.boxes import suppress_calls
from cgraph.kernels.calls.gpu.conv import conv_calls
from cgraph.kernels.calls.gpu.filter_grad import filter_grad_calls
from cgraph.kernels.calls.gpu.gemm import product_calls
from cgraph.kernels.calls.gpu.move import copy_calls
from cgraph.kernels.calls.gpu.normalise import normalised_calls
from cgraph.kernels.calls.gpu.pointwise import pointwise_calls
from cgraph.kernels.calls.gpu.reduce import reduced_calls
from cgraph.kernels.calls.gpu.scan import scan_calls
from cgraph.kernels.calls.gpu.softmax import softmax_calls
from cgraph.kernels.calls.gpu.sort import sort_calls
from cgraph.kernels.calls.gpu.window import depthwise_calls, pool_calls
from cgraph.kernels.target import Target

# per family, what gives the calls of its block kernels, or None where the views do not fit them
BLOCKS: Mapping[str, Callable[..., Any]] = {
    "pointwise": pointwise_calls,
    "copy": copy_calls,
    "matmul": product_calls,
    "reduce": reduced_calls,
    "softmax": softmax_calls,
    "normalise": normalised_calls,
    "conv": conv_calls,
    "filter_grad": filter_grad_calls,
    "pool": pool_calls,
    "depthwise": depthwise_calls,
    "scan": scan_calls,
    "sort": sort_calls,
    "suppress": suppress_calls,
}


def in_blocks(target: Target, family: str, *given: Any) -> Any:
    """The calls of a family in blocks of threads, or None where each thread, or each core, has a task of its own."""
    return BLOCKS[family](*given) if target.has_blocks else None
