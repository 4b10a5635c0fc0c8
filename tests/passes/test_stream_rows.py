"""Regions computed in bands of rows: the bits of the whole, on every target, in any number of threads."""

import dataclasses
import re
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.budget.bands import regions
from cgraph.budget.bands.band_buffer import Framed
from cgraph.budget.bands.in_place_joins import Bands
from cgraph.budget.bands.regions import Search
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import BudgetError, PlanError
from cgraph.ir.spec import Spec
from cgraph.ir.traverse import post_order
from cgraph.kernels.kernel import Pointer, contiguous
from cgraph.ops.arithmetic import Add
from cgraph.ops.physical.stream import Stream, left_behind
from cgraph.ops.softmax import Softmax
from cgraph.record import replace
from tests.support.bands import longest_regions
from tests.support.kernels import TARGETS
from tests.support.networks import networks
from tests.support.replays import run_of


def streams(function):
    return [n for n in function.compiled.layout.steps if isinstance(n.op, Stream)]


@settings(max_examples=60, deadline=None)
@given(
    drawn=networks(),
    pixels=st.sampled_from((1, 5, 12, 30, 80)),
    target=st.sampled_from(TARGETS),
    most=st.sampled_from((1, 2, 3, 48)),
    seed=st.integers(0, 9),
)
def test_bands_give_the_bits_of_the_whole(drawn, pixels, target, most, seed):
    image, outputs = drawn
    value = np.random.default_rng(seed).standard_normal(image.shape).astype(image.dtype)
    whole = cg.compile(outputs, [image], engine=CpuEngine(target, 1))(value)
    for threads, poison, chosen in ((1, True, longest_regions(most)), (3, False, nullcontext())):
        with chosen:
            function = cg.compile(outputs, [image], engine=CpuEngine(target, threads, poison), bands=pixels)
        for got, want in zip(function(value), whole):
            np.testing.assert_array_equal(got, want)


def images(rng, kind, n):
    """A Var of images, and what a convolution makes of it."""
    x = cg.Var((n, 5, 17, 20), kind, name="x")
    return x, conv(rng, x, 19, 3, 1)


def transposed(window, stride, pad, more):
    def applied(rng, y):
        filters = rng.standard_normal((y.shape[1], 8, window, window)) * 0.2
        return conv(rng, cg.relu(cg.conv_transpose2d(y, filters.astype(y.dtype), stride, pad, 1, 1, more)), 4, 3, 1)

    return "conv_transpose", applied


def resized(shape, mode, coordinates):
    return "resize", lambda rng, y: conv(rng, cg.resize(y, shape, mode, coordinates), 8, 3, 1)


CUT = {
    **{f"transposed {case}": transposed(*case) for case in ((2, 2, 0, 0), (3, 2, 1, 1), (4, 3, (0, 1, 2, 0), 2))},
    **{f"without taps {case}": transposed(*case) for case in ((1, 2, 0, 1), (1, 3, 0, 0), (5, 4, 3, 1))},
    "larger": resized((33, 9), "linear", "half_pixel"),
    "smaller": resized((7, 40), "linear", "align_corners"),
    "repeated": resized((34, 40), "nearest", "asymmetric"),
    "picked": resized((11, 25), "nearest", "half_pixel"),
    "pixel sum": ("column_sum", lambda rng, y: cg.mean(y, (2, 3))),
    "softmax over channels": ("softmax", lambda rng, y: cg.softmax(y, 1) + 1),
    "softmax over columns": ("softmax", lambda rng, y: cg.softmax(y, 3) * 2),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CUT)
def test_each_op_is_cut_with_the_bits_of_the_whole(case, target):
    """A kind of numbers has one height of bands in each run: over the cases and targets, each with each."""
    rng, (name, op) = np.random.default_rng(0), CUT[case]
    turn = list(CUT).index(case) + TARGETS.index(target)
    for i, (kind, n) in enumerate((("float32", 1), ("float64", 2)), turn):
        x, y = images(rng, kind, n)
        value, y = rng.standard_normal(x.shape).astype(kind), op(rng, y)
        want = cg.compile(y, [x], engine=CpuEngine(target, 1))(value)
        with longest_regions():
            function = cg.compile(y, [x], engine=CpuEngine(target, 2, True), bands=(1, 40, 90)[i % 3])
        assert name in [inner.op.name for node in streams(function) for inner in node.op.inner]
        np.testing.assert_array_equal(function(value), want)


