import json
import re
import xml.etree.ElementTree as xml
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main
from cgraph.cli.curve import RUNGS, curve_of, regions_of
from cgraph.cli.model import load_model
from cgraph.ops.physical.stream import Stream

IMAGES, TRAINING = "tests.cli.test_curve:images", "tests.cli.test_curve:training"


def images():
    x = y = cg.Var((1, 8, 32, 32), name="x")
    for _ in range(2):
        y = cg.relu(cg.conv2d(y, cg.Const(np.full((8, y.shape[1], 3, 3), 0.1, "float32")), pad=1))
    return cg.compile(cg.max_pool2d(y, 8), [x])


def training():
    """A chain with its gradient: every forward value is read again."""
    x = y = cg.Var((64, 64), name="x")
    w = cg.Var((64, 64), name="w")
    for _ in range(4):
        y = cg.tanh(y @ w)
    return cg.compile(cg.gradient(cg.sum(y), w), [x, w])


@cache
def least_point(model):
    """The smallest plan of a model's curve without a budget."""
    return curve_of(load_model(model), None, "auto").points[-1]


def plan(capsys, model, *options):
    """Exit status, the curve's rows as lists of words, and what is said on standard error."""
    status = main(["plan", model, "--strategy", "auto", *options])
    out, err = capsys.readouterr()
    lines = out.splitlines()
    first = next(i for i, line in enumerate(lines) if line.endswith("means")) + 1
    last = next(i for i, line in enumerate(lines) if line.startswith("bands:"))
    return status, lines[first:last], err


def nbytes_of(row):
    return int(row[1:].split()[0])


@pytest.mark.parametrize("model", [IMAGES, TRAINING])
def test_a_refusal_names_the_least_budget_which_is_then_met(model, capsys):
    status, rows, err = plan(capsys, model, "--budget", "64")
    assert status == 1
    assert not [row for row in rows if row.startswith(">")]
    least = int(re.search(r"the least budget of this graph is (\d+) bytes", err)[1])
    assert nbytes_of(rows[-1]) == least
    status, rows, err = plan(capsys, model, "--budget", str(least))
    assert status == 0
    assert not [line for line in err.splitlines() if not line.endswith(" s left")]  # a progress bar
    assert [nbytes_of(row) for row in rows if row.startswith(">")] == [least]


# One rung suffices for training: the asked plan is made before any rung, and compared with a search without one.
@pytest.mark.parametrize("model, rungs", [(IMAGES, RUNGS), (TRAINING, 3)])
def test_the_plan_within_the_budget_is_that_of_compile(model, rungs, monkeypatch):
    monkeypatch.setattr("cgraph.cli.curve.RUNGS", rungs)
    found = load_model(model)
    free, least = found.compiled(budget=None).nbytes, least_point(model).nbytes
    for budget in np.linspace(least, free, 3).astype(int).tolist():
        curve = curve_of(found, budget, "auto")
        want = found.compiled(budget=budget).compiled
        assert (curve.asked[1], curve.asked[0].order) == (want.plan, want.order)
        assert [x.nbytes for x in curve.points if x.asked] == [want.nbytes]


def test_calls_are_those_that_run():
    found = load_model(IMAGES)
    least = least_point(IMAGES).nbytes
    asked = next(x for x in curve_of(found, least, "auto").points if x.asked)
    before, after = (runs_of(found.compiled(budget=budget).compiled) for budget in (None, least))
    assert asked.calls == after - before > 0


def runs_of(compiled):
    """Bands, slides and whole steps: what has kernel calls."""
    return sum(bool(part.calls) for step in compiled.steps for part in step.parts())


def test_images_go_in_bands_and_training_computes_again():
    bands, again = (least_point(model) for model in (IMAGES, TRAINING))
    assert bands.bands > 0 == bands.again
    assert again.again > 0 == again.bands
    assert "in bands" in bands.means
    assert "computed again" in again.means


