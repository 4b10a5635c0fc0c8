"""The standard's ``linalg``: every function passes each of its settings on, and is lazy where a lazy one exists."""

import numpy as np
import pytest

from cgraph import array_api as xp
from cgraph.array_api.calls import COUNTS
from tests.support.tolerance import assert_close, assert_near

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((2, 3, 3)), RNG.standard_normal((2, 3, 2))
TALL = RNG.standard_normal((4, 2))
DEFINITE = A @ A.swapaxes(-1, -2) + 3 * np.eye(3)


def check(name, *arrays, **settings):
    """Compare all results with NumPy's, and return whether the call was lazy."""
    before = COUNTS.copy()
    got = getattr(xp.linalg, name)(*map(xp.asarray, arrays), **settings)
    want = getattr(np.linalg, name)(*arrays, **settings)
    several = isinstance(want, tuple)
    for a, b in zip(got if several else [got], want if several else [want], strict=True):
        assert_near(a.value, b, "float64 conditioned", 1)
    return (COUNTS - before) == {(name, "lazy"): 1}


@pytest.mark.parametrize(
    ("name", "arrays", "settings"),
    [
        ("cholesky", (DEFINITE,), {"upper": True}), ("cholesky", (DEFINITE,), {}),
        ("cross", (A, A[::-1]), {"axis": -2}),
        ("det", (A,), {}), ("inv", (A,), {}), ("slogdet", (A,), {}), ("solve", (A, B), {}), ("svdvals", (B,), {}),
        ("diagonal", (B,), {"offset": -1}), ("trace", (A,), {"offset": 1}), ("eigvalsh", (DEFINITE,), {}),
        ("matrix_transpose", (B,), {}), ("matmul", (A, B), {}), ("outer", (A[0, 0], B[0, :, 0]), {}),
        ("matrix_norm", (A,), {"ord": 1, "keepdims": True}), ("matrix_norm", (A,), {}),
        ("vector_norm", (A,), {"axis": 1, "ord": 1}), ("vector_norm", (A,), {"keepdims": True}),
        ("matrix_rank", (A,), {"rtol": 1e9}), ("pinv", (TALL,), {"rtol": 1e-3}),
        ("tensordot", (A[0], B[0]), {"axes": 1}),
        ("vecdot", (A, A[::-1]), {"axis": 0}),
    ],
)  # fmt: skip
def test_values_are_numpys_and_lazy(name, arrays, settings):
    assert check(name, *arrays, **settings)


def test_factors_give_their_matrices_back():
    for mode, side in (("reduced", 2), ("complete", 4)):
        q, r = xp.linalg.qr(xp.asarray(TALL), mode=mode)
        assert q.shape == (4, side) and r.shape == (side, 2)
        assert_close((q @ r).value, TALL)
    for full, side in ((True, 4), (False, 2)):
        u, s, vh = xp.linalg.svd(xp.asarray(TALL), full_matrices=full)
        assert u.shape == (4, side) and vh.shape == (2, 2)
        assert_close(((u[:, :2] * s) @ vh).value, TALL)
    result = xp.linalg.eigh(xp.asarray(DEFINITE))
    v = result.eigenvectors
    assert_near((xp.asarray(DEFINITE) @ v).value, (v * result.eigenvalues[:, None, :]).value, "float64 conditioned", 1)


@pytest.mark.parametrize("n", [0, 1, 5, -2])
def test_powers_of_matrices(n):
    assert_near(
        xp.linalg.matrix_power(xp.asarray(A), n).value, np.linalg.matrix_power(A, n), "float64 conditioned", 100
    )


def test_settings_are_given_by_name_only():
    for call in (xp.linalg.cholesky, xp.linalg.diagonal, xp.linalg.svd, xp.linalg.trace):
        with pytest.raises(TypeError):
            call(xp.asarray(DEFINITE), 1)


WITHOUT_SETTINGS = {
    "cross": (A, A[::-1]), "matmul": (A, B), "solve": (A, B), "outer": (A[0, 0], B[0, :, 0]), "matrix_power": (A, 3),
    "tensordot": (A, RNG.standard_normal((3, 3, 2))), "vecdot": (A, A[::-1]), "svd": (TALL,), "qr": (TALL,),
    "matrix_transpose": (B,), "diagonal": (B,), "trace": (B,), "pinv": (TALL,), "matrix_norm": (B,),
    "vector_norm": (B,), "matrix_rank": (np.diag([1.0, 1e-9, 1e-18]),), "svdvals": (B,),
}  # fmt: skip
UP_TO_SIGNS = ("eig", "eigh", "qr", "svd")


@pytest.mark.parametrize("name", xp.linalg.__all__)
def test_a_function_without_settings_has_the_standards_defaults(name):
    operands = WITHOUT_SETTINGS.get(name, (DEFINITE,))
    got = getattr(xp.linalg, name)(*(xp.asarray(x) if isinstance(x, np.ndarray) else x for x in operands))
    want = getattr(np.linalg, name)(*operands)
    several = isinstance(want, tuple)
    for a, b in zip(got if several else [got], want if several else [want], strict=True):
        a = a.value
        assert a.shape == b.shape
        assert_near(*((abs(a), abs(b)) if name in UP_TO_SIGNS else (a, b)), "float64 conditioned", 1)
