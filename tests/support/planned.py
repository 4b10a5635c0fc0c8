"""Plans of graphs as they are written, without passes, lowering or a program."""

from collections.abc import Mapping

from cgraph.ir.graph import Node
from cgraph.kernels.target import host_target
from cgraph.memory.auto import auto
from cgraph.memory.problem import Strategy
from cgraph.ops.leaf import Var
from cgraph.planning.compiled import Compiled
from cgraph.planning.options import PlanSettings, Request
from cgraph.planning.plan import plan_graph


def planned(*outputs: Node, updates: Mapping[Var, Node] | None = None, strategy: Strategy = auto) -> Compiled:
    """The plan of a graph at an alignment of 64 bytes."""
    return plan_graph(Request(outputs, (), updates or {}), PlanSettings(host_target(), 64, strategy))
