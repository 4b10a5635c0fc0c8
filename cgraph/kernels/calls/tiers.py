"""Which families have kernels that are written for blocks of a GPU's threads: one table.

What a family's call builder asks for in vain is computed by the CPU's kernel, a task for each thread.
"""

from collections.abc import Callable, Mapping
from typing import Any

from cgraph.kernels.calls.gpu.attention import attention_calls
from cgraph.kernels.calls.gpu.boxes import suppress_calls
from cgraph.kernels.calls.gpu.conv import conv_calls
from cgraph.kernels.calls.gpu.filter_grad import filter_grad_calls
from cgraph.kernels.calls.gpu.gemm import product_calls
from cgraph.kernels.calls.gpu.index import gather_calls, nonzero_calls, scatter_calls, triangle_calls
from cgraph.kernels.calls.gpu.move import copy_calls
from cgraph.kernels.calls.gpu.normalise import channels_call, normalised_calls
from cgraph.kernels.calls.gpu.pointwise import pointwise_calls
from cgraph.kernels.calls.gpu.random import random_calls
from cgraph.kernels.calls.gpu.reduce import reduced_calls
from cgraph.kernels.calls.gpu.regions import align_calls
from cgraph.kernels.calls.gpu.regions import spread_calls as regions_spread_calls
from cgraph.kernels.calls.gpu.rows import rows_calls
from cgraph.kernels.calls.gpu.scan import scan_calls
from cgraph.kernels.calls.gpu.softmax import softmax_calls
from cgraph.kernels.calls.gpu.sort import distinct_call, search_calls, sort_calls
from cgraph.kernels.calls.gpu.user import each_calls
from cgraph.kernels.calls.gpu.window import depthwise_calls, place_calls, pool_calls, resize_calls, spread_calls
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
    "pool places": place_calls,
    "pool spread": spread_calls,
    "resize": resize_calls,
    "regions": align_calls,
    "regions spread": regions_spread_calls,
    "depthwise": depthwise_calls,
    "scan": scan_calls,
    "sort": sort_calls,
    "attention": attention_calls,
    "suppress": suppress_calls,
    "user": each_calls,
    "random": random_calls,
    "rows": rows_calls,
    "channels": channels_call,
    "gather": gather_calls,
    "scatter": scatter_calls,
    "triangle": triangle_calls,
    "nonzero": nonzero_calls,
    "search": search_calls,
    "distinct": distinct_call,
}


def in_blocks(target: Target, family: str, *given: Any) -> Any:
    """The calls of a family in blocks of threads, or None where each thread, or each core, has a task of its own."""
    return BLOCKS[family](*given) if target.has_blocks else None
