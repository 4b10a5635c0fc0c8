import json

import numpy as np
import pytest

from cgraph.errors import FormatError
from nn.checkpoint import Checkpoint, read_checkpoint, write_checkpoint


def test_a_checkpoint_is_read_as_it_was_written_and_the_older_arrays_are_gone(tmp_path):
    path = tmp_path / "folder" / "at.json"
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


@pytest.mark.parametrize(
    "times, due",
    [({}, [4, 8]), ({"epochs": 0.01}, [1, 2, 3, 4, 5, 6, 7, 8]), ({"epochs": 0.5, "steps": 3}, [2, 3, 4, 6, 8])],
)
def test_every_checkpoint_has_times(times, due):
    rule = Checkpoint("x", **times)
    assert [step for step in range(1, 9) if rule.due(step, 4, 1.0)] == due
    assert not Checkpoint("x", best="loss").due(4, 4, 1.0)
