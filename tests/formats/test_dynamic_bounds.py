"""Bounds of lengths by hand: which are numbers now, which element a length is, and when a check of a run applies."""

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.names import cg
from cgraph.formats.onnx.dynamic.bounds import (
    Element,
    LengthBounds,
    Size,
    bounds_of_length,
    most,
    node_of,
    product_of,
)
from cgraph.formats.onnx.dynamic.intervals import SMALL
from cgraph.ops.leaf import Const, Var
from cgraph.ops.prefix import prefix


@pytest.fixture
def limits():
    return LengthBounds({}, Allowance(0))


def size(name="n", low=0, high=9):
    return Size(Var((), "int64", name), low, high)


def test_a_maximum_is_an_integer_from_zero():
    assert LengthBounds({"n": np.int32(0), "m": 7}, Allowance(0)).maximum == {"n": 0, "m": 7}
    for value in (-1, True, 2.0, "3"):
        with pytest.raises(FormatError, match="for 'n'; give an integer >= 0"):
            LengthBounds({"m": 1, "n": value}, Allowance(0))


def test_the_lowest_of_several_maxima_counts(limits):
    x = Var((2,), "int64", "x")
    limits.at_most(x, 5)
    limits.at_most(x, 8)
    assert limits.bounds(x)[1].tolist() == [5, 5]
    limits.at_most(x, 3)
    assert limits.bounds(x)[1].tolist() == [3, 3] and np.all(limits.bounds(x)[0] <= np.iinfo("i8").min)


def test_lengths_are_constants_or_elements_in_their_place(limits):
    x = Var((3,), "int64", "x")
    limits.at_most(x, 6)
    joined = cg.concat([Const(np.array([4])), cg.take(x, np.array([2, 0]), 0)], 0)
    first, second, third = limits.lengths(joined)
    assert first == 4 and isinstance(second, Size) and isinstance(third, Size) and second.high == third.high == 6
    got = evaluate([second.node, third.node], {x: np.array([10, 20, 30])})
    assert [int(n) for n in got] == [30, 10] and got[0].dtype == np.int64 and got[0].shape == ()
    assert limits.lengths(Const(np.array([[7, 8]]))) == [7, 8] and limits.length(Const(np.array(3))) == 3
    assert isinstance(limits.length(cg.sum(x)), Size)


def test_one_element_by_two_ways_is_one_length(limits):
    x = Var((2,), "int64", "x")
    sources = [limits.source(node) for node in (x, cg.take(x, np.array([1, 0]), 0), cg.astype(x, "int32"))]
    assert sources[0][0] == sources[1][1] == sources[2][0] and sources[0][1] == sources[1][0] != sources[0][0]
    assert limits.source(x * 2)[0].node is not x
    assert limits.source(cg.astype(x, "int8"))[0].node is not x  # its values may wrap around


