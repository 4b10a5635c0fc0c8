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


def test_a_model_is_refused_for_the_one_parameter_without_a_value_whichever_it_is():
    """Running statistics too."""
    paths = [*nn.Sequential(nn.Linear(2, 3), nn.BatchNorm(3)).variables()]
    assert len(paths) == 6
    for path in paths:
        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm(3))
        for other, x in model.variables().items():
            if other != path:
                x.assign(np.ones(x.shape, "f4"))
        with pytest.raises(UnassignedError, match=f"1 Parameters have no value, such as {path}"):
            check_assigned(model)


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
    arrays = {"turned": np.arange(6, dtype="f4").reshape(2, 3).T, "whole": np.array(5, "i8"), "empty": np.ones((2, 0))}
    (tmp_path / "x.safetensors").write_bytes(pack_arrays(arrays))
    got = read_arrays(tmp_path / "x.safetensors")
    assert got.keys() == arrays.keys()
    for name, x in arrays.items():
        assert (got[name].dtype, got[name].shape) == (x.dtype, x.shape) and (got[name] == x).all()


def test_a_parameter_that_is_one_number_is_saved_and_loaded(tmp_path):
    class Scale(nn.Layer):
        factor: nn.Parameter = None

        def __post_init__(self):
            self.hold(factor=nn.Parameter((), nn.init.Constant(2.5)))

        def build(self, *xs, mode):
            return xs[0] * self.factor

    nn.save_weights(tmp_path / "x.safetensors", nn.initialise(Scale()))
    assert nn.load_weights(tmp_path / "x.safetensors", Scale()).factor.value == 2.5


@pytest.mark.parametrize("copy", [True, False])
def test_values_are_copied_unless_told_otherwise(copy):
    model = nn.Sequential(nn.Input((16,)), nn.Linear(16, 16, use_bias=False))
    arrays = values_of(nn.initialise(model, 0))
    (path,), array = arrays, aligned_memory(16 * 16 * 4).view("f4").reshape(16, 16)
    array[:] = 1
    set_values(model, {path: array}, copy=copy)
    array[:] = 2
    assert (model.variables()[path].value == (1 if copy else 2)).all()
