"""pullback: seeds, several results, unused parts of a bundle, nodes off the way, and the errors that name a node."""

import pytest

import cgraph as cg
from cgraph.errors import DTypeError, GraphError, NoGradientError, ShapeError
from cgraph.ir.graph import Op, apply
from cgraph.ir.traverse import post_order
from cgraph.ops.pullback import a_node, add_to, gradient_of, operand_gradients, pullback, seed_of
from tests.support.computed import computed, float64


def test_each_seed_weighs_its_own_result():
    x, y = float64([1.0, 2.0], [3.0, 5.0])
    seeds = [cg.Const([1.0, 10.0]), cg.Const([100.0, 1000.0])]
    to_x, to_y = computed(*pullback([x * y, x - y], seeds, [x, y]))
    assert to_x.tolist() == [103, 1050] and to_y.tolist() == [1 - 100, 20 - 1000]


def test_a_result_that_is_a_source_receives_its_seed_and_others_zeros():
    x, other = float64([1.0, 2.0], [[3.0]])
    seed = cg.Const([7.0, 8.0])
    assert pullback([x], [seed], [x]) == [seed]
    got = computed(*pullback([x], [seed], [other, x]))
    assert got[0].tolist() == [[0]] and got[1].tolist() == [7, 8]
    assert pullback([x, x], [seed, seed], []) == []


def test_the_walk_stops_at_the_sources():
    x = float64([1.0, 2.0])
    inner = x * 3
    outer = inner * inner
    assert computed(*pullback([outer], [cg.ones_like(outer)], [inner])).tolist() == [6, 12]
    both = computed(*pullback([outer], [cg.ones_like(outer)], [inner, x]))
    assert both[0].tolist() == [6, 12] and both[1].tolist() == [18, 36]


def test_a_node_used_twice_adds_its_gradients():
    x = float64([2.0])
    y = x * x + x
    assert computed(*pullback([y], [cg.ones_like(y)], [x])).tolist() == [5]
    sums = {}
    add_to(sums, "key", x)
    assert sums["key"] is x
    add_to(sums, "key", x)
    assert computed(sums["key"]).tolist() == [4]


def test_unused_results_of_a_bundle_count_as_zeros():
    x = float64([3.0, 1.0, 2.0])
    values, _ = cg.top_k(x, 2)
    bundle = values.operands[0]
    assert gradient_of(bundle, {}) is None
    parts = gradient_of(bundle, {(bundle, 0): cg.Const([5.0, 6.0])})
    assert [p.shape for p in parts] == [(2,), (2,)] and computed(parts[1]).tolist() == [0, 0]
    assert gradient_of(x, {x: values}) is values and gradient_of(x, {}) is None


def test_seeds_fit_their_results():
    x, several, z = cg.Var((), name="x"), cg.Var((2,), name="several"), cg.Var((), "complex64", "z")
    assert computed(seed_of(x.assign(3), None)) == 1
    for y, seed, error, message in (
        (several, None, ShapeError, r"several float32\[2\] has 2 elements; pass seed=, or differentiate its sum"),
        (z, None, DTypeError, r"z complex64\[\] is complex; pass seed=, or differentiate its real part"),
        (cg.Var((), "int32", "n"), None, DTypeError, r"n int32\[\] is not a float, so it has no gradient"),
        (x, several, ShapeError, r"seed float32\[2\] does not fit x float32\[\]; pass a seed of the same shape"),
        (x, cg.Var((), "float64"), ShapeError, r"seed float64\[\] does not fit"),
        (x, 1.0, GraphError, r"1.0 is not a node; wrap numbers and arrays as cg.Const\(x\)"),
    ):
        with pytest.raises(error, match=message):
            seed_of(y, seed)
    assert seed_of(cg.Var((1, 1)), None).shape == (1, 1)
    assert a_node(x) is x


def test_sources_are_floats_and_the_error_names_the_call():
    n, x = cg.Var((2,), "int32", "n"), cg.Var((2,))
    with pytest.raises(DTypeError, match=r"pullback at test_pullback.py:\d+: n int32\[2\] is not a float"):
        pullback([x], [x], [x, n])
    half = cg.Var((2,), "float16")
    y = half.astype("float32")
    assert pullback([y], [cg.ones_like(y)], [half])[0].shape == (2,)


class Wall(Op):
    """An op without a gradient."""

    def infer(self, x, y):
        return x


def test_an_op_without_a_gradient_is_named_with_its_operands_and_line():
    x, y = cg.Var((2,), name="x"), cg.Var((3,), name="y")
    node = apply(Wall(), x, y)
    message = r"wall has no gradient \(made at test_pullback.py:\d+ of x float32\[2\], y float32\[3\]\)"
    with pytest.raises(NoGradientError, match=message):
        operand_gradients(node, x)
    with pytest.raises(NoGradientError, match=message):
        pullback([node], [x], [y])
    other = cg.Var((2,))
    (got,) = pullback([node * other], [cg.ones_like(x)], [other])
    assert node in set(post_order([got]))
