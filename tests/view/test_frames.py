"""The frame of a region as a picture and as figures: what the op does, rows by bands."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.budget.bands.build_bands import values_of
from cgraph.budget.bands.regions import CALL_NS
from cgraph.budget.bands.row_rings import Read, Rows
from cgraph.errors import GraphError
from cgraph.kernels.kernel import Pointer, contiguous
from cgraph.kernels.target import host_target
from cgraph.memory.check import check_plan
from cgraph.memory.problem import Plan
from cgraph.ops.physical.stream import Stream
from cgraph.view import frames
from cgraph.view.boxes import VALUE, WORKSPACE, Box
from cgraph.view.frames import frame_memory, problem_of, region_row, regions_of, runs_of


@pytest.fixture(scope="module", params=("bands", "rows"))
def function(request):
    """Convolutions direct and by Winograd, a fork and a pool, in bands of a row or of an image given by rows."""
    rng = np.random.default_rng(0)

    def conv(x, k):
        filters = rng.standard_normal((k, x.shape[1], 3, 3)).astype("float32")
        return cg.relu(cg.conv2d(x, filters, pad=1))

    rows = 40 if request.param == "bands" else 400
    image = cg.Var((1, 3, rows, 36), name="image")
    y = conv(image, 32)
    y = cg.max_pool2d(conv(y, 32) + conv(conv(y, 32), 32), 2)
    if request.param == "bands":
        return cg.compile(cg.mean(y, (2, 3)), [image], bands=1)
    return cg.compile(y, [image], rows=(image, y))


def test_no_two_boxes_share_bytes_and_all_fit(function):
    assert regions_of(function)
    for _, node in regions_of(function):
        memory = frame_memory(node)
        problem = problem_of(list(memory.boxes))
        check_plan(problem, Plan(tuple(x.offset for x in memory.boxes), memory.nbytes))
        assert memory.nbytes == node.op.frame.nbytes
        assert memory.lower_bound <= memory.nbytes


def test_boxes_are_what_kernels_are_given(function):
    """The rows that a band reads lie in a box of their value at that step, and every workspace is one."""
    for _, node in regions_of(function):
        boxes, frame = frame_memory(node).boxes, object()
        specs = tuple(x.spec for x in node.operands)
        out, *xs = (contiguous(Pointer(x), x.shape, "f4") for x in (node, *node.operands))
        room = contiguous(Pointer(frame), (node.op.frame.nbytes,), "u1")
        for t, act in enumerate(node.op.acts(host_target(), specs, out, tuple(xs), room)):
            there = [x for x in boxes if x.first <= t <= x.last]
            for lines in (act.out, *act.reads):
                if lines.view.at.base is frame:
                    at = lines.view.at.offset
                    assert any(x.block == lines.value and x.offset <= at < x.offset + x.nbytes for x in there)
            rooms = [(x.offset, x.nbytes) for x in there if x.kind == WORKSPACE]
            assert rooms == ([(act.workspace.at.offset, act.workspace.size)] if act.workspace else [])


def test_every_row_inside_is_in_a_box(function):
    for _, node in regions_of(function):
        boxes, loop = [x for x in frame_memory(node).boxes if x.kind == VALUE], node.op.frame.loop
        for i, spec in enumerate(node.op.specs(tuple(x.spec for x in node.operands))[:-1]):
            rows = spec.shape[2] - (loop.shift[i] * (loop.count - 1) if loop else 0)
            found = set()
            for box in (x for x in boxes if x.block == i):
                first, last, count = map(int, re.findall(r"\d+", box.spec))
                found.update(range(first, last + 1))
                assert count == rows
            assert found == set(range(rows))


def test_neighbouring_rows_of_equal_steps_are_one_box(function):
    """Also rows that have moved, and so are in the frame at several times."""
    for _, node in regions_of(function):
        found = {}
        for x in frame_memory(node).boxes:
            if x.kind == VALUE:
                first, last = map(int, re.match(r"rows (\d+) to (\d+) of", x.spec).groups())
                assert (x.block, x.first, x.last, first, x.offset) not in found
                found[x.block, x.first, x.last, first, x.offset] = last + 1, x.offset + x.nbytes
        for (*steps, _, _), end in found.items():
            assert (*steps, *end) not in found


def test_a_report_says_what_a_region_saves_and_costs(function):
    report = cg.report(function)
    assert [x.step for x in report.regions] == [t for t, _ in regions_of(function)]
    for row, (_, node) in zip(report.regions, regions_of(function)):
        whole = [spec.nbytes for spec in node.op.specs(tuple(x.spec for x in node.operands))[:-1]]
        assert [ring.whole_nbytes for ring in row.rings] == whole
        assert all(0 < ring.nbytes <= ring.whole_nbytes for ring in row.rings)
        frame = node.op.frame
        again = (frame.loop.count - 1) * (frame.loop.last - frame.loop.first) if frame.loop else 0
        assert row.bands + row.slides == len(frame.moves) + again
        assert f"{row.bands} bands" in report.text() and f"{row.bands} bands" in report.html()
    assert len(json.loads(report.json())["regions"]) == len(report.regions)


def test_a_page_has_the_picture_of_each_region(function):
    assert cg.page_html(function).count("data:image/svg+xml;base64,") == len(regions_of(function))


def test_a_page_names_the_step_of_each_region():
    """A step without a region comes first."""
    pixels, filters = cg.Var((40 * 36,), name="pixels"), np.ones((16, 1, 3, 3), "float32")
    image = cg.reshape(cg.sort(pixels), (1, 1, 40, 36))
    y = cg.relu(cg.conv2d(cg.relu(cg.conv2d(image, filters, pad=1)), np.ones((16, 16, 3, 3), "float32"), pad=1))
    function = cg.compile(cg.mean(y, (2, 3)), [pixels], bands=1)
    steps = [t for t, _ in regions_of(function)]
    assert steps and steps[0] > 0
    assert [int(t) for t in re.findall(r"<summary>step (\d+),", cg.page_html(function))] == steps


def test_a_picture_names_its_region_and_refuses_others(function):
    _, node = regions_of(function)[0]
    assert f"{node.name} at {node.where}" in cg.frame_svg(function)
    titled = cg.frame_svg(function, title="Rows of a band")
    assert "Rows of a band" in titled and f"{node.name} at {node.where}" not in titled
    for region in (-1, len(regions_of(function))):
        with pytest.raises(GraphError, match=f"there is no region {region}"):
            cg.frame_svg(function, region)


def test_a_region_is_said_in_one_row(function):
    step, node = regions_of(function)[0]
    row = region_row(step, node)
    assert row.whole_nbytes == sum(ring.whole_nbytes for ring in row.rings) > row.nbytes
    assert row.slid_nbytes > 0 and row.seconds > 0
    moves = row.bands + row.slides
    assert row.seconds == (moves - len(node.op.inner)) * CALL_NS / 1e9, "one call for each value is no extra one"
    slides = [move for move in runs_of(node.op.frame) if move.slides]
    assert len(slides) == row.slides > 0
    values = values_of(node)
    assert row.slid_nbytes == sum(
        values[move.event.value].row_nbytes * (move.event.stop - move.event.first) for move in slides
    )


def test_rows_of_a_value_are_counted_without_the_workspaces_of_its_bands(function, monkeypatch):
    step, node = regions_of(function)[0]
    row, boxes = region_row(step, node), frames.boxes_of(node)
    large = [Box("room", "", "", 1 << 30, 0, 0, 9, 0, i, WORKSPACE) for i in range(len(row.rings))]
    monkeypatch.setattr(frames, "boxes_of", lambda node: boxes + large)
    assert region_row(step, node) == row


def test_a_region_has_several_values(monkeypatch):
    def stream(count):
        op = object.__new__(Stream)
        object.__setattr__(op, "inner", (None,) * count)
        return SimpleNamespace(op=op)

    steps = [stream(1), SimpleNamespace(op=None), stream(2), stream(3)]
    monkeypatch.setattr(frames, "compiled_of", lambda shown: SimpleNamespace(layout=SimpleNamespace(steps=steps)))
    assert regions_of(None) == [(2, steps[2]), (3, steps[3])]


def test_rows_that_no_band_reads_are_in_use_while_they_are_computed():
    """Two rows of four are read, by a band each; slides read nothing."""
    x, y = Rows("x", 4, 8), Rows("y", 2, 16, (Read(0, (0, 2), (1, 3)),))
    rows = frames._BandRows([x, y])
    for t, (value, first, stop, at, slides) in enumerate(
        [(0, 0, 4, 64, False), (1, 0, 1, 0, False), (0, 2, 3, 128, True), (1, 1, 2, 0, False)]
    ):
        rows.run(t, value, range(first, stop), at, slides)
    assert [(box.spec, box.offset, box.nbytes, box.first, box.last) for box in rows.boxes(5)] == [
        ("rows 1 to 1 of 4", 72, 8, 0, 0),
        ("rows 3 to 3 of 4", 88, 8, 0, 0),
        ("rows 0 to 0 of 4", 64, 8, 0, 1),
        ("rows 2 to 2 of 4", 80, 8, 0, 2),
        ("rows 2 to 2 of 4", 128, 8, 2, 3),
    ]
    assert [box.operand for box in rows.boxes(5)] == [5, 6, 7, 8, 9]
