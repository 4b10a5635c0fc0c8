"""The pointwise family: promotion as NumPy's, broadcasting as nodes, dtypes of functions, bands, names of functions."""

from contextlib import suppress

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import OPS
from cgraph.ir.spec import Spec
from cgraph.kernels.target import host_target
from cgraph.ops.arithmetic import Add, Maximum, Negative
from cgraph.ops.compare import Where
from cgraph.ops.family import (
    broadcast,
    common_dtype,
    float_dtype,
    numeric_dtype,
    plain,
    quotient_dtype,
    real_dtype,
    real_node,
    scalar_program,
    unify,
)
from cgraph.ops.shape import BroadcastTo

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64 complex64 complex128".split()


@pytest.mark.parametrize("name", DTYPES)
def test_promotion_of_two_dtypes_is_numpys_save_for_half_precision(name):
    for other in DTYPES:
        want = np.result_type(np.dtype(name), np.dtype(other))
        assert common_dtype(cg.Var((1,), name), cg.Var((1,), other)) == (np.float32 if want == np.float16 else want)
    for number in (True, 3, 1.5, 1j):
        want = np.result_type(np.dtype(name), number)
        assert common_dtype(cg.Var((1,), name), number) == (np.float32 if want == np.float16 else want), number


def test_storage_dtypes_are_promoted_as_float32():
    for name in ("float16", "bfloat16"):
        assert common_dtype(cg.Var((1,), name), 1.5) == common_dtype(cg.Var((1,), name)) == np.float32
    assert common_dtype(np.float16(1), 2) == np.float32
    with pytest.raises(DTypeError, match="use astype to give the operands one dtype"):
        common_dtype(cg.Var((1,)), np.array(["2020-01-01"], "datetime64[D]"))


def test_dtypes_in_which_functions_are_computed():
    table = {
        float_dtype: {"bool": "float32", "uint16": "float32", "int32": "float64", "float32": "float32",
                      "float16": "float32", "complex64": "complex64"},
        quotient_dtype: {"bool": "float64", "int8": "float64", "float32": "float32", "float16": "float32"},
        real_dtype: {"complex64": "float32", "complex128": "float64", "float32": "float32", "int8": "int8"},
        numeric_dtype: {"bool": "int8", "uint8": "uint8"},
    }  # fmt: skip
    for function, rows in table.items():
        assert {name: str(function(np.dtype(name))) for name in rows} == rows, function


def test_lists_become_arrays_and_numbers_stay():
    assert plain([1, 2]).dtype == "int64" and plain(2.5) == 2.5 and plain(True) is True
    x = cg.Var((2,))
    assert plain(x) is x


def test_operands_are_broadcast_by_nodes_and_only_where_needed():
    x, row, one = cg.Var((2, 3)), cg.Var((3,)), cg.Var(())
    assert broadcast(x, x) == [x, x]
    a, b, c = broadcast(x, row, one)
    assert a is x and [n.op for n in (b, c)] == [BroadcastTo((2, 3))] * 2 and b.operands == (row,)
    wide = broadcast(cg.Var((2, 1)), row)
    assert [n.shape for n in wide] == [(2, 3)] * 2
    assert broadcast(one, cg.Var((0,)))[0].shape == (0,)
    with pytest.raises(ShapeError, match=r"x float32\[2\], y float32\[3\]; use equal lengths or 1, or reshape"):
        broadcast(cg.Var((2,), name="x"), cg.Var((3,), name="y"))


def test_unify_promotes_and_broadcasts_and_a_dtype_overrides():
    x, y = unify(cg.Var((2, 1), "int8"), [1.5, 2.5, 3.5])
    assert (x.spec, y.spec) == (Spec((2, 3), np.dtype("float64")),) * 2
    assert [n.dtype for n in unify(cg.Var((2,), "int8"), 3, dtype=np.dtype("int64"))] == ["int64"] * 2


def test_a_complex_operand_of_a_real_function_is_refused():
    with pytest.raises(DTypeError, match=r"z complex64\[2\] is complex, but this function is real; use np.real"):
        real_node(cg.Var((2,), "complex64", "z"))


def test_shapes_are_compared_before_dtypes_are_computed():
    f4, b1 = np.dtype("float32"), np.dtype(bool)
    with pytest.raises(ShapeError, match=r"operands differ in shape: float32\[2\], float32\[3\]; broadcast them first"):
        Add().infer(Spec((2,), f4), Spec((3,), f4))
    assert Where().infer(*(Spec((2,), d) for d in (b1, f4, f4))).dtype == f4


def test_images_are_cut_into_bands_of_rows_and_matrices_are_not():
    f4 = np.dtype("float32")
    image, matrix = Spec((1, 2, 6, 5), f4), Spec((6, 5), f4)
    assert Add().cut(matrix, matrix) is None
    cut = Add().cut(image, image)
    firsts, stops = cut.reads[1]
    assert len(cut.reads) == 2 and (list(firsts), list(stops)) == ([*range(6)], [*range(1, 7)])
    assert cut.band(1, 3) == Add() and len(Negative().cut(image).reads) == 1


def test_operands_of_the_results_width_may_be_overwritten():
    b1, f4, f8 = (np.dtype(d) for d in ("bool", "float32", "float64"))
    target = host_target()
    assert Where().work(target, Spec((2,), b1), Spec((2,), f4), Spec((2,), f4)).overwrites == (1, 2)
    assert cg.less(cg.Var((2,), f8), 1).op.work(target, *(Spec((2,), f8),) * 2).overwrites == ()


def test_programs_are_of_the_op_and_of_its_operands_dtypes():
    floats, whole = scalar_program(Maximum(), ("f4", "f4")), scalar_program(Maximum(), ("i4", "i4"))
    assert floats is scalar_program(Maximum(), ("f4", "f4")) and floats != whole
    assert scalar_program(Add(), ("f4", "f4")) != floats


def test_functions_of_one_operand_compute_in_its_dtype_or_in_a_float():
    for function, dtypes in ((cg.negative, ["int8", "float32"]), (cg.sqrt, ["float32", "float32"])):
        assert [str(function(cg.Var((2,), d)).dtype) for d in ("int8", "float16")] == dtypes


def test_public_functions_have_the_name_and_the_text_of_their_op():
    assert OPS["maximum"] is cg.maximum
    assert (cg.maximum.__name__, cg.maximum.__doc__) == ("maximum", Maximum.__doc__)
    assert cg.true_divide.__name__ == "true_divide"


NO_SECOND_OPERAND = frozenset("astype delay gelu lazy_print thresholded_relu".split())
"""Functions of one array: their second argument, or their first, is a dtype, a function, a text or a setting."""


def test_a_function_of_two_arrays_promotes_both_whichever_comes_first():
    """Every public function that takes two square matrices and gives a node: float32 with float64, either way."""
    narrow, wide, promoted = cg.Var((3, 3), "float32"), cg.Var((3, 3), "float64"), []
    for name, function in sorted(OPS.items()):
        dtypes = []
        for pair in ((narrow, wide), (wide, narrow)):
            with suppress(Exception):  # it takes other arguments
                result = function(*pair)
                dtypes += [result.dtype] if isinstance(result, cg.Node) and isinstance(result.spec, Spec) else []
        if len(dtypes) == 2 and dtypes[0].kind in "fc":
            promoted.append(name)
            assert dtypes[0] == dtypes[1] or name in NO_SECOND_OPERAND, (name, dtypes)
    assert len(promoted) > 20 and {"complex", "add", "matmul", "arctan2"} <= set(promoted)
