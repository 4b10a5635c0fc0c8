"""Constants folded while a graph is built: what is folded, what it costs, what depends on inputs."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.constants import FOLDED_SIZE, STEP, Evaluator, fold, is_small_constant, nbytes_of, work_of
from cgraph.formats.unspecified import UnknownError
from cgraph.ops.leaf import Const, ConstOp, Var


def constant(*values):
    return Const(np.array(values, "i8"))


def drawn():
    """Numbers that differ between calls."""
    return cg.delay_array((2,), "float64", lambda: np.zeros(2))


def evaluator(**values):
    return Evaluator(Allowance(0), {k: np.array(v, "i8") for k, v in values.items()})


def test_a_small_result_of_constants_is_a_constant():
    a, b = constant(2, 3), constant(5, 7)
    folded = fold(a * b, [a, None, [b]], evaluator())
    assert isinstance(folded.op, ConstOp)
    np.testing.assert_array_equal(folded.op.array, [10, 21])
    assert fold(None, [a], evaluator()) is None and fold(a, [a], evaluator()) is a


def test_a_result_of_an_input_or_of_random_numbers_or_of_many_elements_stays():
    a, x = constant(2, 3), Var((2,), "int64", "x")
    assert not isinstance(fold(a * x, [a, x], evaluator()).op, ConstOp)
    assert not isinstance(fold(a * x, [a], evaluator(x=[1, 2])).op, ConstOp), "an input with a value is still one"
    random = drawn()
    assert fold(random, [], evaluator()) is random
    for size, is_folded in ((FOLDED_SIZE, True), (FOLDED_SIZE + 1, False)):
        wide = cg.full((size,), 3) + 1
        assert isinstance(fold(wide, [a], evaluator()).op, ConstOp) is is_folded
        assert is_small_constant(Const(np.zeros(size))) is is_folded
    total = cg.sum(Const(np.ones(FOLDED_SIZE + 1)))
    assert fold(total, total.operands, evaluator()) is total
    assert fold(total, [a], evaluator()) is not total


def test_quantised_filters_stay_nodes():
    filters, scale = Const(np.ones(3, "i1")), Const(np.float32(0.5))
    x = cg.dequantize(filters, scale)
    assert fold(x, [filters, scale], evaluator()) is x


def test_small_constants_may_be_lists_of_them():
    a, x = constant(1), Var((1,))
    assert is_small_constant([a, [a]]) and is_small_constant([])
    assert not is_small_constant([a, x]) and not is_small_constant(a + a) and not is_small_constant(3)


def test_open_and_lacking_are_told_apart():
    x, y = Var((), "int64", "x"), Var((), "int64", "y")
    e = evaluator(x=4)
    assert e.is_open(x + 1) and not e.lacks(x + 1) and e.missing(x + 1) == []
    assert e.lacks(x + y) and e.missing(x + y) == ["y"]
    assert not e.is_open(constant(1) + 2) and e.is_open(drawn()) and not e.lacks(drawn())


def test_a_value_that_decides_notes_the_inputs_that_decided():
    x, y = Var((2,), "int64", "x"), Var((2,), "int64", "y")
    e = evaluator(x=[4, 5], z=[1, 1])
    np.testing.assert_array_equal(e.array(x * 2, "the shape"), [8, 10])
    assert list(e.used) == ["x"]
    with pytest.raises(UnknownError, match="the shape must be constant .*, but depends on input 'y'") as error:
        e.array(x * y, "the shape")
    assert error.value.constants == ("y",) and list(e.used) == ["x"]


def test_computing_costs_work_and_memory_before_it_is_done():
    e = evaluator()
    before = e.allowance.work
    a = cg.broadcast_to(constant(1), (1000,))
    np.testing.assert_array_equal(e.array(a * 2, "x"), np.full(1000, 2))
    assert before - e.allowance.work >= 1000
    e.allowance.work = 2 * STEP
    with pytest.raises(FormatError, match="computing a constant would take .* computed elements"):
        e.array(cg.broadcast_to(constant(1), (3000,)) * 2, "x")
    e = evaluator()
    e.allowance.nbytes = 7999
    with pytest.raises(FormatError, match="computing a constant would take .* bytes"):
        e.array(cg.broadcast_to(constant(1), (1000,)) * 2, "x")
    value = Const(np.zeros(5000))
    assert e.array(value, "x") is value.op.array  # which exists already


def test_work_is_a_sum_for_linear_ops_and_a_product_for_others():
    x, y = Const(np.ones((20, 30))), Const(np.ones((30, 50)))
    assert work_of(x + x) == STEP + 600 * 3
    assert work_of(x @ y) == STEP + 1000 * 1500
    assert work_of(cg.sum(x)) == STEP + 600
    assert work_of(Const(np.ones((0, 30))) @ y) == STEP + 1500
    best, places = cg.top_k(x, 4)
    assert best.operands[0] is places.operands[0]
    assert work_of(best.operands[0]) == STEP + 2 * 20 * 4 * 600


def test_views_of_constants_take_no_memory():
    x = Const(np.ones((4, 8)))
    assert nbytes_of(x) == nbytes_of(cg.broadcast_to(x, (9, 4, 8))) == nbytes_of(x.transpose()) == 0
    assert nbytes_of(x + 1) == 4 * 8 * 8


def test_every_input_that_a_value_depends_on_is_recorded_or_named_as_missing():
    x, y, z = (Var((2,), "int64", name) for name in "xyz")
    for node, names in ((x + y, "xy"), (y * 2 + x, "yx"), (cg.concat([z, x + y]), "zxy"), (z, "z")):
        e = evaluator(x=[1, 2], y=[3, 4], z=[5, 6], unread=[7, 8])
        e.array(node, "a shape")
        assert {name: x.tolist() for name, x in e.used.items()} == {name: e.values[name].tolist() for name in names}
    for given in ({}, {"y": [1, 2]}):
        with pytest.raises(UnknownError, match=f"input '{'z' if given else 'y'}'") as error:
            evaluator(**given).array(y - z, "a shape")
        assert error.value.constants == (("z",) if given else ("y", "z"))


def test_a_loop_is_not_run_while_a_file_is_read():
    """No size of the file bounds its rounds."""
    start = Const(np.int64(0))
    (last,) = cg.while_loop(lambda state: state[0] < 3, lambda state: (state[0] + 1,), (start,))
    assert evaluator().is_open(last) and evaluator().is_open(last + 1) and not evaluator().is_open(start + 1)
    assert fold(last, [start], evaluator()) is last


X, PLACES = Const(np.ones((20, 30))), Const(np.array([[0], [1]]))
LINEAR = {
    "pointwise": (lambda: X * X, 3 * 600),
    "a view": (lambda: cg.reshape(X, (600,)), 2 * 600),
    "joined": (lambda: cg.concat([X, X, X], 1), 6 * 600),
    "taken": (lambda: cg.take(X, PLACES, axis=0), 60 + 600 + 2),
    "taken along an axis": (lambda: cg.take_along_axis(X[:2], PLACES, 1), 2 + 60 + 2),
    "full": (lambda: cg.full((7,), 3), 7),
}


@pytest.mark.parametrize("name", LINEAR)
def test_the_work_of_ops_that_read_each_element_once_is_what_they_read_and_write(name):
    make, elements = LINEAR[name]
    assert work_of(make()) - STEP in (elements, elements + 1)  # a number that fills may be an operand
