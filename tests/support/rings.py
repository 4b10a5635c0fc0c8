"""Regions in bands: drawn windows over rows, their band buffers, and what kernels would be given, byte by byte."""

import numpy as np

from cgraph.budget.bands.band_buffer import Framed
from cgraph.budget.bands.row_rings import Read, Rows, pull_events, steps_of
from cgraph.ir.bands import BandBuffer
from cgraph.kernels.kernel import Pointer, View, contiguous
from cgraph.kernels.views.window import Window
from cgraph.ops.physical.stream import Act, Lines
from cgraph.record import replace

FRAME = "frame"
SEEDS = range(60)


def drawn_frame(rng, values, events, rests, overlap=False) -> tuple[BandBuffer, list[int]]:
    """A frame, and the bytes of workspace of each event."""
    rooms = [int(rng.integers(0, 3)) * 192 for _ in events]
    return framed(values, events, rooms, rests, 1000, overlap), rooms


def framed(values, events, rooms, rests, work, overlap=False) -> BandBuffer:
    found = Framed(values, steps_of(values, events, rests), rooms, 64, overlap)
    found.packing.improve(work)
    return found.frame()


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


def reads_right(values: list[Rows], acts: list[Act], nbytes: int, overlap: bool = False) -> bool:
    """Do all bands find their rows? As in the replay, but byte by byte and with nothing but dictionaries.

    `overlap`: slides may overlap the previous place of their rows.
    """
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
        shared = set() if act.slides and overlap else read & set(written)
        if room & (read | set(written)) or shared or any(at < 0 or at >= nbytes for at in written):
            return False
        holds |= dict.fromkeys(room) | written
    return made[-1] == values[-1].rows


def bytes_of(x: Lines) -> list[tuple[int, int]]:
    """Each row of a value, and each byte of it."""
    (_, planes, count, _, _), row = x.view.shape, x.view.strides[2]
    return [(x.first + r, x.view.at.offset + r * row + b) for r in range(count) for b in range(planes * 64)]
