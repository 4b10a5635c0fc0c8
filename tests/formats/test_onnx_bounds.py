"""Bounds of values that shapes are computed from: no value is ever outside, whatever it is computed by."""

from typing import Any

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.formats.allowance import Allowance
from cgraph.formats.names import cg
from cgraph.formats.onnx.dynamic.bounds import LengthBounds, Size
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const, Var

MOST = 9


def limits_of() -> LengthBounds:
    return LengthBounds({}, Allowance(0))


def numbers(rng: np.random.Generator, x: Node) -> Any:
    return rng.integers(-3, 6, x.shape).astype(x.dtype)


STEPS: list[Any] = [
    lambda rng, x, y: x + y,
    lambda rng, x, y: x - y,
    lambda rng, x, y: x * y,
    lambda rng, x, y: -x,
    lambda rng, x, y: cg.abs(x),
    lambda rng, x, y: cg.maximum(x, y),
    lambda rng, x, y: cg.minimum(x, numbers(rng, x)),
    lambda rng, x, y: cg.floor_divide(x, np.int64(rng.integers(1, 5))),
    lambda rng, x, y: cg.floor_divide(x, cg.abs(y) + 1),
    lambda rng, x, y: cg.remainder(x, np.int64(rng.integers(1, 5))),
    lambda rng, x, y: cg.sign(x),
    lambda rng, x, y: cg.flip(x),
    lambda rng, x, y: cg.where(cg.less(x, y), x, y),
    lambda rng, x, y: cg.where(cg.equal(x, numbers(rng, x)), y, x),
    lambda rng, x, y: cg.where(cg.logical_not(cg.greater_equal(x, y)), x, -y),
    lambda rng, x, y: cg.cumsum(x),
    lambda rng, x, y: cg.take(cg.concat([x, y], 0), rng.integers(0, 6, 3), 0),
    lambda rng, x, y: cg.broadcast_to(cg.sum(x), (3,)),
    lambda rng, x, y: cg.broadcast_to(cg.max(x), (3,)),
    lambda rng, x, y: cg.astype(cg.not_equal(x, y), "int64"),
    lambda rng, x, y: cg.astype(cg.ceil(cg.astype(x, "float32") / 3), "int64"),
    lambda rng, x, y: cg.take(x, cg.clip(y, 0, 2), 0),
    lambda rng, x, y: cg.astype(cg.astype(x, "float32") * np.float32(0.1), "int64"),
    lambda rng, x, y: cg.argsort(x),
    lambda rng, x, y: cg.astype(cg.logical_and(cg.less(x, 3), cg.less_equal(y, x)), "int64"),
    lambda rng, x, y: cg.nonzero(x, 3)[0][0],
    lambda rng, x, y: cg.broadcast_to(cg.nonzero(x, 3)[1], (3,)),
    lambda rng, x, y: cg.broadcast_to(cg.argmax(y), (3,)),
    lambda rng, x, y: cg.astype(cg.astype(x, "int8"), "int64"),
    lambda rng, x, y: cg.reshape(cg.transpose(cg.stack([x, y], 0))[1:], (4,))[:3],
    lambda rng, x, y: cg.astype(cg.astype(x, bool), "int64"),
    lambda rng, x, y: cg.prod(cg.stack([cg.abs(x), cg.abs(y)], 0), 0),
]


@pytest.mark.parametrize("seed", range(60))
def test_no_value_is_outside_its_bounds(seed):
    rng = np.random.default_rng(seed)
    x, y = Var((3,), "int64", "x"), Var((3,), "int64", "y")
    limits = limits_of()
    for v in (x, y):
        limits.at_most(v, MOST)
    nodes: list[Node] = [x, y, Const(numbers(rng, x)), cg.abs(x), cg.maximum(y, 0)]
    for _ in range(25):
        step = STEPS[rng.integers(len(STEPS))]
        nodes.append(step(rng, nodes[rng.integers(len(nodes))], nodes[rng.integers(len(nodes))]))
    for _ in range(6):
        values = {v: rng.integers(-40 if rng.random() < 0.5 else 0, MOST + 1, 3) for v in (x, y)}
        for node, found in zip(nodes, evaluate(nodes, values), strict=True):
            low, high = limits.bounds(node)
            if np.abs(found).max() < 2**53:  # beyond, integers wrap around
                assert (low <= found).all() and (found <= high).all(), node


def test_elements_that_are_only_moved_are_known_to_be_the_same():
    limits, (_, count) = limits_of(), cg.nonzero(Var((5, 4), "bool", "m"), 20)
    shape = cg.stack([count, Const(np.int64(4))], 0)
    again = cg.concat([cg.reshape(cg.take(shape, np.int64(0), 0), (1,)), Const(np.array([2, 2]))], 0)
    first, *rest = limits.lengths(again)
    assert isinstance(first, Size) and first.node is count and rest == [2, 2]
    assert (first.low, first.high) == (0, 20) and limits.lengths(shape)[1] == 4


def test_a_condition_that_is_decided_by_bounds_alone_is_known():
    limits, (_, count) = limits_of(), cg.nonzero(Var((5,), "bool", "m"), 5)
    asked = cg.stack([count, Const(np.int64(-1))], 0)
    assert limits.lengths(cg.where(cg.equal(asked, -1), 7, asked))[1] == 7
    assert limits.length(cg.where(cg.less(count, 6), 3, 4)) == 3
    assert isinstance(limits.length(cg.where(cg.less(count, 5), 3, 4)), Size)


def test_the_sum_of_a_large_mask_is_bounded_by_its_size():
    mask = Var((300, 300), "bool", "m")
    found = limits_of().length(cg.sum(cg.astype(mask, "int64")))
    assert isinstance(found, Size) and (found.low, found.high) == (0, 90_000)


def test_long_chains_are_looked_at_without_recursion_and_once():
    x = Var((), "int64", "x")
    limits, node = limits_of(), cg.minimum(cg.maximum(x, 0), 3)
    for _ in range(5000):
        node = cg.minimum(node + 1, 7)
    assert limits.bounds(node)[1] == 7


def test_a_bound_that_is_learnt_after_a_value_was_looked_at_holds_for_what_is_computed_of_it():
    limits, x = limits_of(), Var((), "int64", "x")
    assert limits.bounds(x)[1] > 6
    limits.at_most(x, 6)
    assert limits.bounds(x)[1] == 6 and limits.bounds(x + 1)[1] == 7
    limits.at_most(x, 9)
    assert limits.bounds(x)[1] == 6 and limits.bounds(x * 2)[1] == 12
