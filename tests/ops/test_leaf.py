"""Leaves: what a Var takes as shape and value, equality of constants, conversion of numbers, what is refused."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest
import scipy.sparse

import cgraph as cg
from cgraph.errors import DTypeError, GraphError, ShapeError
from cgraph.ops.leaf import HASHED_NBYTES, ConstOp, array_like, as_node, constant, scalar_array, var_shape
from tests.support.computed import computed


def test_a_var_has_a_shape_and_a_dtype_or_those_of_an_array():
    assert cg.Var().spec == cg.Var((), "float32").spec
    assert cg.Var(3).shape == (3,) == cg.Var([3]).shape == cg.Var((np.int64(3),)).shape
    x = cg.Var(np.array([1, 2], "int16"))
    assert (x.dtype, x.value.tolist(), x.is_assigned) == ("int16", [1, 2], True)
    narrow = cg.Var(np.array([1.7, -1.7]), "int32")
    assert (narrow.dtype, narrow.value.tolist()) == ("int32", [1, -1])
    assert not cg.Var((2,)).is_assigned


def test_lists_of_values_and_wrong_names_are_refused():
    for shape in ([1.5, 2], [[1, 2]], (1j,)):
        with pytest.raises(ShapeError, match=r"is not a shape of integers. For a Var of these values pass np.array"):
            cg.Var(shape)
    assert var_shape((2, 3)) == (2, 3)
    with pytest.raises(GraphError, match="name=7 is not text; pass a str or None"):
        cg.Var((2,), "float32", 7)
    with pytest.raises(ShapeError):
        cg.Var((-1,))


def test_every_var_is_another_and_has_a_name_of_its_own():
    x, y, named = cg.Var((2,)), cg.Var((2,)), cg.Var((2,), name="w")
    assert x is not y and x.op != y.op
    assert x.name == f"var{x.serial}" != y.name and named.name == "w" and named.op.name == "var"


def test_a_var_copies_its_value_unless_told():
    array = np.zeros(2, "float32")
    copied, shared = cg.Var((2,)).assign(array), cg.Var((2,)).assign(array, copy=False)
    array[0] = 5
    assert (copied.value[0], shared.value[0]) == (0, 5)
    got = copied.value
    got[:] = 9
    assert copied.value.tolist() == [0, 0]


def test_assignment_while_a_function_is_traced_is_refused():
    x = cg.Var((2,), name="x")

    @cg.jit
    def f(y):
        x.assign([1, 2])
        return y

    with pytest.raises(GraphError, match=r"x float32\[2\] is assigned in a traced function"):
        f(np.zeros(2, "float32"))


def test_arrays_of_others_and_what_is_none():
    class Interface:
        __array_interface__ = np.arange(3).__array_interface__

    assert array_like(Interface()).tolist() == [0, 1, 2]
    assert array_like(np.float32(2.5)).dtype == "float32"
    assert array_like(2.5) is None and array_like(np.int64(3)) is None and array_like([1]) is None


def test_small_equal_constants_are_one_node():
    assert cg.Const([1.0, 2.0]) is cg.Const(np.array([1.0, 2.0]))
    others = [cg.Const([1.0, 2.0], "float32"), cg.Const([[1.0, 2.0]]), cg.Const([1.0, 2.5]),
              cg.Const([1.0, 2.0], name="c"), cg.Const([0.0]), cg.Const([-0.0])]  # fmt: skip
    assert len({*others, cg.Const([1.0, 2.0])}) == 7
    wide = np.zeros(100)
    assert cg.Const(wide) is cg.Const(wide.copy()) is not cg.Const(np.r_[wide[1:], 1.0])


def test_large_constants_are_equal_only_to_themselves():
    large, just = np.zeros(HASHED_NBYTES + 1, "uint8"), np.zeros(HASHED_NBYTES, "uint8")
    assert ConstOp(large) != ConstOp(large.copy()) and ConstOp(large) == ConstOp(large)
    assert ConstOp(just) == ConstOp(just.copy())


LARGE = {
    "float32": np.arange(HASHED_NBYTES, dtype="f4"),
    "bytes of an odd number": np.arange(HASHED_NBYTES + 3, dtype="u1"),
    "complex": np.full((HASHED_NBYTES // 8, 2), 1 - 2j, "c8"),
    "NaN and -0.0": np.tile(np.array([np.nan, -0.0, 0.0]), HASHED_NBYTES // 8),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_array_that_is_used_again_is_one_constant_until_it_changes(name):
    x = LARGE[name].copy()
    first = cg.Const(x)
    assert cg.Const(x) is first and cg.Const(x[:]) is first
    assert cg.Const(x, name="w") is not first and cg.Const(x.copy()) is not first
    assert cg.Const(x.reshape(-1)[1:]) is not first
    before = x.copy()
    x[-1:] = 7
    changed = cg.Const(x)
    assert changed is not first
    np.testing.assert_array_equal(first.op.array, before)
    np.testing.assert_array_equal(changed.op.array, x)
    x[...] = before
    np.testing.assert_array_equal(cg.Const(x).op.array, before)


def test_a_large_constant_differs_from_equal_numbers_of_other_bits():
    x = np.zeros(HASHED_NBYTES, "f4")
    plain = cg.Const(x)
    x *= -1
    assert np.signbit(cg.Const(x).op.array).all() and not np.signbit(plain.op.array).any()


def test_views_of_a_large_array_in_another_order_are_constants_in_c_order():
    x = np.arange(HASHED_NBYTES, dtype="f4").reshape(256, -1)
    np.testing.assert_array_equal(cg.Const(x.T).op.array, x.T)
    np.testing.assert_array_equal(cg.Const(x[::2]).op.array, x[::2])
    assert cg.Const(x.T).op.array.flags.c_contiguous and not cg.Const(x).op.array.flags.writeable


def test_a_large_constant_lives_as_long_as_a_graph_reads_it():
    x = np.ones(HASHED_NBYTES, "f4")
    reference = weakref.ref(cg.Const(x).op.array)
    gc.collect()
    assert reference() is None


def test_a_script_that_reads_an_array_in_each_round_holds_one_copy():
    x, w = cg.Var((1, 256)), np.ones((256, 256), "f4")
    tracemalloc.start()
    for _ in range(64):
        x = np.tanh(x @ w)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * w.nbytes


def test_a_constant_is_a_copy_that_nobody_can_write():
    array = np.array([1.0, 2.0])
    node = cg.Const(array)
    array[0] = 9
    assert node.op.array.tolist() == [1, 2] and not node.op.array.flags.writeable
    assert computed(node).tolist() == [1, 2]
    fortran = cg.Const(np.asfortranarray(np.ones((200, 100))))
    assert fortran.op.array.flags.c_contiguous
    large = np.zeros(HASHED_NBYTES + 8, "uint8")
    assert cg.Const(large, copy=False).op.array is large and large.flags.writeable


def test_nodes_and_what_is_no_array_are_refused():
    x = cg.Var((2,), name="x")
    assert as_node(x) is x
    with pytest.raises(GraphError, match=r"x float32\[2\].* is a node already; use it directly"):
        constant(x)
    with pytest.raises(DTypeError, match="not supported"):
        constant(np.array(["a"]))
    assert cg.Const([1, 2], "float32").dtype == "float32"


@pytest.mark.parametrize("number, dtype, message", [
    (0.5, "int8", "int8 cannot hold 0.5; pass an integer, or convert the other operand"),
    (128, "int8", "int8 cannot hold 128"), (-1, "uint8", "uint8 cannot hold -1"),
    (1j, "float32", "float32 cannot hold 1j"), (2**64, "uint64", "uint64 cannot hold 18446744073709551616"),
])  # fmt: skip
def test_a_number_that_a_dtype_cannot_hold_is_named(number, dtype, message):
    with pytest.raises(DTypeError, match=message):
        scalar_array(number, np.dtype(dtype))


def test_numbers_at_the_ends_of_a_dtype_are_held():
    for dtype in ("int8", "uint8", "int64", "uint64"):
        limits = np.iinfo(dtype)
        for number in (limits.min, limits.max, 2.0, True):
            assert scalar_array(number, np.dtype(dtype)) == number
    assert as_node(3, np.dtype("float32")).dtype == "float32" and as_node(3).dtype == "int64"
    assert as_node(np.int16(3), np.dtype("float32")).dtype == "int16"


def test_a_sparse_matrix_is_refused_with_the_way_out():
    with pytest.raises(DTypeError, match=r"of shape \(3, 3\) is sparse; pass its .toarray\(\)$"):
        cg.Var((3,)) @ scipy.sparse.eye_array(3).tocsr()
