"""Metrics: NumPy's and scikit-learn's figures, over batches of any size, in training and validation, and resumed."""

import io
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn import metrics as sklearn

import cgraph as cg
import nn
from cgraph.errors import FormatError, InputError, ShapeError
from nn.metrics import Tally, metrics_of
from nn.progress import PlainBar
from tests.nn.support import draw
from tests.nn.test_train import data, model, run
from tests.support.tolerance import assert_near

CLASSES = 5


def figures(metrics, batches):
    """Of several batches of scores and what is wanted, each computed by a graph of its own."""
    metrics = metrics_of(metrics)
    tally = Tally(metrics)
    for scores, wanted in batches:
        x, y = cg.Var(scores.shape, name="scores"), cg.Var(wanted.shape, wanted.dtype, name="wanted")
        parts = cg.compile([m.part(x, y) for m in metrics], [x, y], engine="reference")(scores, wanted)
        tally.add(parts)
    return tally.figures()


def batches(shape=(), seed=0):
    """Batches of several sizes; the last class is never wanted nor predicted."""
    rng = np.random.default_rng(seed)
    for n in (7, 1, 12):
        scores = rng.normal(size=(n, *shape, CLASSES)).astype("f4")
        scores[..., -1] = -9
        yield scores, rng.integers(0, CLASSES - 1, (n, *shape))


@pytest.mark.parametrize("shape", [(), (3, 4)], ids=["samples", "pixels"])
def test_figures_of_batches_are_those_of_all_samples_at_once(shape):
    scores, wanted = (
        np.concatenate([x.reshape(-1, *x.shape[1 + len(shape) :]) for x in part]) for part in zip(*batches(shape))
    )
    kinds = (nn.metrics.accuracy(), nn.metrics.top_k(2), nn.metrics.confusion(CLASSES), nn.metrics.mean_iou(CLASSES))
    found, best = figures(kinds, batches(shape)), scores.argmax(-1)
    labels = range(CLASSES)
    assert found["accuracy"] == sklearn.accuracy_score(wanted, best)
    assert found["top_2"] == sklearn.top_k_accuracy_score(wanted, scores, k=2, labels=labels)
    np.testing.assert_array_equal(found["confusion"], sklearn.confusion_matrix(wanted, best, labels=labels))
    assert_near(found["mean_iou"], sklearn.jaccard_score(wanted, best, average="macro"), "float64 formulas")


def test_wanted_scores_are_classes_too():
    scores, wanted = next(batches())
    ones = np.eye(CLASSES, dtype="f4")[wanted]
    kinds = (nn.metrics.accuracy(), nn.metrics.confusion(CLASSES))
    for name, figure in figures(kinds, [(scores, ones)]).items():
        np.testing.assert_array_equal(figure, figures(kinds, [(scores, wanted)])[name])


def test_a_function_of_ones_own_is_the_mean_over_samples():
    def largest(scores, wanted):
        return cg.mean(cg.max(scores, axis=-1))

    want = np.mean(np.concatenate([scores.max(-1) for scores, _ in batches()]))
    assert_near(figures([largest], batches())["largest"], want, "float32 formulas")


def test_what_is_no_metric_is_refused():
    scores, wanted = next(batches())
    for metric in (nn.metrics.accuracy(), nn.metrics.top_k(1), nn.metrics.confusion(CLASSES)):
        with pytest.raises(ShapeError, match="classes .* do not fit scores"):
            figures([metric], [(scores, wanted[:-1])])
    with pytest.raises(ShapeError, match="the metric has 4 classes"):
        figures([nn.metrics.mean_iou(4)], [(scores, wanted)])
    with pytest.raises(ShapeError, match="Return one number"):
        figures([lambda scores, wanted: scores], [(scores, wanted)])
    with pytest.raises(InputError, match="Give each a different name"):
        metrics_of([nn.metrics.accuracy(), nn.metrics.accuracy()])


def test_nothing_wanted_has_no_figure():
    empty = nn.metrics.mean_iou(2).figure(np.zeros((2, 2)))
    assert np.isnan(empty) and np.isnan(nn.metrics.accuracy().figure(np.zeros(2)))


