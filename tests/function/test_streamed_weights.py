"""Weights that come from a file while a run computes: the same bits, whatever reader and kernels wait for."""

import ctypes
import errno
import gc
import mmap
import os
import re
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.engine.cpu import reader as readers
from cgraph.engine.cpu import threads as pools
from cgraph.engine.cpu.code import Piece
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.cpu.ring import least_ring, place_pieces, resident_constants, with_control_rows
from cgraph.errors import BudgetError, GraphError, WeightsError
from cgraph.kernels.control import PASSED, STALLED, WAIT
from cgraph.passes import weights_on_disk
from cgraph.storage.weight_file import PAGE, StreamedWeights, check_weights, place_of
from tests.support.injection import Lines, events
from tests.support.networks import networks

LARGEST = 592 * 1024  # a little more than the bytes of one layer's filters below, transformed


def chain(layers=6, width=64):
    """Convolutions with 144 KiB of filters each, 576 for Winograd, over an image of 16 x 16 pixels."""
    rng = np.random.default_rng(0)
    x = y = cg.Var((1, width, 16, 16), name="x")
    for _ in range(layers):
        filters = cg.Const(rng.standard_normal((width, width, 3, 3)).astype("f4") / 24)
        y = cg.relu(cg.conv2d(y, filters, 1, 1))
    return x, y, rng.standard_normal(x.shape).astype("f4")


def streamed(folder, ring=2 * LARGEST, **options):
    x, y, value = chain()
    weights = StreamedWeights(str(folder / "w"), ring)
    return cg.compile(y, x, weights=weights, **options), value, cg.compile(y, x, **options)(value)


def instance_of(function):
    return function._idle[-1].instance


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("winograd", [True, False])
@pytest.mark.parametrize("ring", [1.0, 1.5, 2.0, 3.7, 40.0])
def test_bits_are_those_of_weights_in_memory(tmp_path, ring, threads, winograd):
    largest = LARGEST if winograd else LARGEST // 4
    function, value, want = streamed(tmp_path, int(ring * largest), threads=threads, winograd=winograd)
    assert len(function.program.code.ring.pieces) >= 6
    for _ in range(3):
        np.testing.assert_array_equal(function(value), want)
    check_weights(tmp_path / "w")


@settings(max_examples=25)
@given(network=networks(), slices=st.integers(1, 2000), winograd=st.booleans())
def test_random_networks_have_the_same_bits_with_weights_of_any_size_from_a_file(
    tmp_path_factory, network, slices, winograd
):
    image, outputs = network
    value = np.random.default_rng(0).standard_normal(image.shape).astype(image.dtype)
    path = str(tmp_path_factory.mktemp("weights") / "w")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weights_on_disk, "HASHED_NBYTES", slices)
        patch.setattr(weights_on_disk, "SLICE", slices)
        function = cg.compile(outputs, image, weights=StreamedWeights(path, 1 << 20), winograd=winograd)
    want = cg.compile(outputs, image, winograd=winograd)(value)
    for _ in range(2):
        for got, expected in zip(function(value), want, strict=True):
            np.testing.assert_array_equal(got, expected)


def test_filters_larger_than_the_ring_are_read_in_slices(tmp_path):
    x, y, value = chain(width=256)
    weights = StreamedWeights(str(tmp_path / "w"), 1 << 20)
    function = cg.compile(y, x, weights=weights, winograd=False)
    assert len(function.program.code.ring.pieces) > 6 * 2.25 * 3
    np.testing.assert_array_equal(function(value), cg.compile(y, x, winograd=False)(value))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 300), (300,)])
@pytest.mark.parametrize("columns", [2000, 2001, 1000])
def test_matrices_larger_than_the_ring_are_read_in_slices(tmp_path, dtype, shape, columns):
    rng = np.random.default_rng(0)
    w, b = rng.standard_normal((300, columns)).astype(dtype), rng.standard_normal(columns).astype(dtype)
    x = cg.Var(shape, dtype, name="x")
    outputs = [cg.relu(x @ w + b), x @ w, x @ cg.transpose(cg.Const(np.ascontiguousarray(w.T))) - b]
    weights = StreamedWeights(str(tmp_path / "w"), 400 << 10)
    function, value = cg.compile(outputs, x, weights=weights), rng.standard_normal(shape).astype(dtype)
    assert max(p.nbytes for p in function.program.code.ring.pieces) <= 200 << 10
    for got, want in zip(function(value), cg.compile(outputs, x)(value), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [8, 40])  # pixels across: one block of tiles, and several
