"""``import cgraph.numpy as np`` in place of NumPy: arrays as NumPy's, nodes as nodes, traced arrays inside `cg.jit`."""

import ast
import inspect
import pickle
from types import FunctionType

import numpy
import pytest

import cgraph as cg
import cgraph.numpy as np
from cgraph.errors import CgraphError, NoMeaningError, ShapeError
from tests.numpy.calls import CALLS, operands
from tests.numpy.evaluated import called
from tests.support.tolerance import assert_near

DTYPES = [name for name in dir(np) if name in "bool complex64 complex128 float16 float32 float64 intp".split()]
DTYPES += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def as_numpys(got: object, want: object) -> None:
    """Check that two results have one type, dtype, shape and value."""
    assert type(got) is type(want)
    if isinstance(want, numpy.ndarray | numpy.generic):
        assert got.dtype == want.dtype and got.shape == want.shape
    numpy.testing.assert_array_equal(got, want)


def test_calls_of_arrays_are_numpys():
    names = operands()
    for call in CALLS[::7]:
        try:
            want = called(call, names)
        except (TypeError, ValueError, AttributeError, numpy.linalg.LinAlgError):
            continue
        got = called(call.replace("np.", "ours."), names | {"ours": np})
        assert not any(isinstance(x, cg.Node) for x in got), call
        for x, y in zip(got, want, strict=True):
            as_numpys(x, y)


def test_every_function_leaves_calls_without_nodes_to_numpy():
    for module in (np, np.linalg, np.fft, np.emath):
        for name, function in vars(module).items():
            if isinstance(function, FunctionType) and not name.startswith("_"):
                assert function.__module__ == "cgraph.numpy", name
                assert pickle.loads(pickle.dumps(function)) is function


def test_new_arrays_are_numpys_outside_and_traced_inside_a_function():
    u = np.zeros((2, 3))
    u[0, 1] = 5.0
    as_numpys(u, numpy.array([[0.0, 5.0, 0.0], [0.0, 0.0, 0.0]]))

    @cg.jit
    def f(x):
        table = np.array([[1.0, 2.0], [3.0, 4.0]])
        u = np.zeros(2, dtype=np.float32)
        u[1] = x[0]
        return table @ np.array([x[0], 2]) + u, np.concatenate([np.arange(3), np.full(2, 7)])

    found = f(numpy.array([3.0, 1.0]))
    as_numpys(found[0], numpy.array([7.0, 20.0]))
    as_numpys(found[1], numpy.array([0, 1, 2, 7, 7]))


@pytest.mark.parametrize(
    "text",
    [
        "np.array([[x[0], 2], [1, x[1]]])",
        "np.array((x, x + 1), dtype=np.float64)",
        "np.array([[x, x], [x, y]])",
        "np.asarray([x[0], y[1], True])",
        "np.stack([x, y], 1)",
        "np.concatenate([x, np.ones(2, np.float32)])",
        "np.linalg.norm(x) + np.pi * np.e",
        "np.fft.fft(x, 4)",
        "np.where(np.isnan(x), np.inf, y)[np.newaxis]",
        "np.maximum.accumulate(y)",
        "np.add.reduce(x) + np.add.outer(x, y)",
        "np.float32(3) * x",
        "np.emath.sqrt(-abs(x) - 1)",
        "np.full(3, 2.5) * np.eye(3, dtype=np.float32)",
        "np.full(2, fill_value=x[0])",
        "np.array(object=[x, y])",
        "np.asarray(a=[x[0], (y[1])], dtype=np.float64)",
    ],
)
def test_calls_with_nodes_and_traced_arrays_give_numpys_values(text):
    arrays = {"x": numpy.array([1.5, -2.0], "f4"), "y": numpy.array([3, 1])}
    expression = compile(ast.parse(text, mode="eval"), text, "eval")
    want = eval(expression, {"np": numpy, **arrays})
    variables = {name: cg.Var(a.shape, a.dtype, name).assign(a) for name, a in arrays.items()}
    found = eval(expression, {"np": np, **variables})
    traced = cg.jit(lambda x, y: eval(expression, {"np": np, "x": x, "y": y}))(**arrays)
    for got in (cg.eval(found) if isinstance(found, cg.Node) else found, traced):
        assert got.dtype == want.dtype
        assert_near(got, want, "float32 formulas near zero")


@pytest.mark.parametrize("name", [*DTYPES, "pi", "e", "inf", "nan", "euler_gamma", "newaxis", "ndarray", "errstate"])
def test_constants_and_dtypes_are_numpys(name):
    assert name in vars(np) and getattr(np, name) is getattr(numpy, name)


def test_names_that_nodes_do_not_need_are_numpys():
    assert np.unique is numpy.unique and np.linalg.LinAlgError is numpy.linalg.LinAlgError
    assert np.fft.fftfreq is numpy.fft.fftfreq and np.testing is numpy.testing
    assert np.maximum.at == numpy.maximum.at and inspect.signature(np.sum).parameters["axis"].default is None
    with pytest.raises(NoMeaningError, match=r"cg.unique\(x, size=...\)"):
        np.unique(cg.Var((3,)))


@pytest.mark.parametrize(
    ("module", "name", "way"),
    [
        (np, "sofmax", "the nearest is cgraph.numpy"),
        (np, "float_", "Use `np.float64` instead"),
        (np, "softmax", "use cg.softmax, which takes nodes"),
        (np.linalg, "invs", "the nearest is cgraph.numpy.linalg.inv"),
        (np.random, "draws", r"use default_rng\(seed\)"),
        (np.random.default_rng(0), "multinomial", "numpy.random.default_rng"),
    ],
)
def test_a_name_that_is_missing_names_the_way_out(module, name, way):
    with pytest.raises(AttributeError, match=way):
        getattr(module, name)


@pytest.mark.parametrize(
    "text",
    [
        "np.array(x, copy=True, order='C') + np.asarray(x, order='K')",
        "np.zeros_like(x, subok=False) + np.sum(x, out=None, keepdims=True)",
        "np.add(x, 1, dtype=np.float64, casting='safe')",
    ],
)
def test_keywords_of_numpy_are_taken(text):
    x = numpy.array([1.5, -2.0], "f4")
    want = eval(text, {"np": numpy, "x": x})
    for got in (cg.eval(eval(text, {"np": np, "x": cg.Const(x)})), cg.jit(lambda x: eval(text, {"np": np, "x": x}))(x)):
        as_numpys(got, want)


def test_out_fills_a_traced_array_and_is_refused_for_nodes():
    @cg.jit
    def f(x):
        u = np.zeros(2, order="F")
        np.multiply(x, 2, out=u)
        u[0] += 1
        return u

    as_numpys(f(numpy.array([1.5, -2.0])), numpy.array([4.0, -4.0]))
    with pytest.raises(NoMeaningError, match="out="):
        np.add(cg.Var((2,)), 1, out=numpy.zeros(2))


def test_parts_of_different_shapes_are_refused():
    x = cg.Var((2,))
    with pytest.raises(ShapeError, match=r"parts of one array have one shape.*np.concatenate"):
        np.array([x, x[0]])
    with pytest.raises(CgraphError):
        np.array([x, "text"])
