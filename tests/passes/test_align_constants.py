"""Constants that lie at odd addresses are copied, once each, in loops too; all others stay."""

import numpy as np

import cgraph as cg
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import ConstOp
from cgraph.ops.loop import Loop
from cgraph.passes.align_constants import align_constants
from tests.support.rewrites import assert_left, assert_same_values

X = cg.Var((10_000,), "float64", "x")


def odd(count: int = 10_000) -> cg.Node:
    """A constant whose elements do not lie at multiples of their size."""
    lying = np.frombuffer(b"." + np.arange(float(count)).tobytes(), np.float64, offset=1)
    return cg.Const(lying, name="odd", copy=False)


def constants(*outputs: cg.Node) -> list[np.ndarray]:
    return [node.op.array for node in post_order(outputs) if isinstance(node.op, ConstOp)]


def test_a_constant_at_an_odd_address_is_copied_once():
    c = odd()
    outputs = X * c, cg.sum(c)
    assert not any(x.flags.aligned for x in constants(*outputs))
    (found,) = constants(*align_constants(outputs))
    assert found.flags.aligned and np.array_equal(found, c.op.array)
    assert [x.name for x in post_order(align_constants(outputs)) if isinstance(x.op, ConstOp)] == ["odd"]
    assert_same_values(align_constants, *outputs)


def test_other_constants_are_left():
    assert_left(align_constants, X * cg.Const(np.arange(10_000.0)), cg.sin(X))


def test_a_constant_in_the_body_of_a_loop_is_copied_too():
    last, _ = cg.scan(lambda state, _: (cg.sin(state * odd()), None), X, length=9)
    (found,) = align_constants((last,))
    (loop,) = [node.op for node in post_order([found]) if isinstance(node.op, Loop)]
    assert all(x.flags.aligned for x in constants(*loop.body.results, found))
    assert_same_values(align_constants, last)


def test_a_small_constant_never_lies_at_an_odd_address():
    """Equal ones are one node, wherever the first of them lay."""
    assert odd(4).op.array.flags.aligned and odd(4) is cg.Const(np.arange(4.0), name="odd")


def test_copies_are_stored_as_the_caller_says_also_those_of_bodies():
    stored = []

    def keep(x):
        stored.append(x)
        return x

    last, _ = cg.scan(lambda state, _: (cg.sin(state * odd(10_001)[:-1]), None), X, length=9)
    align_constants((last * odd(),), keep)
    assert sorted(x.size for x in stored) == [10_000, 10_001] and all(x.flags.aligned for x in stored)
