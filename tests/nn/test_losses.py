"""Losses against NumPy, and the same by their gradients."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import InputError, PositionError, ShapeError
from nn import losses
from tests.nn.support import draw
from tests.support.tolerance import assert_near, near


def soft(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def value(loss, x, y) -> float:
    return float(cg.compile(loss(cg.Const(x), cg.Const(y)), engine="reference")())


def test_cross_entropy_of_classes_and_of_probabilities():
    x, classes = draw(4, 3), np.array([0, 2, 1, 1], np.int32)
    want = -np.log(soft(x)[np.arange(4), classes]).mean()
    assert value(losses.cross_entropy, x, classes) == near(want, "float32 sums")
    assert value(losses.cross_entropy, x, np.eye(3, dtype=np.float32)[classes]) == near(want, "float32 sums")
    smooth = soft(draw(4, 3, seed=1)).astype(np.float32)
    assert value(losses.cross_entropy, x, smooth) == near(-(smooth * np.log(soft(x))).sum(-1).mean(), "float32 sums")


def test_cross_entropy_of_huge_scores_is_finite():
    x = np.array([[1e4, -1e4]], np.float32)
    assert value(losses.cross_entropy, x, np.array([1], np.int32)) == near(2e4, "float64 through float32")


def test_binary_cross_entropy():
    x, y = draw(5, 2), (draw(5, 2, seed=1) > 0).astype(np.float32)
    p = 1 / (1 + np.exp(-x))
    want = -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean()
    assert value(losses.binary_cross_entropy, x, y) == near(want, "float32 sums")


FORMULAS = {
    "quadratic": lambda x, y: np.mean((x - y) ** 2),
    "l1": lambda x, y: np.abs(x - y).sum() / len(x),
    "l2": lambda x, y: np.sqrt(((x - y) ** 2).reshape(len(x), -1).sum(1)).mean(),
    "huber": lambda x, y: np.where(np.abs(x - y) < 1, (x - y) ** 2 / 2, np.abs(x - y) - 0.5).mean(),
    "hinge": lambda x, y: np.maximum(0, 1 - y * x).mean(),
    "binary_cross_entropy": lambda x, y: (np.log1p(np.exp(-x)) + (1 - y) * x).mean(),
}
"""Of predictions and targets with any number of axes, the first of which counts the samples."""


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 3, 4)], ids=str)
def test_a_loss_is_its_formula_for_any_number_of_axes(name, shape):
    x, y = 2 * draw(*shape), draw(*shape, seed=1)
    assert value(getattr(losses, name), x, y) == near(FORMULAS[name](x, y), "float32 sums")


@pytest.mark.parametrize("name", FORMULAS)
def test_a_loss_of_float64_is_computed_in_float64(name):
    x, y = draw(4, 3).astype("f8"), draw(4, 3, seed=1).astype("f8")
    got = getattr(losses, name)(cg.Const(x), cg.Const(y))
    assert got.dtype == np.float64
    assert_near(got.eval(), FORMULAS[name](x, y), "float64 conditioned")


def test_the_gradient_of_cross_entropy_is_probability_minus_answer():
    x, classes = draw(4, 3), np.array([0, 2, 1, 1], np.int32)
    scores = cg.Var((4, 3)).assign(x)
    g = cg.compile(cg.gradient(losses.cross_entropy(scores, cg.Const(classes)), scores), engine="reference")()
    assert_near(g, (soft(x) - np.eye(3)[classes]) / 4, "float32 shares")


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("shapes", [((4, 1), (4,)), ((4, 3), (3, 4)), ((4, 3), (1, 3)), ((4,), ())], ids=str)
def test_a_loss_does_not_broadcast(name, shapes):
    x, y = map(cg.Var, shapes)
    for pair in ((x, y), (y, x)):
        with pytest.raises(ShapeError):
            getattr(losses, name)(*pair)


ENTROPIES = [losses.cross_entropy, losses.CrossEntropy((1.0, 2.0, 3.0), 0.1)]


@pytest.mark.parametrize("loss", ENTROPIES, ids=["plain", "weighted"])
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((3,), "int32"), ((1,), "int32"), ((4, 1), "int32"), ((4, 3), "int32"), ((), "int32"), ((4,), "float32"),
        ((4, 1), "float32"), ((1, 3), "float32"), ((3,), "float32"), ((1, 4, 3), "float32"),
    ],
    ids=str,
)  # fmt: skip
def test_targets_of_a_cross_entropy_have_a_class_for_each_row_or_the_shape_of_the_scores(loss, shape, dtype):
    with pytest.raises(ShapeError):
        loss(cg.Var((4, 3)), cg.Var(shape, dtype))


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("count", [2, 128, 129, 257])
def test_classes_may_have_any_integer_dtype_even_one_that_cannot_count_all_scores(dtype, count):
    x, classes = draw(3, count), np.array([1, 0, 1], dtype)
    want = -np.log(soft(x))[np.arange(3), [1, 0, 1]]
    assert value(losses.cross_entropy, x, classes) == near(want.mean(), "float32 sums")


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_a_check_of_classes_knows_both_ends_of_any_dtype(dtype):
    scores = cg.Var((2, 3), name="scores")
    for classes in ([], [0, 1, 0]) if dtype == "bool" else ([], [0, 2], [2, 2, 1]):
        losses.check_classes(losses.cross_entropy, scores, np.array(classes, dtype))
    for wrong in [] if dtype == "bool" else [3, *([-1] if dtype.startswith("i") else [])]:
        for classes in ([wrong, 0], [1, wrong]):
            with pytest.raises(PositionError, match=f"^target class {wrong} has no score: .* scores of 0 to 2"):
                losses.check_classes(losses.cross_entropy, scores, np.array(classes, dtype))
    losses.check_classes(losses.quadratic, scores, np.array([1], dtype) * 9)


@pytest.mark.parametrize("weights", [None, (1.0, 0.0, 5.0)])
@pytest.mark.parametrize("smoothing", [0.0, 0.25, 1.0])
def test_cross_entropy_with_class_weights_and_smoothed_labels(weights, smoothing):
    x, classes = draw(2, 4, 3), np.array([[0, 2, 1, 1], [2, 2, 0, 1]], np.int32)
    targets = np.eye(3, dtype=np.float32)[classes]
    smooth = (1 - smoothing) * targets + smoothing / 3
    want = -(np.array(weights or 1.0) * smooth * np.log(soft(x))).sum(-1).mean()
    loss = losses.CrossEntropy(weights, smoothing)
    assert value(loss, x, classes) == near(want, "float32 sums")
    assert value(loss, x, targets) == near(want, "float32 sums")


def test_cross_entropy_without_weights_or_smoothing_is_the_plain_one():
    x, classes = draw(4, 3), np.array([0, 2, 1, 1], np.int32)
    assert value(losses.CrossEntropy(), x, classes) == value(losses.cross_entropy, x, classes)
    assert losses.CrossEntropy(np.ones(3)) == losses.CrossEntropy([1, 1, 1])


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"weights": (1.0, -1.0)}, "weights is"),
        ({"weights": (1.0, np.nan)}, "weights is"),
        ({"weights": 2.0}, "weights is 2.0"),
        ({"smoothing": 1.5}, "smoothing is 1.5"),
    ],
)
def test_weights_and_smoothing_that_are_no_shares_are_refused(fields, match):
    with pytest.raises(InputError, match=match):
        losses.CrossEntropy(**fields)


def test_the_number_of_weights_is_that_of_the_classes():
    with pytest.raises(ShapeError, match="has 2 weights and .* has 3 scores"):
        value(losses.CrossEntropy((1.0, 2.0)), draw(4, 3), np.zeros(4, np.int32))


def test_a_class_without_a_score_changes_nothing_under_any_cross_entropy():
    model = nn.initialise(nn.Linear(3, 2), 0)
    before = model.weight.value
    batch = draw(4, 3), np.array([0, 1, 2, 0], np.int32)
    step = nn.training_step(model, losses.CrossEntropy((1.0, 2.0), 0.1), None, batch, engine="reference")
    with pytest.raises(PositionError, match="target class 2"):
        step(*batch)
    assert (model.weight.value == before).all()


@pytest.mark.parametrize("name", ["binary_cross_entropy", "hinge", "huber", "l1", "l2", "quadratic"])
def test_lists_and_arrays_are_operands_as_of_other_functions(name):
    predicted, targets = [[0.5, 1.5], [2.0, -1.0]], np.array([[1.0, 0.0], [1.0, 1.0]])
    loss = getattr(losses, name)
    expected = loss(cg.Const(predicted), cg.Const(targets)).item()
    assert loss(predicted, targets).item() == expected == cg.jit(loss)(np.array(predicted), targets)
    with pytest.raises(ShapeError, match="the loss compares predictions"):
        loss(predicted, targets[:1])


@pytest.mark.parametrize("name", ["l1", "l2"])
@pytest.mark.parametrize("samples", [1.0, []])
def test_a_mean_over_no_samples_is_refused(name, samples):
    with pytest.raises(ShapeError, match="has no samples"):
        getattr(losses, name)(samples, samples)


@pytest.mark.parametrize(
    "loss", [losses.cross_entropy, losses.CrossEntropy((0.1, 0.2, 0.7), 0.3)], ids=["plain", "weighted"]
)
def test_a_cross_entropy_of_float64_is_computed_in_float64(loss):
    x, classes = draw(4, 3).astype("f8"), np.array([0, 2, 1, 1])
    plain = loss is losses.cross_entropy
    share, weights = (0.0, np.ones(3)) if plain else (0.3, np.array([0.1, 0.2, 0.7]))
    targets = (1 - share) * np.eye(3)[classes] + share / 3
    got = loss(cg.Const(x), cg.Const(classes))
    assert got.dtype == np.float64
    assert_near(got.eval(), -(weights * targets * np.log(soft(x))).sum(-1).mean(), "float64 conditioned")


@pytest.mark.parametrize("weights", [(1.0, np.inf), (-np.inf, 1.0), ((1.0, 2.0), (3.0, 4.0)), ((1.0, 2.0),)], ids=str)
def test_class_weights_are_one_row_of_finite_numbers(weights):
    with pytest.raises(InputError, match="weights is .*Pass one finite weight >= 0 for each class"):
        losses.CrossEntropy(weights)


def test_smoothing_is_a_share_and_may_be_none_or_all():
    assert [losses.CrossEntropy(smoothing=x).smoothing for x in (0, 1)] == [0, 1]
    for wrong in (-1e-9, 1 + 1e-9, np.nan):
        with pytest.raises(InputError, match="smoothing is .*Pass a number from 0 to 1"):
            losses.CrossEntropy(smoothing=wrong)


def test_the_distance_of_equal_points_has_a_gradient():
    """That of a root of zero would be infinite."""
    x = cg.Var((2, 3)).assign(draw(2, 3))
    gradient = cg.gradient(losses.l2(x, cg.Const(draw(2, 3))), x)
    assert (cg.compile(gradient, engine="reference")() == 0).all()


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 3)], ids=str)
def test_float_labels_of_any_number_of_axes_are_refused_as_labels(shape):
    with pytest.raises(ShapeError, match="labels must be integers, got "):
        losses.cross_entropy(cg.Var((*shape, 4)), cg.Var(shape))
