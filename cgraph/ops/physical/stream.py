"""A region of images computed band by band: one op and one step of the plan, with its band buffer as workspace."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from cgraph.dtypes.convert import code_of
from cgraph.errors import PlanError
from cgraph.ir.bands import BandBuffer, InPlaceJoin, Move
from cgraph.ir.cut import ROWS, Cut
from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Part, Work
from cgraph.kernels.kernel import Call, Pointer, View, contiguous
from cgraph.kernels.move.calls import move_calls, part
from cgraph.kernels.target import Target
from cgraph.kernels.views.layout import by_rows
from cgraph.record import Record


class Inner(Record):
    """An op of a region.

    Fields
        op: the computation
        reads: for each operand, the index of the value in the region; ``-1 - i`` for operand i of the region
        label: for messages and pictures
    """

    op: Op
    reads: tuple[int, ...]
    label: str


class Lines(Record):
    """Rows of a value where a kernel reads or writes them.

    Fields
        value: index in the region; -1 for an operand of the region
        first: the first of the rows, which lie along axis 2 of the view
    """

    value: int
    first: int
    view: View


class Act(Record, eq=False):
    """One band, or one slide of rows to another place in their ring.

    Fields
        out: the rows written
        reads: the rows read
        workspace: bytes that are overwritten as well, or None
        slides: the rows are moved, not computed
        calls: returns the kernel calls
    """

    out: Lines
    reads: tuple[Lines, ...] = ()
    workspace: View | None = None
    slides: bool = False
    calls: Callable[[], list[Call]] = list

    def dead(self) -> list[View]:
        """Return the bytes that are not read afterwards: the workspace and, after a slide, the previous place."""
        moved = left_behind(self.reads[0].view, self.out.view) if self.slides else []
        return [bytes_of(view) for view in (self.workspace, *moved) if view is not None]


class Stream(Op, eq=False):
    """The last value of a region, computed band by band, with the bits of its ops run one after the other.

    Operands
        the values that the region reads
    Fields
        inner: its ops, operands before users
        frame: every band with its place
        over: an operand that the result may overwrite: its rows are read before rows are written to their bytes
    """

    takes_complex = True
    takes_storage = True

    inner: tuple[Inner, ...]
    frame: BandBuffer
    over: InPlaceJoin | None = None

    @property
    def pure(self) -> bool:  # type: ignore[override]
        return all(inner.op.pure for inner in self.inner)

    @property
    def can_fail(self) -> bool:  # type: ignore[override]
        return any(inner.op.can_fail for inner in self.inner)

    def infer(self, *specs: Spec) -> Spec:
        return self.specs(specs)[-1]

    def specs(self, outside: tuple[Spec, ...]) -> list[Spec]:
        """Return the spec of every value."""
        specs: list[Spec] = []
        for inner in self.inner:
            specs.append(inner.op.infer(*(specs[i] if i >= 0 else outside[~i] for i in inner.reads)))  # type: ignore[arg-type]
        return specs

    def meaning(self, *xs: Any) -> Any:
        values: list[Any] = []
        for inner in self.inner:
            values.append(inner.op.meaning(*(values[i] if i >= 0 else xs[~i] for i in inner.reads)))
        return values[-1]

    def work(self, target: Target, *specs: Spec) -> Work:
        def parts(out: View, *xs: View, workspace: View | None = None) -> Iterator[Part]:
            loop = self.frame.loop
            for i, act in enumerate(self.acts(target, specs, out, xs, workspace)):
                times = loop.count if loop and loop.first <= i < loop.last else 1
                yield Part(self.inner[act.out.value].label, act.calls(), act.dead(), times=times)

        return Work(parts, self.frame.nbytes, strided=True, over=self.over)

    def acts(
        self,
        target: Target,
        outside: tuple[Spec, ...],
        out: View,
        xs: tuple[View, ...],
        workspace: View | None,
        turns: Sequence[int] = (0,),
    ) -> Iterator[Act]:
        """Yield all bands and slides in running order, those of a loop in these of its turns."""
        run = _Run(self, target, outside, out, xs, workspace)
        for move, left_out in self.frame.turns(turns):
            yield run.slide(move) if move.slides else run.band(move, left_out)


class _Run:
    """The places of a region's rows while its bands run. Changes: the address that row 0 of each ring would have."""

    def __init__(
        self,
        stream: Stream,
        target: Target,
        outside: tuple[Spec, ...],
        out: View,
        xs: tuple[View, ...],
        room: View | None,
    ) -> None:
        self.stream, self.target, self.outside, self.xs = stream, target, outside, xs
        self.frame = (
            room.at if room else Pointer(None)
        )  # there is no room where a region has neither ring nor workspace
        self.specs = stream.specs(outside)
        self.cuts = [cut_of(inner.op, *map(self.spec, inner.reads)) for inner in stream.inner]
        self.out, self.zero = out, [0] * len(self.specs)

    def spec(self, i: int) -> Spec:
        return self.specs[i] if i >= 0 else self.outside[~i]

    def lines(self, i: int, first: int, stop: int) -> Lines:
        """Return some rows of a value of the region, or of an operand."""
        if i < 0 or i == len(self.specs) - 1:
            return Lines(max(i, -1), first, part(self.xs[~i] if i < 0 else self.out, ROWS, first, stop - first))
        spec = rows_of(self.specs[i], stop - first)
        at = self.frame + (self.zero[i] + first * row_nbytes(self.specs[i]))
        return Lines(i, first, by_rows(at, spec.shape, code_of(spec.dtype)))

    def begin(self, move: Move) -> Lines:
        """Return the rows of a move at their place."""
        i, first, stop = move.event.value, move.event.first, move.event.stop
        self.zero[i] = move.at - first * row_nbytes(self.specs[i])
        return self.lines(i, first, stop)

    def missing(self, i: int, turns: int) -> int:
        """Return the number of rows of a value that this number of turns of the loop computes."""
        loop = self.stream.frame.loop
        return turns * loop.shift[i] if loop and i >= 0 else 0

    def slide(self, move: Move) -> Act:
        """Return the slide of rows from their previous place."""
        source = self.lines(move.event.value, move.event.first, move.event.stop)
        out = self.begin(move)
        return Act(out, (source,), None, True, partial(move_calls, self.target, out.view, source.view))

    def band(self, move: Move, left_out: int = 0) -> Act:
        """Return one band over views of its rows, which are numbered without those of omitted turns."""
        i = move.event.value
        cut, reads = self.cuts[i], self.stream.inner[i].reads
        out, lines, views, specs = self.begin(move), [], [], []
        first, stop = (row + self.missing(i, left_out) for row in (move.event.first, move.event.stop))
        for k, table in zip(reads, cut.reads):
            spec = self.spec(k)
            if table is None:
                views.append(self.xs[~k])
            else:
                before = self.missing(k, left_out)
                lines.append(self.lines(k, table[0][first] - before, table[1][stop - 1] - before))
                views.append(lines[-1].view)
                spec = Spec(views[-1].shape, spec.dtype)
            specs.append(spec)
        work = cut.band(first, stop).work(self.target, *specs)
        room = contiguous(self.frame + move.workspace, (work.nbytes,), "u1") if work.nbytes else None
        return Act(out, tuple(lines), room, False, partial(work.placed, out.view, tuple(views), room))


