"""Plan sizes of the strategies on the networks of Pisarchyk and Lee 2020, next to the published figures.

    python -m benchmarks.memory_tables

The networks are this project's own definitions in `nn.models`; `nn.models.steps` turns them into usage records. No file
is read. The published figures are constants: tables 1 and 2 of arXiv:2001.03288, in MB of 2^20 bytes.
"""

from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import Any

import cgraph as cg
from cgraph.memory.auto import auto
from cgraph.memory.bounds import block_lower_bound, lower_bound
from cgraph.memory.check import check_plan
from cgraph.memory.problem import Problem, ProblemOperand, UsageInterval
from cgraph.memory.strategies import STRATEGIES
from cgraph.schedule.breadth_first import breadth_first
from cgraph.schedule.dag import Dag, peak
from cgraph.schedule.depth_first import depth_first
from cgraph.schedule.least_memory import least_memory
from nn import models
from nn.models.steps import NetworkStep, steps_of, usage_records

MIB = 2**20
NETWORKS = ("mobilenet_v1", "mobilenet_v2", "deeplab_v3", "inception_v3", "posenet", "blazeface")
CLASSES = {"mobilenet_v1": 1001, "mobilenet_v2": 1001, "inception_v3": 1001}
TITLES = ("MobileNet v1", "MobileNet v2", "DeepLab v3", "Inception v3", "PoseNet", "BlazeFace")

Published = dict[str, tuple[float, ...]]  # for each row, one figure per network
BLOCK_TABLE: Published = {
    "greedy_by_size_blocks": (4.594, 7.178, 6.437, 10.337, 6.347, 0.592),
    "greedy_by_size_improved": (4.594, 6.891, 6.437, 10.337, 6.347, 0.518),
    "greedy_by_breadth_blocks": (6.125, 6.699, 6.437, 10.676, 8.390, 0.675),
    "greedy_in_order_blocks": (4.594, 8.039, 7.168, 12.703, 6.347, 0.587),
    "min_cost_flow": (5.359, 7.513, 8.364, 10.624, 7.359, 0.582),
    "block_lower_bound": (4.594, 6.604, 6.105, 8.955, 6.347, 0.518),
    "one_each": (19.248, 26.313, 48.642, 54.010, 28.556, 2.698),
}
OFFSET_TABLE: Published = {
    "greedy_by_size": (4.594, 5.742, 4.653, 7.914, 6.271, 0.492),
    "greedy_by_breadth": (4.594, 5.742, 4.653, 7.914, 7.359, 0.656),
    "greedy_in_order": (6.125, 6.508, 4.985, 10.624, 8.362, 0.492),
    "strip_packing": (4.594, 6.029, 4.321, 7.914, 6.271, 0.533),
    "lower_bound": (4.594, 5.742, 4.320, 7.914, 6.271, 0.492),
}
OWN_ROWS = ("vandenhove", "exact_blocks", "auto")
BOUNDS: dict[str, Callable[[Problem], int]] = {"block_lower_bound": block_lower_bound, "lower_bound": lower_bound}


def outputs_of(name: str) -> tuple[cg.Node, ...]:
    """Return the network's graph for one image, without weights."""
    classes = {"classes": CLASSES[name]} if name in CLASSES else {}
    model = getattr(models, name)(None, **classes)
    found: Any = model(*(cg.Var((1, *sample.shape), sample.dtype) for sample in model.samples))
    return found if isinstance(found, tuple) else (found,)


@cache
def problem_of(name: str) -> Problem:
    """Return the network's intermediate values with their usage intervals, breadth first."""
    records = usage_records(outputs_of(name))
    return Problem(
        tuple(ProblemOperand(size, UsageInterval(first, last), kind) for first, last, size, kind in records), 1
    )


def dag_of(steps: list[NetworkStep], outputs: tuple[cg.Node, ...]) -> Dag:
    """Return the steps as a schedule sees them; outputs do not count."""
    kept = {id(x) for x in outputs}
    nbytes = tuple(0 if id(step.result) in kept else step.nbytes for step in steps)
    return Dag(nbytes, tuple(step.operands for step in steps))


@cache
def measured(row: str, name: str) -> float:
    """Return one cell: MB of a strategy's plan, checked, or of a bound."""
    problem = problem_of(name)
    if row in BOUNDS:
        return BOUNDS[row](problem) / MIB
    plan = (auto if row == "auto" else STRATEGIES[row])(problem)
    check_plan(problem, plan)
    return plan.nbytes / MIB


