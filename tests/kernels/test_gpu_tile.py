"""The product of a block of a GPU's threads: every form of both sides, every depth, lines beyond the last one."""

import numpy as np
import pytest

from cgraph.kernels.gemm.gpu_signature import DEPTH, SIDE, THREADS
from cgraph.kernels.gemm.gpu_tile import ProductTile, Side
from cgraph.kernels.llvm.gpu_build import block
from tests.support.emitted import run_emitted_on_gpu

FORMS = [("k", "k"), ("k", "lines"), ("lines", "k"), ("lines", "lines")]


def whole(seed, *shape, dtype="f4"):
    """Small whole numbers, whose sums of products are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def multiplied(a, b, low, high, lines, forms=("k", "k"), times=1):
    """All results of a tile of ``a[:, low:high] @ b[:, low:high].T``, and how often each was stored."""
    out, count = np.full((lines, lines), 77, a.dtype), np.zeros((lines, lines), "i8")
    a, b = (x if form == "k" else np.ascontiguousarray(x.T) for x, form in zip((a, b), forms))
    rows = [len(x) if form == "k" else x.shape[1] for x, form in zip((a, b), forms)]
    deep = a.shape[1] if forms[0] == "k" else len(a)

    @block(THREADS)
    def write(k, a, b, out, count):
        t = ProductTile(k, a.dtype, lines)

        def side(x, form, n):
            steps = (deep, 1) if form == "k" else (1, n)

            def at(line, depth):
                own = x + (line * steps[0] + depth * steps[1])
                return lambda first: own + first * steps[1]

            return Side(t, form, at, k.const(n, "i8"))

        for _ in range(times):
            t.multiply(side(a, forms[0], rows[0]), side(b, forms[1], rows[1]), k.const(low, "i8"), k.const(high, "i8"))
            k.barrier()
        totals, down, across = t.results()
        for sums, i in zip(totals, down):
            for x, j in zip(sums, across):
                out.store(x, i * lines + j)
                count.store(count.load(i * lines + j) + 1, i * lines + j)

    run_emitted_on_gpu(write, a, b, out, count)
    assert (count == 1).all()  # each by one thread
    return out


def last_repeated(x, lines):
    return x[np.minimum(np.arange(lines), len(x) - 1)]


def check(m, n, low, high, lines, forms, dtype="f4"):
    a, b = whole(0, m, high + 2, dtype=dtype), whole(1, n, high + 2, dtype=dtype)
    got = multiplied(a, b, low, high, lines, forms)
    want = last_repeated(a, lines)[:, low:high] @ last_repeated(b, lines)[:, low:high].T
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("forms", FORMS, ids="-".join)
@pytest.mark.parametrize("depth", [1, DEPTH - 1, DEPTH, DEPTH + 1, 3 * DEPTH - 1, 3 * DEPTH])
def test_sums_of_every_length(depth, forms):
    """What whole steps leave over comes first; products before the first and behind the last do not count."""
    check(32, 32, 3, 3 + depth, 32, forms)


@pytest.mark.parametrize("forms", FORMS, ids="-".join)
@pytest.mark.parametrize("lines, dtype", [(32, "f8"), (64, "f4"), (64, "f8"), (128, "f4")])
def test_every_size_of_a_tile(lines, dtype, forms):
    check(lines, lines, 0, DEPTH + 5, lines, forms, dtype)


@pytest.mark.parametrize("forms", FORMS, ids="-".join)
@pytest.mark.parametrize("m, n", [(1, 31), (17, 2), (32, 1)])
def test_beyond_the_last_line_it_is_read_again(m, n, forms):
    check(m, n, 0, 20, 32, forms)


def test_whole_numbers_wrap():
    a, b = (np.random.default_rng(i).integers(-(2**31), 2**31, (32, 20)).astype("i4") for i in range(2))
    np.testing.assert_array_equal(multiplied(a, b, 0, 20, 32), a @ b.T)


def test_a_second_product_is_added_to_the_first():
    a, b = whole(2, 32, 21), whole(3, 32, 21)
    np.testing.assert_array_equal(multiplied(a, b, 0, 21, 32, times=2), 2 * (a @ b.T))


def test_sums_run_along_k_with_one_rounding_for_each_product():
    """1 + 2**-24 is 1 in float32; in the other order the small numbers add up first."""
    a = np.zeros((32, 40), "f4")
    a[:, 0], a[:, 1:] = 1, 2.0**-24
    ones = np.ones((32, 40), "f4")
    assert (multiplied(a, ones, 0, 40, 32) == 1).all()
    assert (multiplied(np.ascontiguousarray(a[:, ::-1]), ones, 0, 40, 32) > 1).all()
    x = np.full((32, 2), 1 + 2.0**-12, "f4")
    x[:, 1] = -1
    y = np.full((32, 2), 1 + 2.0**-12, "f4")
    y[:, 1] = 1 + 2.0**-11  # the rounded square of the first
    assert (multiplied(x[:, ::-1].copy(), y[:, ::-1].copy(), 0, 2, 32) == np.float32(2.0**-24)).all()


def test_results_of_a_thread_are_neighbours_by_four():
    """16 times 16 threads: rows and columns of a tile of 128 lie in two chunks of four."""
    found = np.zeros((2, THREADS, 8), "i8")

    @block(THREADS)
    def write(k, out):
        t = ProductTile(k, "f4", 128)
        _, rows, columns = t.results()
        for i, places in enumerate((rows, columns)):
            for j, place in enumerate(places):
                out.store(place, i * THREADS * 8 + k.thread() * 8 + j)

    run_emitted_on_gpu(write, found)
    for thread in (0, 1, SIDE, THREADS - 1):
        for axis, place in enumerate((thread // SIDE, thread % SIDE)):
            assert found[axis, thread].tolist() == [place * 4 + i for i in range(4)] + [
                64 + place * 4 + i for i in range(4)
            ]
