"""The replay of bands accepts what finds its rows, and catches every change that loses one."""

from contextlib import nullcontext

import numpy as np
import pytest

from cgraph.budget.bands.replay_bands import check_rows, end_of, measures, row_nbytes
from cgraph.budget.bands.row_rings import Read, Rows, pull_events
from cgraph.errors import PlanError
from cgraph.ir.bands import BandBuffer
from cgraph.kernels.kernel import Pointer, View, contiguous
from cgraph.record import replace
from tests.support.rings import FRAME, SEEDS, acts_of, chain, drawn, drawn_frame, framed, framed_chain, reads_right


@pytest.mark.parametrize("seed", SEEDS)
def test_every_band_finds_the_rows_that_it_reads(seed):
    rests, overlap = seed % 2 == 1, seed % 4 > 1  # each pair of them has a quarter of the seeds
    rng = np.random.default_rng(seed)
    values = drawn(rng)
    for most in (1, 2, int(rng.integers(1, 9)), 99):
        bands = [value.band(most if rng.random() < 0.7 else int(rng.integers(1, 9))) for value in values]
        frame, rooms = drawn_frame(rng, values, pull_events(values, bands), rests, overlap)
        acts = acts_of(values, frame, rooms)
        check_rows(values, acts, FRAME, frame.nbytes, slides_overlap=overlap)
        assert reads_right(values, acts, frame.nbytes, overlap)


CHANGES = {
    "rows over others that are in use": lambda rng, frame: moved(rng, frame),
    "a band one row further": lambda rng, frame: changed(rng, frame, False, lambda m: m.at + 64),
    "rows that slide elsewhere": lambda rng, frame: changed(rng, frame, True, lambda m: m.at + 64),
    "a band or a slide that is left out": lambda rng, frame: without(rng, frame),
    "two of them in the other order": lambda rng, frame: swapped(rng, frame),
    "a workspace over a ring": lambda rng, frame: over(rng, frame),
}


@pytest.mark.parametrize("overlap", (False, True))
@pytest.mark.parametrize("change", CHANGES)
def test_the_replay_catches(change, overlap):
    """A change may do no harm (a place may be free): most are caught, and no run that reads other rows is accepted.

    Each change has a third of the seeds, and two changes share one.
    """
    caught = 0
    seeds = SEEDS[list(CHANGES).index(change) % 3 :: 3]
    for seed in seeds:
        rng = np.random.default_rng(seed)
        values = chain(rng)
        events = pull_events(values, [value.band(int(rng.integers(1, 3))) for value in values])
        rooms = [64] * len(events)
        frame = framed(values, events, rooms, seed % 2 == 0, 1000, overlap)
        acts = acts_of(values, CHANGES[change](rng, frame), rooms)
        if reads_right(values, acts, frame.nbytes, overlap):
            continue
        caught += 1
        with pytest.raises(PlanError):
            check_rows(values, acts, FRAME, frame.nbytes, slides_overlap=overlap)
    assert caught > len(seeds) // 4


def test_the_replay_catches_reads_of_other_rows():
    values, frame, acts = framed_chain()
    check_rows(values, acts, FRAME, frame.nbytes)
    at = max(i for i, act in enumerate(acts) if act.reads and not act.slides)
    lines = acts[at].reads[0]
    fewer = replace(lines, view=replace(lines.view, shape=(*lines.view.shape[:2], lines.view.shape[2] - 1, 4, 4)))
    for reads in ((), (replace(lines, first=lines.first - 1),), (fewer,)):
        with pytest.raises(PlanError):
            check_rows(values, [*acts[:at], replace(acts[at], reads=reads), *acts[at + 1 :]], FRAME, frame.nbytes)


def test_slides_may_overlap_only_where_one_call_moves_them():
    """Six rows of a window of seven slide by a row or two."""
    table = Read(0, tuple(range(12)), tuple(r + 7 for r in range(12)))
    values = [Rows("x", 18, 64), Rows("y", 12, 64, (table,))]
    events = pull_events(values, [1, 1])
    apart, over = (framed(values, events, [0] * len(events), False, 1000, x) for x in (False, True))
    assert over.nbytes == 7 * 64 < apart.nbytes
    acts = acts_of(values, over, [0] * len(events))
    check_rows(values, acts, FRAME, over.nbytes, slides_overlap=True)
    with pytest.raises(PlanError, match="reads row .* of x, which is not there"):
        check_rows(values, acts, FRAME, over.nbytes)


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


def test_a_row_reaches_from_its_first_to_its_last_element():
    view = View(Pointer("frame", 40), (2, 3, 5, 7, 4), (1000, 300, 48, 8, 2), "f2")
    assert row_nbytes(view) == 2 + 6 * 8 + 3 * 2
    assert end_of(view) == 40 + 2 + 1000 + 2 * 300 + 4 * 48 + 6 * 8 + 3 * 2
    assert measures(view) == (40, 1000, 300, 48, row_nbytes(view))
    assert measures(replace(view, shape=(1, 3, 1, 7, 4))) == (40, 300, row_nbytes(view)), "strides of one step"


def test_a_row_below_the_buffer_is_refused():
    values, frame, acts = framed_chain()
    at, act = next((i, act) for i, act in enumerate(acts) if not act.slides and act.out.view.at.base is FRAME)
    out = replace(act.out, view=replace(act.out.view, at=Pointer(FRAME, -64)))
    with pytest.raises(PlanError, match="leave the frame"):
        check_rows(values, [*acts[:at], replace(act, out=out), *acts[at + 1 :]], FRAME, frame.nbytes)


def test_a_row_that_the_workspace_of_a_band_overwrites_is_not_there_any_more():
    """The workspace of the last band lies in the rows that it reads."""
    values, frame, acts = framed_chain()
    at = max(i for i, act in enumerate(acts) if not act.slides)
    (read,) = acts[at].reads
    room = contiguous(Pointer(FRAME, read.view.at.offset + 8), (8,), "u1")
    with pytest.raises(PlanError, match=r"reads row \d+ of x2, which is not there"):
        check_rows(values, [*acts[:at], replace(acts[at], workspace=room)], FRAME, frame.nbytes)


def test_the_replay_catches_rows_that_a_value_does_not_have():
    """The fifth row of `x`, which no step reads."""
    x, y = Rows("x", 5, 256), Rows("y", 4, 256, (Read(0, (0, 1, 2, 3), (1, 2, 3, 4)),))
    events = pull_events([x, y], [5, 4])
    frame = framed([x, y], events, [0, 0], False, 1000, False)
    acts = acts_of([x, y], frame, [0, 0])
    check_rows([x, y], acts, FRAME, frame.nbytes)
    with pytest.raises(PlanError, match="rows 0 to 5 of x follow 0 rows"):
        check_rows([replace(x, rows=4), y], acts, FRAME, frame.nbytes)
