"""Leaves of arguments: what passes, what becomes a setting, what is refused, and what compiled code depends on."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ArgumentError
from cgraph.transforms.leaves import argument, descriptor, node_of, placeholder, tracer_of
from cgraph.transforms.trace import FunctionTrace
from cgraph.transforms.trees import READY, Static


class Shared:
    """An array of another library."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **_):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Convertible:
    """An object that NumPy converts, of a library without DLPack."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


def test_arrays_numbers_and_nodes_pass_as_they_are():
    for x in (np.ones(2), np.float32(1), cg.Var((2,)), True, 1, 1.5, 1j):
        assert argument(x, "x") is x
    array = np.arange(3.0)
    for kind in (Shared, Convertible):
        assert argument(kind(array), "x").tolist() == [0, 1, 2] and cg.jit(lambda x: 2 * x)(kind(array)).tolist() == [
            0,
            2,
            4,
        ]
    assert {np.ndarray, bool, int, float, complex, np.float32, np.int8} <= READY and cg.Var not in READY


@pytest.mark.parametrize("x", ["edge", b"x", float, np.dtype("int8"), slice(1, 2), ..., len, np.add, lambda: 0],
                         ids=lambda x: type(x).__name__)  # fmt: skip
def test_what_cannot_be_an_array_is_a_setting(x):
    assert argument(x, "x") == Static(x)


@pytest.mark.parametrize("x, message", [
    (np.ma.masked_array([1.0]), r"p\[0\] is a masked array; pass x.filled\(value\) and the mask"),
    (np.random.RandomState(0), r"p\[0\] is a stream of NumPy's numbers; pass cg.numpy.random.default_rng"),
    (np.random.default_rng(0), r"p\[0\] is a stream of NumPy's numbers; pass cg.numpy.random.default_rng"),
    ({1, 2}, r"p\[0\] is \{1, 2\} of set, which is neither an array nor a tuple, list, dict"),
    (object(), "of object, which is neither an array"),
])  # fmt: skip
def test_other_things_are_refused_by_name(x, message):
    with pytest.raises(ArgumentError, match=message):
        argument(x, "p[0]")


def test_code_depends_on_shape_and_dtype_and_of_a_number_on_its_type():
    assert descriptor(np.ones((2, 3), "float32")) == ((2, 3), np.dtype("float32"))
    assert [descriptor(x) for x in (3, 4, True, np.float32(1))] == [int, int, bool, np.float32]


def test_a_placeholder_has_the_dtype_of_the_leaf_and_perhaps_another_shape():
    assert placeholder(np.ones((2, 3), "float32"), "x").spec == cg.Var((2, 3), "float32").spec
    assert placeholder(np.ones((2, 3)), "x", (3,)).spec == cg.Var((3,), "float64").spec
    assert placeholder(np.ones((2, 3)), "x", ()).shape == ()
    dtypes = {x: placeholder(x, "number").spec for x in (True, 7, 2.5, 1j)}
    assert {x: s.dtype.name for x, s in dtypes.items()} == {True: "bool", 7: "int64", 2.5: "float64", 1j: "complex128"}
    assert placeholder(np.float32(2), "x").name == "x"


def test_a_tracer_is_a_number_where_the_leaf_is_one():
    trace, node = FunctionTrace(), cg.Var((), "float64")
    rows = [(np.array(1.0), None, False), (np.float64(1), None, True), (2.5, float, True), (3, int, True),
            (cg.Var(()), None, True)]  # fmt: skip
    for x, weak, is_scalar in rows:
        tracer = tracer_of(trace, x, node)
        assert (tracer.weak, tracer.is_scalar) == (weak, is_scalar), x
        again = tracer_of(trace, tracer, node)
        assert (again.weak, again.is_scalar) == (weak, is_scalar), x


def test_the_node_of_a_leaf():
    node = cg.Var((2,))
    assert node_of(node) is node and node_of(2.5).dtype == "float64" and node_of(np.float32(1)).dtype == "float32"

    def f(x):
        assert node_of(x) is x.node
        return x

    cg.jit(f)(np.ones(2))
