"""Plan sizes of common networks, before and after lowering.

    python -m benchmarks.plan_sizes > tests/memory/plan_sizes.txt

For one image, without running anything. `built` is the graph as `nn.models` builds it, `lowered` the graph after passes
and lowering with frozen weights, always for AVX2, so that figures are the same on every machine. Filters are normal
numbers, since the estimate of Winograd's error depends on them; other weights are all 0.5, whose values do not matter
as long as no rule applies to them, as for 0 or 1. Matrices stay Vars, since packing would only copy them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import cgraph as cg
from cgraph.kernels.target import target_named
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import to_physical
from cgraph.memory.auto import auto
from cgraph.passes import rewrite_graph
from cgraph.passes.freeze import freeze
from cgraph.planning.compiled import Compiled
from cgraph.planning.options import PlanSettings, Request
from cgraph.planning.plan import plan_graph
from cgraph.system.alignment import ALIGNMENT
from nn import models
from nn.layer import Layer
from nn.models import mask_rcnn

NETWORKS = (
    "mobilenet_v1 mobilenet_v2 deeplab_v3 inception_v3 posenet blazeface resnet18 resnet50 resnet101 resnet152 vgg16 "
    "squeezenet1_0 squeezenet1_1 densenet201 lenet mask_rcnn mask_rcnn_owl"
).split()
GRAPHS = ("built", "lowered")
TARGET = "avx2"
HEAD = f"{'network':14} {'graph':8} {'steps':>5} {'arena':>10} {'bound':>10} {'ratio':>6}  {'order':12} strategy"


def main() -> None:
    print(HEAD)
    for name in NETWORKS:
        for graph in GRAPHS:
            print(row(name, graph), flush=True)


def row(name: str, graph: str) -> str:
    """Return one line of the table; the ratio is that of the arena to the lower bound of the schedule's plans."""
    compiled = planned(name, graph)
    size, bound = compiled.nbytes, compiled.lower_bound
    figures = f"{len(compiled.layout.steps):5} {size:10} {bound:10} {size / bound:6.3f}"
    return f"{name:14} {graph:8} {figures}  {compiled.order:12} {compiled.plan.strategy}"


def planned(name: str, graph: str) -> Compiled:
    """Return the plan of a network's graph."""
    model = getattr(mask_rcnn if name.startswith("mask_rcnn") else models, name)(weights=None)
    outputs = built(model)
    target = target_named(TARGET)
    if graph == "lowered":
        outputs = to_physical(rewrite_graph(freeze(outputs, frozen(model))), target, LoweringOptions())
    return plan_graph(Request(outputs, (), {}), PlanSettings(target, ALIGNMENT, auto))


def built(model: Layer) -> tuple[cg.Node, ...]:
    assert model.samples is not None
    found: Any = model(*(cg.Var((1, *sample.shape), sample.dtype) for sample in model.samples))
    return found if isinstance(found, tuple) else (found,)


def frozen(model: Layer) -> Sequence[cg.Var]:
    """Return the weights that become constants, with values."""
    found = [x for x in model.variables().values() if x.ndim != 2]
    numbers = np.random.default_rng(0).standard_normal(997)
    for x in found:
        x.assign(np.resize(numbers, x.shape).astype(x.dtype) if x.ndim > 1 else np.full(x.shape, 0.5, x.dtype))
    return found


if __name__ == "__main__":
    main()
