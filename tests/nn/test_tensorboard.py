"""Event files of TensorBoard: they have each figure of each epoch at its step."""

import struct
import sys

import numpy as np
import pytest

import nn
from cgraph.errors import UnavailableError
from nn.losses import quadratic
from tests.support.tolerance import assert_near


def train(folder, epochs=2, **options):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 3)).astype("f4"), rng.normal(size=(8, 2)).astype("f4")
    options = {"validation": (x, y), "engine": "reference", "progress": False, **options}
    model = nn.initialise(nn.Linear(3, 2), 1)
    return nn.train(
        model, nn.Loader((x, y), 4), quadratic, epochs=epochs, callbacks=[nn.TensorBoard(folder)], **options
    )


def events(folder):
    """Step and value of each scalar, by tag, and the steps at which a run began again."""
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")
    scalars, purges = {}, []
    for path in sorted(folder.iterdir()):
        raw = path.read_bytes()
        while raw:  # length, its checksum, the event, its checksum
            (size,) = struct.unpack("<Q", raw[:8])
            event = event_pb2.Event.FromString(raw[12 : 12 + size])
            raw = raw[16 + size :]
            if event.session_log.status == 1:
                purges.append(event.step)
            for value in event.summary.value:
                scalars.setdefault(value.tag, []).append((event.step, value.simple_value))
    return scalars, purges


def test_the_files_have_every_figure_at_its_step(tmp_path):
    pytest.importorskip("tensorboardX")
    history = train(tmp_path / "out", 3)
    scalars, _ = events(tmp_path / "out")
    figures = history.by_epoch()
    assert scalars.keys() == {"loss", "valid_loss"} == {name.replace(" ", "_") for name in figures}
    for name, values in figures.items():
        pairs = scalars[name.replace(" ", "_")]
        assert [step for step, _ in pairs] == [2, 4, 6]
        assert_near([value for _, value in pairs], values, "float32 sums")


def test_arrays_are_left_out_and_a_resumed_run_says_where_it_begins(tmp_path):
    pytest.importorskip("tensorboardX")
    square = nn.metrics.Metric("rows", lambda scores, answers: scores[0], lambda total: total)
    point = nn.Checkpoint(tmp_path / "at.json", epochs=1)
    train(tmp_path / "out", 1, metrics=[square], checkpoint=point)
    train(tmp_path / "out", 2, metrics=[square], checkpoint=point)
    scalars, purges = events(tmp_path / "out")
    assert scalars.keys() == {"loss", "valid_loss"} and 4 in purges


def test_a_missing_package_is_named_with_what_needs_it(tmp_path, monkeypatch):
    for name in ("tensorboardX", "tensorboardX.event_file_writer", "tensorboardX.proto.event_pb2"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnavailableError, match="^TensorBoard's event files need the package tensorboardX: pip install"):
        nn.TensorBoard(tmp_path)


def test_figures_of_an_epoch_are_in_the_file_before_the_next_one_begins(tmp_path):
    pytest.importorskip("tensorboardX")
    board = nn.TensorBoard(tmp_path / "a" / "new" / "folder")
    for step in (3, 6):
        board(nn.Epoch(step // 3, step, {"valid loss": np.array(0.5), "rows": np.ones(2)}, nn.Linear(1, 1)))
        scalars, purges = events(board.folder)
        assert scalars == {"valid_loss": [(i, 0.5) for i in (3, 6) if i <= step]} and purges == [3]
