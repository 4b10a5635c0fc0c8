"""Training and inference: what the ancestor does wrongly in compiled networks must be right here."""

import numpy as np
import pytest

import cgraph as cg
import nn
from tests.nn.support import draw


def test_the_random_key_advances_by_its_update_edge():
    mode = nn.Mode(training=True, seed=3)
    x = cg.Var((50,)).assign(np.ones(50, np.float32))
    function = cg.compile(nn.Dropout(0.5)(x, mode=mode), updates=mode.updates, engine="reference")
    first, second = function(), function()
    assert not np.array_equal(first, second)
    again = nn.Mode(training=True, seed=3)
    same = cg.compile(nn.Dropout(0.5)(x, mode=again), updates=again.updates, engine="reference")
    np.testing.assert_array_equal(same(), first)
    np.testing.assert_array_equal(same(), second)


def test_inference_draws_no_random_numbers():
    with pytest.raises(ValueError, match="has no random key"):
        nn.Mode().next_key()


def test_weights_never_resample():
    model = nn.models.mlp(5, (6, 4, 2))
    x = draw(3, 6)
    before = {path: v.value for path, v in model.variables().items()}
    live, frozen = nn.compile(model, frozen=False), nn.compile(model)
    np.testing.assert_array_equal(live(x), live(x))
    np.testing.assert_array_equal(frozen(x), frozen(x))
    nn.initialise(model, 99)
    for path, v in model.variables().items():
        np.testing.assert_array_equal(v.value, before[path])


def test_weights_depend_on_seed_and_path_alone():
    one, two, other = nn.models.mlp(1, (6, 4, 2)), nn.models.mlp(1, (6, 4, 2, 2)), nn.models.mlp(2, (6, 4, 2))
    assert one.parameters().keys() < two.parameters().keys()
    weight = "parts.1.weight"
    np.testing.assert_array_equal(one.parameters()[weight].value, two.parameters()[weight].value)
    assert not np.array_equal(one.parameters()[weight].value, other.parameters()[weight].value)


@pytest.mark.parametrize("seed", [0, 1, 2**31])
def test_a_key_begins_with_that_of_the_seed_and_each_layer_draws_by_another_one(seed):
    mode = nn.Mode(training=True, seed=seed)
    assert mode.key.value.tolist() == cg.random_key(seed).tolist()
    first, second, third = (mode.next_key() for _ in range(3))
    keys = cg.compile([first, second, third], updates=mode.updates, engine="reference")
    drawn = [tuple(x.tolist()) for _ in range(2) for x in keys()]
    assert len(set(drawn)) == 6