METRICS = (nn.metrics.accuracy(), nn.metrics.confusion(3))


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_training_and_validation_report_them(engine):
    network = model()
    history = run(network, 4, metrics=METRICS, validation=data(), engine=engine)
    x, y = data()
    best = nn.compile(network, 50)(x).argmax(1)
    assert history.metrics["confusion"].shape == history.validation_metrics["confusion"].shape == (4, 3, 3)
    np.testing.assert_array_equal(history.metrics["confusion"].sum((1, 2)), [120] * 4)
    np.testing.assert_array_equal(history.validation_metrics["confusion"][-1], sklearn.confusion_matrix(y, best))
    assert history.validation_metrics["accuracy"][-1] == np.mean(best == y)
    assert history.metrics["accuracy"][-1] > history.metrics["accuracy"][0]


def test_metrics_change_no_bit_of_the_training():
    one, two = run(model(), 2), run(model(), 2, metrics=METRICS)
    np.testing.assert_array_equal(one.loss, two.loss)


def test_a_resumed_run_has_the_figures_of_an_uninterrupted_one(tmp_path):
    want = run(model(), 3, metrics=METRICS, validation=data())
    saved = nn.Checkpoint(tmp_path / "run.json", steps=4)  # in the middle of epochs
    run(model(), 10 / 6, metrics=METRICS, validation=data(), checkpoint=saved)
    got = run(model(seed=9), 3, metrics=METRICS, validation=data(), checkpoint=saved)
    for group in ("metrics", "validation_metrics"):
        for metric in METRICS:
            np.testing.assert_array_equal(getattr(got, group)[metric.name], getattr(want, group)[metric.name])
    for others in ((), METRICS[:1]):
        with pytest.raises(FormatError, match="other metrics"):
            run(model(), 3, metrics=others, checkpoint=saved)


def test_the_bar_shows_numbers_and_no_matrices():
    stream = io.StringIO()
    bar = PlainBar(0, 2, stream)
    bar.show(2, 0.5, 0.1, nn.metrics.figures_text({"accuracy": np.array(0.75), "confusion": draw(2, 2)}))
    assert "accuracy 0.7500" in stream.getvalue() and "confusion" not in stream.getvalue()


KINDS = [
    nn.metrics.accuracy,
    lambda: nn.metrics.top_k(2),
    lambda: nn.metrics.confusion(3),
    lambda: nn.metrics.mean_iou(3),
]


