"""Pictures of band buffers: the rows of each value in the buffer of a region, band by band.

A box is a group of rows of a value from the band that computes them, or the slide that moves them, to the last band
that reads them; rows of one value have one colour. So the picture is that of a plan with bands and slides as its steps.
Repeated bands are drawn once, and rows count as if the bands ran once.
"""

from cgraph.budget.bands.build_bands import values_of
from cgraph.budget.bands.regions import CALL_NS
from cgraph.budget.bands.repeated_bands import shorten
from cgraph.budget.bands.row_rings import Rows
from cgraph.errors import GraphError
from cgraph.ir.bands import BandBuffer, Move
from cgraph.ir.graph import Node, public
from cgraph.memory.bounds import lower_bound
from cgraph.memory.problem import Plan, Problem, ProblemOperand, UsageInterval
from cgraph.ops.physical.stream import Stream
from cgraph.view.blocks import memory_svg
from cgraph.view.boxes import VALUE, WORKSPACE, Box, MemoryPicture, memory_with
from cgraph.view.figures import RegionRow, RingRow
from cgraph.view.planned import Shown, compiled_of
from cgraph.view.sheet import Svg


@public
def frame_svg(shown: Shown, region: int = 0, title: str = "") -> Svg:
    """Return the band buffer of a Function's region, numbered in running order, as an SVG text; see
    `cgraph.view.frames`.

    GraphError if there is no such region: the options `budget` and `bands` create regions of several values.
    """
    regions = regions_of(shown)
    if not 0 <= region < len(regions):
        raise GraphError(
            f"there is no region {region}: the Function has {len(regions)}. Compile with budget= or bands= to make more"
        )
    _, node = regions[region]
    return memory_svg(frame_memory(node), title or f"{node.title} at {node.place}: rows by bands")


def regions_of(shown: Shown) -> list[tuple[int, Node]]:
    """Return the steps that are regions of several values."""
    steps = enumerate(compiled_of(shown).layout.steps)
    return [(t, node) for t, node in steps if isinstance(node.op, Stream) and len(node.op.inner) > 1]


def frame_memory(node: Node) -> MemoryPicture:
    """Return the boxes of a region's band buffer."""
    assert isinstance(node.op, Stream)
    boxes = boxes_of(node)
    return memory_with(
        problem_of(boxes), Plan(tuple(x.offset for x in boxes), node.op.frame.nbytes, "rings"), boxes, []
    )


def region_row(step: int, node: Node) -> RegionRow:
    """Return the savings and costs of a region."""
    op = node.op
    assert isinstance(op, Stream)
    values, moves, boxes = values_of(node), runs_of(op.frame), boxes_of(node)
    rings = []
    for i, value in enumerate(values[:-1]):
        own = [x for x in boxes if x.block == i and x.kind == VALUE]
        rings.append(RingRow(value.name, lower_bound(problem_of(own)), value.rows * value.row_nbytes))
    slid = sum((x.event.stop - x.event.first) * values[x.event.value].row_nbytes for x in moves if x.slides)
    slides = sum(move.slides for move in moves)
    calls = len(moves) - len(values)
    name = f"{node.title} at {node.place}"
    return RegionRow(
        step, name, op.frame.nbytes, tuple(rings), len(moves) - slides, slides, slid, calls * CALL_NS / 1e9
    )


def problem_of(boxes: list[Box]) -> Problem:
    return Problem(tuple(ProblemOperand(x.nbytes, UsageInterval(x.first, x.last), x.name) for x in boxes), 1)


def runs_of(frame: BandBuffer) -> list[Move]:
    """Return all bands and slides, repeated ones as often as they run."""
    return [move for move, _ in frame.turns(range(frame.loop.count) if frame.loop else (0,))]


def boxes_of(node: Node) -> list[Box]:
    """Return the boxes of neighbouring rows with equal lifetimes, and of the workspaces of bands."""
    assert isinstance(node.op, Stream)
    values, frame = values_of(node), node.op.frame
    if frame.loop:
        values = shorten(values, frame.loop)
    rows, boxes = _BandRows(values), list[Box]()
    for t, move in enumerate(frame.moves):
        rows.run(t, move.event.value, range(move.event.first, move.event.stop), move.at, move.slides)
        if move.room:
            i = move.event.value
            name = f"workspace of {values[i].name}"
            boxes.append(Box(name, "", "", move.room, move.workspace, t, t, len(boxes), i, WORKSPACE))
    return boxes + rows.boxes(len(boxes))


class _BandRows:
    """Rows of values in the band buffer. Mutable: they change as bands run.

    Fields
        there: for each value and row its address, its first step, and the last step that reads it
        gone: the same for rows that have moved, with value and row first
    """

    def __init__(self, values: list[Rows]) -> None:
        self.values = values
        self.there: dict[tuple[int, int], tuple[int, int, int]] = {}
        self.gone: list[tuple[int, int, int, int, int]] = []

    def run(self, t: int, value: int, rows: range, at: int, slides: bool) -> None:
        """Record that rows of a value are computed or moved."""
        reads = () if slides else self.values[value].reads
        for read in reads:
            for row in range(read.first[rows.start], read.stop[rows.stop - 1]):
                place, since, _ = self.there[read.source, row]
                self.there[read.source, row] = place, since, t
        if value == len(self.values) - 1:
            return
        for k, row in enumerate(rows):
            if slides:
                place, since, _ = self.there[value, row]
                self.gone.append((value, row, place, since, t))
            self.there[value, row] = at + k * self.values[value].row_nbytes, t, t

    def boxes(self, first: int) -> list[Box]:
        """Return a box for each group of neighbouring rows of the same steps; operands count from `first`."""
        rows = [*self.gone, *((value, row, *place) for (value, row), place in self.there.items())]
        rows.sort(key=lambda x: (x[0], x[3], x[4], x[2]))
        runs: list[list[tuple[int, int, int, int, int]]] = []
        for this in rows:
            value, _, at, since, last = this
            before = runs[-1][-1] if runs else None
            if before == (value, this[1] - 1, at - self.values[value].row_nbytes, since, last):
                runs[-1].append(this)
            else:
                runs.append([this])
        return [self.box(run, first + i) for i, run in enumerate(runs)]

    def box(self, run: list[tuple[int, int, int, int, int]], operand: int) -> Box:
        """Return the box of neighbouring rows."""
        value, row, at, since, last = run[0]
        x = self.values[value]
        spec = f"rows {row} to {run[-1][1]} of {x.rows}"
        return Box(x.name, spec, "", len(run) * x.row_nbytes, at, since, last, operand, value)
