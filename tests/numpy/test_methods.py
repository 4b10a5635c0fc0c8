"""Methods and attributes of nodes are those of arrays, by position and by name; the others name a way that exists."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import NoMeaningError
from cgraph.numpy.methods import ATTRIBUTES, METHODS, OF_OTHERS, REFUSED
from tests.numpy.evaluated import compare, drawn

X = drawn((3, 4)) - 2


@pytest.mark.parametrize("call", [
    "all()", "any(1)", "argmax(0)", "argmin(axis=1, keepdims=True)", "argsort(0)", "clip(-1, 1)", "clip(max=0)",
    "conj()", "conjugate()", "copy()", "cumprod(1)", "cumsum(0, 'float32')", "diagonal(1)", "diagonal(-1, 1, 0)",
    "dot(x.T)", "max(0)", "mean(1, keepdims=True)", "min(axis=(0, 1))", "prod(-1)", "ravel()", "ravel('F')",
    "repeat(2, 1)", "repeat([1, 0, 2], axis=0)", "round(1)", "squeeze()", "std(0, ddof=1)", "sum(1, dtype='float32')",
    "swapaxes(0, 1)", "take([2, 0], 1)", "trace(1)", "var(1, ddof=2)", "flatten()", "flatten('F')", "reshape(4, 3)",
    "reshape((2, 6))", "reshape(-1)", "reshape(12, order='F')", "reshape([6, 2], order='F')", "reshape(5)",
    "compress([True, False, True], 0)", "compress([0, 1])", "astype('float32')", "astype('int8', casting='safe')",
    "astype('complex64', casting='same_kind')", "astype('int32', casting='same_kind')",
    "view('int64')", "view('uint64')", "view()", "compress([True], axis=1)", "astype('int8', 'K', 'unsafe')",
    "sum(0, None, None, True)", "mean(1, 'float32', None, True)", "max(0, None, True)",
    "min(None, None, True, 1.5)", "clip(0, 1, None)",
    "astype('float32', order='F', subok=False)", "astype('float64', copy=False)",
    "astype('bool', 'F', 'unsafe', False)",
    "reshape(4, 3, copy=True)", "reshape((2, 6), order='F', copy=True)", "reshape((3, 4), copy=False)",
    "compress([True, False, True], 0, None)", "compress([0, 1], axis=1, out=None)",
    "mT", "T", "real", "imag", "itemsize", "searchsorted(0)",
])  # fmt: skip
def test_a_method_is_the_arrays(call):
    compare(f"x.{call}", "float32" if "float32" in call or "complex64" in call else "float64", x=X)


def test_methods_of_rows_and_other_dtypes():
    compare("x.searchsorted(v, 'right'), x.searchsorted(v)", x=np.array([1, 2, 2, 5]), v=np.array([0, 2, 9]))
    compare("i.choose([x, y])", i=np.array([1, 0, 1]), x=np.arange(3.0), y=np.arange(3.0) + 5)
    compare("x.squeeze(1), x.squeeze()", x=drawn((3, 1, 2)))
    compare("z.real, z.imag, z.conj(), z.view('complex128'), z.mT", z=drawn((2, 3), "complex128"))


def test_the_parts_of_complex_numbers_are_pairs_and_other_bits_are_bits():
    compare("z.view('float64')", z=drawn((2, 3), "complex128"))
    compare("x.view('int32'), x.view('float32'), x.view()", "float32", x=X.astype("float32"))


@pytest.mark.parametrize("name", [*REFUSED, *OF_OTHERS])
def test_what_a_node_lacks_is_refused_with_a_way_that_exists(name):
    x = cg.Var((2,), name="weights") * 2
    with pytest.raises(NoMeaningError, match=f"test_methods.py:[0-9]+ has no {name}: ") as caught:
        getattr(x, name)
    assert not hasattr(x, name) and name not in METHODS and name not in ATTRIBUTES
    assert (REFUSED | OF_OTHERS)[name] in str(caught.value)


def test_every_public_name_of_an_array_is_a_nodes_or_refused():
    own = set(dir(cg.Var((2,))))
    missing = {name for name in dir(np.ndarray) if not name.startswith("_")} - own - set(REFUSED)
    assert missing <= {"argpartition", "device", "to_device"}, missing


def test_a_result_in_memory_that_is_passed_to_a_method_is_refused():
    x = cg.Var((3, 4), name="x")
    with pytest.raises(NoMeaningError, match="np.compress"):
        x.compress([True, False, True], 0, np.zeros((2, 4)))
