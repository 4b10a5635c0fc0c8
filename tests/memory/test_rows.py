"""Bands of rows: rings hold what is read; an independent replay must accept that, and catch every change."""

from contextlib import nullcontext

import numpy as np
import pytest

from cgraph.budget.bands.band_buffer import Framed, Framing
from cgraph.budget.bands.replay_bands import check_rows
from cgraph.budget.bands.row_rings import Read, Rows, alive, pull_events, row_counts, steps_of
from cgraph.errors import PlanError
from cgraph.ir.bands import BandBuffer
from cgraph.kernels.kernel import Pointer, View, contiguous
from cgraph.kernels.views.window import Window
from cgraph.memory.packing import Group, Slab, check_groups
from cgraph.ops.physical.stream import Act, Lines
from cgraph.record import replace

FRAME = "frame"
SEEDS = range(60)


@pytest.mark.parametrize("rests", (False, True))
@pytest.mark.parametrize("seed", SEEDS)
def test_every_band_finds_the_rows_that_it_reads(seed, rests):
    rng = np.random.default_rng(seed)
    values = drawn(rng)
    for most in (1, 2, int(rng.integers(1, 9)), 99):
        bands = [value.band(most if rng.random() < 0.7 else int(rng.integers(1, 9))) for value in values]
        frame, rooms = drawn_frame(rng, values, pull_events(values, bands), rests)
        check_rows(values, acts_of(values, frame, rooms), FRAME, frame.nbytes)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_is_computed_twice_and_no_frame_is_smaller_than_what_is_alive(seed):
    rng = np.random.default_rng(seed)
    values = drawn(rng)
    events = pull_events(values, [value.band(2) for value in values])
    for i, value in enumerate(values):
        rows = [row for e in events if e.value == i for row in range(e.first, e.stop)]
        assert rows == list(range(len(rows)))
        assert len(rows) <= value.rows
    frame, rooms = drawn_frame(rng, values, events, False)
    assert frame.nbytes >= max(bytes_wanted(values, events, t) + rooms[t] for t in range(len(events)))
    about = sum(alive(values, row_counts(len(values), [(e.value, e.first, e.stop) for e in events]))[:-1])
    assert all(about[t] >= bytes_wanted(values, events, t) for t in range(len(events)))


def test_rows_that_rest_make_room_for_others():
    values = [Rows("x0", 40, 640), *(Rows(f"x{i + 1}", 40, 640, (window(i),)) for i in range(6))]
    events = pull_events(values, [value.band(5) for value in values])
    rooms = [20_000 if event.value == 6 else 0 for event in events]
    plain, resting = (framed(values, events, rooms, rests, 10**7).nbytes for rests in (False, True))
    assert resting < 0.9 * plain
    framing = Framing(values, events, rooms, 64)
    framing.improve(10**7)
    assert framing.best.frame().nbytes == framing.nbytes == resting
    framing = Framing(values, events, rooms, 64)
    framing.improve(10**7, enough=plain)
    assert framing.nbytes == plain


def bytes_wanted(values, events, t) -> int:
    """Bytes of the rows that are there at an event and that it or a later one reads."""
    there = {(e.value, row) for e in events[: t + 1] for row in range(e.first, e.stop)}
    reads = ((r, e) for e in events[t:] for r in values[e.value].reads)
    wanted = {(r.source, row) for r, e in reads for row in range(r.first[e.first], r.stop[e.stop - 1])}
    return sum(values[i].row_nbytes for i, _ in there & wanted)


def window(source: int) -> Read:
    """Three of 40 rows, one beyond each border left out."""
    return Read(source, tuple(max(r - 1, 0) for r in range(40)), tuple(min(r + 2, 40) for r in range(40)))


def drawn_frame(rng, values, events, rests) -> tuple[BandBuffer, list[int]]:
    """A frame, and the bytes of workspace of each event."""
    rooms = [int(rng.integers(0, 3)) * 192 for _ in events]
    return framed(values, events, rooms, rests, 1000), rooms


def framed(values, events, rooms, rests, work) -> BandBuffer:
    found = Framed(values, steps_of(values, events, rests), rooms, 64)
    found.packing.improve(work)
    return found.frame()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_band_of_all_rows_is_one_event_for_each_value(seed):
    values = drawn(np.random.default_rng(seed))
    events = pull_events(values, [value.inside for value in values])
    assert len(events) == len({e.value for e in events})
    assert all((e.first, e.stop) == (0, values[e.value].rows) for e in events)