@pytest.mark.parametrize("kind", KINDS, ids=["accuracy", "top_k", "confusion", "mean_iou"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_classes_of_any_integer_dtype_give_the_same_figure_as_scores(kind, dtype):
    scores, classes = draw(6, 3), np.array([0, 2, 1, 1, 0, 2])
    (want,) = figures([kind()], [(scores, np.eye(3, dtype="f4")[classes])]).values()
    (got,) = figures([kind()], [(scores, classes.astype(dtype))]).values()
    np.testing.assert_array_equal(got, want)


def test_metrics_come_from_any_iterable_and_keep_its_order():
    functions = [nn.metrics.top_k(k) for k in (3, 1, 2)]
    for many in (functions, tuple(functions), iter(functions), (x for x in functions), dict.fromkeys(functions)):
        assert [x.name for x in metrics_of(many)] == ["top_3", "top_1", "top_2"]


def test_equal_names_are_refused_with_all_names():
    def accuracy(scores, wanted):
        return cg.sum(scores)

    with pytest.raises(InputError, match="metrics are called top_2, accuracy, accuracy. Give each"):
        metrics_of([nn.metrics.top_k(2), nn.metrics.accuracy(), accuracy])


def test_a_tally_adds_up_each_metric_until_it_is_cleared():
    tally = Tally(metrics_of([nn.metrics.accuracy(), nn.metrics.confusion(2)]))
    assert tally.figures() == {}
    for _ in range(2):
        for right in (1.0, 2.0):
            tally.add([np.array([right, 4.0]), np.full((2, 2), right)])
        assert tally.figures()["accuracy"] == 3 / 8 and (tally.figures()["confusion"] == 3).all()
        tally.clear()
        assert tally.figures() == {}


def test_a_mean_of_intersections_leaves_out_classes_that_are_neither():
    """Class 1 is predicted and never a target: 0; class 2 is neither."""
    counts = np.array([[3.0, 1, 0], [0, 0, 0], [0, 0, 0]])
    assert nn.metrics.mean_iou(3).figure(counts) == (3 / 4 + 0) / 2


@pytest.mark.parametrize("shape", [(12,), (1,), (12, 5)], ids=str)
def test_an_own_function_returns_one_number_and_not_one_for_each_sample(shape):
    def each(scores, wanted):
        return cg.zeros(shape)

    with pytest.raises(ShapeError, match="each returns .* Return one number, or pass an nn.metrics.Metric"):
        figures([each], [(draw(12, 5), np.zeros(12, int))])


def test_what_can_be_called_is_a_metric_also_without_a_name():
    """A loss with settings, a function with some arguments set."""
    loss = nn.losses.CrossEntropy(smoothing=0.5)
    scores, classes = draw(6, 3), np.array([0, 2, 1, 1, 0, 2])
    found = figures([loss, partial(nn.losses.cross_entropy)], [(scores, classes), (scores[:2], classes[:2])])
    assert [*found] == ["CrossEntropy", "partial"]
    want = [loss(cg.Const(scores[:n]), cg.Const(classes[:n])).item() for n in (6, 2)]
    assert_near(found["CrossEntropy"], (6 * want[0] + 2 * want[1]) / 8, "float32 formulas")


def test_the_text_for_a_bar_has_each_number_with_four_digits_and_no_array():
    shown = {"a": np.float64(0.5), "valid b": 2, "c": np.zeros(1), "d": np.array(1 / 3)}
    assert nn.metrics.figures_text(shown) == "a 0.5000  valid b 2.0000  d 0.3333  "
    assert nn.metrics.figures_text({}) == ""


@pytest.mark.parametrize("kind", KINDS, ids=["accuracy", "top_k", "confusion", "mean_iou"])
def test_integers_in_the_shape_of_the_scores_are_refused(kind):
    with pytest.raises(ShapeError, match=r"classes .* do not fit scores float32\[6,3\]\. Pass one class for each row"):
        figures([kind()], [(draw(6, 3), np.eye(3, dtype="i4")[[0, 2, 1, 1, 0, 2]])])


def test_of_equal_scores_the_first_class_is_the_prediction():
    kinds = (nn.metrics.accuracy(), nn.metrics.top_k(1), nn.metrics.confusion(3))
    found = figures(kinds, [(np.zeros((2, 3), "f4"), np.array([0, 1]))])
    assert found["accuracy"] == found["top_1"] == 0.5
    assert found["confusion"].tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_a_metric_of_several_targets_gets_all_of_them_in_their_order():
    def apart(scores, first, second):
        return cg.mean(first - second) + cg.sum(scores) * 0

    (metric,) = metrics_of([apart])
    x, y, z = (cg.Const(np.full((4, 2), n, "f4")) for n in (9, 5, 3))
    assert metric.part(x, y, z).eval().tolist() == [8, 4]


def test_a_figure_of_nothing_is_nan_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for metric in (nn.metrics.accuracy(), nn.metrics.top_k(3)):
            assert np.isnan(metric.figure(np.zeros(2)))
        assert np.isnan(nn.metrics.mean_iou(2).figure(np.zeros((2, 2))))


@pytest.mark.parametrize("n", [1, 3, 7, 100])
def test_the_mean_of_one_batch_is_exactly_what_the_function_returns(n):
    """In double precision, so a product of a number and a count is not rounded to float32."""

    def third(scores, wanted):
        return cg.Const(np.float32(1 / 3))

    (metric,) = metrics_of([third])
    sums = metric.part(cg.Var((n, 2)), cg.Var((n,))).eval()
    assert sums.tolist() == [n * float(np.float32(1 / 3)), n] and sums.dtype == np.float64
