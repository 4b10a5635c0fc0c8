"""Kernels that call LAPACK: NumPy's values and errors, rooms in the plan, no Python in a run."""

import subprocess
import sys

import numpy as np
import pytest

import cgraph as cg
import cgraph.kernels.lapack.calls as lapack_calls
import cgraph.kernels.store as store_module
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.kernels.code_image import UnknownCode
from cgraph.kernels.isa.ptx import gpu_target
from cgraph.kernels.kernel import Pointer, contiguous
from cgraph.kernels.lapack.calls import (
    MOST_GROUPS,
    cholesky_job,
    determinant_job,
    is_for_lapack,
    lapack_name,
    solve_job,
)
from cgraph.kernels.machines import machine_named
from cgraph.kernels.target import host_target
from cgraph.record import replace
from cgraph.system.alignment import aligned as round_up
from cgraph.system.scipy_lapack import has_lapack
from tests.support.images import aligned
from tests.support.kernels import run_calls, view_of
from tests.support.saved import Case, same_in_a_fresh_process
from tests.support.tolerance import assert_near

DTYPES = ("float32", "float64", "complex64", "complex128")
OPS = {
    "inv": cg.inv,
    "solve": lambda x: cg.solve(x, x[..., :3]),
    "det": cg.det,
    "slogdet": cg.slogdet,
    "cholesky": cg.cholesky,
    "qr": cg.qr,
    "eigh": cg.eigh,
    "eigh of the upper triangle": lambda x: cg.eigh(x, upper=True),
    "svd": cg.svd,
    "eig": cg.eig,
}
MEANINGS = {
    "solve": lambda x: np.linalg.solve(x, x[..., :3]),
    "eigh of the upper triangle": lambda x: np.linalg.eigh(x, "U"),
}


def meaning(op):
    return MEANINGS.get(op) or getattr(np.linalg, op)


def listed(x):
    return list(x) if isinstance(x, tuple | list) else [x]


def compiled(op, shape, dtype, **options):
    x = cg.Var(shape, dtype, "x")
    function = cg.compile(listed(OPS[op](x)), [x], **options)
    assert not function.program.code.callbacks
    return function


def positive_definite(shape, dtype, seed=0):
    """Hermitian matrices with well separated eigenvalues, whose vectors are determined but for their phase."""
    rng, n = np.random.default_rng(seed), shape[-1]
    x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype[0] == "c" else 0)
    q = np.linalg.qr(x)[0]
    return ((q * np.arange(1.0, n + 1)) @ np.conj(np.swapaxes(q, -1, -2))).astype(dtype)


def assert_like_numpy(got, want, dtype):
    for x, y in zip(got, want, strict=True):
        assert x.shape == y.shape
        if dtype in ("float32", "complex64"):  # computed in float64 on both sides, then rounded
            assert_near(x, y, "float32 sums near zero")
        else:
            assert_near(x, y, "float64 formulas near zero")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", [x for x in OPS if x != "eig"])
@pytest.mark.parametrize("shape", [(9, 9), (3, 10, 10), (2 * MOST_GROUPS + 3, 9, 9)], ids=str)
def test_values_of_any_number_of_matrices_are_numpys(op, dtype, shape):
    value = positive_definite(shape, dtype)
    want = listed(meaning(op)(value))
    for threads in (1, 2, 3):
        assert_like_numpy(compiled(op, shape, dtype, threads=threads)(value), want, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_of_a_matrix_that_turns_are_conjugate_pairs_and_real_ones(dtype):
    a = np.kron(np.diag([1, 2, 3, 4]), [[3, -5], [1, 2]])  # 4 pairs
    a = np.block([[a, np.zeros((8, 3))], [np.ones((3, 8)), np.diag([1, 20, 40])]]).astype(dtype)
    w, v = compiled("eig", (2, 11, 11), dtype)(np.stack([a, 2 * a]))
    want = np.linalg.eig(np.stack([a, 2 * a]))
    assert v.dtype == np.result_type(a.dtype, np.complex64) and np.abs(w.imag).max() > 1
    assert_like_numpy([w, v], [x.astype(v.dtype) for x in want], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(12, 5), (5, 12), (2, 1, 9), (9, 1), (1, 1)], ids=str)