def test_bytes_fall_along_the_curve(capsys):
    _, rows, _ = plan(capsys, IMAGES, "--budget", "1GiB")
    sizes = [nbytes_of(row) for row in rows]
    assert sizes == sorted(set(sizes), reverse=True)
    assert rows[0].startswith(">")
    assert rows[0].split()[-1] == "depth_first"


def test_the_curve_is_drawn(tmp_path, capsys):
    picture = tmp_path / "curve.svg"
    status, rows, _ = plan(capsys, IMAGES, "--budget", "128KiB", "-o", str(picture))
    dots = [x.get("class") for x in xml.fromstring(picture.read_text()).iter() if x.tag.endswith("circle")]
    assert status == 0
    assert len(dots) == len(rows) > 2
    assert [i for i, x in enumerate(dots) if x == "asked"] == [i for i, x in enumerate(rows) if x.startswith(">")]


def test_a_picture_alone_asks_for_no_budget(tmp_path, capsys):
    status, rows, _ = plan(capsys, IMAGES, "-o", str(tmp_path / "curve.svg"))
    assert status == 0
    assert not [row for row in rows if row.startswith(">")]


def test_what_has_no_curve_is_refused(tmp_path, capsys):
    records = tmp_path / "records.csv"
    records.write_text("id,first_op,last_op,size_bytes,name\n0,0,1,4096,conv\n")
    assert main(["plan", str(records), "-o", str(tmp_path / "curve.svg")]) == 2
    assert main(["plan", IMAGES, "-o", str(tmp_path / "curve.png")]) == 2
    assert "a curve is drawn of a model, as .svg" in capsys.readouterr().err


def test_the_plan_within_a_budget_is_kept_with_its_bands(tmp_path, capsys):
    kept = tmp_path / "plan.json"
    least = least_point(IMAGES).nbytes
    assert plan(capsys, IMAGES, "--budget", str(least - 1), "--save", str(kept))[0] == 1
    assert not kept.exists()
    assert plan(capsys, IMAGES, "--budget", str(least), "--save", str(kept))[0] == 0
    found, compiled = json.loads(kept.read_text()), load_model(IMAGES).compiled(budget=least).compiled
    assert found["nbytes"] == compiled.nbytes == least
    regions = [node for node in compiled.layout.steps if isinstance(node.op, Stream)]
    assert len(found["regions"]) == len(regions) > 0
    for row, node in zip(found["regions"], regions):
        assert row["nbytes"] == node.op.frame.nbytes
        assert (row["offset"] is None) == (row["nbytes"] == 0)
        assert 0 <= (row["offset"] or 0) <= least - row["nbytes"]
        last = [x for x in row["moves"] if x["value"] == len(row["values"]) - 1]
        assert [x["first"] for x in last] == [0, *(x["stop"] for x in last[:-1])]
        assert sum(x["slides"] for x in row["moves"]) == sum(move.slides for move in node.op.frame.moves)
        assert all(0 <= x["workspace"] <= row["nbytes"] - x["room"] for x in row["moves"])


def test_a_plan_that_changes_nothing_is_kept_without_bands(tmp_path, capsys):
    kept = tmp_path / "plan.json"
    assert plan(capsys, IMAGES, "--budget", "1GiB", "--save", str(kept))[0] == 0
    assert "regions" not in json.loads(kept.read_text())


def test_a_region_is_where_its_workspace_lies_among_values_that_share_bytes():
    """Values that overwrite one another have one offset in the plan, so operands and values have other numbers."""
    layout = load_model(IMAGES).compiled(budget=least_point(IMAGES).nbytes).compiled.layout
    (node,) = (node for node in layout.steps if isinstance(node.op, Stream))
    room, plan = layout.workspace_of[node], object()
    usage = SimpleNamespace(offset=lambda of, value: (of, value))
    for rooms, want in (({node: room}, (plan, room)), ({}, None)):
        candidate = SimpleNamespace(layout=SimpleNamespace(steps=layout.steps, workspace_of=rooms), usage=usage)
        (region,) = regions_of((candidate, plan))
        assert region["offset"] == want and layout.steps[region["step"]] is node
