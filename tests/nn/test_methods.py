"""Methods of other libraries' models: each error names something that exists."""

import copy
import pickle
import re

import pytest

import nn
from nn.methods import METHODS, missing_method


@pytest.mark.parametrize("name", METHODS)
def test_a_method_of_another_library_leads_to_names_that_exist(name):
    model = nn.Linear(2, 3)
    with pytest.raises(AttributeError, match=f"Linear has no attribute '{name}'; use ") as error:
        getattr(model, name)
    paths = re.findall(r"(nn|model)\.(\w+)", str(error.value))
    assert all(hasattr(nn if owner == "nn" else model, member) for owner, member in paths)


def test_an_unknown_name_has_no_advice():
    assert str(missing_method("Linear", "zzz")) == "Linear has no attribute 'zzz'"


def test_layers_are_copied_and_their_fields_found():
    model = copy.copy(nn.Linear(2, 3))
    assert model.inputs == 2 and not hasattr(model, "zzz")
    assert pickle.loads(pickle.dumps(nn.Activation("relu"))).function == "relu"
