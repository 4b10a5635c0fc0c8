"""stream_rows: steps of a schedule become regions that are computed a band of rows at a time.

Each region is one op (`cgraph.ops.physical.stream`) in place of its steps, with the same bits: what lies inside needs a
few rows instead of whole images. Which steps, and how many pixels a band has, is given; see `cgraph.memory.regions`.
"""

from collections.abc import Mapping, Sequence

from cgraph.ir.bands import Event
from cgraph.ir.cut import Cut
from cgraph.ir.graph import Node, apply, keeps_place
from cgraph.ir.traverse import located
from cgraph.kernels.expression import code_of
from cgraph.kernels.kernel import Pointer, contiguous
from cgraph.kernels.target import Target
from cgraph.memory.frame import frame_of
from cgraph.memory.layout import Layout, producers_of
from cgraph.memory.regions import Region, Stage
from cgraph.memory.replay_rows import check_rows
from cgraph.memory.rows import Read, Rows, pulled
from cgraph.ops.physical.stream import Inner, Stream, band_nbytes, cut_of
from cgraph.passes.rewrite import remade
from cgraph.record import replace

COLUMNS = 3  # the axis of columns, as rows are axis 2


@keeps_place
def stream_rows(
    layout: Layout, regions: Sequence[Region], alignment: int, target: Target
) -> tuple[list[Node], dict[Node, Node]]:
    """A running order in which regions are single steps, and what became of each node that is still there.

    Parameters
        layout: a schedule of a physical graph
        regions: which do not meet; nobody else reads what lies inside
        alignment: bytes that rings begin at multiples of
        target: whose kernels run
    """
    inside = {node for region in regions for node in layout.steps[region.first : region.last]}
    joins = {layout.steps[region.last]: region for region in regions}
    new: dict[Node, Node] = {}
    for node in located(layout.views):
        if node in joins:
            steps = layout.steps[joins[node].first : joins[node].last + 1]
            made = Parts(steps, target)
            new[node] = apply(made.stream(joins[node].pixels, alignment), *(new[x] for x in made.outside))
        elif node not in inside:
            new[node] = remade(node, tuple(new[x] for x in node.operands))
    return list(dict.fromkeys(new.values())), new


class Parts:
    """A region taken apart.

    Fields
        steps: its nodes, operands before users
        outside: what they read of others, each once
        reads: per step and operand, the position of the step, or ``-1 - i`` for ``outside[i]``
        cuts: how each step is cut
        values: the steps as `memory.rows` sees them
    """

    def __init__(self, steps: Sequence[Node], target: Target) -> None:
        self.steps, self.target = steps, target
        at = {node: i for i, node in enumerate(steps)}
        self.outside = list(dict.fromkeys(x for node in steps for x in node.operands if x not in at))
        at |= {node: ~i for i, node in enumerate(self.outside)}
        self.reads = [tuple(at[x] for x in node.operands) for node in steps]
        self.cuts = [cut_of(node.op, *(x.spec for x in node.operands)) for node in steps]
        known: dict[int, Rows] = {}
        for i, (node, cut, reads) in enumerate(zip(steps, self.cuts, self.reads)):
            known[i] = rows_of_step(node, cut, reads, known)
        self.values = list(known.values())

    def stream(self, pixels: int, alignment: int) -> Stream:
        """The op, its frame planned and checked."""
        events = pulled(self.values, [value.band(rows(pixels, x)) for value, x in zip(self.values, self.steps)])
        workspaces = [self.nbytes(event) for event in events]
        inner = (Inner(x.op, reads, f"{x.name} at {x.where}") for x, reads in zip(self.steps, self.reads))
        made = Stream(tuple(inner), frame_of(self.values, events, workspaces, alignment))
        self.check(made)
        return made

    def nbytes(self, event: Event) -> int:
        """Bytes of workspace of a band."""
        specs = tuple(x.spec for x in self.steps[event.value].operands)
        return band_nbytes(self.cuts[event.value], specs, self.target, event.first, event.stop)

    def check(self, stream: Stream) -> None:
        """PlanError when a band would not find the rows that it reads."""
        frame = object()
        places = (contiguous(Pointer(x), x.shape, code_of(x.dtype)) for x in (self.steps[-1], *self.outside))
        out, *xs = places
        room = contiguous(Pointer(frame), (stream.frame.nbytes,), "u1")
        acts = list(stream.acts(self.target, tuple(x.spec for x in self.outside), out, tuple(xs), room))
        check_rows(self.values, acts, frame, stream.frame.nbytes)


def rows(pixels: int, node: Node) -> int:
    """Rows of so many pixels."""
    return -(-pixels // max(node.shape[COLUMNS], 1))


def rows_of_step(node: Node, cut: Cut, reads: Sequence[int], before: Mapping[int, Rows]) -> Rows:
    """A step as `memory.rows` sees it. What reads row by row has the frame of what it reads, so that bands fit."""
    count = node.shape[2]
    tables = [Read(i, *table) for i, table in zip(reads, cut.reads) if table is not None and i >= 0]
    like = next((x for r in tables if (x := before.get(r.source)) and x.rows == count), None)
    frame = (cut.above, cut.below)
    if frame == (0, 0) and like is not None:
        frame = (like.above, like.below)
    return Rows(node.name, count, node.nbytes // count, tuple(tables), *frame, cut.step)


# -- what the search sees ----------------------------------------------------------------------------------------------


def stages_of(layout: Layout, target: Target) -> list[Stage]:
    """The steps of a schedule as `memory.regions` sees them."""
    made = producers_of(layout.views, layout.value_of)
    known: dict[int, Rows] = {}
    return [stage_of(layout, t, made, known, target) for t in range(len(layout.steps))]


def stage_of(layout: Layout, t: int, made: Mapping[Node, int], known: dict[int, Rows], target: Target) -> Stage:
    """A step; `known` are earlier steps that can be cut, and this one becomes known.

    Where some Vars are `changing`, nothing is cut: a region would mix steps that run again with others.
    """
    node, value = layout.steps[t], layout.values[t]
    last = len(layout.steps) if value.kept else value.last
    taken = max((layout.values[i].nbytes for i in value.overwritable if layout.values[i].last == t), default=0)
    workspace = layout.workspace_of.get(node)
    stage = Stage(value.nbytes, last, layout.values[workspace].nbytes if workspace is not None else 0, taken)
    specs = tuple(x.spec for x in node.operands)
    cut = None if node.op.writes or layout.always else node.op.cut(*specs)
    if cut is None:
        return stage
    reads = [made[x] if x in layout.value_of else -1 for x in node.operands]
    known[t] = rows = rows_of_step(node, cut, reads, known)
    whole = [made[x] for x, table in zip(node.operands, cut.reads) if table is None or x not in layout.value_of]

    def nbytes(band: int) -> int:
        stop = rows.stop(0, band)
        bands = (0, stop), *(((stop, rows.stop(stop, band)),) if stop < rows.rows else ())
        return max(band_nbytes(cut, specs, target, first, stop) for first, stop in bands)

    columns = node.shape[COLUMNS]
    return replace(stage, rows=rows, columns=max(columns, 1), whole=max(whole, default=-1), band_nbytes=nbytes)