CHANGES = {
    "rows over others that are in use": lambda rng, frame: moved(rng, frame),
    "a band one row further": lambda rng, frame: changed(rng, frame, False, lambda m: m.at + 64),
    "rows that slide elsewhere": lambda rng, frame: changed(rng, frame, True, lambda m: m.at + 64),
    "a band or a slide that is left out": lambda rng, frame: without(rng, frame),
    "two of them in the other order": lambda rng, frame: swapped(rng, frame),
    "a workspace over a ring": lambda rng, frame: over(rng, frame),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_replay_catches(change):
    """A change may do no harm (a place may be free): most are caught, and no run that reads other rows is accepted."""
    caught = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        values = chain(rng)
        events = pull_events(values, [value.band(int(rng.integers(1, 3))) for value in values])
        rooms = [64] * len(events)
        frame = framed(values, events, rooms, seed % 2 == 0, 1000)
        acts = acts_of(values, CHANGES[change](rng, frame), rooms)
        if reads_right(values, acts, frame.nbytes):
            continue
        caught += 1
        with pytest.raises(PlanError):
            check_rows(values, acts, FRAME, frame.nbytes)
    assert caught > len(SEEDS) // 4


def test_groups_that_share_bytes_are_refused():
    groups = [Group("x", 0, (Slab(0, 64, 0, 4), Slab(64, 64, 2, 4))), Group("y", 0, (Slab(0, 64, 3, 3),))]
    check_groups(groups, [0, 128], 192)
    check_groups([groups[0], Group("y", 0, (Slab(0, 64, 0, 1),))], [0, 64], 128)  # before the second slab is written
    with pytest.raises(PlanError, match="share bytes"):
        check_groups(groups, [0, 64], 192)
    with pytest.raises(PlanError, match="leaves"):
        check_groups(groups, [0, 128], 128)


def test_the_replay_catches_reads_of_other_rows():
    values, frame, acts = framed_chain()
    check_rows(values, acts, FRAME, frame.nbytes)
    at = max(i for i, act in enumerate(acts) if act.reads and not act.slides)
    lines = acts[at].reads[0]
    fewer = replace(lines, view=replace(lines.view, shape=(*lines.view.shape[:2], lines.view.shape[2] - 1, 4, 4)))
    for reads in ((), (replace(lines, first=lines.first - 1),), (fewer,)):
        with pytest.raises(PlanError):
            check_rows(values, [*acts[:at], replace(acts[at], reads=reads), *acts[at + 1 :]], FRAME, frame.nbytes)


def test_the_replay_catches_bands_in_another_order_too_few_and_too_low():
    values, frame, acts = framed_chain()
    with pytest.raises(PlanError, match="rows of .* are made"):
        check_rows(values, acts[:-1], FRAME, frame.nbytes)
    with pytest.raises(PlanError, match="rows 0 to 3 of x0 follow 3 rows"):
        check_rows(values, [acts[0], *acts], FRAME, frame.nbytes)
    with pytest.raises(PlanError, match="leave the frame of 64 bytes"):
        check_rows(values, acts, FRAME, 64)


def test_the_replay_catches_a_workspace_in_the_rows_that_are_made():
    values, frame, acts = framed_chain()
    at, act = next((i, act) for i, act in enumerate(acts) if not act.slides and act.out.view.at.base is FRAME)
    first = act.out.view.at.offset
    for offset, caught in ((first, True), (first + 64, True), (frame.nbytes, False)):
        room = contiguous(Pointer(FRAME, offset), (64,), "u1")
        wrong = [*acts[:at], replace(act, workspace=room), *acts[at + 1 :]]
        with pytest.raises(PlanError, match="the workspace of .* lies in its rows") if caught else nullcontext():
            check_rows(values, wrong, FRAME, frame.nbytes + 64)


def test_the_replay_catches_slides_of_other_rows_and_out_of_the_frame():
    values, frame, acts = framed_chain()
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
        pull_events([x, Rows("y", 1, 64, (Read(0, (0,), (5,)),))], [1, 1])
    with pytest.raises(PlanError, match="fall"):
        Rows("y", 2, 64, (Read(0, (1, 0), (2, 2)),))
    with pytest.raises(PlanError, match="its table"):
        Rows("y", 2, 64, (Read(0, (0,), (2,)),))
    with pytest.raises(PlanError, match="0 rows"):
        Rows("y", 2, 64, above=1, below=1)


def test_bands_are_whole_steps_and_frames_belong_to_the_first_and_last():
    value = Rows("x", 13, 64, above=1, below=2, step=4)
    assert [value.band(rows) for rows in (1, 4, 5, 99)] == [4, 4, 8, 10]
    assert [(e.first, e.stop) for e in pull_events([value], [4])] == [(0, 5), (5, 9), (9, 13)]


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


def framed_chain() -> tuple[list[Rows], BandBuffer, list[Act]]:
    """A chain in bands of two rows, and what kernels would be given."""
    values = chain(np.random.default_rng(3))
    events = pull_events(values, [value.band(2) for value in values])
    frame = framed(values, events, [64] * len(events), False, 1000)
    return values, frame, acts_of(values, frame, [64] * len(events))


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


def acts_of(values: list[Rows], frame: BandBuffer, rooms: list[int]) -> list[Act]:
    """The views of every band and slide; a row has one, two or three planes of 64 bytes, as its bytes say."""
    zero, sizes = [0] * len(values), iter(rooms)
    acts = []
    for move in frame.moves:
        i, (first, stop) = move.event.value, (move.event.first, move.event.stop)
        reads = []
        if move.slides:
            reads.append(lines(values, zero, i, first, stop))
        for read in () if move.slides else values[i].reads:
            reads.append(lines(values, zero, read.source, read.first[first], read.stop[stop - 1]))
        zero[i] = move.at - first * values[i].row_nbytes
        size = 0 if move.slides else next(sizes)
        room = contiguous(Pointer(FRAME, move.workspace), (size,), "u1") if size else None
        acts.append(Act(lines(values, zero, i, first, stop), tuple(reads), room, move.slides))
    return acts


def lines(values, zero, i, first, stop) -> Lines:
    row, is_join = values[i].row_nbytes, i == len(values) - 1
    at = Pointer("result", first * row) if is_join else Pointer(FRAME, zero[i] + first * row)
    return Lines(i, first, View(at, (1, row // 64, stop - first, 4, 4), (row, 64, row, 16, 4), "f4"))


def reads_right(values: list[Rows], acts: list[Act], nbytes: int) -> bool:
    """Do all bands find their rows? As in the replay, but byte by byte and with nothing but dictionaries."""
    holds: dict[int, tuple[int, int]] = {}
    made = [0] * len(values)
    for act in acts:
        for x in act.reads:
            for row, at in bytes_of(x):
                if at < 0 or at >= nbytes or holds.get(at) != (x.value, row):
                    return False
        i, first, stop = act.out.value, act.out.first, act.out.first + act.out.view.shape[2]
        if not act.slides and (first != made[i] or stop > values[i].rows):
            return False
        made[i] = max(made[i], stop)
        written = {} if i == len(values) - 1 else {at: (i, row) for row, at in bytes_of(act.out)}
        room = set(
            range(act.workspace.at.offset, act.workspace.at.offset + act.workspace.size) if act.workspace else ()
        )
        read = {at for x in act.reads for _, at in bytes_of(x)}
        if room & (read | set(written)) or read & set(written) or any(at < 0 or at >= nbytes for at in written):
            return False
        holds |= dict.fromkeys(room) | written
    return made[-1] == values[-1].rows


def bytes_of(x: Lines) -> list[tuple[int, int]]:
    """Each row of a value, and each byte of it."""
    (_, planes, count, _, _), row = x.view.shape, x.view.strides[2]
    return [(x.first + r, x.view.at.offset + r * row + b) for r in range(count) for b in range(planes * 64)]


# -- changes -----------------------------------------------------------------------------------------------------------


def moved(rng, frame) -> BandBuffer:
    """One band where another lies."""
    one, other = rng.choice(len(frame.moves), 2, replace=False)
    return with_move(frame, one, at=frame.moves[other].at)


def changed(rng, frame, slides, at) -> BandBuffer:
    places = [t for t, m in enumerate(frame.moves) if m.slides == slides]
    t = int(rng.choice(places))
    return with_move(frame, t, at=at(frame.moves[t]))


def over(rng, frame) -> BandBuffer:
    one, other = rng.choice(len(frame.moves), 2, replace=False)
    return with_move(frame, one, workspace=frame.moves[other].at)


def with_move(frame, t, **change) -> BandBuffer:
    return replace(frame, moves=(*frame.moves[:t], replace(frame.moves[t], **change), *frame.moves[t + 1 :]))


def without(rng, frame) -> BandBuffer:
    t = int(rng.integers(len(frame.moves)))
    return replace(frame, moves=(*frame.moves[:t], *frame.moves[t + 1 :]))


def swapped(rng, frame) -> BandBuffer:
    t = int(rng.integers(len(frame.moves) - 1))
    return replace(frame, moves=(*frame.moves[:t], frame.moves[t + 1], frame.moves[t], *frame.moves[t + 2 :]))
