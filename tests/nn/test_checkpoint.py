import json

import numpy as np
import pytest

from cgraph.errors import FormatError, InputError
from nn.checkpoint import Checkpoint, read_checkpoint, write_checkpoint


def test_a_checkpoint_is_read_as_it_was_written_and_the_older_arrays_are_gone(tmp_path):
    path = tmp_path / "a" / "new" / "folder" / "at.json"
    assert read_checkpoint(path) is None
    for number in range(3):
        write_checkpoint(path, {"x": np.full(3, number, np.float32)}, {"step": number})
    arrays, facts = read_checkpoint(path)
    assert arrays["x"].tolist() == [2, 2, 2] and facts["step"] == 2
    assert len(list(path.parent.iterdir())) == 2


@pytest.mark.parametrize("change", [{"version": 2}, {"arrays": "../x"}, {"sha256": "0"}])
def test_a_changed_description_is_refused_with_a_way_out(tmp_path, change):
    path = tmp_path / "at.json"
    write_checkpoint(path, {"x": np.ones(2, np.float32)}, {})
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(FormatError, match="Delete it|Restore it"):
        read_checkpoint(path)


def test_a_function_of_ones_own_makes_a_checkpoint_due():
    rule = Checkpoint("x", when=lambda step, loss: loss < 0.5)
    assert rule.due(1, 10, 0.4) and not rule.due(2, 10, 0.6)
    both = Checkpoint("x", steps=2, when=lambda step, loss: step == 5 or loss < 0.5)
    assert [step for step in range(1, 9) if both.due(step, 10, 1.0)] == [2, 4, 5, 6, 8] and both.due(7, 10, 0.25)


@pytest.mark.parametrize(
    "times, due",
    [({}, [4, 8]), ({"epochs": 0.01}, [1, 2, 3, 4, 5, 6, 7, 8]), ({"epochs": 0.5, "steps": 3}, [2, 3, 4, 6, 8])],
)
def test_every_checkpoint_has_times(times, due):
    rule = Checkpoint("x", **times)
    assert [step for step in range(1, 9) if rule.due(step, 4, 1.0)] == due
    assert not Checkpoint("x", best="loss").due(4, 4, 1.0)


NAMES = [
    "run.json",
    "run.1.json",
    "runx1.json",
    "run-1.json",
    "run(1).json",
    "run+1.json",
    "[run].json",
    "run.best",
    "run.last",
]


def test_a_checkpoint_of_any_name_leaves_the_others_of_its_folder_alone(tmp_path):
    """Names are no patterns: a dot is a dot."""
    for step in (1, 2):
        for i, name in enumerate(NAMES):
            write_checkpoint(tmp_path / name, {"x": np.full(2, 10 * i + step)}, {"step": step})
    for i, name in enumerate(NAMES):
        arrays, facts = read_checkpoint(tmp_path / name)
        assert arrays["x"].tolist() == [10 * i + 2] * 2 and facts["step"] == 2
    assert len(list(tmp_path.iterdir())) == 2 * len(NAMES)


@pytest.mark.parametrize("name", ["version", "arrays", "sha256"])
def test_facts_do_not_replace_what_a_checkpoint_needs_to_be_read(tmp_path, name):
    write_checkpoint(tmp_path / "at.json", {"x": np.ones(2)}, {"step": 1})
    with pytest.raises(InputError, match=f"facts has '{name}'"):
        write_checkpoint(tmp_path / "at.json", {"x": np.zeros(2)}, {name: 1})
    assert read_checkpoint(tmp_path / "at.json")[0]["x"].tolist() == [1, 1]


def test_a_checkpoint_without_arrays_or_with_ones_of_all_dtypes_is_read_as_it_was_written(tmp_path):
    dtypes = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]
    written = {f"{x}/{n}": np.ones((2,) * n + (0,) * (n == 3), x) for x in dtypes for n in range(4)}
    for arrays in ({}, written):
        write_checkpoint(tmp_path / "at.json", arrays, {})
        (found, _) = read_checkpoint(tmp_path / "at.json")
        assert {name: (x.dtype, x.shape) for name, x in found.items()} == {
            name: (x.dtype, x.shape) for name, x in arrays.items()
        }
        for name, x in arrays.items():
            np.testing.assert_array_equal(found[name], x)


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"sha256": None}, "'missing.safetensors' is not the file that at.json was written for. Restore it"),
        ({"arrays": "nothing\0"}, "is not the file that at.json was written for. Restore it"),
        ({"arrays": "n" * 300}, "is not the file that at.json was written for. Restore it"),
        ({"arrays": 3}, "version 1 or file name 3 is not supported"),
        ({"arrays": "a/" + "n" * 300}, f"file name 'a/{'n' * 77} is not supported"),
        ({"version": "1" * 90}, f"version '{'1' * 39} or file name 'missing.safetensors' is not supported"),
    ],
    ids=["no digest", "impossible name", "long name", "number", "long path", "long version"],
)
def test_a_description_of_no_arrays_is_refused_with_a_short_text(facts, text, tmp_path):
    description = {"version": 1, "arrays": "missing.safetensors", "sha256": ""} | facts
    (tmp_path / "at.json").write_text(json.dumps(description))
    with pytest.raises(FormatError) as error:
        read_checkpoint(tmp_path / "at.json")
    assert text in str(error.value).replace(f"{tmp_path}/", "") and len(str(error.value)) < 300 + len(str(tmp_path))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', "3", '{"arrays": "x", "sha256": ""}'])
def test_a_file_without_a_description_is_named_with_the_way_out(text, tmp_path):
    path = tmp_path / "at.json"
    path.write_text(text)
    with pytest.raises(FormatError) as error:
        read_checkpoint(path)
    message = str(error.value)
    assert message.startswith(f"{path} is not a checkpoint: ") and message.endswith(
        ". Delete it, or pass another path."
    )


@pytest.mark.parametrize(
    ("epochs", "each", "due"),
    [(0.5, 4, [2, 4, 6, 8]), (1 / 3, 8, [3, 6]), (0.45, 4, [2, 4, 6, 8]), (0.01, 4, [*range(1, 9)])],
)
def test_a_share_of_an_epoch_is_the_nearest_number_of_steps_and_one_at_least(epochs, each, due):
    rule = Checkpoint("x", epochs=epochs)
    assert [step for step in range(1, 9) if rule.due(step, each, 1.0)] == due
