"""A step in two Functions: the pieces between them, their order, random keys of shards, and what is refused."""

from itertools import permutations

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import DTypeError, InputError
from nn.losses import quadratic
from nn.parallel import sharded_step
from nn.parallel.sharded_step import KEY, halves, in_pieces, key_of, split_flat
from nn.settings import StepSettings
from tests.support.tolerance import assert_near

X, Y = np.array([[1.0, 2], [3, -1]], "f4"), np.array([[1.0], [0]], "f4")
DESCENT = nn.Optimiser(nn.optim.GradientDescent(), nn.optim.Const(0.25))


def settings(loss=quadratic, optimiser=DESCENT, **fields):
    return StepSettings(loss, optimiser, options={"engine": "reference"}, **fields)


def linear():
    model = nn.Linear(2, 1)
    model.weight.assign(np.array([[1], [2]], "f4"))
    model.bias.assign(np.zeros(1, "f4"))
    return model


def parted(y, t):
    return {"error": cg.mean(cg.square(y - t)), "size": cg.sum(y)}


def test_the_pieces_are_loss_parts_metrics_and_gradients_from_the_last_to_the_first():
    """All but the metrics are divided by the number of shards."""
    both = halves(linear(), settings(parted, metrics=[nn.metrics.accuracy()]), (X, Y), 4)
    (flat,) = both.gradient(X, Y)
    gradient_of_weight, gradient_of_bias = [7 + 4, 7 + 1], 5 + 2
    np.testing.assert_array_equal(flat[:3] * 4, [14.5, 8.5, 6])
    np.testing.assert_array_equal(flat[3:5], [2, 2])
    np.testing.assert_array_equal(flat[5:] * 4, [gradient_of_bias, *gradient_of_weight])
    assert both.parts == ("error", "size") and flat.dtype == np.float32


def test_the_update_takes_the_sum_apart_in_the_same_order():
    model = linear()
    both = halves(model, settings(parted, metrics=[nn.metrics.accuracy()]), (X, Y), 1)
    loss, rate, error, size, accuracy = both.update(np.array([1, 2, 3, 5, 6, 12, 4, 8], "f4"))
    np.testing.assert_array_equal(model.weight.value, [[1 - 0.25 * 4], [2 - 0.25 * 8]])
    np.testing.assert_array_equal(model.bias.value, [-0.25 * 12])
    assert (loss, rate, error, size, accuracy.tolist()) == (1, 0.25, 2, 3, [5, 6])
    assert accuracy.dtype == np.float64 and int(both.state["step"].value) == 1


def test_running_statistics_are_means_over_shards_and_stand_before_the_gradients():
    norm = nn.initialise(nn.BatchNorm(2, decay=0.75), 0)
    both = halves(norm, settings(), (X, X), 2)
    (flat,) = both.gradient(X, X)
    statistics = np.concatenate([0.25 * X.mean(0), 0.75 + 0.25 * X.var(0, ddof=1)])
    assert_near(flat[1:5], statistics / 2, "float32 formulas")
    both.update(flat + flat)
    assert_near(np.concatenate([norm.mean.value, norm.variance.value]), statistics, "float32 formulas")


def test_only_a_model_that_draws_takes_a_key():
    plain = halves(linear(), settings(), (X, Y), 1)
    drawing = halves(nn.Sequential(nn.Dropout(0.5), linear()), settings(), (X, Y), 1)
    assert [x.name for x in plain.gradient.inputs] == ["batch0", "batch1"]
    assert [x.name for x in drawing.gradient.inputs] == ["batch0", "batch1", KEY]
    (one,), (other,) = (drawing.gradient(X, Y, key_of(0, 0, shard)) for shard in (0, 1))
    assert (one != other).any()
    assert KEY not in drawing.state


@pytest.mark.parametrize(
    ("sizes", "least", "pieces"),
    [
        ([5, 1, 1, 9, 2], 1, [[5], [1, 1, 9], [2]]),  # an eighth of 18 is 2.25
        ([5, 1, 1, 9, 2], 6, [[5, 1], [1, 9], [2]]),
        ([5, 1], 7, [[5, 1]]),
        ([0, 0], 1, [[0, 0]]),
        ([1] * 20, 1, [[1, 1, 1]] * 6 + [[1, 1]]),
    ],
)
def test_a_piece_ends_with_the_value_that_makes_it_large_enough(monkeypatch, sizes, least, pieces):
    monkeypatch.setattr(sharded_step, "LEAST_ELEMENTS", least)
    assert [[x.size for x in piece] for piece in in_pieces([cg.Var((n,)) for n in sizes])] == pieces


def test_a_flat_array_is_cut_into_shapes():
    parts = [cg.Var((2, 3)), cg.Var(()), cg.Var((0, 2)), cg.Var((2,))]
    pieces = [x.eval() for x in split_flat(cg.Const(np.arange(9, dtype="f4")), parts)]
    assert [x.tolist() for x in pieces] == [[[0, 1, 2], [3, 4, 5]], 6, [], [7, 8]]
    assert [x.shape for x in pieces] == [x.shape for x in parts]


def test_each_number_of_a_key_counts():
    """A key depends on seed, step and shard in this order; other keys would change a resumed training."""
    keys = {tuple(key_of(*numbers)) for numbers in permutations((1, 2, 3))}
    assert len(keys) == 6
    key = key_of(1, 2, 3)
    assert key.dtype == np.uint32 and key.shape == (2,)
    np.testing.assert_array_equal(key, key_of(1, 2, 3))
    assert key.tolist() == [3822189696, 3026158655]


@pytest.mark.parametrize("trained", [True, False], ids=["trained", "running"])
def test_names_of_fields_and_of_slots_are_kept_apart(trained):
    class StepField(nn.Layer):
        step: nn.Parameter = None
        weight: nn.Parameter = None

        def __post_init__(self):
            self.hold(step=nn.Parameter((2, 1), trained=trained).assign(np.ones((2, 1), "f4")))
            self.hold(weight=nn.Parameter((2, 1)).assign(np.ones((2, 1), "f4")))

        def build(self, *xs, mode):
            if not trained:
                mode.updates[self.step] = self.step * 0.5
            return xs[0] @ (self.step + self.weight)

    with pytest.raises(InputError) as error:
        halves(StepField(), settings(), (X, Y), 1)
    assert str(error.value) == "a Parameter and a slot of the optimiser are both called 'step'. Rename the field."


def test_a_sum_in_another_dtype_is_refused():
    def loss(y, t):
        return cg.mean(cg.square(cg.astype(y, "float64")))

    with pytest.raises(DTypeError, match="is summed over shards, which needs float32. Cast it with cg.astype"):
        halves(linear(), settings(loss), (X, Y), 1)
