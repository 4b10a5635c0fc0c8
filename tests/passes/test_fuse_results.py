"""Outputs of one shape that share what they read come from one step, with the same bits; others do not."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.traverse import post_order
from cgraph.ops.fused import FusedResults
from cgraph.passes.fuse_pointwise import MOST_OPERANDS, MOST_OPS
from cgraph.passes.fuse_results import fuse_results
from tests.support.tolerance import assert_near

SHAPE = (40, 30)
RNG = np.random.default_rng(0)
A, B = RNG.normal(size=SHAPE), RNG.normal(size=SHAPE)


def variables(dtype="float64"):
    return cg.Var(SHAPE, dtype, "x"), cg.Var(SHAPE, dtype, "y")


def joint(outputs, inputs):
    return [n for n in post_order(fuse_results(tuple(outputs), inputs)) if isinstance(n.op, FusedResults)]


def adam(x, y):
    mean = 0.9 * x + 0.1 * y
    square = 0.99 * x * x + 0.01 * y * y
    return [mean, square, x - 0.1 * mean / (np.sqrt(square) + 1e-8)]


def escapes(x, y):
    z = x * y + x
    far = np.abs(z) > 1.0
    return [np.where(far, 2.0, z), np.where(far & (y > 0), 1.0, x), far]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("graph", [adam, escapes])
def test_results_have_the_bits_of_each_by_itself(graph, threads):
    x, y = variables()
    outputs = graph(x, y)
    assert len(joint(outputs, [x, y])) == 1
    f = cg.compile(outputs, [x, y], threads=threads)
    alone = [cg.compile(node, [x, y], threads=1)(A, B) for node in outputs]
    poisoned = cg.compile(outputs, [x, y], engine=CpuEngine(poison=True))
    for run in (f, poisoned):
        for got, want in zip(run(A, B), alone, strict=True):
            np.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype
    rewritten = fuse_results(tuple(outputs), [x, y])
    for got, want in zip(evaluate(rewritten, {x: A, y: B}), alone, strict=True):
        assert_near(got, want, "float64 formulas near zero")


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128", "int32", "uint8", "bfloat16"])
def test_every_dtype_and_any_strides(dtype):
    x, y = variables(dtype)
    outputs = [x + y, x * y, (x + y) * x]
    value = [np.asarray(3 * v).astype(cg.Var((1,), dtype).dtype) for v in (A, B)]
    f = cg.compile(outputs, [x, y])
    for got, node in zip(f(*value), outputs, strict=True):
        np.testing.assert_array_equal(got, cg.compile(node, [x, y])(*value))


def test_broadcast_operands_are_read_as_they_are():
    x, row = cg.Var(SHAPE, "float64", "x"), cg.Var(SHAPE[1:], "float64", "row")
    outputs = [x * row, x - row, cg.exp(x)]
    assert len(joint(outputs, [x, row])) == 1
    product, difference, _ = cg.compile(outputs, [x, row])(A, B[0])
    np.testing.assert_array_equal(product, A * B[0])
    np.testing.assert_array_equal(difference, A - B[0])


def test_an_output_that_another_reads_is_shared_and_listed_outputs_stay_in_order():
    x, y = variables()
    z = cg.exp(x)
    outputs = [z * y, z, z * y]
    (node,) = joint(outputs, [x, y])
    assert len(node.spec.specs) == 2
    first, middle, last = cg.compile(outputs, [x, y])(A, B)
    np.testing.assert_array_equal(first, middle * B)
    np.testing.assert_array_equal(first, last)


def test_what_is_not_fused():
    x, y = variables()
    other, cell = cg.Var((3, 3), "float64", "other"), cg.Var(SHAPE, "float64", "cell")
    nothing_shared = [cg.exp(x), cg.exp(y)]
    one_output = [cg.exp(x) * x]
    other_shapes = [cg.exp(x) * x, cg.exp(other)]
    read_elsewhere = [(z := cg.exp(x)) * x, z + x, cg.sum(cg.log(z * z) * x)]
    after_a_product = [(p := x @ cg.transpose(y) @ y) * x, p + x]
    without_input, once = [cell * 2.0, cell * x], cg.exp(cell)
    inside = [once * x, once + x]
    for outputs in (nothing_shared, one_output, other_shapes, read_elsewhere, after_a_product, without_input, inside):
        assert joint(outputs, [x, y, other]) == []


def test_a_chain_longer_than_a_kernel_stays_in_pieces():
    x, y = variables()
    z = x
    for i in range(70):
        z = cg.tanh(z * y + float(i))
    assert joint([z, z + x], [x, y]) == []


def test_update_edges_and_budgets_keep_their_steps():
    x, cell = cg.Var(SHAPE, "float64", "x"), cg.Var(SHAPE, "float64", "cell").assign(B)
    new = cell + x
    f = cg.compile([new * x, new - x], [x], {cell: new})
    np.testing.assert_array_equal(f(A)[0], (B + A) * A)
    x, y = variables()
    outputs = [x + y, x * y]
    free, bound = (cg.compile(outputs, [x, y], budget=budget) for budget in (None, "1MiB"))
    for got, want in zip(bound(A, B), free(A, B), strict=True):
        np.testing.assert_array_equal(got, want)
    assert free.nbytes <= bound.nbytes


def test_fewer_bytes_are_planned():
    x, y = variables()
    far = cg.abs(z := x * y + x) > 1.0
    f = cg.compile([cg.where(far, 2.0, z), cg.where(far, x, y)], [x, y])
    assert f.nbytes == 2 * A.nbytes


@pytest.mark.parametrize(("inputs", "is_joint"), [("xr", True), ("x", True), ("r", True), ("", False), ("z", False)])
def test_each_result_depends_on_an_input_perhaps_by_a_broadcast(inputs, is_joint):
    """A value that no call changes is not computed again with those that calls change."""
    values = {"x": cg.Var(SHAPE, name="x"), "r": cg.Var(SHAPE[1:], name="r"), "z": cg.Var(SHAPE, name="z")}
    outputs = [values["x"] * values["r"], values["x"] - values["r"]]
    assert bool(joint(outputs, [values[name] for name in inputs])) is is_joint
    outputs.append(cg.exp(values["x"]))
    assert bool(joint(outputs, [values[name] for name in inputs])) is ("x" in inputs)


@pytest.mark.parametrize("count, is_joint", [(MOST_OPERANDS, True), (MOST_OPERANDS + 1, False)])
def test_at_most_so_many_arrays_are_read_together(count, is_joint):
    xs = [cg.Var((3,), "float64", f"x{i}") for i in range(count)]
    outputs = [sum(xs[1:], xs[0]), sum(xs[1:], xs[0]) * xs[0]]
    assert (len(joint(outputs, xs)) == 1) is is_joint
    values = [np.arange(3.0) + i for i in range(count)]
    for got, want in zip(cg.compile(outputs, xs)(*values), (sum(values), sum(values) * values[0]), strict=True):
        assert_near(got, want, "float64 formulas")


@pytest.mark.parametrize("more, is_joint", [(0, True), (1, False)])
def test_at_most_so_many_ops_are_computed_together(more, is_joint):
    x, y = variables()
    z = x
    for _ in range(MOST_OPS - 1 + more):
        z = z + y
    assert (len(joint([z, z * x], [x, y])) == 1) is is_joint


def test_a_value_that_is_read_in_two_ways_is_followed_once():
    x, cell = cg.Var(SHAPE, name="x"), cg.Var(SHAPE, name="cell")
    y = cell
    for _ in range(20):
        y = y * y + y
    assert joint([y, y + 1.0], [x]) == [] and len(joint([y, y + 1.0], [cell])) == 1
