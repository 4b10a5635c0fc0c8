"""All strategies by name: each is one file, one function and one name. Its first call imports the file."""

from cgraph.late import LateModule
from cgraph.memory.problem import Strategy


def late_strategies(*names: str) -> dict[str, Strategy]:
    """Return strategies by name."""
    return {name: getattr(LateModule(f"cgraph.memory.strategies.{name}"), name) for name in names}


OFFSET_STRATEGIES = late_strategies(
    "greedy_by_size", "strip_packing", "greedy_by_breadth", "greedy_in_order", "squeaky_wheel", "exact"
)

BLOCK_STRATEGIES = late_strategies(
    "greedy_by_size_blocks",
    "greedy_by_size_improved",
    "greedy_by_breadth_blocks",
    "greedy_in_order_blocks",
    "min_cost_flow",
    "vandenhove",
    "exact_blocks",
)

STRATEGIES = {**OFFSET_STRATEGIES, **BLOCK_STRATEGIES, **late_strategies("one_each")}
