"""Bands of rows: rings hold what is read; an independent replay must accept that, and catch every change."""

from contextlib import nullcontext

import numpy as np
import pytest

from cgraph.errors import PlanError
from cgraph.ir.bands import Frame
from cgraph.kernels.calls.window import Window
from cgraph.kernels.kernel import Pointer, View, contiguous
from cgraph.memory.frame import frame_of
from cgraph.memory.replay_rows import check_rows
from cgraph.memory.rows import Read, Rows, heights, moves, pull, pulled
from cgraph.ops.physical.stream import Act, Lines
from cgraph.record import replace

FRAME = "frame"
SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_band_finds_the_rows_that_it_reads(seed):
    rng = np.random.default_rng(seed)
    values = drawn(rng)
    for most in (1, 2, int(rng.integers(1, 9)), 99):
        bands = [value.band(most if rng.random() < 0.7 else int(rng.integers(1, 9))) for value in values]
        workspace = int(rng.integers(0, 3)) * 192
        frame = frame_of(values, pulled(values, bands), workspace, 64)
        check_rows(values, acts_of(values, frame, workspace), FRAME, frame.nbytes)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_is_computed_twice_and_rings_are_no_higher_than_needed(seed):
    values = drawn(np.random.default_rng(seed))
    bands = [value.band(2) for value in values]
    events = pulled(values, bands)
    for i, value in enumerate(values):
        rows = [row for e in events if e.value == i for row in range(e.first, e.stop)]
        assert rows == list(range(len(rows)))
        assert len(rows) <= value.rows
    rows = heights(values, pull(values, bands))
    moves(values, events, rows)
    for i in range(len(values) - 1):
        if rows[i]:
            with pytest.raises(PlanError, match="are in use"):
                moves(values, events, [*rows[:i], rows[i] - 1, *rows[i + 1 :]])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_band_of_all_rows_is_one_event_for_each_value(seed):
    values = drawn(np.random.default_rng(seed))
    events = pulled(values, [value.inside for value in values])
    assert len(events) == len({e.value for e in events})
    assert all((e.first, e.stop) == (0, values[e.value].rows) for e in events)


