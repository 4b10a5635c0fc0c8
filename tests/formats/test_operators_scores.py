"""ai.onnx.ml: scores and labels of classes by hand, and of random forests beside onnxruntime."""

import numpy as np
import onnx
import pytest
from onnx import helper

from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators.scores import both_classes, class_labels, labels_of, post_transform, softmax_zero
from cgraph.ops.leaf import Const
from tests.formats.test_operators_estimators import (
    BOTH,
    FLOAT,
    HOW,
    by_cgraph,
    check_against_onnxruntime,
    model_of,
    random_forest,
    walked,
)
from tests.support.onnx_context import context
from tests.support.onnx_models import results_of
from tests.support.tolerance import assert_near

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def forest(rng: np.random.Generator, classes: int, one: bool, positive: bool, kind: str = "class") -> dict[str, list]:
    """The attributes of a classifier; with `one`, all weights are of one class."""
    nodes = random_forest(rng, trees=4, columns=3)
    mode = str(rng.choice(MODES))  # onnxruntime is right about missing numbers where all nodes ask the same
    nodes["nodes_modes"] = [mode if m != "LEAF" else m for m in nodes["nodes_modes"]]
    leaves = [i for i, m in enumerate(nodes["nodes_modes"]) if m == "LEAF"]
    weights = rng.integers(0 if positive else -8, 9, len(leaves)) / 8
    ids = np.full(len(leaves), classes - 1) if one else rng.integers(classes, size=len(leaves))
    found = {
        "treeids": [nodes["nodes_treeids"][i] for i in leaves],
        "nodeids": [nodes["nodes_nodeids"][i] for i in leaves],
        "ids": ids.tolist(),
        "weights": weights.tolist(),
    }
    return nodes | {f"{kind}_{name}": values for name, values in found.items()}


def older(raw: bytes) -> bytes:
    """The model in a version that has operators of forests."""
    model = onnx.load_from_string(raw)
    model.opset_import[0].version = 3
    return model.SerializeToString()


X = np.random.default_rng(5).integers(-3, 4, (30, 3)).astype("f4")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("one", [False, True])
def test_labels_and_scores_of_a_forest(how, positive, one):
    """Of three classes, and of two whose weights stand under the first, as exporters write them."""
    for seed in range(3):
        given = forest(np.random.default_rng(seed), 3, one, positive) | {"classlabels_int64s": [7, 3, 5]}
        given |= {"base_values": [0.25, -0.5, 0.125]} if seed or not positive else {}
        model = model_of("TreeEnsembleClassifier", X, BOTH, **given, post_transform=how)
        check_against_onnxruntime(older(model), X)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("positive", [False, True])
def test_labels_and_scores_of_two_classes(how, positive):
    """Onnxruntime turns shares of a forest of positive weights by LOGISTIC into something else."""
    for seed in range(3):
        given = forest(np.random.default_rng(seed), 1, True, positive) | {"classlabels_int64s": [7, 3]}
        given |= {"base_values": [0.25]} if seed else {}
        how = "NONE" if positive and how == "LOGISTIC" else how
        model = model_of("TreeEnsembleClassifier", X, BOTH, **given, post_transform=how)
        check_against_onnxruntime(older(model), X)


@pytest.mark.parametrize("how", ["NONE", "SOFTMAX"])
@pytest.mark.parametrize("positive", [False, True])
def test_labels_of_two_classes_that_both_have_weights(how, positive):
    """The larger sum decides; onnxruntime does not return the listed labels of such a forest."""
    for seed in range(3):
        given = forest(np.random.default_rng(seed), 2, False, positive) | {"classlabels_int64s": [7, 3]}
        assert set(given["class_ids"]) == {0, 1}
        model = older(model_of("TreeEnsembleClassifier", X, BOTH, **given, post_transform=how))
        label, scores = by_cgraph(model, X)
        at = {(t, n): i for i, (t, n) in enumerate(zip(given["class_treeids"], given["class_nodeids"]))}
        sums = np.zeros((len(X), 2), "f4")
        for row, x in enumerate(X):
            for leaf in walked(given, x):
                i = at[given["nodes_treeids"][leaf], given["nodes_nodeids"][leaf]]
                sums[row, given["class_ids"][i]] += given["class_weights"][i]
        np.testing.assert_array_equal(label, np.array([7, 3])[sums.argmax(1)])
        powers = np.exp(sums)
        want = powers / powers.sum(1, keepdims=True) if how == "SOFTMAX" else sums
        assert_near(scores, want, "float32 formulas near zero")


