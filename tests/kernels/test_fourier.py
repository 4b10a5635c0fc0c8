"""Fourier kernels against NumPy: every kind of length, any strides and cuts, any neighbours of a line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cgraph as cg
from cgraph.kernels.fourier.calls import (
    GROUP_POINTS,
    LARGEST_FACTOR,
    MOST_GROUPS,
    SHARE,
    VECTOR_POINTS,
    FourierJob,
    chirp_size,
    fourier_job,
    radices_of,
    real_job,
    roots_of,
)
from cgraph.kernels.machines import machine_named
from cgraph.kernels.target import host_target, target_named
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.strided import filled

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 14, 16, 25, 30, 31, 36, 37, 64, 74, 98, 127, 400]


def run(job: FourierJob, out: np.ndarray, x: np.ndarray, target, order: str = "all") -> None:
    """Run a job whose scratch holds NaN before."""
    room = np.full(job.nbytes // 8 + 1, np.nan)
    run_calls(job.calls(view_of(out), view_of(x), view_of(room.view("u1"))), target, order)


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


@given(
    data=st.data(),
    n=st.sampled_from(LENGTHS),
    others=st.lists(st.sampled_from([1, 2, 3, 5, 19]), max_size=2),
    precision=st.sampled_from([4, 8]),
    kind=st.sampled_from(["fft", "ifft", "rfft", "irfft"]),
    target=st.sampled_from(TARGETS),
    order=st.sampled_from(ORDERS),
)
def test_transforms_are_numpys_for_every_length_and_layout(data, n, others, precision, kind, target, order):
    axis = data.draw(st.integers(0, len(others)))
    shape = (*others[:axis], n, *others[axis:])
    axes = data.draw(st.permutations(range(len(shape))))
    target, inverse = target_named(target), "i" in kind
    have = (*shape[:axis], n // 2 + 1, *shape[axis + 1 :]) if kind == "irfft" else shape
    dtype = f"f{precision}" if kind == "rfft" else f"c{2 * precision}"
    x = numbers([have[a] for a in axes], dtype).transpose(np.argsort(axes))
    if data.draw(st.booleans()):
        x = np.flip(x, axis)
    wide = x.astype("complex128" if x.dtype.kind == "c" else "float64")
    more = {"n": n} if kind == "irfft" else {}
    want = getattr(np.fft, kind)(wide, axis=axis, norm="forward" if inverse else "backward", **more)
    make = real_job if "r" in kind else fourier_job
    job = make(target, f"f{precision}", shape, axis, inverse)
    out = filled(want.astype({"irfft": f"f{precision}"}.get(kind, f"c{2 * precision}")))
    run(job, out, x, target, order)
    error = np.abs(out - want).max() / np.abs(want).max()
    assert error < 8 * np.finfo(f"f{precision}").eps


@pytest.mark.parametrize("n", [8, 30, 37])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_line_has_the_same_bits_with_any_neighbours_and_lanes(n, dtype):
    """NaN and infinities of one line reach no other."""
    part, x = f"f{np.dtype(dtype).itemsize // 2}", numbers((21, n), dtype)
    alone = []
    for row in x:
        alone.append(np.empty_like(row))
        run(fourier_job(host_target(), part, (n,), 0), alone[-1], row.copy(), host_target())
    x[3, 1], x[20, 0] = np.nan, np.inf
    out = np.empty_like(x)
    run(fourier_job(host_target(), part, x.shape, 1), out, x, host_target())
    rest = [i for i in range(21) if i not in (3, 20)]
    assert (out[rest].view("u1") == np.array(alone)[rest].view("u1")).all()
    assert np.isnan(out[3]).all() and not np.isfinite(out[20]).any()


@pytest.mark.parametrize("shape, axis", [((5, 16), 1), ((16, 5), 0), ((40, 37), 1)])
def test_a_result_may_be_written_over_its_operand(shape, axis):
    x = numbers(shape, "complex64")
    want, job = np.empty_like(x), fourier_job(host_target(), "f4", shape, axis)
    run(job, want, x.copy(), host_target())
    run(job, x, x, host_target())
    assert (x == want).all()


def test_lengths_are_cut_into_the_factors_that_have_code_first():
    assert [radices_of(n) for n in (1, 2, 8, 60, 49, 62, 1009)] == [
        [], [2], [4, 2], [4, 3, 5], [7, 7], [2, 31], [1009],
    ]  # fmt: skip
    for n in range(1, 2000):
        assert np.prod(radices_of(n), dtype=int) == n
    for n in (37, 41, 1009):
        assert chirp_size(n) >= 2 * n - 1 and max(radices_of(chirp_size(n))) <= 5
    assert fourier_job(host_target(), "f4", (LARGEST_FACTOR,), 0).by_chirp is False
    assert fourier_job(host_target(), "f4", (37,), 0).by_chirp is True


def test_roots_are_those_of_unity():
    roots = roots_of(12, "f8").view("complex128")
    assert np.abs(roots - np.exp(-2j * np.pi * np.arange(12) / 12)).max() < 8 * np.finfo("f8").eps
    assert (roots_of(12, "f4") == roots_of(12, "f8").astype("f4")).all()
    assert roots[0] == 1 and roots[6].real == -1


def test_scratch_is_bounded_and_exported_code_has_one_task():
    many = fourier_job(host_target(), "f4", (10000, 64), 1)
    assert 1 < many.tasks <= MOST_GROUPS and many.each * many.tasks >= 10000
    assert many.nbytes <= 10000 * 64 * 8 // SHARE
    assert fourier_job(host_target(), "f4", (100, 64), 1).tasks == 1
    assert fourier_job(host_target(), "f8", (4, 4 * VECTOR_POINTS), 1).lanes == 0
    assert fourier_job(machine_named("cortex-m7").target, "f4", (10000, 64), 1).tasks == 1
    assert fourier_job(host_target(), "f4", (0, 64), 1).calls(None, None, None) == []


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_give_the_same_bits_and_no_python_runs(threads):
    x = cg.Var((500, 96), "float32", "x")
    f = cg.compile([np.fft.fft2(x), np.fft.rfft(x, axis=0), np.fft.irfft(x, 95)], [x], threads=threads)
    assert not f.program.code.callbacks
    value = numbers((500, 96), "float32")
    one = cg.compile([np.fft.fft2(x), np.fft.rfft(x, axis=0), np.fft.irfft(x, 95)], [x], threads=1)
    assert all((a == b).all() for a, b in zip(f(value), one(value)))
    want = np.fft.fft2(value.astype("float64"))
    assert np.abs(f(value)[0] - want).max() < 1e-6 * np.abs(want).max()


@pytest.mark.parametrize("name", TARGETS)
def test_lines_are_transformed_side_by_side_as_many_as_there_are_up_to_a_vector(name):
    """A power of two of them; long lines one at a time."""
    target = target_named(name)
    for part in ("f4", "f8"):
        most = target.lanes_of(part)
        for lines, lanes in ((1, 0), (2, 2), (3, 4), (5, 8), (1000, most)):
            job = fourier_job(target, part, (lines, 30), 1)
            assert job.lanes == min(lanes, most) and job.lines == lines
        assert fourier_job(target, part, (3, VECTOR_POINTS), 1).lanes > 0
        assert fourier_job(target, part, (3, VECTOR_POINTS + 1), 1).lanes == 0
        assert real_job(target, part, (3, VECTOR_POINTS + 2), 1).lanes == 0


@pytest.mark.parametrize("part", ["f4", "f8"])
def test_tasks_have_many_points_and_their_scratch_is_a_share_of_the_array(part):
    size = int(part[1:])
    for lines, n in ((1000, 64), (100_000, 8), (3, 4096), (64, 37), (17, 16_384), (5, 20_000)):
        job = fourier_job(host_target(), part, (lines, n), 1)
        points, together = lines * n, max(job.lanes, 1)
        assert job.room == -(-4 * job.size * size * together // 64) * 64
        groups = max(1, min(MOST_GROUPS, points // GROUP_POINTS, points * 2 * size // SHARE // job.room))
        assert job.each == -(-lines // (groups * together)) * together
        assert (job.tasks - 1) * job.each < lines <= job.tasks * job.each and job.nbytes == job.tasks * job.room


@pytest.mark.parametrize(("n", "inverse", "points", "sides", "scale"), [
    (12, False, 6, ("pairs", "packed"), 3.0), (12, True, 6, ("packed", "pairs"), 6.0),
    (13, False, 13, ("real", "half"), 3.0), (13, True, 13, ("half", "real"), 3.0),
])  # fmt: skip
def test_real_numbers_of_an_even_count_are_half_as_many_complex_ones(n, inverse, points, sides, scale):
    job = real_job(host_target(), "f4", (5, n), 1, inverse, 3.0)
    assert (job.n, job.reads, job.writes, job.scale, job.inverse) == (points, *sides, scale, inverse)