def left_behind(source: View, out: View) -> list[View]:
    """Return the bytes of rows that lie one after the other, without those that they cover at their new place."""
    far, nbytes = out.at.offset - source.at.offset, source.size * source.itemsize
    if abs(far) >= nbytes:
        return [source]
    return [contiguous(source.at if far > 0 else out.at + nbytes, (abs(far),), "u1")] if far else []


def bytes_of(view: View) -> View:
    """Return the same bytes as a view of uint8; elements along the last axis must be contiguous."""
    *shape, last = view.shape
    return View(view.at, (*shape, last * view.itemsize), (*view.strides[:-1], 1), "u1")


def cut_of(op: Op, *specs: Spec) -> Cut:
    """Return the op's cut. PlanError if it has none."""
    cut = op.cut(*specs)
    if cut is None:
        raise PlanError(f"{op.name} of {', '.join(map(str, specs))} cannot be computed in bands")
    return cut


def band_nbytes(cut: Cut, specs: tuple[Spec, ...], target: Target, first: int, stop: int) -> int:
    """Return the bytes of workspace of a band."""
    some = (
        spec if table is None else rows_of(spec, table[1][stop - 1] - table[0][first])
        for spec, table in zip(specs, cut.reads)
    )
    return cut.band(first, stop).work(target, *some).nbytes


def row_nbytes(spec: Spec) -> int:
    """Return the bytes of one row of all images and channels."""
    return spec.nbytes // spec.shape[ROWS]


def rows_of(spec: Spec, count: int) -> Spec:
    """Return the spec of `count` rows."""
    return Spec((*spec.shape[:ROWS], count, *spec.shape[ROWS + 1 :]), spec.dtype)
