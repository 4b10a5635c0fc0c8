"""stream_rows: replace steps of a schedule by regions that run one band of rows at a time.

Each region is one op (`cgraph.ops.physical.stream`) in place of its steps, with the same bits: values inside it need a
few rows instead of whole images. `cgraph.budget.bands.regions` chooses the steps and the pixels of a band.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from cgraph.budget.bands.regions import Region, Stage
from cgraph.budget.bands.repeated_bands import shorten
from cgraph.budget.bands.replay_bands import check_rows
from cgraph.budget.bands.row_rings import Read, Rows
from cgraph.dtypes.convert import code_of
from cgraph.ir.cut import ROWS, Cut
from cgraph.ir.graph import Node, apply
from cgraph.ir.origin import keeps_origin
from cgraph.ir.rewrite import with_new_operands
from cgraph.ir.spec import Spec
from cgraph.ir.traverse import at_origins
from cgraph.kernels.kernel import Pointer, contiguous
from cgraph.kernels.move.calls import moves_in_order
from cgraph.kernels.target import Target
from cgraph.kernels.views.layout import by_rows
from cgraph.memory.layout import Layout, owner_of, producers_of
from cgraph.ops.physical.stream import Inner, Lines, Stream, band_nbytes, cut_of
from cgraph.record import replace

COLUMNS = 3  # the axis of columns; rows are axis 2


@keeps_origin
def stream_rows(layout: Layout, regions: Sequence[Region]) -> tuple[list[Node], dict[Node, Node]]:
    """Return a running order in which regions are single steps, and the new node of each remaining node.

    Parameters
        layout: a schedule of a physical graph
        regions: disjoint; no step outside reads the values inside, except the joins. A step that only has to run after
            one inside (`InPlace`) runs after its join
    """
    join_of = {layout.steps[t]: layout.steps[region.steps[-1]] for region in regions for t in region.steps[:-1]}
    joins = {layout.steps[region.steps[-1]]: region for region in regions}
    new: dict[Node, Node] = {}
    for node in at_origins(layout.views):
        if node in joins:
            region = joins[node]
            op, outside = stream_of([layout.steps[t] for t in region.steps], region)
            if region.over:
                number = {x: i for i, x in enumerate(outside)}
                op = replace(op, over=replace(region.over, fork=number[layout.steps[region.over.fork]]))
            new[node] = apply(op, *(new[x] for x in outside))
        elif node not in join_of:
            new[node] = with_new_operands(node, tuple(new[join_of.get(x, x)] for x in node.operands))
    return list(dict.fromkeys(new.values())), new


def stream_of(steps: Sequence[Node], region: Region) -> tuple[Stream, list[Node]]:
    """Return the op of a region of these nodes (operands before users), and the outside nodes that it reads."""
    at = {node: i for i, node in enumerate(steps)}
    outside = list(dict.fromkeys(x for node in steps for x in node.operands if x not in at))
    at |= {node: ~i for i, node in enumerate(outside)}
    inner = (Inner(node.op, tuple(at[x] for x in node.operands), f"{node.name} at {node.where}") for node in steps)
    return Stream(tuple(inner), region.frame), outside


def check_stream(node: Node, target: Target) -> None:
    """Raise PlanError if a band of a region would not find the rows that it reads."""
    op, frame = node.op, object()
    assert isinstance(op, Stream)
    out, *xs = (contiguous(Pointer(x), x.shape, code_of(x.dtype)) for x in (node, *node.operands))
    fork = None
    if op.over:
        i = op.over.fork
        out, xs[i] = by_rows(out.at, out.shape, out.dtype), by_rows(out.at + op.over.ahead, xs[i].shape, xs[i].dtype)
        fork = Lines(-1, 0, xs[i])
    room, loop = contiguous(Pointer(frame), (op.frame.nbytes,), "u1"), op.frame.loop
    turns, values = (0,) if loop is None else loop.checked_turns, values_of(node)
    acts = list(op.acts(target, tuple(x.spec for x in node.operands), out, tuple(xs), room, turns))
    values = values if loop is None else shorten(values, loop, len(turns))
    check_rows(values, acts, frame, op.frame.nbytes, fork, moves_in_order(target))


def values_of(node: Node) -> list[Rows]:
    """Return the steps of a region as `Rows`."""
    op, values = node.op, dict[int, Rows]()
    assert isinstance(op, Stream)
    specs = op.specs(tuple(x.spec for x in node.operands))
    for i, (inner, spec) in enumerate(zip(op.inner, specs)):
        cut = cut_of(inner.op, *(specs[k] if k >= 0 else node.operands[~k].spec for k in inner.reads))
        values[i] = rows_of_step(inner.label, spec, cut, inner.reads, values)
    return list(values.values())


def rows_of_step(name: str, spec: Spec, cut: Cut, reads: Sequence[int], before: Mapping[int, Rows]) -> Rows:
    """Return a step as `Rows`. A step that reads row by row has the halo of its operand, so that bands fit."""
    count = spec.shape[ROWS]
    tables = [Read(i, *table) for i, table in zip(reads, cut.reads) if table is not None and i >= 0]
    like = next((x for r in tables if (x := before.get(r.source)) and x.rows == count), None)
    frame = (cut.above, cut.below)
    if frame == (0, 0) and like is not None:
        frame = (like.above, like.below)
    return Rows(name, count, spec.nbytes // count, tuple(tables), *frame, cut.step)


def row_major_nodes(layout: Layout, regions: Sequence[Region], target: Target) -> set[Node]:
    """Return the nodes that must be stored row by row, so that joins can overwrite their forks."""
    overlapping = {t for region in regions if region.over for t in (region.over.fork, region.steps[-1])}
    groups = row_groups(layout, stages_of(layout, target)) if overlapping else []
    return {layout.steps[t] for group in groups if group & overlapping for t in group}


# -- input of the search
# ------------------------------------------------------------------------------------------------


def stages_of(layout: Layout, target: Target) -> list[Stage]:
    """Return the steps of a schedule as stages for the search for regions."""
    producers = producers_of(layout.views, layout.value_of)
    rows_by_step: dict[int, Rows] = {}
    free: set[int] = set()
    stages = [stage_of(layout, t, producers, rows_by_step, free, target) for t in range(len(layout.steps))]
    movable = {t for group in row_groups(layout, stages) for t in group}
    return [replace(stage, by_rows=True) if t in movable else stage for t, stage in enumerate(stages)]


def row_groups(layout: Layout, stages: Sequence[Stage]) -> list[set[int]]:
    """Return groups of steps whose values may be stored row by row in the arena; a group may share bytes.

    The step that writes such a value and all its readers are cut by rows, and no other node is a view of it.
    """
    fixed = {t for t, stage in enumerate(stages) if stage.rows is None or layout.values[t].lasting}
    for node, view in layout.views.items():
        shown = layout.value_of.get(owner_of(view))
        if shown is not None and owner_of(view) is not node:
            fixed.add(shown)
    for node, stage in zip(layout.steps, stages):
        reads = Counter(layout.value_of[x] for x in node.operands if x in layout.value_of)
        reads.subtract(read.source for read in (stage.rows.reads if stage.rows else ()))
        fixed.update(t for t, others in reads.items() if others)
    group_of = [{t} for t in range(len(stages))]
    for t in range(len(stages)):
        for x in layout.values[t].overwritable:
            group_of[t] |= group_of[x]
            for other in group_of[t]:
                group_of[other] = group_of[t]
    return [group for t, group in enumerate(group_of) if t == min(group) and not group & fixed]


def stage_of(
    layout: Layout, t: int, producers: Mapping[Node, int], rows_by_step: dict[int, Rows], free: set[int], target: Target
) -> Stage:
    """Return a step as a stage, and add it to `rows_by_step` (steps that can be cut) or `free` (steps that may run
    earlier).

    With `changing` Vars nothing is cut: a region would mix steps that run again with others.
    """
    node, value = layout.steps[t], layout.values[t]
    last = len(layout.steps) if value.lasting else value.last
    overwritten = max((layout.values[i].nbytes for i in value.overwritable if layout.values[i].last == t), default=0)
    workspace = layout.workspace_of.get(node)
    room = layout.values[workspace].nbytes if workspace is not None else 0
    stage = Stage(value.nbytes, last, room, overwritten)
    if node.op.writes or layout.always:
        return stage
    specs = tuple(x.spec for x in node.operands)
    cut = node.op.cut(*specs)
    is_whole = cut is None or node.shape[ROWS] == 1
    if is_whole and node.op.pure and all(producers[x] < 0 or producers[x] in free for x in node.operands):
        free.add(t)
        return replace(stage, free=True)
    if cut is None:
        return stage
    reads = [producers[x] if x in layout.value_of else -1 for x in node.operands]
    rows_by_step[t] = rows = rows_of_step(node.name, node.spec, cut, reads, rows_by_step)
    whole = [producers[x] for x, table in zip(node.operands, cut.reads) if table is None or x not in layout.value_of]
    columns = node.shape[COLUMNS]
    return replace(
        stage,
        rows=rows,
        columns=max(columns, 1),
        whole=max((i for i in whole if i not in free), default=-1),
        band_nbytes=partial(band_nbytes, cut, specs, target),
    )