@pytest.mark.parametrize("width", [128, 100])
def test_filters_for_winograd_are_read_in_slices(tmp_path, size, width, threads):
    rng = np.random.default_rng(0)
    x = cg.Var((1, 64, size, size), name="x")
    f, g = (cg.Const(rng.standard_normal((width, c, 3, 3)).astype("f4") / 24) for c in (64, width))
    y = cg.relu(cg.conv2d(x, f, 1, 1))
    y = cg.relu(cg.conv2d(y, g, 1, 1) + y)  # the residual may be overwritten
    weights = StreamedWeights(str(tmp_path / "w"), 2 << 20, slice=300 << 10)
    function, value = cg.compile(y, x, weights=weights, threads=threads), rng.standard_normal(x.shape).astype("f4")
    plain = cg.compile(y, x, threads=threads)
    assert any(node.name.startswith("winograd") for node in plain.compiled.layout.steps)
    assert max(p.nbytes for p in function.program.code.ring.pieces) < LARGEST
    for _ in range(2):
        np.testing.assert_array_equal(function(value), plain(value))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(7, 300), (2, 3, 1500)])
@pytest.mark.parametrize("columns", [2000, 999])
def test_matrices_of_products_of_several_rows_are_read_in_slices(tmp_path, dtype, shape, columns):
    rng = np.random.default_rng(0)
    w, b = rng.standard_normal((shape[-1], columns)).astype(dtype), rng.standard_normal(columns).astype(dtype)
    x, turned = cg.Var(shape, dtype, name="x"), cg.Var((*shape[:-2], shape[-1], shape[-2]), dtype, name="turned")
    outputs = [cg.relu(x @ w + b), x @ w, np.swapaxes(turned, -1, -2) @ w - b]
    weights = StreamedWeights(str(tmp_path / "w"), 1 << 20, slice=200 << 10)
    function = cg.compile(outputs, [x, turned], weights=weights)
    values = [rng.standard_normal(v.shape).astype(dtype) for v in (x, turned)]
    assert max(p.nbytes for p in function.program.code.ring.pieces) <= 512 << 10  # a panel, or more
    assert len(function.program.code.ring.pieces) > 10
    for got, want in zip(function(*values), cg.compile(outputs, [x, turned])(*values), strict=True):
        np.testing.assert_array_equal(got, want)


def test_poison_in_the_ring_is_never_read(tmp_path):
    function, value, want = streamed(tmp_path, engine=CpuEngine(poison=True))
    for _ in range(2):
        np.testing.assert_array_equal(function(value), want)


def test_a_part_of_the_graph_reads_its_own_weights_alone(tmp_path):
    x, y, value = chain(3)
    u, v, _ = chain(4)
    total = y + 2.0 * v
    for var in (x, u):
        var.assign(value)
    function = cg.compile([total, y], weights=StreamedWeights(str(tmp_path / "w"), 2 * LARGEST), changing=[u])
    plain = cg.compile([total, y])
    rng = np.random.default_rng(1)
    for var in (x, u, u, x, u, None, u):
        if var is not None:
            var.assign(rng.standard_normal(value.shape).astype("f4"))
        for got, want in zip(function(), plain(), strict=True):
            np.testing.assert_array_equal(got, want)
    parts = {len(rows.waiting.orders) for rows in instance_of(function)._rows.values()}
    assert min(parts) < 7


def test_update_edges_are_written_once_and_weights_that_they_copy_stay_in_memory(tmp_path):
    x, y, value = chain(2)
    whole = cg.Const(np.random.default_rng(2).standard_normal(x.shape).astype("f4"))
    function = cg.compile([], updates={x: y + whole}, weights=StreamedWeights(str(tmp_path / "w"), 2 * LARGEST))
    want = value
    step = cg.compile(y + whole, x)
    x.assign(value)
    for _ in range(4):
        function()
        want = step(want)
        np.testing.assert_array_equal(x.value, want)


# -- the ring ---------------------------------------------------------------------------------------------------------


