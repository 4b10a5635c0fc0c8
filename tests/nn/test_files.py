"""Weight files and checkpoints: whole, checked, and refused when they do not fit."""

import json
import os
import re
import stat
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import FormatError, InputError
from cgraph.formats.npz import write_npz
from cgraph.formats.safetensors import write_safetensors
from cgraph.kernels.mapped import mapping_of
from cgraph.system.files import replace_file
from nn.files import remove_others
from tests.nn.support import draw, run


def nn_weights(path, arrays):
    nn.save_weights(path, nn.models.mlp(0, (6, 4, 2)))


def test_saved_weights_come_back(tmp_path):
    one, two = nn.models.mlp(0, (6, 4, 2)), nn.models.mlp(None, (6, 4, 2))
    nn.save_weights(tmp_path / "w.safetensors", one)
    nn.load_weights(tmp_path / "w.safetensors", two)
    x = draw(3, 6)
    np.testing.assert_array_equal(run(one, x), run(two, x))


def test_weights_in_half_precision_take_half_the_bytes(tmp_path):
    model = nn.initialise(nn.Linear(64, 64), 3)
    before = model.weight.value
    for dtype in ("float32", "float16"):
        nn.save_weights(tmp_path / dtype, model, dtype)
    nn.load_weights(tmp_path / "float16", model)
    assert model.weight.value.dtype == np.float32
    np.testing.assert_array_equal(model.weight.value, before.astype(np.float16).astype(np.float32))
    sizes = [(tmp_path / dtype).stat().st_size for dtype in ("float16", "float32")]
    assert sizes[0] < 0.52 * sizes[1]


def test_mapped_weights_are_the_same_and_the_file_is_never_written(tmp_path):
    path = tmp_path / "w.safetensors"
    one, two = nn.models.mlp(0, (6, 4, 2)), nn.models.mlp(None, (6, 4, 2))
    nn.save_weights(path, one)
    saved = path.read_bytes()
    nn.load_weights(path, two, mapped=True)
    assert all(mapping_of(x.cell.array) is not None for x in two.variables().values())
    x = draw(3, 6)
    np.testing.assert_array_equal(run(one, x), run(two, x))
    for model in (one, two):  # in place, where the values' own bytes allow it
        step = cg.compile([], updates={w: w * 0.5 for w in model.variables().values()})
        step()
        step()
    np.testing.assert_array_equal(run(one, x), run(two, x))
    assert path.read_bytes() == saved


def test_weights_of_another_model_are_refused(tmp_path):
    path = tmp_path / "w.safetensors"
    nn.save_weights(path, nn.models.mlp(0, (6, 4, 2)))
    with pytest.raises(FormatError, match=r"parts\.1\.weight has shape \[6, 4\], the model's \[6, 5\]"):
        nn.load_weights(path, nn.models.mlp(0, (6, 5, 2)))
    with pytest.raises(FormatError, match=r"lacks parts\.5\.bias"):
        nn.load_weights(path, nn.models.mlp(0, (6, 4, 2, 2)))
    with pytest.raises(FormatError, match="has unknown"):
        nn.load_weights(path, nn.models.mlp(0, (6, 4)))


@pytest.mark.parametrize("cut", [0, 4, 40, -1])
def test_a_damaged_weight_file_is_refused(tmp_path, cut):
    path = tmp_path / "w.safetensors"
    nn.save_weights(path, nn.models.mlp(0, (6, 4, 2)))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(FormatError):
        nn.load_weights(path, nn.models.mlp(0, (6, 4, 2)))


