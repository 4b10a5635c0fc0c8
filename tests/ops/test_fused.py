"""Fused pointwise ops: operands by position, the last result, names for people, reductions without a stored operand."""

import numpy as np

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.ir.spec import Spec
from cgraph.ops.arithmetic import Add, Cast, Multiply, Negative, Square, Subtract
from cgraph.ops.compare import Invert
from cgraph.ops.elementary import Exp
from cgraph.ops.fused import FusedPointwise, FusedReduction, reduced_program
from cgraph.ops.reduce import Max, Sum
from tests.support.computed import computed, float64
from tests.support.ops import kernel_result

F8, F4 = np.dtype("float64"), np.dtype("float32")


def test_operands_come_first_and_then_earlier_results():
    x, y = float64([5.0, 7.0], [2.0, 3.0])
    body = ((Subtract(), (0, 1)), (Multiply(), (2, 0)), (Subtract(), (1, 3)))  # y - (x - y) * x
    assert computed(apply(FusedPointwise(2, body), x, y)).tolist() == [2 - 15, 3 - 28]
    twice = ((Add(), (0, 0)), (Subtract(), (2, 1)))
    assert computed(apply(FusedPointwise(2, twice), x, y)).tolist() == [8, 11]


def test_the_dtype_is_that_of_the_last_op():
    body = ((Cast(np.dtype(bool)), (0,)), (Invert(), (1,)))
    op = FusedPointwise(1, body)
    assert op.infer(Spec((3,), F8)) == Spec((3,), np.dtype(bool))
    x = float64([0.0, 2.0, np.nan])
    assert computed(apply(op, x)).tolist() == [True, False, False]


def test_a_name_has_each_op_once_and_at_most_four():
    names = [Exp(), Add(), Exp(), Negative(), Multiply(), Subtract()]
    body = tuple((op, (0,) if isinstance(op, Exp | Negative) else (0, 0)) for op in names)
    assert FusedPointwise(1, body[:3]).name == "exp+add"
    assert FusedPointwise(1, body[:5]).name == "exp+add+negative+multiply"
    assert FusedPointwise(1, body).name == "exp+add+negative+multiply+…"


def test_a_reduction_is_of_the_pointwise_result():
    x, y = float64([[1.0, 2.0], [3.0, -4.0]], [[10.0, 20], [30, 40]])
    inner = FusedPointwise(2, ((Subtract(), (0, 1)), (Square(), (2,))))
    op = FusedReduction(Sum((1,)), inner)
    assert op.name == "sum of subtract+square"
    node = apply(op, x, y)
    want = np.square(x.value - y.value).sum(1)
    np.testing.assert_array_equal(op.meaning(x.value, y.value), want)
    np.testing.assert_array_equal(kernel_result(node, [x.value, y.value], "all")[0], want)
    largest = apply(FusedReduction(Max((0,)), inner), x, y)
    np.testing.assert_array_equal(computed(largest), np.square(x.value - y.value).max(0))
    assert op != FusedReduction(Sum((0,)), inner) != FusedReduction(Sum((0,)), Negative())


def test_operands_may_be_of_a_storage_dtype():
    """A conversion is the first of the fused ops."""
    x = cg.Var(np.array([1.5, -2.0], "float16"))
    widened = FusedPointwise(1, ((Cast(F4), (0,)), (Square(), (1,))))
    assert computed(apply(widened, x)).tolist() == [2.25, 4]
    assert computed(apply(FusedReduction(Sum((0,)), widened), x)) == 6.25


def test_integers_are_summed_in_64_bits_after_they_wrap_in_their_own():
    """The pointwise result has its dtype before the reduction converts it."""
    x = cg.Var(np.array([100, 100, -3], "int8"))
    node = apply(FusedReduction(Sum((0,)), Add()), x, x)
    assert node.dtype == "int64"
    assert kernel_result(node, [x.value, x.value], "all")[0] == -56 - 56 - 6 == node.op.meaning(x.value, x.value)
    codes = [instruction[:2] for instruction in reduced_program(Add(), Sum((0,)), ("i1", "i1"))]
    assert codes[-1] == ("cast", "i8") and ("add", "i1") in codes


def test_programs_of_two_dtypes_or_two_ops_differ():
    one = reduced_program(Add(), Sum((0,)), ("f4", "f4"))
    assert one is reduced_program(Add(), Sum((0,)), ("f4", "f4"))
    assert one != reduced_program(Add(), Sum((0,)), ("f8", "f8")) != reduced_program(Subtract(), Sum((0,)), ("f8",) * 2)