def test_the_least_ring_is_named_and_accepted(tmp_path):
    x, y, value = chain()
    weights = StreamedWeights(str(tmp_path / "w"), 100 << 10)
    with pytest.raises(BudgetError, match=r"the ring of 100 KiB does not hold .* one kernel call reads;") as refused:
        cg.compile(y, x, weights=weights)
    assert not list(tmp_path.iterdir())
    least = int(re.search(r"it needs (\d+) KiB", str(refused.value))[1])
    with pytest.raises(BudgetError, match=f"it needs {least} KiB"):
        cg.compile(y, x, weights=StreamedWeights(weights.path, (least - mmap.PAGESIZE // 1024) << 10))
    cg.compile(y, x, weights=StreamedWeights(weights.path, least << 10))(value)
    with pytest.raises(GraphError, match="ring of 0 bytes"):
        StreamedWeights("w", 0)
    with pytest.raises(GraphError, match="slice of 0 bytes"):
        StreamedWeights("w", slice=0)
    with pytest.raises(GraphError, match="StreamedWeights"):
        cg.compile(y, x, weights="w")


@st.composite
def pieces_and_rows(draw):
    """Pieces that are read one after another, some in one row, and some of the rows."""
    pieces, row = [], 0
    for i in range(draw(st.integers(1, 12))):
        first = row + draw(st.integers(0, 2))
        row = first + draw(st.integers(0, 2))
        pieces.append(Piece(i, PAGE * i, PAGE * draw(st.integers(1, 5)), first, row))
    chosen = sorted(draw(st.sets(st.integers(0, row + 3))))
    return pieces, chosen, PAGE * draw(st.integers(5, 20))


@given(pieces_and_rows(), st.randoms())
def test_every_row_finds_its_weights_and_none_waits_for_ever(drawn, rng):
    """A reader and a run take turns at random; what a reader brings is what the ring holds."""
    pieces, chosen, nbytes = drawn
    try:
        pieces = place_pieces(pieces, nbytes)
    except BudgetError:
        return
    last = max(p.last for p in pieces) + 4
    table = np.array([(100 + i, 0, 1, 1) for i in range(last)], np.int64)
    rows = with_control_rows(table, np.array(chosen, np.int64), pieces, 7, 0)
    kernels = [int(f) - 100 for f, *_ in rows.table if f >= 100]
    assert kernels == chosen
    ring: dict[int, int] = {}  # page -> which piece of the file
    brought, read, freed, row = 0, 0, 0, 0
    while row < len(rows.table):
        kind, _, wanted, _ = rows.table[row]
        may_read = brought < len(rows.orders) and freed >= rows.orders[brought][3]
        may_run = kind != WAIT or read >= wanted
        assert may_read or may_run, "both wait"
        if may_read and (not may_run or rng.random() < 0.5):
            offset, size, at, _, read = (int(v) for v in rows.orders[brought])
            ring |= {at // PAGE + i: offset for i in range(size // PAGE)}
            brought += 1
            continue
        if kind == PASSED:
            freed = int(wanted)
        elif kind != WAIT:
            for p in pieces:
                if p.first <= kind - 100 <= p.last:
                    assert all(ring.get(p.at // PAGE + i) == p.offset for i in range(p.nbytes // PAGE))
        row += 1


# -- a budget ----------------------------------------------------------------------------------------------------------


def needed(function):
    """Arena, ring and the constants that stay in memory."""
    code = function.program.code
    through = {p.constant for p in code.ring.pieces}
    kept = sum(x.nbytes for i, x in enumerate(code.constants) if i not in through)
    assert kept == sum(x.nbytes for x in resident_constants(code))
    return function.nbytes + code.ring.nbytes + kept


def tall(width=64):
    """Convolutions over rows enough for bands, with filters that grow, and a product."""
    rng = np.random.default_rng(0)
    x = y = cg.Var((1, 16, 64, 64), name="x")
    for c in (32, width, 2 * width):
        filters = cg.Const(rng.standard_normal((c, y.shape[1], 3, 3)).astype("f4") / 24)
        y = cg.max_pool2d(cg.relu(cg.conv2d(y, filters, 1, 1)), 2)
    y = cg.reshape(cg.max_pool2d(y, 4), (1, -1))
    y = y @ cg.Const(rng.standard_normal((y.size, 480)).astype("f4"))
    return x, y, rng.standard_normal(x.shape).astype("f4")


@pytest.mark.slow
@pytest.mark.parametrize(("ring", "slice"), [(None, None), (400 << 10, 100 << 10)])
def test_arena_ring_and_what_stays_in_memory_fit_in_a_budget_and_a_refusal_names_the_least(tmp_path, ring, slice):
    x, y, value = tall()
    want, weights = cg.compile(y, x, winograd=False)(value), StreamedWeights(str(tmp_path / "w"), ring, slice)

    def compiled(budget):
        return cg.compile(y, x, weights=weights, winograd=False, budget=budget)

    with pytest.raises(BudgetError, match=r"need \d+ bytes, the budget is 1 B: \d+ bytes are missing") as told:
        compiled(1)
    assert not list(tmp_path.iterdir())
    least = int(re.search(r"least budget of this graph is (\d+) bytes", str(told.value))[1])
    with pytest.raises(BudgetError, match=f": 1 bytes are missing; the least budget of this graph is {least} bytes"):
        compiled(least - 1)
    for budget in (least, 2 * least, 64 << 20):
        function = compiled(budget)
        assert needed(function) <= budget
        np.testing.assert_array_equal(function(value), want)
    assert function.program.code.ring.nbytes >= (ring or sum(p.nbytes for p in function.program.code.ring.pieces))


def test_without_a_ring_or_a_budget_the_ring_has_three_slices(tmp_path):
    x, y, value = chain(2, width=256)
    for slice, nbytes in ((None, 12 << 20), (100 << 10, 300 << 10)):
        function = cg.compile(y, x, weights=StreamedWeights(str(tmp_path / "w"), slice=slice), winograd=False)
        assert function.program.code.ring.nbytes == nbytes
        np.testing.assert_array_equal(function(value), cg.compile(y, x, winograd=False)(value))


@given(pieces_and_rows())
def test_the_ring_that_is_named_as_the_least_holds_the_pieces(drawn):
    pieces, _, _ = drawn
    least = least_ring(pieces)
    assert len(place_pieces(pieces, least)) == len(pieces)
    assert least >= max(p.nbytes for p in pieces)
    with pytest.raises(BudgetError, match="it needs"):
        place_pieces(pieces, PAGE - 1)


GROWTH = """
import sys
from pathlib import Path
import cgraph as cg
from tests.function.test_streamed_weights import cached, needed, tall

def held():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))

path, budget = sys.argv[1], 8 << 20
for width in (16, 512):  # the first for what any function takes
    x, y, value = tall(width)
    function = cg.compile(y, x, weights=cg.StreamedWeights(path), winograd=False, budget=budget)
    del y
    before = held()
    for _ in range(100):
        function(value)
print(held() - before, needed(function), sum(p.nbytes for p in function.program.code.ring.pieces), cached(path))
"""


def cached(path):
    """Bytes of a file that the system holds in memory."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
        address = np.frombuffer(mapping, np.uint8, 1).ctypes.data
        found = np.zeros(-(-len(mapping) // PAGE), np.uint8)
        assert (
            libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(len(mapping)), ctypes.c_void_p(found.ctypes.data))
            == 0
        )
    return int((found & 1).sum()) * PAGE


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_grows_by_its_plan_and_the_system_holds_nothing_of_the_file(tmp_path):
    path = str(tmp_path / "w")
    output = subprocess.run([sys.executable, "-c", GROWTH, path], check=True, capture_output=True, text=True).stdout
    grown, plan, weights, kept = map(int, output.split())
    assert weights > 2 * plan
    assert grown <= plan + (2 << 20)
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("this file system reads through the cache alone")
    assert kept <= weights // 50


# -- readers that are slow, fail or never come ------------------------------------------------------------------------


def slow_reader(rng, most=0.003):
    """Reading in Python, some bytes at a time, with rests; and what stops it."""

    def read(words, orders, count, file):
        shared = np.ctypeslib.as_array((ctypes.c_int64 * readers.STALLED).from_address(words))
        table = np.ctypeslib.as_array((ctypes.c_int64 * (5 * count)).from_address(orders)).reshape(-1, 5)
        for offset, nbytes, address, freed, number in table.tolist():
            while shared[readers.FREED] < freed and not shared[readers.HALT]:
                time.sleep(0.0005)
            if shared[readers.HALT]:
                return 0
            time.sleep(rng.uniform(0, most))
            ctypes.memmove(address, os.pread(file, nbytes, offset), nbytes)
            shared[readers.READ] = number
        return count

    return read


@pytest.fixture
def reading(monkeypatch):
    """Put another function in the place of the native reader; None is the native one again."""

    def put(read):
        native = pools.native()
        other = native if read is None else SimpleNamespace(read=read, halt=native.halt)
        monkeypatch.setattr(readers, "native", lambda: other)

    return put


@pytest.mark.parametrize("threads", [1, 2])
def test_a_reader_of_any_speed_gives_the_same_bits(tmp_path, reading, monkeypatch, threads):
    monkeypatch.setattr(os, "O_DIRECT", 0, raising=False)
    function, value, want = streamed(tmp_path, threads=threads)
    rng = np.random.default_rng(0)
    reading(slow_reader(rng))
    for _ in range(6):
        np.testing.assert_array_equal(function(value), want)
        time.sleep(rng.uniform(0, 0.01))


def test_an_interrupt_is_heard_while_the_disk_does_not_answer_and_the_next_run_works(tmp_path, reading):
    class Heard(Exception):
        pass

    def handler(*_):
        raise Heard

    function, value, want = streamed(tmp_path)
    reading(lambda *_: time.sleep(0.05))
    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(Heard):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            function(value)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    reading(None)
    np.testing.assert_array_equal(function(value), want)


def test_an_interrupt_before_the_readers_thread_has_started_leaves_a_function_that_works(tmp_path, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    function, value, want = streamed(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(threading.Thread, "start", interrupted)
        function(value)
    np.testing.assert_array_equal(function(value), want)


def test_an_exception_at_any_line_of_a_run_leaves_a_function_that_works(tmp_path):
    """At the first time of each line, and at every 17th event for lines that come again."""
    function, value, want = streamed(tmp_path)
    lines = events(lambda: function.__copy__()(value))
    first = {line: at for at, line in reversed([*enumerate(lines, 1)])}
    for at in sorted({*first.values(), *range(1, len(lines) + 1, 17)}):
        other = function.__copy__()  # with an arena, a ring and a thread that are made anew
        Lines(at).during(lambda other=other: other(value))
        np.testing.assert_array_equal(other(value), want)


def test_an_exception_at_any_line_of_making_a_reader_leaves_no_file_open(tmp_path):
    function, value, want = streamed(tmp_path)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))

    made = []

    def make():
        made.append(readers.Reader(function.program.code.ring, None))

    lines = len(events(make))
    assert lines > 20
    for at in range(1, lines + 1):
        made.clear()
        Lines(at).during(make)
        made.clear()
        assert len(os.listdir("/proc/self/fd")) == before or gc.collect() and len(os.listdir("/proc/self/fd")) == before
    np.testing.assert_array_equal(function(value), want)


def test_what_the_system_says_of_a_read_is_in_the_message(tmp_path, reading):
    function, value, want = streamed(tmp_path, LARGEST)
    native, folder = pools.native(), os.open(tmp_path, os.O_RDONLY)
    try:
        reading(lambda words, orders, count, _: native.read(words, orders, count, folder))
        with pytest.raises(WeightsError, match=f"piece 1 of the weights cannot be read: {os.strerror(errno.EISDIR)}"):
            function(value)
    finally:
        os.close(folder)
    reading(None)
    for _ in range(2):
        np.testing.assert_array_equal(function(value), want)


@pytest.mark.parametrize("change", ["missing", "other"])
def test_a_file_that_is_another_one_is_refused_before_anything_runs(tmp_path, change):
    function, value, _ = streamed(tmp_path)
    if change == "missing":
        (tmp_path / "w").unlink()
    else:
        (tmp_path / "w").write_bytes((tmp_path / "w").read_bytes() + b"x")
    with pytest.raises(WeightsError, match="cannot be read" if change == "missing" else "has changed since"):
        function(value)


# -- the file ---------------------------------------------------------------------------------------------------------


def test_a_file_that_holds_these_weights_is_not_written_again_and_any_other_is(tmp_path):
    streamed(tmp_path)
    first = os.stat(tmp_path / "w")
    streamed(tmp_path)
    again = os.stat(tmp_path / "w")
    assert (again.st_ino, again.st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
    x, y, value = chain(3)
    function = cg.compile(y, x, weights=StreamedWeights(str(tmp_path / "w"), 4 * LARGEST))
    assert os.stat(tmp_path / "w").st_ino != first.st_ino
    np.testing.assert_array_equal(function(value), cg.compile(y, x)(value))
    assert [p.name for p in tmp_path.iterdir()] == ["w"]


def test_damage_is_found_wherever_it_is(tmp_path):
    streamed(tmp_path)
    whole = bytearray((tmp_path / "w").read_bytes())
    check_weights(tmp_path / "w")
    for place in (0, 9, 16, 25, PAGE + 3, PAGE + 20, 2 * PAGE + 5, len(whole) // 2):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        (tmp_path / "w").write_bytes(damaged)
        with pytest.raises(WeightsError, match="damaged|not a weight file"):
            check_weights(tmp_path / "w")
    for size in (0, 10, PAGE, PAGE + 40, len(whole) - 2 * PAGE):
        (tmp_path / "w").write_bytes(whole[:size])
        with pytest.raises(WeightsError):
            check_weights(tmp_path / "w")


# -- processes and threads --------------------------------------------------------------------------------------------


def test_a_forked_child_reads_for_itself(tmp_path):
    function, value, want = streamed(tmp_path)
    function(value)
    child = os.fork()
    if child == 0:
        os._exit(0 if all((function(value) == want).all() for _ in range(3)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(function(value), want)


def test_runs_in_several_threads_have_rings_of_their_own(tmp_path):
    function, value, want = streamed(tmp_path)
    wrong = []

    def run():
        for _ in range(5):
            if not (function(value) == want).all():
                wrong.append(threading.get_ident())

    workers = [threading.Thread(target=run) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_nothing_is_left_of_a_function_that_is_gone(tmp_path):
    def there():
        return sum(t.name == "weights of cgraph" for t in threading.enumerate()), len(os.listdir("/proc/self/fd"))

    gc.collect()
    before = there()
    function, value, _ = streamed(tmp_path)
    function(value)
    assert there()[0] == before[0] + 1
    del function
    gc.collect()
    assert there() == before


def of_sizes(y, weights):
    """A function of images of several sizes, by `compile_sizes`."""

    def build(sizes):
        x = cg.Var((1, 64, sizes["h"], 5), name="x")
        return y(x), [x]

    return cg.compile_sizes(build, {"x": (1, 64, "h", 5)}, weights=weights)


@pytest.mark.parametrize("compiled", [of_sizes, lambda y, weights: cg.jit(y, weights=weights)])
def test_sizes_that_pack_weights_in_their_own_way_do_not_replace_the_files_of_others(tmp_path, compiled):
    """Winograd's filters for tall images, direct ones for the others."""
    filters = np.random.default_rng(0).standard_normal((64, 64, 3, 3)).astype("f4")

    def y(x):
        return cg.conv2d(x, filters, pad=1)

    function = compiled(y, StreamedWeights(str(tmp_path / "w")))
    for height in (40, 2, 40, 41, 2):
        value = np.random.default_rng(height).standard_normal((1, 64, height, 5)).astype("f4")
        want = cg.compile(y(x := cg.Var(value.shape)), x)(value)
        np.testing.assert_array_equal(function(value), want)
    assert sorted(x.name for x in tmp_path.iterdir()) == ["w", "w-2"]


def test_weights_that_stay_in_memory_are_copies_that_the_instance_has(tmp_path):
    """Those that rows before and behind other weights read."""
    rng = np.random.default_rng(2)
    x, matrices = cg.Var((4, 300), name="x"), rng.standard_normal((3, 300, 300)).astype("f4") / 17
    first, second, third = map(cg.Const, matrices)
    y = cg.tanh(cg.tanh(cg.tanh(x @ first) @ second) @ third) @ first
    function = cg.compile(y, [x], weights=StreamedWeights(str(tmp_path / "w"), 2 << 20))
    instance, code = function.program.instance(), function.program.code
    instance.reader.words[STALLED:] = 500_000_000
    assert instance.waited == 0.5 * len(code.ring.pieces) == 1
    resident = [array for array in resident_constants(code) if place_of(array) is not None]
    assert resident and len(instance._copies) == len(resident)
    for copy, array in zip(instance._copies, resident):
        np.testing.assert_array_equal(copy, array)
        assert place_of(copy) is None and copy.ctypes.data in instance.args
