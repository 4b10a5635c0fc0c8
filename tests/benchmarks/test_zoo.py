"""The zoo of outside networks: its inputs, its verdicts and its table, without the packages that it exports from."""

import json

import numpy as np
import pytest

from benchmarks.zoo import __main__ as zoo
from benchmarks.zoo.architectures import FAMILIES, write_one
from benchmarks.zoo.inputs import BATCH, LENGTH, TOKENS, feeds_of


def row(file, ours, theirs=1.0, difference=0.0, threads=1):
    cgraph = {"error": "refused"} if ours is None else {"seconds": ours, "difference": difference, "memory": ours}
    peers = {name: {"seconds": theirs, "memory": theirs, "start": 1.0} for name in ("onnxruntime", "openvino")}
    return {"file": file, "threads": threads, "cgraph": cgraph, "cold": {"start": 2 * theirs}, **peers}


ROWS = [
    row("a/fast", 0.5), row("a/slow", 2.0), row("a/wrong", 0.5, difference=0.1), row("b/refused", None),
    row("b/two threads", 0.1, threads=2),
]  # fmt: skip


def test_verdicts_and_the_table():
    assert [zoo.verdict(x) for x in ROWS] == ["right", "right", "wrong", "refused", "right"]
    lines = list(zoo.table(ROWS, 1))
    assert len({line.count("|") for line in lines[:5]}) == 1
    assert lines[2] == "| a | 3 | 3 | 2 | 0 | 1 | 2 of 3 | 0.50 | 2 of 3 | 0.50 | 2 of 3 | 2.00 |"
    assert lines[3] == "| b | 1 | 1 | 0 | 1 | 0 | – | – | – | – | – | 2.00 |"
    assert lines[4] == "| all | 4 | 4 | 2 | 1 | 1 | 2 of 3 | 0.50 | 2 of 3 | 0.50 | 2 of 3 | 2.00 |"
    assert lines[6:] == ["- `a/wrong`: wrong: 1.0e-01 of the largest value", "- `b/refused`: refused: refused"]


def test_a_file_that_onnxruntime_refuses_only_runs():
    assert zoo.verdict({"cgraph": {"seconds": 1.0}, "onnxruntime": {"error": "no"}}) == "runs"


@pytest.mark.parametrize(
    ("x", "y", "want"),
    [
        ([[1.0, 2.0]], [[1.0, 4.0]], 0.5),
        ([[np.nan, np.inf]], [[np.nan, np.inf]], 0.0),
        ([[np.nan, 1.0]], [[1.0, 1.0]], np.inf),
        ([[np.inf]], [[-np.inf]], np.inf),
        ([[1.0]], [[1.0], [2.0]], np.inf),
        ([[1.0], [2.0]], [[1.0], [4.0]], 0.5),
        ([["a", "b"]], [["a", "b"]], 0.0),
        ([["a", "b"]], [["a", "c"]], np.inf),
        ([[]], [[]], 0.0),
    ],
)
def test_differences_are_in_units_of_the_largest_value(x, y, want):
    assert zoo.difference([np.array(v) for v in x], [np.array(v) for v in y]) == want


def test_open_axes_tokens_and_masks_get_values(tmp_path):
    onnx = pytest.importorskip("onnx")
    helper, kinds = onnx.helper, onnx.TensorProto
    inputs = [("ids", kinds.INT64, ("N", "L")), ("mask", kinds.INT64, ("N", "L")), ("x", kinds.FLOAT, (1, 3))]
    values = [helper.make_tensor_value_info(*x) for x in inputs]
    stored = onnx.numpy_helper.from_array(np.ones(3, "f4"), "w")
    values.append(helper.make_tensor_value_info("w", kinds.FLOAT, (3,)))
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", values, values[2:3], [stored])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    feeds = feeds_of(tmp_path / "m.onnx", 0)
    assert list(feeds) == ["ids", "mask", "x"] and feeds["x"].shape == (1, 3) and feeds["x"].dtype == np.float32
    assert feeds["ids"].shape == feeds["mask"].shape == (BATCH, LENGTH)
    assert feeds["ids"].max() < TOKENS and feeds["ids"].min() >= 3 and (feeds["mask"] == 1).all()
    assert (feeds_of(tmp_path / "m.onnx", 1)["ids"] != feeds["ids"]).any()


