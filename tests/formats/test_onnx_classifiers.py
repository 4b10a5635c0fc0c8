"""ai.onnx.ml: random forests that name classes, beside onnxruntime."""

import numpy as np
import onnx
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from tests.formats.test_onnx_estimators import BOTH, FLOAT, HOW, check_against_onnxruntime, model_of, random_forest
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
        ("OneHotEncoder", {"cats_int64s": [1, 2], "zeros": 0}, "Use zeros=1"),
        ("LabelEncoder", {"keys_strings": ["a"], "values_int64s": [1]}, "strings are not supported"),
        ("LabelEncoder", {"keys_int64s": [1, 2], "values_int64s": [1]}, "2 keys have 1 values"),
    ],
)
def test_what_estimators_do_not_have_is_refused(kind, attributes, match):
    x = X if kind == "Normalizer" else X.astype("int64")
    with pytest.raises(FormatError, match=match):
        load(model_of(kind, x, FLOAT, **attributes))
