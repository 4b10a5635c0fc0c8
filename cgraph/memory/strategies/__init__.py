"""All strategies by name: each is one file, one function and one key."""

from cgraph.memory.problem import Strategy
from cgraph.memory.strategies.exact import exact
from cgraph.memory.strategies.exact_blocks import exact_blocks
from cgraph.memory.strategies.greedy_by_breadth import greedy_by_breadth
from cgraph.memory.strategies.greedy_by_breadth_blocks import greedy_by_breadth_blocks
from cgraph.memory.strategies.greedy_by_size import greedy_by_size
from cgraph.memory.strategies.greedy_by_size_blocks import greedy_by_size_blocks
from cgraph.memory.strategies.greedy_by_size_improved import greedy_by_size_improved
from cgraph.memory.strategies.greedy_in_order import greedy_in_order
from cgraph.memory.strategies.greedy_in_order_blocks import greedy_in_order_blocks
from cgraph.memory.strategies.min_cost_flow import min_cost_flow
from cgraph.memory.strategies.one_each import one_each
from cgraph.memory.strategies.squeaky_wheel import squeaky_wheel
from cgraph.memory.strategies.strip_packing import strip_packing
from cgraph.memory.strategies.vandenhove import vandenhove

OFFSET_STRATEGIES: dict[str, Strategy] = {
    "greedy_by_size": greedy_by_size,
    "strip_packing": strip_packing,
    "greedy_by_breadth": greedy_by_breadth,
    "greedy_in_order": greedy_in_order,
    "squeaky_wheel": squeaky_wheel,
    "exact": exact,
}

BLOCK_STRATEGIES: dict[str, Strategy] = {
    "greedy_by_size_blocks": greedy_by_size_blocks,
    "greedy_by_size_improved": greedy_by_size_improved,
    "greedy_by_breadth_blocks": greedy_by_breadth_blocks,
    "greedy_in_order_blocks": greedy_in_order_blocks,
    "min_cost_flow": min_cost_flow,
    "vandenhove": vandenhove,
    "exact_blocks": exact_blocks,
}

STRATEGIES: dict[str, Strategy] = {**OFFSET_STRATEGIES, **BLOCK_STRATEGIES, "one_each": one_each}
