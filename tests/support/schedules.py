"""Schedules of small networks on the portable target, before any means to save bytes."""

import numpy as np

import cgraph as cg
from cgraph.budget.planner import Planner
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order
from cgraph.kernels.target import target_named
from cgraph.memory.auto import auto
from cgraph.memory.layout import NodeFacts
from cgraph.memory.problem import Strategy
from cgraph.memory.smallest import Choice
from cgraph.planning.options import CompileOptions

PORTABLE = target_named("portable")


def conv(x: Node, channels: int, kernel: int = 3, stride: int = 1, seed: int = 0) -> Node:
    """A convolution with constant filters, and its activation."""
    filters = np.random.default_rng(seed).standard_normal((channels, x.shape[1], kernel, kernel)).astype("f4")
    return cg.relu(cg.conv2d(x, filters, stride, kernel // 2))


def residual() -> tuple[Node, cg.Var]:
    """Two convolutions, of which the second is added to the first, and one of half the size."""
    x = cg.Var((1, 8, 32, 24), name="x")
    y = conv(x, 16)
    return conv(conv(y, 16) + y, 8, 3, 2), x


def planner_of(strategy: Strategy = auto) -> Planner:
    return Planner(strategy, 64, NodeFacts(PORTABLE))


def lowered(*roots: Node, **options: object) -> tuple[Node, ...]:
    """The physical graph of the portable target, with direct convolutions."""
    return CpuEngine("portable", 1).lower(roots, CompileOptions(winograd=False, **options))  # type: ignore[arg-type]


def scheduled(planner: Planner, *roots: Node, always: tuple[Node, ...] = ()) -> Choice:
    """The smallest plan of a physical graph, its nodes in depth-first order."""
    layout = planner.layout(post_order(roots), roots, always)
    return planner.smallest(planner.candidates("depth_first", layout))
