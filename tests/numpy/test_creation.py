"""New arrays are NumPy's: shapes, dtypes, diagonals, grids and evenly spaced numbers, also between nodes."""

from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from cgraph.numpy import creation
from tests.numpy.evaluated import assert_same, compare, drawn, values


def compare_new(call: str) -> None:
    """AssertionError unless our function, which needs no node, gives what NumPy's gives."""
    (got,) = values([eval(f"creation.{call}", {"creation": creation, "np": np})])
    assert_same(got, eval(f"np.{call}", {"np": np}))


@pytest.mark.parametrize("function", ["zeros", "ones"])
def test_new_arrays_have_float64_by_default(function):
    for shape, dtype in product((3, (), (2, 0), (2, 3), [4]), ("", ", 'int8'", ", None", ", dtype=bool")):
        compare_new(f"{function}({shape}{dtype})")


@pytest.mark.parametrize("function", ["eye", "tri"])
def test_ones_on_or_below_a_diagonal(function):
    for n, m, k in product((0, 1, 3), (None, 0, 2, 5), (-4, -1, 0, 1, 2, 6)):
        compare_new(f"{function}({n}, {m}, {k})")
    compare_new(f"{function}(3, 2, 1, 'int32')")
    compare_new("identity(3)")
    compare_new("identity(2, dtype='uint8')")


@pytest.mark.parametrize("call", [
    "arange(5)", "arange(2, 7)", "arange(7, 2, -2)", "arange(1, 2, 0.3)", "arange(0, 5, 2, 'float32')", "arange(3.0)",
    "arange(5, 2)", "arange(2, 9, None)", "full((2, 3), 7)", "full(2, 1.5, 'int64')", "full((), True)",
    "linspace(0, 1)", "linspace(3, -2, 6)", "linspace(0, 1, 1)", "linspace(0, 1, 0)", "linspace(0, 1, 5, False)",
    "linspace(0, 9, 4, dtype=int)", "linspace(-2.5, 3.5, 5, dtype='int32')", "linspace([0, 1], [5, 9], 3, axis=1)",
    "linspace(2, 2, 3)", "linspace(0, 1, 1, False)", "logspace(0, 3, 4)", "logspace(0, 4, 4, False, 2)",
    "logspace(1, 2, 3, base=[2, 3, 4])", "logspace(0, 2, 3, dtype='int64')", "logspace(0, [1, 2], 3, axis=1)",
    "geomspace(1, 1000, 4)", "geomspace(-1, -16, 5)", "geomspace(1, 256, 4, False)", "geomspace(8, 1, 4)",
    "geomspace(2, 50, 1)", "geomspace(2, 50, 0)", "geomspace([1, 2], [100, 32], 3, axis=1)",
    "geomspace(1, 64, 4, dtype='float32')", "array([[1, 2]], ndmin=3)", "array(3, 'float32')", "asarray([True])",
])  # fmt: skip
def test_new_arrays_of_plain_numbers(call):
    compare_new(call)


def test_ends_may_be_nodes_of_any_shape():
    arrays = {"x": drawn((2, 1)), "y": drawn((3,), seed=1) + 4}
    bases = {"z": np.array([2.0, 3.0, 0.5])}
    for num, endpoint, axis in product((0, 1, 2, 5), (True, False), (0, 1, -1)):
        rest = f"{num}, endpoint={endpoint}, axis={axis}"
        compare(f"np.linspace(x, y, {rest})", **arrays)
        compare(f"np.logspace(x, y, {rest}, base=2)", **arrays)
        compare(f"np.logspace(x, y, {rest}, base=z)", **arrays, **bases)
        compare(f"np.geomspace(x, y, {rest})", **arrays)
    for num in (2, 3, 7):
        compare(f"np.linspace(x, y, {num}, retstep=True)", **arrays)
        compare(f"np.linspace(x, 1, {num}, False, True)", **arrays)
    compare("np.linspace(x, 10, 4, dtype='int32')", x=np.array([-7.5, 3.0]))


@pytest.mark.parametrize("function", ["zeros_like", "ones_like"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_likes_take_shape_and_dtype_from_the_operand_unless_others_are_named(function, dtype):
    x = drawn((2, 3), dtype)
    for how in ("", ", dtype='int8'", ", shape=(4,)", ", shape=()", ", shape=5, dtype='float64'"):
        compare(f"np.{function}(x{how})", x=x)
        compare(f"np.full_like(x, 3{how})", x=x)
    compare("np.full_like(x, y)", x=x, y=drawn((3,), dtype))


def test_meshes_in_both_orders():
    arrays = {"x": drawn((2,)), "y": drawn((3,)), "z": drawn((4,))}
    for names, sparse, indexing in product(("x", "x, y", "x, y, z"), (False, True), ("xy", "ij", "other")):
        some = {name: arrays[name] for name in names.split(", ")}
        compare(f"np.meshgrid({names}, sparse={sparse}, indexing={indexing!r})", **some)
    compare("np.meshgrid(x, y)", x=drawn((2, 2)), y=np.array(3.0))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint8", "complex128"])
def test_powers_of_a_vector_fall_by_default(dtype):
    for n, increasing in product((None, 0, 1, 2, 5), (False, True)):
        compare(f"np.vander(x, {n}, {increasing})", dtype, x=drawn((3,), dtype))
    compare("np.vander(x)", x=drawn((2, 2)))


def test_diagonals_above_and_below():
    for k in (-3, -1, 0, 1, 2, 9):
        compare(f"np.diagflat(x, {k})", x=drawn((2, 2)))
        compare(f"np.diag(x, {k})", x=drawn((3,)))
        for shape in ((3, 4), (4, 2)):
            compare(f"np.diag(x, {k}), np.tril(x, {k}), np.triu(x, {k})", x=drawn(shape))


def test_lists_with_nodes_are_stacked_in_the_dtype_of_all():
    arrays = {"x": drawn((2,), "float32"), "i": np.array([1, 2])}
    x, i = (cg.Const(v) for v in arrays.values())
    assert_same(*values([creation.array([[x, x], [i, [5, 6]]])]), np.array([[arrays["x"]] * 2, [[1, 2], [5, 6]]]))
    assert_same(*values([creation.array((x, i), "int8", ndmin=3)]), np.array([[arrays["x"], [1, 2]]], "int8"))
    with pytest.raises(ShapeError, match="one shape"):
        creation.array([x, [1, 2, 3]])


def test_a_copy_is_the_node_and_what_is_empty_is_zero():
    x = cg.Var((2, 3), "int32")
    assert creation.copy(x) is x and creation.asarray(x) is x
    got = values([creation.empty_like(x), creation.empty((2,)), creation.empty_like(x, shape=(1,), dtype="float32")])
    for mine, want in zip(got, [np.zeros((2, 3), "int32"), np.zeros(2), np.zeros(1, "float32")], strict=True):
        assert_same(mine, want)


@pytest.mark.parametrize("dtype", ["None", "float", "'int8'", "bool"])
@pytest.mark.parametrize("name", ["zeros", "empty", "ones"])
def test_no_dtype_is_that_of_floats(name, dtype):
    for f in (lambda: eval(f"cg.numpy.{name}((2, 3), {dtype})"), lambda: eval(f"cg.numpy.{name}(4, dtype={dtype})")):
        got, want = cg.jit(lambda x, f=f: (f(), x))(1.0)[0], f()
        assert got.dtype == want.dtype == np.dtype(eval(dtype)) and got.shape == want.shape
        assert name == "empty" or (got == want).all()
