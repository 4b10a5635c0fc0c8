"""TorchNames: arrays by the names within a module, and which of them were read."""

import numpy as np
import pytest

from nn.torch_names import TorchNames

ARRAYS = {"a.b.weight": np.array(1), "a.weight": np.array(2), "weight": np.array(3), "ab.weight": np.array(4)}


def test_a_module_sees_the_arrays_below_it():
    root = TorchNames(ARRAYS)
    assert (root["weight"], root.below("a")["weight"], root.below("a").below("b")["weight"]) == (3, 2, 1)
    assert root.below("ab")["weight"] == 4 and root["a.b.weight"] == 1


def test_what_any_module_reads_is_remembered_by_all():
    root = TorchNames(ARRAYS)
    inner = root.below("a").below("b")
    inner["weight"]
    root["weight"]
    assert root.read == inner.read == {"a.b.weight", "weight"}
    assert not TorchNames(ARRAYS).read


def test_to_look_for_a_name_is_not_to_read_it():
    names = TorchNames(ARRAYS).below("a")
    assert "weight" in names and "a.weight" not in names and "bias" not in names
    assert not names.read


def test_a_missing_array_has_its_full_name():
    names = TorchNames(ARRAYS)
    with pytest.raises(KeyError) as error:
        names.below("a").below("b")["bias"]
    assert error.value.args == ("a.b.bias",) and not names.read
