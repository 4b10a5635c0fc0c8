"""Running one op alone: its meaning, strictly checked, and its kernels over arrays that were filled with rubbish."""

from functools import partial
from typing import Any

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.traverse import post_order
from cgraph.ir.work import Work
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import Target, host_target
from cgraph.memory.auto import auto
from cgraph.memory.layout import own_view
from cgraph.ops.leaf import ConstOp, VarOp
from cgraph.passes.loop_bodies import plan_bodies
from cgraph.planning.options import PlanSettings
from cgraph.planning.plan import round_of
from cgraph.system.alignment import ALIGNMENT
from tests.support.kernels import run_calls, view_of

Value = np.ndarray | tuple[np.ndarray, ...]
GUARD = 4096  # bytes on either side of a workspace


def values_of(outputs: list[Node], given: dict[Node, np.ndarray]) -> dict[Node, Value]:
    """The meaning of every node below `outputs`, each checked against its spec."""
    known: dict[Node, Any] = {}
    for node in post_order(outputs):
        if isinstance(node.op, VarOp):
            known[node] = given[node]
            continue
        with np.errstate(all="ignore"):
            known[node] = node.op.meaning(*(known[x] for x in node.operands))
        assert_spec(node, known[node])
    return known


def assert_spec(node: Node, value: Value) -> None:
    """The value has exactly the shape and dtype that `infer` said."""
    if isinstance(node.spec, Bundle):
        assert isinstance(value, tuple) and len(value) == len(node.spec.specs), node
        for spec, one in zip(node.spec.specs, value):
            assert (np.shape(one), np.asarray(one).dtype) == (spec.shape, spec.dtype), node
        return
    assert (np.shape(value), np.asarray(value).dtype) == (node.spec.shape, node.spec.dtype), node


def computing(nodes: dict[Node, Value]) -> list[Node]:
    """The nodes that have kernels."""
    return [node for node in nodes if not isinstance(node.op, ConstOp | VarOp)]


def work_of(node: Node, target: Target | None = None) -> Work:
    """What a target, by default this machine's widest, does for a node; for a loop, once its body is planned."""
    target = target or host_target()
    (node,) = plan_bodies((node,), partial(round_of, PlanSettings(target, ALIGNMENT, auto)))
    return node.op.work(target, *(x.spec for x in node.operands))


def kernel_result(
    node: Node, xs: list[Value], order: str, out: np.ndarray | None = None, target: Target | None = None
) -> list[np.ndarray]:
    """The results of a node's kernels, tasks in `order`; into `out`, or into arrays whose bytes are all ones.

    The workspace is exactly as large as was asked for, and what lies around it must stay as it is.
    """
    bundle = isinstance(node.spec, Bundle)
    specs = node.spec.specs if bundle else (node.spec,)
    outs = [filled(spec) for spec in specs] if out is None else [out]
    work = work_of(node, target)
    views = [tuple(map(view_of, x)) if isinstance(x, tuple) else view_of(x) for x in xs]
    written: Any = tuple(map(view_of, outs)) if bundle else view_of(outs[0])
    nbytes = work.needs(written, views)
    assert nbytes <= work.nbytes
    guarded = filled(Spec((nbytes + 2 * GUARD,), np.dtype("uint8")))
    room = guarded[GUARD : GUARD + nbytes]
    run_calls(work.placed(written, tuple(views), view_of(room)), target, order)
    assert (guarded[:GUARD] == 0xFF).all() and (guarded[GUARD + nbytes :] == 0xFF).all(), node
    return outs


def own_views(node: Node) -> Any:
    """The view of a node's result in bytes of its own; a tuple for a Bundle."""
    if isinstance(node.spec, Bundle):
        return tuple(own_view(spec, Pointer(node, at)) for spec, at in zip(node.spec.specs, node.spec.offsets))
    return own_view(node.spec, Pointer(node))


def filled(spec: Spec) -> np.ndarray:
    """An array whose bytes are all ones: NaN in floats. It begins at a cache line, as in an arena."""
    raw = np.full(spec.nbytes + 64, 0xFF, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + spec.nbytes].view(spec.dtype).reshape(spec.shape)


def contiguous(value: Value) -> Value:
    return tuple(np.array(v, order="C") for v in value) if isinstance(value, tuple) else np.array(value, order="C")


def scattered(value: np.ndarray) -> np.ndarray:
    """The same elements in memory that is neither contiguous nor in order: last axes first, flipped, with gaps."""
    wide = np.zeros((*value.shape[::-1], 2), value.dtype)
    seen = wide[..., 1].transpose()[(..., *(slice(None, None, -1) for _ in value.shape))]
    seen[...] = value
    return seen