def test_files_that_have_a_row_are_not_measured_again(tmp_path, monkeypatch):
    (tmp_path / "video").mkdir()
    for name in ("one", "two"):
        (tmp_path / "video" / f"{name}.onnx").touch()
    (tmp_path / "results.jsonl").write_text(json.dumps(row("video/one", 1.0)) + "\n")
    measured = []
    monkeypatch.setattr(zoo, "measured", lambda path, *_: measured.append(path.stem) or {"cgraph": {"seconds": 1.0}})
    for _ in range(2):
        zoo.run(tmp_path, ["video"], ["cgraph"], 1)
    assert measured == ["two"]
    zoo.run(tmp_path, ["video"], ["cgraph"], 2)
    assert measured == ["two", "one", "two"]


def test_starts_have_byte_code_and_the_cold_one_has_no_kernel(tmp_path, monkeypatch):
    """The first process of each engine is not counted, and leaves its kernels elsewhere."""
    starts = []

    def started(path, engines, threads, files, folder, cache="kernels"):
        starts.append((engines, cache))
        return {"error": "", "start": len(starts)}

    monkeypatch.setattr(zoo, "figures_of", started)
    monkeypatch.setattr(zoo, "feeds_of", lambda path, seed: {"x": np.ones(1)})
    row = zoo.measured(tmp_path / "m.onnx", ["cgraph", "onnxruntime"], 1)
    own = [("cgraph", "other"), ("cgraph", "kernels"), ("cgraph", "kernels")]
    assert starts == [*own, ("onnxruntime", "other"), ("onnxruntime", "kernels")]
    assert [row[x]["start"] for x in ("cold", "cgraph", "onnxruntime")] == [2, 3, 5]


def test_no_name_is_twice_but_those_of_another_exporter_size_or_step():
    others = {"texts-dynamo", "models-dynamo", "models-wide", "steps", "steps-dynamo"}
    names = [name for key, family in FAMILIES.items() if key not in others for name in family.names]
    assert len(names) == len(set(names)) > 150 and len(FAMILIES) >= 12
    for again in (FAMILIES[key].names for key in others):
        assert len(set(again)) == len(again)
    assert set(FAMILIES["texts-dynamo"].names) <= set(names)


def test_a_failed_export_leaves_its_text(tmp_path, monkeypatch):
    texts = {"mc3_18": "", "r2plus1d_18": "Error: no such op"}
    exports = []

    def export(family, name, path):
        exports.append((family, name))
        if not texts[name]:
            path.write_bytes(b"model")
        return texts[name]

    monkeypatch.setattr(zoo, "export", export)
    zoo.write(tmp_path, ["video"], most=1)
    assert exports == [("video", "mc3_18")]
    zoo.write(tmp_path, ["video"], most=1)
    assert exports[1:] == [("video", "r2plus1d_18")]
    folder = tmp_path / "video"
    assert (folder / "mc3_18.onnx").read_bytes() == b"model" and not list(folder.glob("*.part"))
    assert (folder / "r2plus1d_18.txt").read_text() == "Error: no such op"


def test_an_architecture_that_raises_writes_its_traceback(tmp_path):
    write_one("video", "no such network", tmp_path / "m.onnx", tmp_path / "failure.txt")
    assert "Error" in (tmp_path / "failure.txt").read_text() and not (tmp_path / "m.onnx").exists()


def test_the_order_of_a_detectors_boxes_does_not_count():
    rng = np.random.default_rng(0)
    boxes, labels, masks = rng.random((6, 4)), np.arange(6), rng.random((6, 30, 40))
    order = np.array([1, 0, 2, 5, 4, 3])
    ours, theirs = [boxes, labels, masks] * 2, [boxes[order], labels[order], masks[order]] * 2
    assert zoo.difference_of_sets(ours, theirs) == 0 < zoo.difference(ours, theirs)
    theirs[5] = masks
    assert zoo.difference_of_sets(ours, theirs) > 0.1
    assert zoo.difference_of_sets(ours, [boxes[order] * 1.5, labels[order], masks[order]] * 2) > 0.1
    assert zoo.difference_of_sets(ours, [x[:5] for x in theirs]) == np.inf