@pytest.mark.parametrize("classes", [1, 3])
def test_names_of_classes_are_the_labels_of_a_forest(classes):
    """Also where all weights are of the first of two classes."""
    names, seen = ["red", "green", "blue"] if classes == 3 else ["no", "yes"], set()
    for seed in range(4):
        given = forest(np.random.default_rng(seed), classes, classes == 1, False)
        numbers = model_of("TreeEnsembleClassifier", X, BOTH, **given, classlabels_int64s=list(range(len(names))))
        text = {"label": onnx.TensorProto.STRING, "scores": onnx.TensorProto.FLOAT}
        named = model_of("TreeEnsembleClassifier", X, text, **given, classlabels_strings=names)
        (label, scores), (place, want) = (load(older(raw)).compile()(X) for raw in (named, numbers))
        assert label.tolist() == [names[i] for i in place]
        np.testing.assert_array_equal(scores, want)
        seen |= set(label.tolist())
    assert len(seen) > 1


def test_a_forest_without_labels_or_weights():
    """Places stand for labels; of no weights all scores are equal, and the first class is chosen."""
    given = forest(np.random.default_rng(1), 1, True, False)
    label, scores = load(older(model_of("TreeEnsembleClassifier", X, BOTH, **given))).compile()(X)
    assert scores.shape == (len(X), 1) and not label.any()
    nothing = {name: values for name, values in given.items() if not name.startswith("class_")}
    model = onnx.load_from_string(
        older(model_of("TreeEnsembleClassifier", X, BOTH, **nothing, classlabels_int64s=[7, 3]))
    )
    for name in ("treeids", "nodeids", "ids"):
        model.graph.node[0].attribute.add(name=f"class_{name}", type=onnx.AttributeProto.INTS)
    model.graph.node[0].attribute.add(name="class_weights", type=onnx.AttributeProto.FLOATS)
    label, scores = load(model.SerializeToString()).compile()(X)
    assert set(label.tolist()) == {7} and scores.shape == (len(X), 2) and not scores.any()


def test_base_values_of_a_tensor_are_added_and_none_are_not():
    tensor = onnx.numpy_helper.from_array
    given = forest(np.random.default_rng(2), 2, False, False, "target") | {"n_targets": 2}
    plain, added, empty = (
        load(older(model_of("TreeEnsembleRegressor", X, FLOAT, **given, **more))).compile()(X)[0]
        for more in (
            {},
            {"base_values_as_tensor": tensor(np.array([0.5, -2], "f4"))},
            {"base_values_as_tensor": tensor(np.zeros(0, "f4"))},
        )
    )
    np.testing.assert_array_equal(added, plain + np.array([0.5, -2], "f4"))
    np.testing.assert_array_equal(empty, plain)


@pytest.mark.parametrize("targets", [1, 3])
def test_numbers_of_a_forest(targets):
    for seed in range(3):
        given = forest(np.random.default_rng(seed), targets, False, False, "target") | {"n_targets": targets}
        given |= {"base_values": [0.25]} if seed and targets == 1 else {}
        model = model_of("TreeEnsembleRegressor", X, FLOAT, **given)
        check_against_onnxruntime(older(model), X)


def test_probits_are_quantiles_of_the_normal_distribution():
    """By the approximation that ONNX Runtime has too (Winitzki, 2008), whose error is below a 300th."""
    shares = np.array([[0.01], [0.1], [0.3], [0.5], [0.7], [0.95]], "f4")
    given = {"coefficients": [1.0], "intercepts": [0.0], "targets": 1, "post_transform": "PROBIT"}
    scores = load(model_of("LinearRegressor", shares, FLOAT, **given)).compile(engine="reference")(shares)[0]
    x = 2 * shares.astype("f8") - 1
    log = np.log1p(-x * x)
    half = 2 / (np.pi * 0.147) + log / 2
    assert_near(scores, np.sqrt(2) * np.sign(x) * np.sqrt(np.sqrt(half**2 - log / 0.147) - half), "float32 products")
    quantiles = [[-2.326348], [-1.281552], [-0.524401], [0.0], [0.524401], [1.644854]]
    assert_near(scores, quantiles, "Winitzki's quantiles")


