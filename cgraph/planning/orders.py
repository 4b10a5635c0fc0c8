"""Running orders to plan, by name.

Order ``auto``: depth first, and the order of `least_memory` where it may save enough. The search is limited by counts,
not by seconds, so that a graph has one plan on every machine.
"""

from collections.abc import Sequence

from cgraph.budget.planner import Planner
from cgraph.errors import GraphError
from cgraph.memory.layout import Layout, in_order
from cgraph.rematerialise.rebuild import dag_of
from cgraph.schedule.breadth_first import breadth_first
from cgraph.schedule.costly_first import costly_first
from cgraph.schedule.dag import Dag, least_peak, peak
from cgraph.schedule.eager import eager
from cgraph.schedule.least_memory import least_memory

SCHEDULES = {"breadth_first": breadth_first, "least_memory": least_memory}
ORDERS = ("auto", "depth_first", *SCHEDULES)
STATES = 1_000  # limit of a search for an order that the user did not request


def layouts_of(layout: Layout, order: str, planner: Planner, least_gain: int = 1) -> list[tuple[str, Layout]]:
    """Return the layouts to plan, each with the name of its order; `layout` is depth first.

    Parameters
        least_gain: bytes; order ``auto`` searches only if it may gain as many
    Raises
        GraphError: an order of this name does not exist
    """
    check_order(order)
    if order == "depth_first":
        return [(order, layout)]
    dag = dag_of(layout)

    def ordered(steps: Sequence[int]) -> Layout:
        return planner.layout(in_order(layout, steps), layout.lasting, layout.always)

    if order != "auto":
        return [(order, ordered(SCHEDULES[order](dag)))]
    layouts = [("depth_first", layout)]
    walked = peak(dag, range(len(layout.steps)))
    if walked - least_peak(dag) >= least_gain:
        better = least_memory(dag, states=STATES, starts=(written_order, eager, costly_first))
        if peak(dag, better) < walked:
            layouts.append(("least_memory", ordered(better)))
    return layouts


def check_order(order: str) -> None:
    """Raise GraphError if an order of this name does not exist."""
    if order not in ORDERS:
        raise GraphError(f"there is no order {order!r}; there are {', '.join(ORDERS)}. Pass one as order=")


def written_order(dag: Dag) -> range:
    """Return the order in which the nodes were written."""
    return range(len(dag.nbytes))
