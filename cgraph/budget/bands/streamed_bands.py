"""The band buffer of a region of streamed images: bands of equal parts of all values, the middle ones as a loop.

The loop is used if the kernel calls of all its iterations are the same; otherwise all bands are written out.
"""

from functools import cached_property

import numpy as np

from cgraph.budget.bands.band_buffer import Framing, loop_frame
from cgraph.budget.bands.build_bands import rows_of_step, stream_of
from cgraph.budget.bands.regions import Region
from cgraph.budget.bands.repeated_bands import Period, period_of, shorten
from cgraph.budget.bands.row_rings import Rows, pull_events
from cgraph.ir.bands import BandBuffer, Event
from cgraph.ir.cut import ROWS
from cgraph.kernels.kernel import Callback, Pointer, contiguous
from cgraph.kernels.move.calls import moves_in_order
from cgraph.kernels.target import Target
from cgraph.memory.layout import Layout
from cgraph.ops.physical.ports import RowSink
from cgraph.ops.physical.stream import Act, band_nbytes, cut_of


class Fed:
    """Steps ``first..last`` of a schedule, both included: the region of the streamed images."""

    def __init__(self, layout: Layout, first: int, last: int, target: Target, alignment: int) -> None:
        self.layout, self.target, self.alignment = layout, target, alignment
        self.numbers, self.steps = tuple(range(first, last + 1)), layout.steps[first : last + 1]
        self.cuts = [cut_of(node.op, *(x.spec for x in node.operands)) for node in self.steps]

    @cached_property
    def values(self) -> list[Rows]:
        """Return the steps as `Rows`."""
        at, values = {node: i for i, node in enumerate(self.steps)}, dict[int, Rows]()
        for i, (node, cut) in enumerate(zip(self.steps, self.cuts)):
            values[i] = rows_of_step(node.name, node.spec, cut, [at.get(x, -1) for x in node.operands], values)
        return list(values.values())

    def frame(self, rows: int) -> BandBuffer:
        """Return a band buffer for bands of `rows` rows of the join, and the same fraction of other values."""
        bands = self.bands(rows)
        period = period_of(self.values, bands) if isinstance(self.steps[-1].op, RowSink) else None
        if period is not None:
            frame = self.looped(bands, period)
            if self.comes_again(frame):
                return frame
        events = pull_events(self.values, bands)
        rooms = [self.nbytes(event) for event in events]
        framing = Framing(self.values, events, rooms, self.alignment, moves_in_order(self.target))
        framing.improve()
        return framing.best.frame()

    def bands(self, rows: int) -> list[int]:
        """Return the rows of a band of each value."""
        whole = self.steps[-1].shape[ROWS]
        return [value.band(rows * x.shape[ROWS] // whole) for value, x in zip(self.values, self.steps)]

    def looped(self, bands: list[int], period: Period) -> BandBuffer:
        """Return the band buffer of the picture in which the bands of a period run once."""
        values = shorten(self.values, period)
        events = pull_events(values, bands)
        ahead = [(period.count - 1) * far for far in period.shift]
        there = [
            Event(e.value, e.first + ahead[e.value], e.stop + ahead[e.value]) if t >= period.last else e
            for t, e in enumerate(events)
        ]
        return loop_frame(values, events, [self.nbytes(event) for event in there], self.alignment, period)

    def nbytes(self, event: Event) -> int:
        """Return the workspace of a band in bytes."""
        specs = tuple(x.spec for x in self.steps[event.value].operands)
        return band_nbytes(self.cuts[event.value], specs, self.target, event.first, event.stop)

    def comes_again(self, frame: BandBuffer) -> bool:
        """Return True if the kernel calls of the first, the second and the last iteration are the same."""
        stream, outside = stream_of(self.steps, Region(self.numbers, 0, frame))
        out, *xs = (self.layout.views[x] for x in (self.steps[-1], *outside))
        room, specs, loop = contiguous(Pointer(frame), (frame.nbytes,), "u1"), [x.spec for x in outside], frame.loop
        assert loop is not None
        acts = list(stream.acts(self.target, tuple(specs), out, tuple(xs), room, loop.checked_turns))  # type: ignore[arg-type]
        apart = loop.last - loop.first
        begins = range(loop.first, loop.first + len(loop.checked_turns) * apart, apart)
        first, *others = ([key_of(act) for act in acts[at : at + apart]] for at in begins)
        return all(other == first for other in others)


def key_of(act: Act) -> list[tuple]:
    """Return the calls of a band or a slide as a key: equal keys do the same. Private arrays compare by value."""
    calls = []
    for call in act.calls():
        args = [(value_of(x.base), x.offset) if isinstance(x, Pointer) else x for x in call.args]
        kernel = call.kernel.port if isinstance(call.kernel, Callback) else call.kernel
        calls.append((kernel, args, call.tasks, call.chunk))
    return calls


def value_of(base: object) -> object:
    """Return the base of an address; for an array, its bytes."""
    return base.tobytes() if isinstance(base, np.ndarray) else base
