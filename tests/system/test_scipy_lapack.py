"""SciPy's LAPACK by address: a system of equations as NumPy solves it, sizes of work arrays, and what is missing."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.system import scipy_lapack
from cgraph.system.scipy_lapack import MODULE, address_of, capsules, has_lapack, memory_of, work_sizes
from tests.support.tolerance import assert_near

pytestmark = pytest.mark.skipif(not has_lapack(), reason="SciPy is not installed or has no capsules of LAPACK")


def call(name: str, *args: np.ndarray) -> None:
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(args))(address_of(name))(*(x.ctypes.data for x in args))


@pytest.mark.parametrize(("name", "dtype", "near"), [
    ("dgesv", "f8", "float64 formulas"), ("sgesv", "f4", "float32 sums"), ("zgesv", "c16", "float64 formulas"),
])  # fmt: skip
def test_a_function_solves_as_numpy_does(name, dtype, near):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((4, n)).astype(dtype) + 3 * np.eye(4, n, dtype=dtype) for n in (4, 2))
    left, right, pivots, info = a.T.copy(), b.T.copy(), np.zeros(4, "i4"), np.zeros(1, "i4")
    n, columns = np.array([4], "i4"), np.array([2], "i4")
    call(name, n, columns, left, n, pivots, right, n, info)
    assert info[0] == 0
    assert_near(right.T, np.linalg.solve(a, b), near)


def test_work_arrays_are_those_that_the_function_asks_for():
    real = np.dtype("f8")
    (size,) = work_sizes("dgeqrf", 6, 5, None, 6, None, real, -1)
    assert size >= 5
    numbers, integers = work_sizes("dsyevd", "V", "L", 5, None, 5, None, real, -1, np.dtype("i4"), -1)
    assert numbers >= 1 + 6 * 5 + 2 * 5**2 and integers == 3 + 5 * 5, "LAPACK's documentation of dsyevd"
    with pytest.raises(ValueError, match="dgeqrf refuses its argument 1 of"):
        work_sizes("dgeqrf", -1, 5, None, 6, None, real, -1)


def test_arguments_are_letters_integers_of_32_bits_and_arrays():
    assert memory_of("V").tobytes() == b"V"
    assert memory_of(7).dtype == np.int32 and memory_of(-1).tolist() == [-1]
    assert memory_of(None).nbytes >= 32 and memory_of(np.dtype("f4")).dtype == np.float32


def test_names_that_lapack_lacks_are_key_errors():
    with pytest.raises(KeyError):
        address_of("dnothing")
    assert address_of("dgesv") != address_of("sgesv") and len(capsules()) > 1000


def test_without_the_module_there_is_no_lapack(monkeypatch):
    def missing(*args):
        raise ImportError(MODULE)

    monkeypatch.setattr(scipy_lapack, "load_module", missing)
    monkeypatch.delitem(scipy_lapack.sys.modules, MODULE, raising=False)
    assert capsules.__wrapped__() == {}
    monkeypatch.setattr(scipy_lapack, "load_module", object)  # a module that exports no functions
    assert capsules.__wrapped__() == {}
    monkeypatch.setattr(scipy_lapack, "capsules", dict)
    assert has_lapack.__wrapped__() is False


@pytest.mark.parametrize("has_package", [False, True])
def test_a_scipy_without_the_module_is_an_import_error(monkeypatch, has_package):
    package = SimpleNamespace(submodule_search_locations=["nowhere"]) if has_package else None
    monkeypatch.setattr(scipy_lapack, "find_spec", {"scipy.linalg": package}.get)
    with pytest.raises(ImportError, match=f"^{MODULE} is not installed$"):
        scipy_lapack.load_module()


def test_a_module_without_a_loader_is_an_import_error(monkeypatch):
    finder = SimpleNamespace(find_spec=lambda name, path: SimpleNamespace(loader=None))
    monkeypatch.setattr(scipy_lapack, "PathFinder", finder)
    with pytest.raises(ImportError, match=f"^{MODULE} is not installed$"):
        scipy_lapack.load_module()


def test_sizes_of_several_work_arrays_are_those_of_their_dtypes_in_order():
    """Real and complex ones, and integers, beside arguments that are no work arrays."""
    z, d, i = (np.dtype(x) for x in ("complex128", "float64", "int32"))
    sizes = work_sizes("zheevd", "V", "L", 5, None, 5, None, z, -1, d, -1, i, -1)
    assert len(sizes) == 3 and all(type(n) is int for n in sizes)
    numbers, reals, integers = sizes
    assert numbers >= 2 * 5 + 5**2 and reals == 1 + 5 * 5 + 2 * 5**2 and integers == 3 + 5 * 5
    assert work_sizes("zheevd", "N", "L", 5, None, 5, None, z, -1, d, -1, i, -1)[1:] == (5, 1)
