"""Teams of a GPU's threads: who works with whom, what they join, offsets, prefixes, compaction, tables of calls."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Pointer, View
from cgraph.kernels.llvm.accumulate import Accumulator
from cgraph.kernels.llvm.gpu_build import block
from cgraph.kernels.signature import Signature
from cgraph.kernels.team import gpu_calls
from cgraph.kernels.team.gpu_calls import element_call, extents, fits, lies_along, table, team_of
from cgraph.kernels.team.gpu_emit import BlockTeam, compact, offsets, scan_block
from cgraph.kernels.team.gpu_signature import COLUMNS, ELEMENTS, FEW, MANY, THREADS, WARP, elements
from tests.support.emitted import run_emitted_on_gpu
from tests.support.kernels import view_of

TEAMS = [(1, False), (WARP, False), (THREADS, False), (1, True), (THREADS // COLUMNS, True)]


@pytest.mark.parametrize("size, across", TEAMS)
def test_each_team_joins_its_own_threads_and_all_of_them_get_the_result(size, across):
    """The sum of the squares of threads' numbers and, as a second part, the largest number."""
    found = np.zeros((THREADS, 4), "i8")

    @block(THREADS)
    def write(k, out):
        own, thread = BlockTeam(k, size, across), k.thread()
        joined = own.joined([thread * thread, thread], lambda x, y: [x[0] + y[0], k.larger(x[1], y[1])])
        for i, x in enumerate((own.lane, own.number, *joined)):
            out.store(x, thread * 4 + i)

    run_emitted_on_gpu(write, found)
    threads, count = np.arange(THREADS), THREADS // size
    number = threads % count if across else threads // size
    np.testing.assert_array_equal(found[:, 1], number)
    for team in range(count):
        members = threads[number == team]
        np.testing.assert_array_equal(found[members, 0], np.arange(size))
        assert (found[members, 2] == (members**2).sum()).all() and (found[members, 3] == members[-1]).all()


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "?"])
def test_states_of_every_dtype(dtype):
    x, out = (np.arange(THREADS) % 7 == 3).astype(dtype), np.zeros(THREADS, dtype)

    @block(THREADS)
    def write(k, x, out):
        out.store(
            BlockTeam(k, WARP).joined([x.load(k.thread())], lambda a, b: [k.select(a[0] > b[0], a[0], b[0])])[0],
            k.thread(),
        )

    run_emitted_on_gpu(write, x, out)
    np.testing.assert_array_equal(out, np.repeat(x.reshape(-1, WARP).max(1), WARP))


@pytest.mark.parametrize("size, across", TEAMS)
@pytest.mark.parametrize("low, high", [(0, 1), (3, 3), (5, 16 * WARP + 9), (0, 5000)])
def test_reductions_of_any_range(size, across, low, high):
    """Teams add up every number of the range once, whole numbers exactly, with what rounding loses."""
    x, out = (np.arange(5001) % 11).astype("f4"), np.zeros(THREADS, "f4")
    x[high:], x[:low] = np.nan, np.nan

    @block(THREADS)
    def write(k, x, out):
        own = BlockTeam(k, size, across)
        total = own.reduced(
            Accumulator(k, "sum", "f4"), k.const(low, "i8"), k.const(high, "i8"), lambda at: (x.load(at), None)
        )
        out.store(total[0], k.thread())

    run_emitted_on_gpu(write, x, out)
    assert (out == x[low:high].sum(dtype="f8")).all()


SHAPES = [((5,), [(4,), (-8,)]), ((3, 4), [(16, 4), (0, 24)]), ((2, 3, 5), [(60, 20, 4), (4, 8, 24)])]


@pytest.mark.parametrize("shape, strides", SHAPES)
def test_offsets_are_those_of_a_positions_indices(shape, strides):
    count = int(np.prod(shape))
    rows = np.array([(n, *s) for n, *s in list(zip(shape, *strides))[::-1]], np.int64)
    out = np.zeros((count, 2), np.int64)

    @block(THREADS)
    def write(k, axes, out):
        with k.if_(k.thread() < count):
            for i, x in enumerate(offsets(k, axes, len(shape), 2, k.thread())):
                out.store(x, k.thread() * 2 + i)

    run_emitted_on_gpu(write, rows, out)
    for i, s in enumerate(strides):
        assert out[:, i].tolist() == [int(np.dot(np.unravel_index(at, shape), s)) for at in range(count)]