def is_equal(mine: float, published: float) -> bool:
    """Return True if two figures are equal to the three published decimals."""
    return f"{mine:.3f}" == f"{published:.3f}"


def table(published: Published, own_rows: tuple[str, ...] = ()) -> list[str]:
    """Return a Markdown table: ours, and where it differs the published figure after a slash."""
    lines = ["| | " + " | ".join(TITLES) + " |", "|---|" + "---|" * len(TITLES)]
    for row, figures in published.items():
        cells = [cell(measured(row, name), figure) for name, figure in zip(NETWORKS, figures)]
        lines.append(f"| `{row}` | " + " | ".join(cells) + " |")
    for row in own_rows:
        lines.append(f"| `{row}` | " + " | ".join(f"{measured(row, name):.3f}" for name in NETWORKS) + " |")
    return lines


def cell(mine: float, published: float) -> str:
    return f"{mine:.3f}" if is_equal(mine, published) else f"{mine:.3f} / {published:.3f}"


def agreement() -> list[str]:
    """Return a Markdown table: the numbers of cells equal to three decimals, lower and higher than the published
    ones.
    """
    lines = ["| network | cells | equal | lower | higher |", "|---|---|---|---|---|"]
    for column, (name, title) in enumerate(zip(NETWORKS, TITLES)):
        pairs = [(measured(row, name), figures[column]) for row, figures in (BLOCK_TABLE | OFFSET_TABLE).items()]
        other = [(mine, figure) for mine, figure in pairs if not is_equal(mine, figure)]
        lower = sum(mine < figure for mine, figure in other)
        lines.append(f"| {title} | {len(pairs)} | {len(pairs) - len(other)} | {lower} | {len(other) - lower} |")
    return lines


def order_table() -> list[str]:
    """Return a Markdown table: the largest breadth of each network in several orders."""
    lines = ["| network | as built | breadth first | depth first | least memory |", "|---|---|---|---|---|"]
    for name, title in zip(NETWORKS, TITLES):
        outputs = outputs_of(name)
        lines.append(order_row(title, dag_of(steps_of(outputs), outputs)))
    lines.append(order_row("Inception v3 after its stem", inception_after_stem()))
    return lines


def inception_after_stem() -> Dag:
    """Return Inception v3 from the second max pooling on, which is read but does not count among the leaves'
    operands.
    """
    outputs = outputs_of("inception_v3")
    steps = steps_of(outputs)
    first = [i for i, step in enumerate(steps) if step.kind == "max_pool"][1]
    later = [NetworkStep(s.kind, s.result, tuple(x - first for x in s.operands if x >= first)) for s in steps[first:]]
    return dag_of(later, outputs)


def order_row(title: str, dag: Dag) -> str:
    orders = (range(len(dag.nbytes)), breadth_first(dag), depth_first(dag), least_memory(dag))
    return f"| {title} | " + " | ".join(f"{peak(dag, order) / MIB:.3f}" for order in orders) + " |"


def timings(runs: int = 20) -> list[str]:
    """Return a Markdown table: milliseconds of `auto` on each network, the best of several runs."""
    lines = ["| network | operands | chosen | MB | bound | ms |", "|---|---|---|---|---|---|"]
    for name, title in zip(NETWORKS, TITLES):
        problem = problem_of(name)
        best = min(seconds(problem) for _ in range(runs))
        plan = auto(problem)
        sizes = f"{plan.nbytes / MIB:.3f} | {lower_bound(problem) / MIB:.3f}"
        lines.append(f"| {title} | {len(problem.operands)} | `{plan.strategy}` | {sizes} | {1000 * best:.1f} |")
    return lines


def seconds(problem: Problem) -> float:
    start = perf_counter()
    auto(Problem(problem.operands, problem.alignment))
    return perf_counter() - start


def main() -> None:
    for title, lines in (
        ("Blocks, MB; ours / published where they differ", table(BLOCK_TABLE, OWN_ROWS[:2])),
        ("Offsets, MB; ours / published where they differ", table(OFFSET_TABLE, OWN_ROWS[2:])),
        ("Agreement with the published tables", agreement()),
        ("Largest breadth by order, MB", order_table()),
        ("auto", timings()),
    ):
        print(f"## {title}\n")
        print("\n".join(lines), end="\n\n")


if __name__ == "__main__":
    main()
