"""Weights by path: values come and go as copies, all or none, and what does not fit is named."""

import numpy as np
import pytest

import nn
from cgraph import FormatError, UnassignedError
from cgraph.system.alignment import aligned_memory
from nn.weights import check_assigned, fitting_values, pack_arrays, read_arrays, set_values, values_of


def test_values_go_by_path_in_the_models_dtype():
    model = nn.Linear(2, 3)
    set_values(model, {"weight": np.arange(6.0).reshape(2, 3), "bias": np.array([7, 8, 9])})
    got = values_of(model)
    assert got["weight"].tolist() == [[0, 1, 2], [3, 4, 5]] and got["bias"].tolist() == [7, 8, 9]
    assert {x.dtype.name for x in got.values()} == {"float32"}
    got["bias"][:] = 0
    assert model.bias.value.tolist() == [7, 8, 9]


def test_a_model_without_values_is_refused():
    with pytest.raises(UnassignedError, match=r"2 Parameters have no value, such as weight\. Call nn\.initialise"):
        check_assigned(nn.Linear(2, 3))


def test_what_does_not_fit_is_named_and_changes_nothing():
    model = nn.initialise(nn.Linear(2, 3), 0)
    before = values_of(model)
    for words, change in (
        (r"a file lacks bias\.", {"weight": before["weight"]}),
        (r"a file has unknown a, b, c …\.", before | dict.fromkeys("dcba", np.zeros(1))),
        (r"a file: weight has shape \[3, 2\], the model's \[2, 3\]", before | {"weight": np.zeros((3, 2))}),
    ):
        with pytest.raises(FormatError, match=words):
            fitting_values(model, change, "a file")
        with pytest.raises(FormatError):
            set_values(model, change)
    assert all((x == before[name]).all() for name, x in values_of(model).items())


def test_arrays_of_any_layout_come_back_from_their_bytes(tmp_path):
    arrays = {"turned": np.arange(6, dtype="f4").reshape(2, 3).T, "whole": np.array(5, "i8")}
    (tmp_path / "x.safetensors").write_bytes(pack_arrays(arrays))
    got = read_arrays(tmp_path / "x.safetensors")
    assert got.keys() == arrays.keys() and got["turned"].tolist() == [[0, 3], [1, 4], [2, 5]] and got["whole"] == 5


@pytest.mark.parametrize("copy", [True, False])
def test_values_are_copied_unless_told_otherwise(copy):
    model = nn.Sequential(nn.Input((16,)), nn.Linear(16, 16, use_bias=False))
    arrays = values_of(nn.initialise(model, 0))
    (path,), array = arrays, aligned_memory(16 * 16 * 4).view("f4").reshape(16, 16)
    array[:] = 1
    set_values(model, {path: array}, copy=copy)
    array[:] = 2
    assert (model.variables()[path].value == (1 if copy else 2)).all()