def test_base_values_of_another_number_are_refused():
    given = forest(np.random.default_rng(0), 3, False, False) | {"classlabels_int64s": [7, 3, 5]}
    with pytest.raises(FormatError, match="2 base values do not fit 3 targets"):
        load(model_of("TreeEnsembleClassifier", X, BOTH, **given, base_values=[0.5, 1.0]))


@pytest.mark.parametrize(
    ("kind", "attributes", "match"),
    [
        ("Normalizer", {"norm": "L3"}, "norm 'L3' is not supported"),
        ("LabelEncoder", {"keys_strings": ["a"], "values_int64s": [1]}, "operand 0 holds no strings"),
        ("LabelEncoder", {"keys_int64s": [1, 2], "values_int64s": [1]}, "2 keys have 1 values"),
    ],
)
def test_what_estimators_do_not_have_is_refused(kind, attributes, match):
    x = X if kind == "Normalizer" else X.astype("int64")
    with pytest.raises(FormatError, match=match):
        load(model_of(kind, x, FLOAT, **attributes))


def computed(node):
    return evaluate([node], {})[0]


def test_scores_near_zero_are_scaled_and_not_exponentiated():
    x = np.array([[0, 1, 2], [1e-8, -1, 0]], "f4")
    powers = np.where(np.abs(x) > 1e-7, np.exp(x - x.max(1, keepdims=True)), x * np.exp(-x.max(1, keepdims=True)))
    assert_near(computed(softmax_zero(Const(x))), powers / powers.sum(1, keepdims=True), "float32 normalised")


def test_transforms_are_chosen_by_their_name():
    x = Const(np.array([[0.25, 0.5], [0.75, 0.1]], "f4"))
    values = x.op.array
    assert post_transform(x, "NONE") is x
    assert_near(computed(post_transform(x, "LOGISTIC")), 1 / (1 + np.exp(-values)), "float32 formulas")
    powers = np.exp(values)
    assert_near(computed(post_transform(x, "SOFTMAX")), powers / powers.sum(1, keepdims=True), "float32 formulas")
    assert_near(computed(post_transform(x, "PROBIT"))[0, 1], 0, "float32 formulas near zero")
    with pytest.raises(FormatError, match="post_transform 'OTHER' is not supported. Use NONE, LOGISTIC, SOFTMAX"):
        post_transform(x, "OTHER")


@pytest.mark.parametrize("positive", [True, False])
def test_a_probit_of_two_classes_is_that_of_the_second(positive):
    score = Const(np.array([[0.25], [0.5], [0.75]], "f4"))
    got = computed(both_classes(score, positive, "PROBIT"))
    np.testing.assert_array_equal(got, computed(post_transform(score, "PROBIT")))


@pytest.mark.parametrize("how", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_the_score_of_the_second_class_gives_both(how):
    values = np.array([[0.25], [0.75]], "f4")
    score = Const(values)
    assert_near(computed(both_classes(score, True, how)), np.concatenate([1 - values, values], 1), "float32 formulas")
    plain = np.concatenate([-values, values], 1)
    want = 1 / (1 + np.exp(-plain)) if how == "LOGISTIC" else plain
    assert_near(computed(both_classes(score, False, how)), want, "float32 formulas")


def test_labels_are_listed_numbers_or_places_of_names():
    make = helper.make_attribute
    assert class_labels(context(attributes=[make("classlabels_int64s", [7, 9])])).tolist() == [7, 9]
    assert class_labels(context(attributes=[make("classlabels_ints", [3])])).tolist() == [3]
    assert class_labels(context(attributes=[make("classlabels_strings", ["b", "a"])])).tolist() == [0, 1]
    none = class_labels(context())
    places = Const(np.array([1, 0, 1]))
    assert none.size == 0 and none.dtype == np.int64 and labels_of(none, places) is places
    assert computed(labels_of(np.array([7, 9]), places)).tolist() == [9, 7, 9]


def test_scores_stay_an_array_where_a_file_makes_a_dictionary_of_each_row():
    ((got,), _) = results_of("ZipMap", [X], by="nobody", domain="ai.onnx.ml", classlabels_int64s=[7, 3, 5])
    np.testing.assert_array_equal(got, X)