CHANGES = {
    "a ring at another place": lambda rng, values, frame: replace(frame, rings=moved(rng, frame, values)),
    "a band in another row of its ring": lambda rng, values, frame: changed(
        rng, frame, lambda m: m.slide is None, slot=1
    ),
    "a band that does not run": lambda rng, values, frame: without(rng, frame),
    "two bands in the other order": lambda rng, values, frame: swapped(rng, values, frame),
    "no slide": lambda rng, values, frame: changed(rng, frame, lambda m: m.slide is not None, slide=None),
    "a workspace over a ring": lambda rng, values, frame: replace(frame, workspace=frame.rings[0]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_replay_catches(change):
    caught = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        values = chain(rng)
        frame = frame_of(values, pulled(values, [value.band(int(rng.integers(1, 3))) for value in values]), 64, 64)
        wrong = CHANGES[change](rng, values, frame)
        if wrong is None:
            continue
        caught += 1
        with pytest.raises(PlanError):
            check_rows(values, acts_of(values, wrong), FRAME, frame.nbytes)
    assert caught > len(SEEDS) // 3


def test_the_replay_catches_reads_of_other_rows():
    values = chain(np.random.default_rng(3))
    frame = frame_of(values, pulled(values, [value.band(2) for value in values]), 64, 64)
    acts = acts_of(values, frame)
    check_rows(values, acts, FRAME, frame.nbytes)
    at = max(i for i, act in enumerate(acts) if act.reads and not act.slides)
    lines = acts[at].reads[0]
    fewer = replace(lines, view=replace(lines.view, shape=(*lines.view.shape[:2], lines.view.shape[2] - 1, 4, 4)))
    for reads in ((), (replace(lines, first=lines.first - 1),), (fewer,)):
        with pytest.raises(PlanError):
            check_rows(values, [*acts[:at], replace(acts[at], reads=reads), *acts[at + 1 :]], FRAME, frame.nbytes)


def test_the_replay_catches_bands_in_another_order_too_few_and_too_low():
    values = chain(np.random.default_rng(3))
    frame = frame_of(values, pulled(values, [value.band(2) for value in values]), 64, 64)
    acts = acts_of(values, frame)
    with pytest.raises(PlanError, match="rows of .* are made"):
        check_rows(values, acts[:-1], FRAME, frame.nbytes)
    with pytest.raises(PlanError, match="rows 0 to 3 of x0 follow 3 rows"):
        check_rows(values, [acts[0], *acts], FRAME, frame.nbytes)
    with pytest.raises(PlanError, match="leave the frame of 64 bytes"):
        check_rows(values, acts, FRAME, 64)


def test_the_replay_catches_a_workspace_in_the_rows_that_are_made():
    values = chain(np.random.default_rng(3))
    frame = frame_of(values, pulled(values, [value.band(2) for value in values]), 64, 64)
    acts = acts_of(values, frame)
    at, act = next((i, act) for i, act in enumerate(acts) if not act.slides and act.out.view.at.base is FRAME)
    first = act.out.view.at
    for offset, caught in ((0, True), (64, True), (-64, False)):
        room = contiguous(Pointer(FRAME, first.offset + offset), (64,), "u1")
        wrong = [*acts[:at], replace(act, workspace=room), *acts[at + 1 :]]
        with pytest.raises(PlanError, match="the workspace of .* lies in its rows") if caught else nullcontext():
            check_rows(values, wrong, FRAME, frame.nbytes)


def test_the_replay_catches_slides_of_other_rows_and_out_of_the_frame():
    values = chain(np.random.default_rng(3))
    frame = frame_of(values, pulled(values, [value.band(2) for value in values]), 64, 64)
    acts = acts_of(values, frame)
    at, slide = next((i, act) for i, act in enumerate(acts) if act.slides)
    (source,) = slide.reads
    outside = Pointer(object())
    spoiled = [
        replace(slide, out=replace(slide.out, first=slide.out.first + 1)),
        replace(slide, out=replace(slide.out, value=slide.out.value + 1)),
        replace(slide, out=replace(slide.out, view=replace(slide.out.view, at=outside))),
        replace(slide, reads=(replace(source, view=replace(source.view, at=outside)),)),
    ]
    for wrong in spoiled:
        with pytest.raises(PlanError, match="do not slide inside the frame"):
            check_rows(values, [*acts[:at], wrong, *acts[at + 1 :]], FRAME, frame.nbytes)


def test_rows_that_there_are_not_are_refused():
    x = Rows("x", 4, 64)
    with pytest.raises(PlanError, match="more are read"):
        pulled([x, Rows("y", 1, 64, (Read(0, (0,), (5,)),))], [1, 1])
    with pytest.raises(PlanError, match="fall"):
        Rows("y", 2, 64, (Read(0, (1, 0), (2, 2)),))
    with pytest.raises(PlanError, match="its table"):
        Rows("y", 2, 64, (Read(0, (0,), (2,)),))
    with pytest.raises(PlanError, match="0 rows"):
        Rows("y", 2, 64, above=1, below=1)


def test_bands_are_whole_steps_and_frames_belong_to_the_first_and_last():
    value = Rows("x", 13, 64, above=1, below=2, step=4)
    assert [value.band(rows) for rows in (1, 4, 5, 99)] == [4, 4, 8, 10]
    assert [(e.first, e.stop) for e in pulled([value], [4])] == [(0, 5), (5, 9), (9, 13)]


# -- drawing regions ---------------------------------------------------------------------------------------------------


def drawn(rng: np.random.Generator) -> list[Rows]:
    """A region of windows, sums of two and frames over one, two or three values."""
    values = [Rows("x0", int(rng.integers(9, 30)), 64)]
    for i in range(1, int(rng.integers(3, 9))):
        source = int(rng.integers(max(0, i - 3), i))
        values.append(window_of(rng, values, i, source))
        like = [k for k in range(i) if k != source and values[k].rows == values[i].rows]
        if like and rng.random() < 0.5:
            rows = tuple(range(values[i].rows))
            same = Read(like[0], rows, tuple(r + 1 for r in rows))
            values[i] = replace(values[i], reads=(*values[i].reads, same))
    read = {r.source for value in values for r in value.reads}
    ends = [i for i in range(len(values) - 1) if i not in read]
    last = values[-1]
    everything = [Read(i, *all_of(last.rows, values[i].rows)) for i in ends]
    values[-1] = replace(last, reads=(*last.reads, *everything))
    return values


def all_of(rows: int, read: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Row by row through all of another value."""
    edges = [read * i // rows for i in range(rows + 1)]
    return tuple(min(e, read - 1) for e in edges[:-1]), tuple(max(e, 1) for e in edges[1:])


def chain(rng: np.random.Generator) -> list[Rows]:
    """One value after the other, with windows that carry rows."""
    values = [Rows("x0", 24, 64, above=1, below=1)]
    for i in range(1, 4):
        values.append(window_of(rng, values, i, i - 1, kernel=3, stride=1))
    return values


def window_of(rng, values, i, source, kernel=None, stride=None) -> Rows:
    """A window over the rows of another value, whose frame it reads."""
    x = values[source]
    kernel = kernel or int(rng.integers(1, 5))
    stride = stride or int(rng.integers(1, 3))
    pad = min(int(rng.integers(0, kernel)), x.inside)
    count = Window((kernel, 1), (stride, 1), (pad, 0, pad, 0)).result(x.inside, 1)[0]
    if count < 3:
        kernel, stride, pad, count = 1, 1, 0, x.inside
    above, below = (int(n) for n in rng.integers(0, 3, 2))
    p = [min(max(r - above, 0), count - 1) for r in range(above + count + below)]
    first = [max(q * stride - pad + x.above, 0) for q in p]
    stop = [max(min(q * stride - pad + kernel + x.above, x.rows), 1) for q in p]
    first = [min(a, b - 1) for a, b in zip(first, stop)]
    reads = (Read(source, tuple(first), tuple(stop)),)
    return Rows(f"x{i}", len(p), 64 * int(rng.integers(1, 4)), reads, above, below, int(rng.choice([1, 1, 2, 4])))


# -- what kernels would be given ---------------------------------------------------------------------------------------


def acts_of(values: list[Rows], frame: Frame, workspace: int = 64) -> list[Act]:
    """The views of every band and slide; a row has one, two or three planes of 64 bytes, as its bytes say."""
    base = [0] * len(values)
    acts = []
    for move in frame.moves:
        i, (first, stop) = move.event.value, (move.event.first, move.event.stop)
        if move.slide:
            low = base[i] + move.slide.slot
            at, left = 0, move.slide.count
            while left:
                count = min(left, move.slide.slot)
                to, source = (lines(values, frame, i, low + at, s + at, count) for s in (0, move.slide.slot))
                acts.append(Act(to, (source,), slides=True))
                at, left = at + count, left - count
        base[i] = first - move.slot
        reads = []
        for read in values[i].reads:
            rows = read.first[first], read.stop[stop - 1]
            reads.append(lines(values, frame, read.source, rows[0], rows[0] - base[read.source], rows[1] - rows[0]))
        out = lines(values, frame, i, first, move.slot, stop - first)
        room = contiguous(Pointer(FRAME, frame.workspace), (workspace,), "u1") if workspace and i % 2 else None
        acts.append(Act(out, tuple(reads), room))
    return acts


def lines(values, frame, i, first, slot, count) -> Lines:
    planes = values[i].row_nbytes // 64
    rows = frame.heights[i] or values[i].rows
    is_join = i == len(values) - 1
    at = Pointer("result" if is_join else FRAME, (0 if is_join else frame.rings[i]) + slot * 64)
    return Lines(i, first, View(at, (1, planes, count, 4, 4), (planes * rows * 64, rows * 64, 64, 16, 4), "f4"))


# -- changes -----------------------------------------------------------------------------------------------------------


def moved(rng, frame, values) -> tuple[int, ...]:
    """One ring on top of another that is in use with it."""
    i, k = rng.choice(len(values) - 1, 2, replace=False)
    return tuple(frame.rings[k] if j == i else at for j, at in enumerate(frame.rings))


def changed(rng, frame, chosen, slot=0, **change) -> Frame | None:
    places = [t for t, m in enumerate(frame.moves) if chosen(m) and frame.heights[m.event.value]]
    if not places:
        return None
    t = int(rng.choice(places))
    move = replace(frame.moves[t], slot=frame.moves[t].slot + slot, **change)
    return replace(frame, moves=(*frame.moves[:t], move, *frame.moves[t + 1 :]))


def without(rng, frame) -> Frame:
    t = int(rng.integers(len(frame.moves)))
    return replace(frame, moves=(*frame.moves[:t], *frame.moves[t + 1 :]))


def swapped(rng, values, frame) -> Frame | None:
    """A band before the one that makes what it reads."""
    pairs = zip(frame.moves, frame.moves[1:])
    at = [
        t
        for t, (a, b) in enumerate(pairs)
        if any(
            r.source == a.event.value and r.stop[b.event.stop - 1] > a.event.first for r in values[b.event.value].reads
        )
    ]
    if not at:
        return None
    t = int(rng.choice(at))
    return replace(frame, moves=(*frame.moves[:t], frame.moves[t + 1], frame.moves[t], *frame.moves[t + 2 :]))