def test_factors_of_matrices_that_are_not_square(shape, dtype):
    rng = np.random.default_rng(0)
    a = (rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype[0] == "c" else 0)).astype(dtype)
    x = cg.Var(shape, dtype, "x")
    outputs = [*cg.qr(x), *cg.qr(x, complete=True), *cg.svd(x), *cg.svd(x, full_matrices=False)]
    want = [*np.linalg.qr(a), *np.linalg.qr(a, "complete"), *np.linalg.svd(a), *np.linalg.svd(a, False)]
    assert_like_numpy(cg.compile(outputs, [x])(a), want, dtype)


def test_a_large_determinant_is_of_logarithms_and_one_of_float32_overflows():
    value = np.diag(np.repeat([1e-100, 1e100], 6)) - 0.0
    assert_near(compiled("det", (12, 12), "float64")(value)[0], 1, "float64 conditioned")
    assert compiled("det", (12, 12), "float32")(1e4 * np.eye(12, dtype="f4"))[0] == np.inf
    sign, log = compiled("slogdet", (12, 12), "float64")(-np.eye(12)[::-1] * 1e30)
    assert sign == 1 and log == np.linalg.slogdet(np.eye(12) * 1e30)[1]


SPECIAL = {
    "zeros": np.zeros((9, 9)),
    "ones": np.ones((9, 9)),
    "negative": -np.eye(9),
    "rank of 2": np.arange(81.0).reshape(9, 9),
    "NaN": np.full((9, 9), np.nan),
    "one NaN": np.where(np.arange(81).reshape(9, 9) == 40, np.nan, np.eye(9)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("kind", SPECIAL)
def test_matrices_without_a_result_end_the_run_as_in_numpy(kind, op, dtype):
    function, good, value = compiled(op, (2, 9, 9), dtype), np.stack([np.eye(9)] * 2), np.stack([np.eye(9)] * 2)
    value[1] = SPECIAL[kind]
    good, value = good.astype(dtype), value.astype(dtype)
    with np.errstate(all="ignore"):
        try:
            want = listed(meaning(op)(value))
        except np.linalg.LinAlgError as error:
            with pytest.raises(np.linalg.LinAlgError, match=f"at test_lapack.py:.*{error}"):
                function(value)
        else:
            for x, y in zip(function(value), want, strict=True):
                np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
        assert_like_numpy(function(good), listed(meaning(op)(good)), dtype)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinities_end_a_run_for_which_lapack_may_not_end(value):
    for op, match in (("svd", "SVD did not converge"), ("eig", "must not contain infs or NaNs")):
        with pytest.raises(np.linalg.LinAlgError, match=match):
            compiled(op, (9, 9), "float64")(np.full((9, 9), value))


@pytest.mark.parametrize("op", OPS)
def test_bits_depend_on_neither_threads_nor_what_is_in_the_workspace(op):
    value = positive_definite((40, 17, 17), "float64")
    engines = [CpuEngine(threads=1), CpuEngine(threads=2), CpuEngine(threads=2, poison=True)]
    first, *rest = (compiled(op, value.shape, "float64", engine=engine)(value) for engine in engines)
    for other in rest:
        for x, y in zip(first, other, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("op", OPS)
def test_rooms_are_in_the_plan_and_a_budget_without_them_is_refused(op):
    x = cg.Var((30, 30), "float64", "x")
    nbytes = compiled(op, (30, 30), "float64").plan.nbytes
    assert nbytes >= 30 * 30 * 8
    assert compiled(op, (30, 30), "float64", budget=nbytes).plan.nbytes <= nbytes
    with pytest.raises(cg.BudgetError):
        cg.compile(listed(OPS[op](x)), [x], budget=30 * 30 * 8 // 2)


def kalman(n=12, rounds=30):
    """Function and input of a filter whose covariance is inverted in every round."""
    rng = np.random.default_rng(0)
    turn, noise = np.linalg.qr(rng.normal(size=(n, n)))[0], np.eye(n)
    rows = cg.Var((rounds, n), "float64", "rows")

    def step(state, row):
        mean, spread = turn @ state[0], turn @ state[1] @ turn.T + noise
        gain = spread @ cg.inv(spread + noise)
        mean = mean + gain @ (row - mean)
        sign, log = cg.slogdet(spread)
        return (mean, (noise - gain) @ spread), sign * log + cg.sum(cg.eigh(spread)[0])

    (mean, spread), logs = cg.scan(step, (np.zeros(n), np.eye(n)), rows)
    return cg.compile([mean, spread, logs], [rows]), rng.normal(size=(rounds, n))


def test_a_loop_over_factors_is_one_program_that_a_fresh_process_loads(tmp_path):
    function, value = kalman()
    code = function.program.code
    assert not code.callbacks and code.calls_blas and code.jumps()
    assert_near(function(value)[2], evaluate(function.outputs, {function.inputs[0]: value})[2], "float64 conditioned")
    same_in_a_fresh_process([Case(function, [[value]])], tmp_path)


def test_gradients_of_a_loop_over_solutions_are_those_of_the_loop_written_out():
    a, b = cg.Var((9, 9), "float64", "a"), cg.Var((9, 1), "float64", "b")
    loop, _ = cg.scan(lambda x, row: (cg.solve(a, x) + row, cg.sum(x)), b, cg.zeros((6, 9, 1), "float64"))
    out = b
    for _ in range(6):
        out = cg.solve(a, out)
    values = [positive_definite((9, 9), "float64"), np.ones((9, 1))]
    got, want = (cg.compile(cg.gradient(cg.sum(y * y), [a, b]), [a, b])(*values) for y in (loop, out))
    for x, y in zip(got, want, strict=True):
        assert_near(x, y, "float64 formulas near zero")


def refuse(*args):
    raise UnknownCode("by the test")


def test_code_that_llvm_places_calls_lapack_too(monkeypatch):
    store = store_module.KernelStore(None)
    monkeypatch.setattr(store_module, "place_image", refuse)
    monkeypatch.setattr("cgraph.engine.cpu.engine.store", lambda: store)
    value = positive_definite((9, 9), "float64")
    assert_near(compiled("inv", (9, 9), "float64")(value)[0], np.linalg.inv(value), "float64 formulas near zero")
    assert store.misses


def test_without_scipys_lapack_there_is_a_python_call(monkeypatch):
    monkeypatch.setattr(lapack_calls, "has_lapack", lambda: False)
    x = cg.Var((9, 9), "float64", "x")
    function, value = cg.compile(cg.inv(x), [x]), positive_definite((9, 9), "float64")
    assert len(function.program.code.callbacks) == 1
    np.testing.assert_array_equal(function(value), np.linalg.inv(value))


def test_exported_code_has_no_lapack(tmp_path):
    x = cg.Var((9, 9), "float64", "x")
    for target in ("cortex-m7", "avx2"):
        with pytest.raises(cg.FormatError, match=r"inv at test_lapack.py:\d+: .* cannot be exported"):
            cg.export(cg.inv(x), [x], tmp_path / "m", target=target)


LATER = """
import sys
import numpy as np
import cgraph as cg
x = cg.Var((9, 9), "float64")
function = cg.compile(cg.inv(x), [x])
first = function(np.eye(9))
assert "scipy.linalg" not in sys.modules
import scipy.linalg, scipy.linalg.cython_lapack, scipy.optimize
assert (scipy.linalg.cython_lapack.__pyx_capi__ and scipy.linalg.inv(np.eye(9)) == function(np.eye(9))).all()
"""


def test_a_package_that_is_imported_after_its_module_is_whole():
    run = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


JOBS = {
    "solve": lapack_calls.solve_job,
    "solve of columns": lambda dtype, shape: lapack_calls.solve_job(dtype, shape, 3),
    "determinant": lambda dtype, shape: lapack_calls.determinant_job(dtype, shape, True),
    "cholesky": lapack_calls.cholesky_job,
    "eigh": lambda dtype, shape: lapack_calls.eigh_job(dtype, shape, False),
    "eig": lapack_calls.eig_job,
    "qr": lambda dtype, shape: lapack_calls.qr_job(dtype, shape, min(shape)),
    "qr of all columns": lambda dtype, shape: lapack_calls.qr_job(dtype, shape, shape[0]),
    "svd": lambda dtype, shape: lapack_calls.svd_job(dtype, shape, False),
    "svd of all columns": lambda dtype, shape: lapack_calls.svd_job(dtype, shape, True),
    "singular values": lapack_calls.singular_values_job,
    "tall svd": lapack_calls.tall_svd_job,
}
SQUARE = ("solve", "solve of columns", "determinant", "cholesky", "eigh", "eig")
OBLONG = [(9, 9), (20, 5), (52, 30), (30, 52), (5, 20)]  # LAPACK's ways of a decomposition depend on the ratio of sides
GUARD, BYTE = 4096, 0xA5


def shapes_of(name):
    return [(9, 9)] if name in SQUARE else [s for s in OBLONG if s[0] > s[1]] if name == "tall svd" else OBLONG


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("name", JOBS)
def test_nothing_is_written_behind_a_room(name, dtype):
    """Each room is the last one in turn, with bytes behind it."""
    for shape in shapes_of(name):
        job = JOBS[name](dtype, shape)
        n = max(shape)
        a = positive_definite((n, n), {"f8": "float64", "c16": "complex128"}[dtype])[: shape[0], : shape[1]].copy()
        for room, nbytes in job.rooms.items():
            rooms = {k: v for k, v in job.rooms.items() if k != room} | {room: nbytes}
            each = replace(job, rooms=rooms)
            held = aligned(each.nbytes + GUARD)
            held[:] = BYTE
            views = [view_of(a if x in ("a", "b") else np.empty((n, n, 2), "c16")) for x in each.views]
            run_calls(each.calls(views, contiguous(Pointer(held), held.shape, "u1")))
            assert (held[each.nbytes - round_up(nbytes) + nbytes :] == BYTE).all(), (shape, room)


def test_lapack_has_kernels_for_matrices_of_floats_that_have_elements():
    host = host_target()
    assert all(is_for_lapack(host, dtype, (3, 3), (2, 3)) == has_lapack() for dtype in ("f4", "f8", "c8", "c16"))
    for dtype, *shapes in (("i4", (3, 3)), ("V2", (3, 3)), ("f8", (0, 3)), ("f8", (3, 3), (2, 0)), ("f8", (0, 2, 2))):
        assert not is_for_lapack(host, dtype, *shapes)
    for target in (gpu_target(8, 0), machine_named("cortex-m7").target):
        assert not is_for_lapack(target, "f8", (3, 3))


@pytest.mark.parametrize(
    ("dtype", "name", "want"),
    [
        ("f4", "geqrf", "dgeqrf"), ("f8", "orgqr", "dorgqr"), ("c8", "orgqr", "zungqr"), ("c16", "syevd", "zheevd"),
        ("f8", "syevd", "dsyevd"), ("c16", "gesdd", "zgesdd"),
    ],
)  # fmt: skip
def test_functions_have_lapacks_names_of_double_precision(dtype, name, want):
    assert lapack_name(dtype, name) == want


@pytest.mark.parametrize(("count", "groups"), [(1, 1), (15, 15), (16, 16), (17, 16), (100, 16)])
def test_each_of_at_most_16_groups_has_rooms_of_its_own(count, groups):
    job = solve_job("f4", (count, 5, 5), 3)
    line = lambda nbytes: -(-nbytes // 64) * 64  # noqa: E731
    assert (job.count, job.groups) == (count, groups)
    assert job.nbytes == groups * (line(5 * 5 * 8) + line(5 * 3 * 8) + line(5 * 4))
    inverse = solve_job("c8", (2, count, 5, 5))
    assert inverse.count == 2 * count
    assert inverse.group_nbytes == 2 * line(5 * 5 * 16) + line(5 * 4)
    assert determinant_job("c8", (count, 5, 5), True).group_nbytes == line(5 * 5 * 16) + line(5 * 4)
    assert cholesky_job("f4", (count, 5, 5)).group_nbytes == line(5 * 5 * 8)
