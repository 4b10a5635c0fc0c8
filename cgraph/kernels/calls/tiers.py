"""Which families have kernels that are written for blocks of a GPU's threads: one table.

What a family's call builder asks for in vain is computed by the CPU's kernel, a task for each thread.
"""

from collections.abc import Callable, Mapping
from typing import Any

from cgraph.kernels.calls.gpu.gemm import product_calls
from cgraph.kernels.calls.gpu.pointwise import flat_calls
from cgraph.kernels.kernel import Call
from cgraph.kernels.target import Target

# per family, the calls of its block kernels; they give None where the views do not fit them
BLOCKS: Mapping[str, Callable[..., list[Call] | None]] = {
    "pointwise": flat_calls,
    "matmul": product_calls,
}


def in_blocks(target: Target, family: str, *given: Any) -> list[Call] | None:
    """The calls of a family in blocks of threads, or None where each thread, or each core, has a task of its own."""
    return BLOCKS[family](*given) if target.has_blocks else None
