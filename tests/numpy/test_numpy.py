"""The namespace itself: whose each name is, calls with and without nodes, and what is neither ours nor NumPy's."""

import inspect
from types import FunctionType, ModuleType

import numpy
import pytest

import cgraph as cg
import cgraph.numpy as np
from cgraph.ir.graph import Node

X = numpy.array([[3.0, -1.0], [0.5, 2.0]])
OURS = "vstack mean sort where einsum percentile argmax cumsum convolve isclose polyval nansum bitwise_and pad".split()


@pytest.mark.parametrize("name", OURS)
def test_a_function_of_ours_is_numpys_for_arrays_and_builds_nodes_for_nodes(name):
    function = getattr(np, name)
    assert (
        isinstance(function, FunctionType) and function.__module__ == "cgraph.numpy" and function.__qualname__ == name
    )
    assert callable(getattr(numpy, name))


def test_calls_of_arrays_give_arrays_and_of_nodes_nodes_with_the_same_values():
    calls = ["mean(x, axis=0)", "vstack([x, x])", "linalg.norm(x)", "fft.fft(x)", "where(x > 0, x, 0)", "emath.sqrt(x)"]
    for text in calls:
        call = eval(f"lambda m, x: m.{text}")
        want, plain, node = call(numpy, X), call(np, X), call(np, cg.Var(X))
        assert type(plain) is type(want) and isinstance(node, Node)
        numpy.testing.assert_array_equal(plain, want)
        assert (node.shape, node.dtype) == (numpy.shape(want), numpy.asarray(want).dtype)


@pytest.mark.parametrize("name", ["linalg", "fft", "emath"])
def test_namespaces_are_wrapped_and_random_and_plain_are_ours(name):
    module = getattr(np, name)
    assert isinstance(module, ModuleType) and module is not getattr(numpy, name)
    public = [f for f in module.__all__ if isinstance(getattr(module, f), FunctionType)]
    assert public and all(getattr(module, f).__qualname__ == f"{name}.{f}" for f in public)
    assert np.random.__name__ == "cgraph.numpy.random" and np.plain.__name__ == "cgraph.numpy.plain"


def test_dtypes_and_constants_are_numpys_own_objects():
    for name in (
        "float32",
        "int64",
        "uint8",
        "bool",
        "complex128",
        "ndarray",
        "inf",
        "pi",
        "newaxis",
        "finfo",
        "iinfo",
    ):
        assert vars(np)[name] is getattr(numpy, name)
    assert np.bool is numpy.bool_ and np.e == numpy.e and np.float16 is numpy.float16


def test_what_is_not_here_is_numpys_or_refused_with_the_nearest_name():
    assert np.get_printoptions is numpy.get_printoptions and "get_printoptions" not in vars(np)
    for name, words in (("menn", "the nearest is cgraph.numpy.mean"), ("_private", "has no attribute '_private'"),
                        ("softplus", "use cg.softplus, which takes nodes")):  # fmt: skip
        with pytest.raises(AttributeError, match=words):
            getattr(np, name)


def test_private_helpers_of_the_parts_are_not_among_the_names():
    public = {name: f for name, f in vars(np).items() if isinstance(f, FunctionType) and not name.startswith("_")}
    assert len(public) > 250 and not any(f.__module__ != "cgraph.numpy" for f in public.values())
    assert all(hasattr(numpy, name) or name == "sliding_window_view" for name in public), [
        name for name in public if not hasattr(numpy, name)
    ]
    assert inspect.signature(np.mean).parameters["axis"].default is None