def test_a_softmax_over_channels_of_narrow_images_is_not_cut():
    assert Softmax(1).cut(Spec((1, 4, 9, 15), np.dtype("float32"))) is None
    assert Softmax(1).cut(Spec((1, 4, 9, 16), np.dtype("float32"))) is not None


def classifier(rng, kind="float32"):
    """Convolutions direct and by Winograd, a fork of two lengths, a depthwise one, pools, a sum over pixels."""
    x = cg.Var((1, 3, 40, 36), kind, name="image")
    y = conv(rng, x, 16, 3, 2)
    y = cg.max_pool2d(conv(rng, y, 32, 3, 1), 3, 2, ceil=True)
    y = y + conv(rng, conv(rng, y, 32, 3, 1), 32, 5, 1)
    y = cg.concat([conv(rng, y, 20, 1, 1), cg.avg_pool2d(y, 3, 1, pad=1)], 1)
    y = conv(rng, y, y.shape[1], 3, 1, y.shape[1])
    return x, cg.mean(y, (2, 3))


def conv(rng, x, k, r, stride, groups=1):
    filters = rng.standard_normal((k, x.shape[1] // groups, r, r)) * (x.shape[1] * r * r // groups) ** -0.5
    return cg.relu(cg.conv2d(x, cg.Const(filters.astype(x.dtype)), stride, r // 2, groups=groups))


@pytest.mark.parametrize("target", TARGETS)
def test_twenty_budgets_from_refused_to_free(target):
    rng = np.random.default_rng(0)
    x, y = classifier(rng)
    value = rng.standard_normal(x.shape).astype(x.dtype)
    engine = CpuEngine(target, 2)
    free = cg.compile(y, [x], engine=engine)
    least = least_budget(y, [x], engine=engine)
    assert least < free.nbytes / 3
    want = free(value)
    for budget in np.linspace(least, free.nbytes, 20).astype(int).tolist():
        function = cg.compile(y, [x], engine=engine, budget=budget)
        assert function.nbytes <= budget
        np.testing.assert_array_equal(function(value), want)
    assert streams(cg.compile(y, [x], engine=engine, budget=least))
    assert not streams(cg.compile(y, [x], engine=engine, budget=free.nbytes))


def least_budget(*graph, **options):
    """What the refusal names; a byte less is refused."""
    with pytest.raises(BudgetError, match="the least budget of this graph is") as refused:
        cg.compile(*graph, budget=64, **options)
    least = int(re.search(r"is (\d+) bytes", str(refused.value))[1])
    with pytest.raises(BudgetError, match="1 bytes are missing"):
        cg.compile(*graph, budget=least - 1, **options)
    return least


@pytest.mark.slow
def test_a_budget_for_a_training_step_gives_the_same_bits():
    graph = trained()
    free = cg.compile(*graph).nbytes
    least = least_budget(*graph)
    assert least < 0.9 * free
    losses = []
    for budget in (free, (free + least) // 2, least):
        loss, x, updates = trained()
        function = cg.compile(loss, [x], updates, budget=budget)
        value = np.random.default_rng(2).standard_normal(x.shape).astype("float32")
        losses.append([function(value) for _ in range(10)])
    np.testing.assert_array_equal(losses[1], losses[0])
    np.testing.assert_array_equal(losses[2], losses[0])


def test_filters_that_are_vars_are_packed_before_a_region():
    rng = np.random.default_rng(4)
    x = y = cg.Var((1, 8, 60, 50), name="image")
    for k in (16, 24, 8):
        filters, bias = cg.Var((k, y.shape[1], 3, 3)), cg.Var((k, 1, 1))
        for var in (filters, bias):
            var.assign((rng.standard_normal(var.shape) * 0.2).astype("float32"))
        y = cg.relu(cg.conv2d(y, filters, pad=1) + bias)
    free = cg.compile(y, [x])
    small = cg.compile(y, [x], budget=least_budget(y, [x]))
    assert any(len([inner for inner in node.op.inner if "conv2d" in inner.label]) > 1 for node in streams(small))
    value = rng.standard_normal(x.shape).astype("float32")
    np.testing.assert_array_equal(small(value), free(value))
    filters.assign(filters.value * 2)
    np.testing.assert_array_equal(small(value), free(value))


def trained():
    """A loss, its images, and the update edges of six layers."""
    rng = np.random.default_rng(1)
    x = y = cg.Var((8, 8, 20, 20), name="x")
    filters = [
        cg.Var((8, 8, 3, 3)).assign((rng.standard_normal((8, 8, 3, 3)) * 0.2).astype("float32")) for _ in range(6)
    ]
    for w in filters:
        y = cg.relu(cg.conv2d(y, w, pad=1))
    loss = cg.mean(cg.square(y))
    return loss, x, {w: w - 0.1 * g for w, g in zip(filters, cg.gradient(loss, filters))}


def test_nothing_is_cut_where_some_vars_change():
    x, y = classifier(np.random.default_rng(0))
    assert not streams(cg.compile(y, [x], bands=1, changing=[x]))


def residual(rng):
    """Layers at one size, of which each adds what it read: joins that can lie over their forks."""
    x = cg.Var((2, 16, 30, 20), name="image")
    y = conv(rng, x, 32, 3, 1)
    for _ in range(3):
        y = y + conv(rng, conv(rng, y, 96, 1, 1), 32, 3, 1)
    return x, cg.mean(y, (2, 3))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("most", (1, 2, 3))
def test_joins_over_their_forks_give_the_bits_of_the_whole(most, target):
    rng = np.random.default_rng(0)
    for x, y in (residual(rng), classifier(rng)):
        value = rng.standard_normal(x.shape).astype(x.dtype)
        want = cg.compile(y, [x], engine=CpuEngine(target, 1))(value)
        for pixels, threads in ((1, 1), (60, 3)):
            with longest_regions(most):
                function = cg.compile(y, [x], engine=CpuEngine(target, threads, True), bands=pixels)
            np.testing.assert_array_equal(function(value), want)
            np.testing.assert_array_equal(function(value), want)
            if most == 1:
                assert any(node.op.over for node in streams(function))


@pytest.mark.parametrize("most", (1, 2, 3))
def test_an_output_lies_in_c_order_wherever_its_region_lies(most):
    """Each join of the network as an output in turn: before, between and behind regions that lie over their forks."""
    rng = np.random.default_rng(0)
    x, y = residual(rng)
    value = rng.standard_normal(x.shape).astype(x.dtype)
    joins = [node for node in post_order([y]) if isinstance(node.op, Add)]
    for join in joins:
        want = cg.compile([y, join], [x])(value)
        with longest_regions(most):
            function = cg.compile([y, join], [x], bands=1)
        for got, expected in zip(function(value), want):
            np.testing.assert_array_equal(got, expected)
        layout = function.compiled.layout
        assert all(layout.views[node].is_contiguous for node in layout.lasting)


ENDS = {
    "convolution": lambda y: y,
    "pool": lambda y: cg.max_pool2d(y, 3, 1, pad=1),
    "softmax": lambda y: cg.softmax(y, 1),
    "concat": lambda y: cg.concat([cg.max_pool2d(y, 3, 1, pad=1), y], 1),
}


@pytest.mark.parametrize("most", (1, 2))
@pytest.mark.parametrize("end", ENDS)
def test_an_output_that_ends_a_region_lies_in_c_order(end, most):
    """Over its fork it would lie row by row, and the array that copy=False gives would not be contiguous."""
    rng = np.random.default_rng(0)
    x = cg.Var((1, 16, 40, 40), name="image")
    y = ENDS[end](conv(rng, x, 64, 3, 1))
    value = rng.standard_normal(x.shape).astype(x.dtype)
    with longest_regions(most):
        function = cg.compile(y, [x], bands=1)
    assert streams(function)
    result = function(value, copy=False)
    assert result.flags.c_contiguous
    np.testing.assert_array_equal(result, cg.compile(y, [x])(value))


def test_a_join_over_its_fork_makes_a_plan_smaller(monkeypatch):
    rng = np.random.default_rng(1)
    x = cg.Var((1, 16, 40, 40), name="image")
    y = cg.max_pool2d(cg.max_pool2d(cg.max_pool2d(conv(rng, x, 64, 3, 1), 3, 1, pad=1), 3, 1, pad=1), 3, 1, pad=1)
    graph = cg.mean(y, (2, 3)), [x]
    monkeypatch.setattr(regions, "MOST_STEPS", 1)
    small = cg.compile(*graph, bands=40)
    assert any(node.op.over for node in streams(small))
    monkeypatch.setattr(Search, "forks", [[]] * 100)
    assert small.nbytes < 0.8 * cg.compile(*graph, bands=40).nbytes


def test_a_join_that_begins_too_close_to_its_fork_is_refused(monkeypatch):
    x, y = residual(np.random.default_rng(0))
    found = Bands.ahead
    monkeypatch.setattr(Bands, "ahead", lambda *args: found(*args) - 6000)
    with longest_regions(1), pytest.raises(PlanError, match="which is not there"):
        cg.compile(y, [x], bands=1)


def test_the_replay_of_a_schedule_asks_for_distance_and_rows():
    x, y = residual(np.random.default_rng(0))
    with longest_regions(1):
        run = run_of(cg.compile(y, [x], bands=1).compiled)
    node = next(node for node in run.steps if isinstance(node.op, Stream) and node.op.over and node.op.over.ahead)
    fork = node.operands[node.op.over.fork]
    run.check()
    out, read = run.views[node], run.views[fork]
    closer = {**run.views, node: out.moved(read.at.offset - out.at.offset - node.op.over.ahead + 64)}
    with pytest.raises(PlanError, match=f"{node.op.over.ahead - 64} bytes before .*, {node.op.over.ahead} are needed"):
        dataclasses.replace(run, views=closer, nbytes=2 * run.nbytes).check()
    for turned in (node, fork):
        plain = contiguous(run.views[turned].at, turned.shape, run.views[turned].dtype)
        with pytest.raises(PlanError, match="does not lie row by row"):
            dataclasses.replace(run, views={**run.views, turned: plain}).check()


def test_a_region_with_a_wrong_place_is_refused(monkeypatch):
    x, y = classifier(np.random.default_rng(0))
    made = Framed.frame

    def wrong(framed):
        frame = made(framed)
        return replace(frame, moves=tuple(replace(move, at=0) for move in frame.moves))

    monkeypatch.setattr(Framed, "frame", wrong)
    with pytest.raises(PlanError):
        cg.compile(y, [x], bands=1)


@pytest.mark.parametrize(
    ("far", "dead"), [(-80, [(100, 80)]), (-8, [(172, 8)]), (0, []), (8, [(100, 8)]), (80, [(100, 80)])]
)
def test_a_slide_leaves_bytes_behind_that_its_rows_do_not_cover(far, dead):
    source, out = (contiguous(Pointer("frame", at), (1, 1, 4, 20), "u1") for at in (100, 100 + far))
    assert [(view.at.offset, view.size) for view in left_behind(source, out)] == dead


@pytest.mark.parametrize("target", TARGETS)
def test_slides_that_overlap_give_the_bits_of_the_whole(target):
    """A window of seven rows keeps six of them."""
    rng = np.random.default_rng(5)
    x = cg.Var((1, 16, 24, 10), name="x")
    wide = cg.relu(cg.conv2d(x, rng.random((64, 16, 1, 1), np.float32)))
    deep = cg.relu(cg.conv2d(wide, rng.random((64, 1, 7, 7), np.float32), pad=3, groups=64))
    y = cg.relu(cg.conv2d(deep, rng.random((16, 64, 1, 1), np.float32)))
    picture = rng.random(x.shape, np.float32)
    whole = cg.compile(y, [x], engine=CpuEngine(target))
    with pytest.raises(BudgetError) as refused:
        cg.compile(y, [x], engine=CpuEngine(target), budget=1)
    least = int(re.search(r"least budget of this graph is (\d+)", str(refused.value))[1])
    for threads, poison in ((1, True), (3, False)):
        function = cg.compile(y, [x], engine=CpuEngine(target, threads, poison), budget=least)
        families = {kernel.family for kernel in function.program.code.compiled_kernels}
        assert "move.overlapping" in families
        np.testing.assert_array_equal(function(picture), whole(picture))
