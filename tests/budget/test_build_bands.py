"""Steps as stages, regions as single steps of the same meaning, and rows that joins and forks may share."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.budget.bands import build_bands
from cgraph.budget.bands.build_bands import (
    check_stream,
    row_groups,
    row_major_nodes,
    rows_of_step,
    stages_of,
    stream_of,
    stream_rows,
    values_of,
)
from cgraph.budget.bands.fit_bands import search_of
from cgraph.budget.bands.regions import Region, Stage
from cgraph.budget.bands.row_rings import Read, Rows
from cgraph.engine.reference import evaluate
from cgraph.errors import PlanError
from cgraph.ir.bands import InPlaceJoin
from cgraph.ir.cut import Cut, row_by_row
from cgraph.ir.spec import Spec
from cgraph.memory.usage import StepValue
from cgraph.ops.physical.stream import Stream
from cgraph.record import replace
from tests.support.schedules import PORTABLE, conv, lowered, planner_of, residual, scheduled


@pytest.fixture(scope="module")
def network():
    """The layout, its stages and the smallest regions of a residual network."""
    y, x = residual()
    planner = planner_of()
    whole = scheduled(planner, *lowered(y))
    search = search_of(whole, None, planner)
    return whole[0].layout, stages_of(whole[0].layout, PORTABLE), search.fitting(search.least), x


def test_stages_tell_what_each_step_reads_and_who_reads_it_last(network):
    layout, stages, _, _ = network
    names = [node.op.name for node in layout.steps]
    assert names == ["to_blocked", "conv2d", "conv2d", "add", "conv2d", "to_plain"]
    assert [stage.last for stage in stages] == [1, 3, 3, 4, 5, 6], "an output is read behind the last step"
    assert [stage.nbytes for stage in stages] == [node.spec.nbytes for node in layout.steps]
    assert [[read.source for read in stage.rows.reads] for stage in stages] == [[], [0], [1], [2, 1], [3], [4]]
    assert [stage.rows.rows for stage in stages] == [34, 34, 34, 34, 16, 16]
    assert [(stage.rows.above, stage.rows.below) for stage in stages] == [(1, 1)] * 4 + [(0, 0)] * 2
    assert [stage.columns for stage in stages] == [26] * 4 + [12] * 2
    assert [stage.whole for stage in stages] == [-1] * 6 and not any(stage.free for stage in stages)
    assert [stage.by_rows for stage in stages] == [True] * 5 + [False], "an output lies in C order"
    assert stages[3].overwritten == stages[3].nbytes and stages[2].overwritten == 0
    read = stages[4].rows.reads[0]
    assert (list(read.first)[:3], list(read.stop)[:3]) == ([0, 2, 4], [3, 5, 7]), "a window of three rows, every second"
    assert stages[1].rows.row_nbytes == layout.steps[1].spec.nbytes // 34


def test_filters_that_are_packed_may_run_earlier_and_values_that_bands_read_whole_end_a_region():
    x, w = cg.Var((1, 8, 12, 10), name="x"), cg.Var((8, 8, 3, 3), name="w")
    y = cg.relu(cg.conv2d(x, w, pad=1))
    early = cg.max_pool2d(y, 3, 1, pad=1)
    nodes = lowered(cg.conv2d(early, w, pad=1) * cg.mean(y, (2, 3), keepdims=True))
    layout = scheduled(planner_of(), *nodes)[0].layout
    stages = stages_of(layout, PORTABLE)
    free = [t for t, stage in enumerate(stages) if stage.free]
    assert free and all(stages[t].rows is None for t in free)
    assert all(not isinstance(x.op, type(early.op)) for t in free for x in layout.steps[t].operands)
    whole = {t: stage.whole for t, stage in enumerate(stages) if stage.whole >= 0}
    assert whole and all(source < t and source not in free for t, source in whole.items())


def test_nothing_is_cut_where_values_stay_between_runs():
    y, _ = residual()
    (root,) = lowered(y)
    planner = planner_of()
    layout = scheduled(planner, root, always=(root.operands[0],))[0].layout
    stages = stages_of(layout, PORTABLE)
    assert all(stage.rows is None and not stage.free and not stage.by_rows for stage in stages)


def test_rows_have_the_halo_of_what_they_read_row_by_row():
    spec, cut = Spec((1, 2, 6, 4), np.dtype("f4")), Cut((row_by_row(6),), lambda first, stop: None)
    framed, plain = Rows("x", 6, 8, above=2, below=1), Rows("x", 6, 8)
    assert rows_of_step("y", spec, cut, [3], {3: framed}) == Rows(
        "y", 6, 32, rows_of_step("y", spec, cut, [3], {}).reads, 2, 1
    )
    own = replace(cut, above=1, below=0, step=2)
    got = rows_of_step("y", spec, own, [3], {3: framed})
    assert (got.above, got.below, got.step) == (1, 0, 2)
    for before in ({3: plain}, {3: replace(framed, rows=9)}, {}):
        got = rows_of_step("y", spec, cut, [3], before)
        assert (got.above, got.below) == (0, 0)
    assert rows_of_step("y", spec, cut, [-1], {}).reads == ()
    assert rows_of_step("y", spec, replace(cut, reads=(None,)), [3], {3: plain}).reads == ()


def test_regions_become_steps_with_the_same_meaning(network):
    layout, _, regions, x = network
    assert regions and any(len(region.steps) > 1 for region in regions)
    order, new = stream_rows(layout, regions)
    streams = [node for node in order if isinstance(node.op, Stream)]
    assert [len(node.op.inner) for node in streams] == [len(region.steps) for region in regions]
    inside = {layout.steps[t] for region in regions for t in region.steps[:-1]}
    assert set(new) == set(layout.views) - inside and list(new.values()) == order
    for node in streams:
        check_stream(node, PORTABLE)
    value = np.random.default_rng(0).standard_normal(x.shape).astype("f4")
    (want,), (got,) = (evaluate([end], {x: value}) for end in (layout.lasting[0], new[layout.lasting[0]]))
    np.testing.assert_array_equal(got, want)


def test_reads_count_inside_from_zero_and_outside_from_minus_one(network):
    layout, stages, _, _ = network
    region = Region((1, 2, 3), 26, search_frame(network, (1, 2, 3)))
    op, outside = stream_of([layout.steps[t] for t in region.steps], region)
    reads = [inner.reads for inner in op.inner]
    assert [[i for i in some if i >= 0] for some in reads] == [[], [0], [1, 0]]
    assert layout.steps[0] is outside[0] and reads[0][0] == -1
    assert {~i for some in reads for i in some if i < 0} == set(range(len(outside)))
    assert op.inner[0].label.startswith("conv2d at ")
    order, _ = stream_rows(layout, [region])
    (node,) = [node for node in order if isinstance(node.op, Stream)]
    values = values_of(node)
    assert [[read.source for read in value.reads] for value in values] == [[], [0], [1, 0]]
    assert [(v.rows, v.row_nbytes) for v in values] == [(s.rows.rows, s.rows.row_nbytes) for s in stages[1:4]]


def test_each_step_of_a_region_is_cut_by_the_specs_of_its_own_operands(network, monkeypatch):
    layout, _, regions, _ = network
    order, _ = stream_rows(layout, regions)
    known, asked = build_bands.cut_of, []
    monkeypatch.setattr(build_bands, "cut_of", lambda op, *specs: asked.append((op, specs)) or known(op, *specs))
    for region, node in zip(regions, [x for x in order if isinstance(x.op, Stream)], strict=True):
        values_of(node)
        steps = [layout.steps[t] for t in region.steps]
        assert [specs for _, specs in asked] == [tuple(x.spec for x in step.operands) for step in steps]
        asked.clear()
    assert any(len({x.spec for x in layout.steps[t].operands}) > 1 for region in regions for t in region.steps)


def search_frame(network, steps):
    layout, _, _, _ = network
    planner = planner_of()
    whole = scheduled(planner, *layout.lasting)
    framing = search_of(whole, None, planner).framed(steps, 26)
    framing.improve(1000)
    return framing.best.frame()


def test_a_band_whose_rows_are_overwritten_is_refused(network):
    layout, _, _, _ = network
    frame = search_frame(network, (1, 2, 3))
    for moves in (frame.moves[1:], tuple(replace(move, at=0) for move in frame.moves)):
        order, _ = stream_rows(layout, [Region((1, 2, 3), 26, replace(frame, moves=moves))])
        (node,) = [node for node in order if isinstance(node.op, Stream)]
        with pytest.raises(PlanError):
            check_stream(node, PORTABLE)


def test_the_fork_of_a_join_is_an_operand_of_the_region(network):
    layout, stages, _, _ = network
    frame = search_frame(network, (2, 3))
    region = Region((2, 3), 26, frame, InPlaceJoin(1, 10**6))
    order, new = stream_rows(layout, [region])
    (node,) = [node for node in order if isinstance(node.op, Stream)]
    assert node.operands[node.op.over.fork] is new[layout.steps[1]] and node.op.over.ahead == 10**6
    check_stream(node, PORTABLE)
    (close,) = [
        node
        for node in stream_rows(layout, [replace(region, over=InPlaceJoin(1, 0))])[0]
        if isinstance(node.op, Stream)
    ]
    with pytest.raises(PlanError, match="which is not there"):
        check_stream(close, PORTABLE)
    rows = row_major_nodes(layout, [region], PORTABLE)
    groups = row_groups(layout, stages)
    assert rows == {layout.steps[t] for group in groups if group & {1, 3} for t in group} >= {
        layout.steps[1], layout.steps[3],
    }  # fmt: skip
    assert row_major_nodes(layout, [replace(region, over=None)], PORTABLE) == set()


def test_values_that_may_share_bytes_are_moved_together_and_outputs_never(network):
    layout, stages, _, _ = network
    groups = row_groups(layout, stages)
    assert sorted(t for group in groups for t in group) == [0, 1, 2, 3, 4]
    assert any({1, 3} <= group or {2, 3} <= group for group in groups), "the sum may overwrite a term"
    fixed = [replace(stage, rows=None) if t == 3 else stage for t, stage in enumerate(stages)]
    assert not any(3 in group or 2 in group for group in row_groups(layout, fixed)), "a reader that is not cut"


READERS = {
    "factor": (lambda x, w: cg.relu(x * w), (8, 1, 1)),
    "filters": (lambda x, w: cg.relu(cg.conv2d(x, w, pad=1)), (8, 8, 3, 3)),
    "images": (lambda x, w: x + w, (1, 8, 34, 26)),
}


@pytest.mark.parametrize("order", ["depth_first", "breadth_first"])
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("first", READERS)
def test_weights_that_bands_read_are_updated_after_them(first, recompute, order):
    """The update is written in place: an operand makes it run after the step of a region that reads the old value."""
    rng = np.random.default_rng(0)
    x, updates = cg.Var((1, 8, 34, 26), name="x"), {}
    y = x
    for i, kind in enumerate((first, "filters", "factor", "filters")):
        read, shape = READERS[kind]
        w = cg.Var(shape, name=f"w{i}").assign(rng.normal(size=shape).astype("f4") / 4)
        y, updates[w] = cg.tanh(read(y, w)), w * 0.5
    values = [w.value.copy() for w in updates]

    def results(**options):
        for w, value in zip(updates, values):
            w.assign(value)
        function = cg.compile(y, [x], updates=updates, order=order, **options)
        arrays = [function(rng.normal(size=x.shape).astype("f4")) for rng in map(np.random.default_rng, range(2))]
        return function.nbytes, [*arrays, *(w.value for w in updates)]

    whole, wanted = results()
    nbytes, arrays = results(recompute=recompute, bands=1)
    assert nbytes < whole
    for got, want in zip(arrays, wanted):
        np.testing.assert_array_equal(got, want)


class Step:
    """A node of three steps: the second reads the first, the third both."""

    def __init__(self, *operands: "Step") -> None:
        self.operands = operands


def three_steps(views=(), reads=((), (0,), (0, 1)), operands=((), (0,), (0, 1)), **fields):
    """A layout and its stages. `views`: steps that have a view; `reads`: what bands read row by row."""
    steps: list[Step] = []
    for own in operands:
        steps.append(Step(*(steps[t] for t in own)))
    each = Read(0, (0, 1), (1, 2))
    tables = [tuple(replace(each, source=t) for t in own) for own in reads]
    values = [
        StepValue(8, t, f"v{t}", 2, **{name: field[t] for name, field in fields.items() if t in field})
        for t in range(3)
    ]
    owners = [(node, node) for node in steps] + [(Step(), steps[t]) for t in views]
    layout = SimpleNamespace(
        steps=steps,
        values=values,
        value_of={node: t for t, node in enumerate(steps)},
        views={node: SimpleNamespace(at=SimpleNamespace(base=owner)) for node, owner in owners},
    )
    return layout, [Stage(8, 2, rows=Rows(f"v{t}", 2, 4, table)) for t, table in enumerate(tables)]


@pytest.mark.parametrize(
    ("changes", "groups"),
    [
        ({}, [{0}, {1}, {2}]),
        ({"views": (0,)}, [{1}, {2}]),
        ({"views": (1, 2)}, [{0}]),
        ({"reads": ((), (0,), (1,))}, [{1}, {2}]),
        ({"reads": ((), (), (0, 1))}, [{1}, {2}]),
        ({"operands": ((), (0,), (0, 0, 1)), "reads": ((), (0,), (0, 0, 1))}, [{0}, {1}, {2}]),
        ({"operands": ((), (0,), (0, 0, 1))}, [{1}, {2}]),
        ({"lasting": {1: True}}, [{0}, {2}]),
        ({"overwritable": {2: (1,)}}, [{0}, {1, 2}]),
        ({"overwritable": {1: (0,), 2: (1,)}}, [{0, 1, 2}]),
        ({"overwritable": {2: (0, 1)}}, [{0, 1, 2}]),
        ({"overwritable": {2: (1,)}, "lasting": {2: True}}, [{0}]),
        ({"overwritable": {2: (0,)}, "views": (0,)}, [{1}]),
    ],
    ids=str,
)
def test_a_value_is_stored_by_rows_if_all_read_it_so_and_nothing_else_shows_it(changes, groups):
    assert row_groups(*three_steps(**changes)) == groups


def test_a_stage_overwrites_the_largest_operand_that_it_reads_last_an_output_too():
    """A sum of two convolutions takes the bytes of one of them, unless a later step reads it."""
    y = conv(cg.Var((1, 8, 32, 24), name="x"), 16)
    layout = scheduled(planner_of(), *lowered(conv(conv(y, 16) + y, 8)))[0].layout
    (t,) = (t for t, value in enumerate(layout.values) if value.overwritable)
    values = list(layout.values)
    sizes = [values[i].nbytes for i in values[t].overwritable]
    assert stages_of(layout, PORTABLE)[t].overwritten == max(sizes) > 0
    for changes, taken in (
        ({t: {"lasting": True}}, max(sizes)),
        ({i: {"last": t + 1} for i in values[t].overwritable}, 0),
        ({i: {"nbytes": 64 * (k + 1)} for k, i in enumerate(values[t].overwritable)}, 64 * len(sizes)),
    ):
        own = [dataclasses.replace(value, **changes.get(i, {})) for i, value in enumerate(values)]
        stages = stages_of(replace(layout, values=tuple(own)), PORTABLE)
        assert [stage.overwritten for stage in stages] == [taken if i == t else 0 for i in range(len(stages))]


def test_a_step_may_run_earlier_if_it_is_pure_and_reads_only_what_runs_earlier():
    x, factor = cg.Var((1, 8, 32, 24), name="x"), cg.Var((8,), name="factor")
    pure, called = cg.cumsum(factor, 0), cg.delay(lambda value: value * 2, factor)
    after = [cg.cumprod(y, 0) for y in (pure, called)]
    factors = [cg.reshape(y, (1, 8, 1, 1)) for y in after]
    layout = scheduled(planner_of(), *lowered(conv(conv(x, 8) * factors[0] * factors[1], 8)))[0].layout
    stages = dict(zip([node.op.name for node in layout.steps], stages_of(layout, PORTABLE)))
    assert len(stages) >= 4 and [stages["cumsum"].free, [node.op.pure for node in layout.steps].count(False)] == [
        True,
        1,
    ]
    frees = [stage.free for node, stage in zip(layout.steps, stages_of(layout, PORTABLE)) if node.op.name == "cumprod"]
    assert sorted(frees) == [False, True]
