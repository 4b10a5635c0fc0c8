"""What networks refuse: each condition by itself, just outside of what is allowed."""

import inspect

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import CgraphError, InputError, ShapeError
from nn.compile import compile
from nn.loader import Loader
from nn.losses import binary_cross_entropy, cross_entropy, hinge, huber, l1, l2, quadratic
from nn.summary import rows_of

ROWS, ONE, WHOLE = cg.Var((3, 4), name="rows"), cg.Var((3, 1), name="one"), cg.Var((4,), "int64", "classes")
ARRAYS = (np.zeros((5, 2), "f4"), np.zeros(5, np.int64))


@pytest.mark.parametrize("loss", [binary_cross_entropy, quadratic, l1, l2, hinge, huber, cross_entropy])
def test_a_loss_broadcasts_nothing(loss):
    with pytest.raises(ShapeError, match="the loss compares"):
        loss(ROWS, ONE)


def test_classes_are_as_many_as_rows_of_scores():
    with pytest.raises(ShapeError, match="classes classes int64.* do not fit scores"):
        cross_entropy(ROWS, WHOLE)


@pytest.mark.parametrize("rate", [-0.01, 1.0])
@pytest.mark.parametrize("layer", [nn.Dropout, nn.AlphaDropout, nn.GaussianDropout])
def test_a_share_that_is_dropped_lies_from_0_to_below_1(layer, rate):
    layer(0.0)
    with pytest.raises(ValueError, match=f"rate is {rate}"):
        layer(rate)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"arrays": (ARRAYS[0], ARRAYS[1][1:])}, r"arrays have \[4, 5\] samples"),
        ({"batch": 0}, "a batch of 0 of 5"),
        ({"batch": 6}, "a batch of 6 of 5"),
        ({"order": "sorted"}, "order is 'sorted'"),
    ],
)
def test_samples_are_given_in_batches_that_there_are(options, match):
    Loader(ARRAYS, 5)
    Loader(ARRAYS, 1, "sampled")
    with pytest.raises(InputError, match=match):
        Loader(**({"arrays": ARRAYS, "batch": 2} | options))


def training(**given):
    """One epoch, with something else in the place of what is taken."""
    model = nn.models.mlp(0, (2, 3))
    data = Loader((ARRAYS[0], np.zeros(5, np.int64)), 2)
    return nn.train(**({"model": model, "data": data, "progress": False} | given))


ODD = (None, -1, 2.5, float("nan"), float("inf"), "adam", (), object(), nn.Linear, lambda: None)
PLAIN = {"progress", "options", "finite", "resume"}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", sorted(inspect.signature(nn.train).parameters.keys() - PLAIN))
def test_whatever_training_is_given_it_says_what_it_takes(name, odd):
    try:
        training(**{name: odd})
    except CgraphError as error:
        assert str(error)
    except TypeError:
        assert callable(odd) and name in ("loss", "validation")  # a function of other operands


@pytest.mark.parametrize(
    ("act", "match"),
    [
        (lambda: Loader(([[0.0], [1.0]], [0, 1]), 1), "one of arrays is"),
        (lambda: Loader((np.float32(1),), 1), "one of arrays is"),
        (lambda: Loader((np.array(1.0),), 1), "one of arrays is one number"),
        (lambda: Loader(None), "arrays is None"),
        (lambda: Loader(ARRAYS, 2.5), "batch is 2.5"),
        (lambda: Loader(ARRAYS, 2, seed=None), "seed is None"),
        (lambda: nn.Optimiser(nn.optim.Adam(), "0.1"), "rate is '0.1'. Pass a number, or a rate"),
        (lambda: nn.Optimiser("adam"), "method is 'adam'"),
        (lambda: compile(None), "model is None"),
        (lambda: compile(nn.models.mlp(0, (2, 3)), "a"), "batch is 'a'"),
        (lambda: training(targets=2), "targets is 2 and a batch has 2 arrays"),
        (lambda: training(metrics=nn.metrics.accuracy()), "metrics is"),
        (lambda: training(epochs=-1), "epochs is -1"),
        (lambda: training(validation=lambda: None), "validation\\(\\) returned None"),
    ],
)
def test_what_is_of_another_kind_is_named(act, match):
    with pytest.raises(InputError, match=match):
        act()


@pytest.mark.parametrize("act", [compile, rows_of])
def test_what_a_sample_is_must_be_known(act):
    model = nn.initialise(nn.Linear(4, 2), 0)
    act(model, samples=[nn.Sample((4,))])
    with pytest.raises(InputError, match="does not say what a sample is"):
        act(model)


def test_a_batch_has_samples():
    with pytest.raises(InputError, match="a batch of 0 samples"):
        compile(nn.initialise(nn.Linear(4, 2), 0), 0, [nn.Sample((4,))])


def test_sizes_are_one_or_one_for_each_axis():
    with pytest.raises(ShapeError, match="are 3 sizes for 2 axes"):
        nn.Conv2d(3, 4, (3, 3, 3))


def test_a_layer_without_build_is_named():
    class Nothing(nn.Layer):
        pass

    with pytest.raises(NotImplementedError, match="Nothing has no build"):
        Nothing()(ROWS)


def test_labels_of_floats_are_refused_with_the_conversion():
    scores, labels = cg.Var((4, 3), name="scores"), cg.Var((4,), "float32", name="labels")
    with pytest.raises(ShapeError, match=r"labels must be integers, got labels float32\[4\] .*astype"):
        nn.losses.cross_entropy(scores, labels)