def test_prefixes_of_a_block_in_order_and_twice():
    """A second time in the same rooms, after a barrier."""
    x, out, all_ = np.arange(THREADS) % 5, np.zeros((2, THREADS), "i8"), np.zeros((2, THREADS), "i8")

    @block(THREADS)
    def write(k, x, out, all_):
        rooms = [k.shared("i8", THREADS) for _ in range(2)]
        for i in range(2):
            prefix = k.slot(x.load(k.thread()) + i)
            last = scan_block(k, rooms, prefix, lambda a, b: a + b)
            out.store(prefix.value, i * THREADS + k.thread())
            all_.store(last, i * THREADS + k.thread())
            k.barrier()

    run_emitted_on_gpu(write, x, out, all_)
    for i in range(2):
        np.testing.assert_array_equal(out[i], np.cumsum(x + i))
        assert (all_[i] == (x + i).sum()).all()


@pytest.mark.parametrize("n", [0, 1, THREADS - 1, THREADS, 2 * THREADS + 3])
@pytest.mark.parametrize("kind", ["none", "all", "some"])
def test_members_are_numbered_in_order(n, kind):
    x = {"none": np.zeros(n + 1), "all": np.ones(n + 1), "some": np.arange(n + 1) % 3 == 1}[kind].astype("i4")
    out, count = np.full(n + 1, -1), np.zeros(THREADS, "i8")

    @block(THREADS)
    def write(k, x, out, count):
        total = compact(k, k.const(n, "i8"), lambda i: x.load(i) != 0, lambda i, number: out.store(i, number))
        count.store(total, k.thread())

    run_emitted_on_gpu(write, x, out, count)
    want = np.flatnonzero(x[:n])
    assert (count == len(want)).all() and out.tolist() == [*want, *[-1] * (n + 1 - len(want))]


@pytest.mark.parametrize("length, results, across, want", [
    (FEW - 1, 9, False, (1, False)), (FEW, 9, False, (WARP, False)), (MANY - 1, 9, False, (WARP, False)),
    (MANY, 9, False, (THREADS, False)), (FEW - 1, COLUMNS, True, (1, True)), (FEW, COLUMNS, True, (8, True)),
    (MANY, COLUMNS, True, (8, True)), (FEW, COLUMNS - 1, True, (WARP, False)), (0, 0, False, (1, False)),
])  # fmt: skip
def test_the_size_of_a_team(length, results, across, want):
    assert team_of(length, results, across) == want


def test_views_that_teams_walk():
    x = np.zeros((2, 3, 4, 5), "f4")
    assert fits(view_of(x), view_of(x[..., None, ::2])) is False  # five axes
    assert fits(view_of(x)) and fits(view_of(x[None])) and not fits(view_of(x), view_of(x[..., None]))
    wide = View(Pointer("x"), (1 << 16, 1 << 15), (4, 4), "f4")
    assert not fits(wide) and fits(View(Pointer("x"), (1 << 16, (1 << 15) - 1), (4, 4), "f4"))
    assert extents(view_of(np.zeros((1, 1, 3, 1, 2)))) == (3, 1, 2)
    assert extents(view_of(np.zeros((1, 1)))) == (1,) and extents(view_of(np.zeros(7))) == (7,)
    assert lies_along(view_of(x)) and not lies_along(view_of(x[..., ::2])) and not lies_along(view_of(x.T))


def test_tables_have_the_fastest_axis_first_and_a_stride_for_each_view():
    x, y = np.zeros((1, 3, 4), "f4"), np.zeros((9, 3, 8), "f8")[:1, :, ::2]
    assert table([view_of(x), view_of(y)]) == [4, 4, 16, 3, 16, 64]
    assert table([view_of(np.zeros((1, 1)))]) == [1, 8]


def test_kernels_with_a_thread_for_each_position():
    family = Signature("tests.gpu.own", ("dtype", "rank"), elements("x", "out", more="i8"))
    x, out = np.zeros((1, 3, ELEMENTS), "f4"), np.zeros((1, 3, ELEMENTS), "f8")
    call = element_call(family, ("f4",), {"x": view_of(x), "out": view_of(out)}, more=5)
    assert (call.tasks, call.kernel.params) == (3, ("f4", 2))
    named = family.named(call.kernel.params, call.args)
    assert (named["count"], named["more"], named["axes"]) == (
        x.size,
        5,
        (ELEMENTS, 4, 8, 3, 4 * ELEMENTS, 8 * ELEMENTS),
    )
    assert named["x"].base is x and named["out"].base is out
    assert gpu_calls.MOST_ELEMENTS == 2**31