def test_copies_of_small_values_are_their_elements_and_other_values_their_own(limits):
    """Up to a size, of the copy and of what it copies; at places that are known; of integers of 4 or 8 bytes."""
    x, n = Var((2,), "int64", "x"), Var((), "int64", "n")
    wide = Var((SMALL + 1,), "int64", "wide")
    fits = Var((SMALL,), "int64", "fits")
    own = limits.source(x)
    assert limits.source(prefix(x, n)).tolist() == own.tolist() == [Element(x, 0), Element(x, 1)]
    assert limits.source(cg.astype(cg.astype(x, "int32"), "uint64")).tolist() == own.tolist()
    assert limits.source(cg.broadcast_to(x, (SMALL // 2, 2)))[-1].tolist() == own.tolist()
    assert limits.source(cg.broadcast_to(x, (SMALL // 2 + 1, 2))) is None and limits.source(wide) is None
    assert limits.source(fits)[-1] == Element(fits, SMALL - 1)
    assert limits.source(fits[:2])[1] == Element(fits, 1)
    part = wide[:2]
    assert limits.source(part).tolist() == [Element(part, 0), Element(part, 1)]
    chosen = cg.take(x, cg.reshape(n, (1,)), 0)
    assert limits.source(chosen).tolist() == [Element(chosen, 0)]
    table = cg.concat([cg.reshape(x, (1, 2)), cg.reshape(x, (1, 2)) * 3], 0)
    turned = limits.source(cg.transpose(table))
    assert turned[:, 0].tolist() == own.tolist() and turned.shape == (2, 2)
    assert limits.source(cg.take(table, np.array([1, 0]), 1))[0].tolist() == own.tolist()[::-1]


def test_numbers_that_a_double_cannot_hold_are_no_constants(limits):
    x = Var((1,), "int64", "x")
    values = [2**53 - 1, 2**53, 2**60 + 1, -(2**53) + 1, -(2**53), 0]
    known = limits.source(cg.concat([Const(np.array(values)), x], 0))
    assert [v if isinstance(v, int) else None for v in known] == [values[0], None, None, values[3], None, 0, None]
    limits.at_most(x, 4)
    pinned = cg.maximum(x, 4)
    assert limits.source(cg.concat([pinned, x], 0))[0] == 4 and limits.length(cg.reshape(pinned, ())) == 4


def test_a_limit_is_checked_once_and_again_where_it_is_lower(limits):
    x = Var((3,), "int64", "x")
    for limit, count in ((5, 1), (5, 1), (8, 1), (3, 2), (4, 2)):
        limits.limit(x, limit, f"at most {limit}")
        assert len(limits.checks) == count and limits.bounds(x)[1].max() == (5 if count == 1 else 3)
    assert [c.text for c in limits.checks] == ["at most 5", "at most 3"]
    for value, want in (([1, 2, 3], [1, 1]), ([4, 0, 0], [1, 0]), ([0, 0, 6], [0, 0]), ([5, 5, 5], [1, 0])):
        assert [int(v) for v in evaluate([c.holds for c in limits.checks], {x: np.array(value)})] == want


def test_what_is_computed_of_a_converted_float_trusts_that_it_is_a_number(limits):
    """Whichever operand it is of."""
    f, n = Var((2,), "float32", "f"), Var((2,), "int64", "n")
    converted = cg.astype(f, "int64")
    trusting = [
        converted,
        converted + n,
        n - converted,
        cg.maximum(converted + n, n),
        cg.reshape(n * converted, (1, 2)),
    ]
    others = [n, n + n, cg.astype(n, "int32"), cg.astype(n, "float32"), f + f]
    for x in (*trusting, *others):
        limits.bounds(x)
        assert (x in limits.trusting) is any(x is y for y in trusting)


def test_floats_hold_no_lengths(limits):
    with pytest.raises(FormatError, match=r"v .*float32.* holds no lengths"):
        limits.lengths(Var((2,), "float32", "v"))
    assert limits.source(Var((2,), "float32", "w")) is None


def test_bounds_of_some_runs_leave_those_of_all_runs_alone(limits):
    n, m = Var((), "int64", "n"), Var((2,), "int64", "m")
    limits.at_most(n, 9, 2)
    limits.at_most(m, 4)
    y = n * 2 + m
    assert [v.tolist() for v in limits.bounds(n)] == [2, 9] and limits.bounds(y)[1].tolist() == [22, 22]
    some = limits.case(n, 3, 5)
    assert [v.tolist() for v in some.bounds(n)] == [3, 5] and some.bounds(y)[1].tolist() == [14, 14]
    assert some.bounds(n < 3)[1] == 0 and limits.bounds(n < 3)[1] == 1
    assert [v.tolist() for v in limits.bounds(n)] == [2, 9] and limits.bounds(y)[1].tolist() == [22, 22]


def test_steps_are_shared_by_length(limits):
    assert limits.steps(3) is limits.steps(3) is not limits.steps(4)
    assert limits.steps(3).op.array.tolist() == [0, 1, 2] and limits.steps(3).dtype == np.int64


def test_checks_of_a_branch_apply_while_it_is_active(limits):
    holds, outer, inner = (Var((), bool, name) for name in ("holds", "outer", "inner"))
    with limits.under(outer):
        with pytest.raises(ZeroDivisionError), limits.under(inner):
            limits.check(holds, "both")
            _ = 1 / 0
        limits.check(holds, "one")
    limits.check(holds, "none")
    assert [x.text for x in limits.checks] == ["both", "one", "none"]
    nodes = [x.holds for x in limits.checks]
    for a, b, want in ((1, 1, [0, 0, 0]), (1, 0, [1, 0, 0]), (0, 1, [1, 1, 0]), (0, 0, [1, 1, 0])):
        values = {holds: np.array(False), outer: np.array(bool(a)), inner: np.array(bool(b))}
        assert [int(x) for x in evaluate(nodes, values)] == want
        assert all(evaluate(nodes, values | {holds: np.array(True)}))


def test_lengths_that_cannot_be_equal_are_refused_and_others_checked(limits):
    n, m = size("n", 2, 4), size("m", 5, 9)
    limits.check_equal(n, n, "itself")
    limits.check_equal(3, 3, "numbers")
    assert not limits.checks
    for x, y in ((n, m), (m, n), (n, 1), (5, n), (2, 3)):
        with pytest.raises(FormatError, match="^differ$"):
            limits.check_equal(x, y, "differ")
    for x, y in ((n, 2), (4, n), (n, size("k", 4, 4))):
        limits.check_equal(x, y, "fit")
    assert len(limits.checks) == 3
    assert [bool(evaluate([limits.checks[0].holds], {n.node: np.array(v)})[0]) for v in (2, 3)] == [True, False]


def test_a_length_as_numbers_and_nodes():
    n, m = size("n", 1, 9), size("m", 0, np.inf)
    assert bounds_of_length(n) == (1, 9) and bounds_of_length(4) == (4, 4) and most(m) == np.inf and most(4) == 4
    assert node_of(n) is n.node and node_of(4).dtype == np.int64
    assert n == Size(n.node, 0, 1) and n != size("n", 1, 9) and n != 9 and len({n, Size(n.node, 0, 1)}) == 1
    assert product_of([3, 4]) == 12 and product_of([]) == 1
    values = {n.node: np.array(5), m.node: np.array(7)}
    for lengths, want in (([n, 2, m, 3], 210), ([n, m], 35), ([n, 0], 0), ([n], 5)):
        assert int(evaluate([product_of(lengths)], values)[0]) == want


@pytest.mark.parametrize(("index", "stays"), [(-3, True), (2, True), (-4, False), (3, False), ("i", False)])
def test_positions_outside_an_axis_are_first_ones_in_a_branch_that_is_not_active(limits, index, stays):
    node = Var((), "int64", "i") if index == "i" else Const(np.array(index))
    assert limits.positions(node, 3) is node
    active = Var((), "bool", "active")
    with limits.under(active):
        got = limits.positions(node, 3)
    assert (got is node) == stays
    for is_active in (True, False):
        (value,) = evaluate([got], {active: np.array(is_active)} | ({node: np.array(7)} if index == "i" else {}))
        assert value == ((7 if index == "i" else index) if is_active or stays else 0)