def test_a_failed_write_leaves_the_old_file_and_no_part(tmp_path, monkeypatch):
    path = tmp_path / "x"
    replace_file(path, [b"old"])

    def fail(*args):
        raise OSError("disk is full")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(f"cgraph.system.files.os.{name}", fail)
            with pytest.raises(OSError, match="disk is full"):
                replace_file(path, [b"new"])
        assert path.read_bytes() == b"old"
        assert [x.name for x in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("write", [nn.write_checkpoint, write_safetensors, write_npz, nn_weights])
def test_bytes_are_on_the_disk_before_a_name_is_and_the_name_is_before_it_returns(tmp_path, monkeypatch, write):
    """In this order: the new file is flushed with all its bytes, takes the old one's name, the folder is flushed."""
    log, fsync, replace = [], os.fsync, os.replace

    def flushed(handle):
        seen = os.fstat(handle)
        fsync(handle)
        log.append("folder" if stat.S_ISDIR(seen.st_mode) else (seen.st_ino, seen.st_size))

    def renamed(old, new):
        seen = os.stat(old)
        replace(old, new)
        log.append(("named", seen.st_ino, seen.st_size))

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    arguments = ({"a": np.zeros(4)}, {}) if write is nn.write_checkpoint else ({"a": np.zeros(4)},)
    write(tmp_path / "x", *arguments)
    assert log
    for i in range(0, len(log), 3):
        whole, named, folder = log[i : i + 3]
        assert named == ("named", *whole) and whole[1] > 0 and folder == "folder"


def test_a_checkpoint_clears_away_its_own_leftovers_only(tmp_path):
    nn.write_checkpoint(tmp_path / "run.json", {"a": np.zeros(1)}, {"step": 1})
    nn.write_checkpoint(tmp_path / "run-2.json", {"a": np.ones(1)}, {"step": 2})
    own = (".run.json.01ab.part", f".run-{'0' * 16}.safetensors.01ab.part", f"run-{'1' * 16}.safetensors")
    others = (".run-2.json.01ab.part", "run-mine.safetensors", ".x.part")
    for name in (*own, *others):
        (tmp_path / name).write_bytes(b"")
    nn.write_checkpoint(tmp_path / "run.json", {"a": np.full(1, 3.0)}, {"step": 3})
    left = {path.name for path in tmp_path.iterdir()}
    assert not left & set(own)
    assert left >= set(others)
    assert nn.read_checkpoint(tmp_path / "run.json")[1]["step"] == 3
    assert nn.read_checkpoint(tmp_path / "run-2.json")[1]["step"] == 2


def test_a_checkpoint_is_replaced_at_once(tmp_path):
    path = tmp_path / "c.json"
    for i in range(3):
        nn.write_checkpoint(path, {"a": np.full(4, i)}, {"step": i})
        arrays, facts = nn.read_checkpoint(path)
        assert facts["step"] == i
        np.testing.assert_array_equal(arrays["a"], np.full(4, i))
        assert len(list(tmp_path.iterdir())) == 2


def test_a_checkpoint_survives_a_failure_at_any_point(tmp_path, monkeypatch):
    path = tmp_path / "c.json"
    nn.write_checkpoint(path, {"a": np.zeros(4)}, {"step": 0})
    for point in range(1, 40):
        calls = {"left": point}
        with monkeypatch.context() as patch:
            for name in ("fsync", "replace", "open"):
                patch.setattr(f"cgraph.system.files.os.{name}", failing(getattr(__import__("os"), name), calls))
            try:
                nn.write_checkpoint(path, {"a": np.full(4, point)}, {"step": point})
            except OSError:
                arrays, facts = nn.read_checkpoint(path)
                assert arrays["a"][0] == facts["step"]
                continue
        break
    assert 3 < point < 39, "no point of failure was met"
    assert nn.read_checkpoint(path)[1]["step"] == point


def failing(function, calls):
    def call(*args, **kwargs):
        calls["left"] -= 1
        if calls["left"] == 0:
            raise OSError("injected")
        return function(*args, **kwargs)

    return call


def test_a_checkpoint_with_other_arrays_is_refused(tmp_path):
    path = tmp_path / "c.json"
    assert nn.read_checkpoint(path) is None
    nn.write_checkpoint(path, {"a": np.zeros(4)}, {})
    arrays = next(tmp_path.glob("*.safetensors"))
    contents = bytearray(arrays.read_bytes())
    contents[-1] ^= 1
    arrays.write_bytes(contents)
    with pytest.raises(FormatError, match=r"is not the file that c\.json was written for"):
        nn.read_checkpoint(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 7, "arrays": "x", "sha256": ""}'])
def test_a_malformed_checkpoint_is_refused(tmp_path, text):
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(FormatError):
        nn.read_checkpoint(tmp_path / "c.json")


def test_a_checkpoint_names_no_file_elsewhere(tmp_path):
    facts = {"version": 1, "arrays": "../../etc/passwd", "sha256": ""}
    (tmp_path / "c.json").write_text(json.dumps(facts))
    with pytest.raises(FormatError, match="not supported"):
        nn.read_checkpoint(tmp_path / "c.json")


@pytest.mark.parametrize("ending", ".h5 .hdf5 .keras .npy .npz .onnx .pt .pth .tflite".split())
def test_a_name_of_another_format_is_refused_before_anything_is_written(ending, tmp_path):
    model = nn.models.mlp(0, (6, 4, 2))
    with pytest.raises(InputError, match=f"weights{ending}'. Pass a name that ends in .safetensors"):
        nn.save_weights(tmp_path / f"weights{ending}", model)
    assert not list(tmp_path.iterdir())
    for name in ("weights", "weights.v1", f"weights{ending}.safetensors"):
        nn.save_weights(str(tmp_path / name), model)
    assert len(list(tmp_path.iterdir())) == 3


def test_files_of_the_pattern_and_their_parts_are_removed_except_the_one_that_stays(tmp_path):
    """A part has a name, a dot and at least one hexadecimal digit."""
    removed = ["a1", "a2", ".a1.0f.part", ".a3.9.part"]
    left = ["a3", "a10", "xa1", ".a1..part", ".a1.0g.part", ".b1.0f.part", "a1.part"]
    for name in removed + left:
        (tmp_path / name).touch()
    remove_others(tmp_path, r"a\d", keep="a3")
    assert {x.name for x in tmp_path.iterdir()} == set(left)


def test_a_file_that_another_process_removes_first_raises_nothing(tmp_path):
    (tmp_path / "a2").touch()
    folder = SimpleNamespace(iterdir=lambda: [tmp_path / name for name in ("a1", "a2")])
    remove_others(folder, r"a\d", keep="")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("count", "more"), [(1, ""), (2, ""), (3, ""), (4, " …")])
def test_up_to_three_missing_names_are_all_named(count, more):
    model = nn.Sequential(*(nn.Linear(1, 1, use_bias=False) for _ in range(count)))
    names = ", ".join(f"parts.{i}.weight" for i in range(min(count, 3)))
    with pytest.raises(FormatError, match=f"^values lacks {re.escape(names)}{more}\\. Use the weights"):
        nn.set_values(model, {})
