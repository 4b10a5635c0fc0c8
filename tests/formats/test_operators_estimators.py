"""ai.onnx.ml: estimators of scikit-learn as skl2onnx writes them beside onnxruntime; trees beside plain Python."""

import itertools
import warnings

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError, PositionError
from cgraph.formats.onnx import load
from tests.support.tolerance import assert_near

onnx = pytest.importorskip("onnx")
helper, TensorProto = onnx.helper, onnx.TensorProto
ML = [helper.make_opsetid("ai.onnx.ml", 5), helper.make_opsetid("", 21)]
RNG = np.random.default_rng(1)


def by_onnxruntime(model: bytes, x: np.ndarray) -> list[np.ndarray]:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})


def by_cgraph(model: bytes, x: np.ndarray) -> list[np.ndarray]:
    found = load(model, shapes={"X": x.shape})
    return cg.compile(list(found.outputs), found.inputs)(x)


def check_against_onnxruntime(model: bytes, x: np.ndarray) -> None:
    for mine, theirs in zip(by_cgraph(model, x), by_onnxruntime(model, x), strict=True):
        if theirs.dtype.kind == "i":
            np.testing.assert_array_equal(mine, theirs)
        else:
            assert_near(mine, theirs, "estimators of ONNX Runtime", np.nanmax(np.abs(theirs)))


# -- scikit-learn -----------------------------------------------------------------------------------------------------


def estimators() -> dict[str, object]:
    from sklearn import ensemble, linear_model, neighbors, neural_network, pipeline, preprocessing, svm, tree
    from sklearn.impute import SimpleImputer

    forest = {"n_estimators": 7, "random_state": 0}
    return {
        "forest": ensemble.RandomForestClassifier(**forest),
        "boosting": ensemble.GradientBoostingClassifier(n_estimators=5),
        "tree": tree.DecisionTreeClassifier(),
        "adaboost": ensemble.AdaBoostClassifier(n_estimators=3, random_state=0),
        "logistic": linear_model.LogisticRegression(max_iter=50),
        "ridge": linear_model.RidgeClassifier(),
        "svc": svm.SVC(),
        "poly": svm.SVC(kernel="poly", coef0=0.5),
        "sigmoid": svm.SVC(kernel="sigmoid"),
        "linear_svc": svm.SVC(kernel="linear"),
        "probable": svm.SVC(probability=True, random_state=0),
        "pipeline": pipeline.make_pipeline(SimpleImputer(), preprocessing.StandardScaler(), svm.SVC()),
        "neighbours": neighbors.KNeighborsClassifier(),
        "layers": neural_network.MLPClassifier(max_iter=20, random_state=0),
        "forest_values": ensemble.RandomForestRegressor(**forest),
        "boosting_values": ensemble.GradientBoostingRegressor(n_estimators=5),
        "line": linear_model.LinearRegression(),
        "svr": svm.SVR(),
        "one_class": svm.OneClassSVM(),
        "l1": preprocessing.Normalizer("l1"),
        "l2": preprocessing.Normalizer("l2"),
        "binary": preprocessing.Binarizer(),
        "scaler": preprocessing.RobustScaler(),
    }


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_estimators_of_scikit_learn(classes):
    skl2onnx = pytest.importorskip("skl2onnx")
    from sklearn.base import is_classifier

    x = RNG.standard_normal((150, 5)).astype(np.float32)
    y = (np.abs(x[:, 0] + x[:, 1] ** 2) * 1.5).astype(int) % classes
    for name, estimator in estimators().items():
        options = {"zipmap": False} if is_classifier(estimator) else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(x, y)
            made = skl2onnx.to_onnx(estimator, x[:1], options=options)
        try:
            check_against_onnxruntime(made.SerializeToString(), x[:40])
        except AssertionError as error:
            raise AssertionError(name) from error


@pytest.mark.slow
def test_gaussian_processes_and_several_classifiers_give_scikit_learns_probabilities():
    """onnxruntime lacks Solve; several classifiers have a sequence of probabilities."""
    skl2onnx = pytest.importorskip("skl2onnx")
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.multioutput import MultiOutputClassifier

    x = RNG.standard_normal((60, 3))
    classes = (x[:, :2] > 0).astype(int)
    for estimator, y in (
        (GaussianProcessClassifier(), classes[:, 0]),
        (MultiOutputClassifier(LogisticRegression()), classes),
    ):
        estimator.fit(x, y)
        model = skl2onnx.to_onnx(estimator, x[:1], options={"zipmap": False}, target_opset=17).SerializeToString()
        label, *probabilities = by_cgraph(model, x)
        np.testing.assert_array_equal(label.reshape(y.shape), estimator.predict(x))
        want = estimator.predict_proba(x)
        for got, shares in zip(probabilities, want if isinstance(want, list) else [want], strict=True):
            assert_near(got, shares, "estimators of ONNX Runtime", 1.0)


# -- one operator -----------------------------------------------------------------------------------------------------


def model_of(kind: str, x: np.ndarray, results: dict[str, int], **attributes) -> bytes:
    """A model of one node; `results` are dtypes by name."""
    node = helper.make_node(kind, ["X"], list(results), domain="ai.onnx.ml", **attributes)
    dtype = helper.np_dtype_to_tensor_dtype(x.dtype)
    inputs = [helper.make_tensor_value_info("X", dtype, x.shape)]
    outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in results.items()]
    graph = helper.make_graph([node], "one", inputs, outputs)
    return helper.make_model(graph, opset_imports=ML, ir_version=10).SerializeToString()


X = np.array([[1, -2, np.nan], [0, 3, 7], [2, 2, -1], [0.5, 0, 0]], np.float32)
FLOAT, INT = {"y": TensorProto.FLOAT}, {"y": TensorProto.INT64}
BOTH = {"label": TensorProto.INT64, "scores": TensorProto.FLOAT}
NO_KERNEL = {"kernel_params": [0.0, 0, 0]}
WHOLE = np.array([[3, 1], [2, 9], [3, 3]])
HALF = {"coefficients": [1.0, -1.0], "intercepts": [0.1], "classlabels_ints": [4, 6]}
SPLITS = {"coefficients": [1.0, -2.0, 0.5, 0.25], "intercepts": [0.5, -0.5], "classlabels_ints": [5, 3]}
MORE = SPLITS | {"coefficients": [*SPLITS["coefficients"], 9.0, 9.0]}  # of a class that has no intercept


@pytest.mark.parametrize(
    ("kind", "x", "results", "attributes"),
    [
        ("Scaler", X, FLOAT, {"offset": [0.5], "scale": [2.0]}),
        ("Scaler", WHOLE, FLOAT, {"offset": [0.5, 1], "scale": [2.0, 3]}),
        ("Imputer", X, FLOAT, {"imputed_value_floats": [4.0, 5, 6], "replaced_value_float": float("nan")}),
        ("Imputer", X, FLOAT, {"imputed_value_floats": [4.0], "replaced_value_float": 0.0}),
        ("Imputer", WHOLE, INT, {"imputed_value_int64s": [7], "replaced_value_int64": 3}),
        ("Binarizer", X[1:], FLOAT, {"threshold": 0.5}),
        ("OneHotEncoder", WHOLE, FLOAT, {"cats_int64s": [3, 9, 4]}),
        ("OneHotEncoder", X[1:], FLOAT, {"cats_int64s": [3, 0]}),
        ("LabelEncoder", WHOLE, INT, {"keys_int64s": [9, 3, 1], "values_int64s": [1, 2, 3], "default_int64": -7}),
        ("LabelEncoder", WHOLE, FLOAT, {"keys_int64s": [9, 3], "values_floats": [1.5, 2.5], "default_float": 0.5}),
        ("LabelEncoder", WHOLE, INT, {"keys_int64s": [1, 3, 3, 4, 9, 9], "values_int64s": [1, 2, 2, 4, 5, 5]}),
        ("LabelEncoder", X, INT, {"keys_floats": [7.0, np.nan, -2], "values_int64s": [1, 2, 3]}),
        ("FeatureVectorizer", X, FLOAT, {"inputdimensions": [2]}),
        ("LinearRegressor", X[1:, :2], FLOAT, {"coefficients": [1.0, 2, 3, 4], "intercepts": [1.0, 2], "targets": 2}),
        ("LinearClassifier", X[1:, :2], BOTH, MORE),
        ("LinearRegressor", X[1:, :2], FLOAT, {"coefficients": [1.0, 2, 3, 4], "targets": 2}),
        (
            "SVMRegressor", X[1:, :2], FLOAT,
            {"coefficients": [1.0, -2.0], "rho": [0.25], "n_supports": 0, "kernel_type": "LINEAR"} | NO_KERNEL,
        ),
        *[
            ("LinearClassifier", X[1:, :2], BOTH, SPLITS | {"post_transform": how})
            for how in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
        ],
        *[
            ("LinearClassifier", X[1:, :2], BOTH, HALF | {"post_transform": how})
            for how in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
        ],
    ],
)  # fmt: skip
def test_an_operator_alone(kind, x, results, attributes):
    check_against_onnxruntime(model_of(kind, x, results, **attributes), x)


def random_machine(rng: np.random.Generator, classes: int, probable: bool) -> dict[str, list]:
    """The attributes of a support vector classifier of 3 columns, with some vectors for each class."""
    counts = rng.integers(1, 4, classes)
    total, pairs = int(counts.sum()), classes * (classes - 1) // 2
    sizes = {"coefficients": (classes - 1) * total, "support_vectors": 3 * total, "rho": pairs}
    sizes |= {"prob_a": pairs, "prob_b": pairs} if probable else {}
    found = {name: rng.standard_normal(size).round(2).tolist() for name, size in sizes.items()}
    return found | {"vectors_per_class": counts.tolist(), "classlabels_ints": [7, 3, 5, 4][:classes]}


KERNELS = [("LINEAR", 0), ("POLY", 2), ("POLY", 3), ("RBF", 0), ("SIGMOID", 0)]
POINTS = RNG.standard_normal((20, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("kernel", "degree", "classes", "probable"),
    [(*kernel, classes, False) for kernel in KERNELS for classes in (2, 3)] + [("RBF", 0, n, True) for n in (2, 3, 4)],
)
def test_support_vectors_of_classes(kernel, degree, classes, probable):
    rng = np.random.default_rng(classes)
    given = random_machine(rng, classes, probable) | {"kernel_type": kernel, "kernel_params": [0.3, 0.7, degree]}
    check_against_onnxruntime(model_of("SVMClassifier", POINTS, BOTH, **given), POINTS)


HOW = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("positive", [False, True])
def test_what_becomes_of_the_scores_of_support_vectors(how, classes, positive):
    given = random_machine(np.random.default_rng(3), classes, False) | {"post_transform": how}
    given |= {"kernel_type": "LINEAR", "kernel_params": [0.0, 0, 0]}
    if positive:
        given["coefficients"] = np.abs(given["coefficients"]).tolist()
    check_against_onnxruntime(model_of("SVMClassifier", POINTS, BOTH, **given), POINTS)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("positive", [False, True])
def test_machines_without_vectors(how, classes, positive):
    """Of two classes the second is chosen by any score that is large enough, as onnxruntime has it."""
    coefficients = np.array([0.5, -1.0, 0.3, 1.0, 0.2, -0.4, -0.5, 0.1, 1.5][: 3 * classes])
    given = {
        "coefficients": (abs(coefficients) if positive else coefficients).tolist(), "rho": [0.2],
        "post_transform": how, "kernel_type": "LINEAR", "kernel_params": [0.0, 0, 0],
    }  # fmt: skip
    model = model_of("SVMClassifier", POINTS, BOTH, **given, classlabels_ints=[7, 3, 5][:classes])
    check_against_onnxruntime(model, POINTS)


@pytest.mark.parametrize(("kernel", "degree"), KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_support_vectors_of_numbers(kernel, degree, one_class):
    given = {
        "n_supports": 4, "rho": [0.2], "coefficients": [0.5, -0.3, 0.8, -1.0], "one_class": one_class,
        "support_vectors": RNG.standard_normal(12).tolist(), "kernel_type": kernel, "kernel_params": [0.3, 0.7, degree],
    }  # fmt: skip
    check_against_onnxruntime(model_of("SVMRegressor", POINTS, FLOAT, **given), POINTS)


@pytest.mark.parametrize("counts", [[1, 0, 0], [0, 2, 0], [0, 1], [3, 0, 2], [0, 0, 1, 0]])
def test_classes_may_have_no_support_vectors(counts):
    """There may be fewer vectors than classes; those of a pair are weighted by hand."""
    classes, total = len(counts), sum(counts)
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    rng = np.random.default_rng(total)
    table = rng.standard_normal((classes - 1, total)).round(2).astype("f4")
    vectors, rho = rng.standard_normal((total, 3)).round(2).astype("f4"), rng.standard_normal(len(pairs)).round(2)
    given = {
        "coefficients": table.reshape(-1).tolist(), "support_vectors": vectors.reshape(-1).tolist(),
        "rho": rho.tolist(), "vectors_per_class": counts, "classlabels_ints": [7, 3, 5, 4][:classes],
        "kernel_type": "LINEAR", "kernel_params": [0.0, 0, 0],
    }  # fmt: skip
    label, scores = by_cgraph(model_of("SVMClassifier", POINTS, BOTH, **given), POINTS)
    kernel, owner = POINTS @ vectors.T, np.repeat(np.arange(classes), counts)
    votes, want = np.zeros((len(POINTS), classes)), np.zeros((len(POINTS), len(pairs)))
    for k, (i, j) in enumerate(pairs):
        weights = np.where(owner == i, table[j - 1], np.where(owner == j, table[i], 0))
        want[:, k] = kernel @ weights + rho[k]
        votes[np.arange(len(POINTS)), np.where(want[:, k] > 0, i, j)] += 1
    np.testing.assert_array_equal(label, np.array(given["classlabels_ints"])[votes.argmax(1)])
    if classes > 2:
        assert_near(scores, want, "estimators of ONNX Runtime", np.abs(want).max())


@pytest.mark.parametrize("labels", [[4], []])
@pytest.mark.parametrize("how", ["NONE", "LOGISTIC", "SOFTMAX_ZERO"])
def test_a_classifier_of_one_class_tells_it_from_0(labels, how):
    """Scores above 0, or above a half where they are transformed; the class is 1 if it has no label."""
    x = np.array([[1, 2], [0.5, -0.25], [-1, 0], [0, 0]], "f4")
    given = {"coefficients": [0.5, 1.0], "intercepts": [0.125], "post_transform": how}
    if labels:
        given["classlabels_ints"] = labels
    label, scores = by_cgraph(model_of("LinearClassifier", x, BOTH, **given), x)
    plain = x @ np.array([[0.5], [1.0]], "f4") + np.float32(0.125)
    limit = 0 if how == "NONE" else 0.5
    np.testing.assert_array_equal(label, np.where(plain[:, 0] > limit, labels[0] if labels else 1, 0))
    want = {"NONE": plain, "LOGISTIC": 1 / (1 + np.exp(-plain)), "SOFTMAX_ZERO": np.ones_like(plain)}[how]
    assert_near(scores, want, "float32 formulas")


def test_parameters_and_intercepts_may_be_absent():
    """A linear kernel reads no parameters; without intercepts all coefficients count."""
    x, given = X[1:, :2], {"coefficients": [1.0, -2.0], "rho": [0.25], "n_supports": 2}
    vectors = {"support_vectors": [1.0, 2.0, -1.0, 0.5], "kernel_type": "LINEAR"}
    (got,) = by_cgraph(model_of("SVMRegressor", x, FLOAT, **given, **vectors), x)
    assert_near(got, (x @ np.float32([[1, -1], [2, 0.5]])) @ np.float32([[1], [-2]]) + 0.25, "float32 formulas")
    for labels, coefficients in (([5, 3, 9], [1.0, -2.0, 0.5, 0.25, 3.0, -1.0]), ([4, 6], [1.0, -1.0])):
        model = model_of("LinearClassifier", x, BOTH, coefficients=coefficients, classlabels_ints=labels)
        label, scores = by_cgraph(model, x)
        want = x @ np.float32(coefficients).reshape(-1, 2).T
        both = want if want.shape[1] > 1 else np.concatenate([1 - want, want], 1)
        assert_near(scores, both, "float32 formulas")
        places = want.argmax(1) if want.shape[1] > 1 else (want[:, 0] > 0).astype(int)
        np.testing.assert_array_equal(label, np.array(labels)[places])


def test_a_vector_is_one_row():
    x = X[1]
    given = {"coefficients": [1.0, -2.0, 0.5], "intercepts": [0.5], "classlabels_ints": [4, 6]}
    for kind, results in (("LinearClassifier", BOTH), ("LinearRegressor", FLOAT)):
        rows, one = (by_cgraph(model_of(kind, v, results, **given), v) for v in (x[None], x))
        for a, b in zip(rows, one, strict=True):
            assert a.shape == b.shape and len(a) == 1
            np.testing.assert_array_equal(a, b)


def test_several_numbers_of_a_machine_without_vectors():
    """The first is added; the largest score decides, also of two classes."""
    given = {
        "coefficients": [0.5, -1.0, 0.25, 1.0, 0.5, -0.5], "rho": [0.25, 8.0], "classlabels_ints": [7, 3],
        "kernel_type": "LINEAR", "kernel_params": [0.0, 0, 0],
    }  # fmt: skip
    label, scores = by_cgraph(model_of("SVMClassifier", POINTS, BOTH, **given), POINTS)
    want = POINTS @ np.reshape(given["coefficients"], (2, 3)).T + 0.25
    assert_near(scores, want, "estimators of ONNX Runtime", np.abs(want).max())
    np.testing.assert_array_equal(label, np.array([7, 3])[want.argmax(1)])


def test_a_kernel_that_is_unknown_is_refused():
    given = random_machine(np.random.default_rng(0), 2, False) | {"kernel_type": "odd", "kernel_params": [0.0, 0, 0]}
    with pytest.raises(FormatError, match="kernel_type 'odd' is not"):
        load(model_of("SVMClassifier", POINTS, BOTH, **given))


# -- trees ------------------------------------------------------------------------------------------------------------

ASKS = {
    "BRANCH_LEQ": lambda x, t: x <= t,
    "BRANCH_LT": lambda x, t: x < t,
    "BRANCH_GTE": lambda x, t: x >= t,
    "BRANCH_GT": lambda x, t: x > t,
    "BRANCH_EQ": lambda x, t: x == t,
    "BRANCH_NEQ": lambda x, t: x != t,
}


def random_forest(rng: np.random.Generator, trees: int, columns: int) -> dict[str, list]:
    """The attributes of nodes, listed in random order below their roots, with all modes and few different numbers."""
    rows = []
    for tree in range(trees):
        inner = int(rng.integers(0, 9))
        numbers = 1 + rng.permutation(2 * inner)
        nodes, free = [[0, "LEAF", 0, 0]], [0]
        for i in range(inner):
            node = nodes[free.pop(rng.integers(len(free)))]
            node[1:] = [rng.choice(list(ASKS)), numbers[2 * i], numbers[2 * i + 1]]
            free += [len(nodes), len(nodes) + 1]
            nodes += [[numbers[2 * i], "LEAF", 0, 0], [numbers[2 * i + 1], "LEAF", 0, 0]]
        order = [0, *(1 + rng.permutation(len(nodes) - 1))]
        rows += [(tree, *nodes[i], rng.integers(columns), rng.integers(-2, 3), rng.integers(2)) for i in order]
    kinds = ("treeids", "nodeids", "modes", "truenodeids", "falsenodeids", "featureids", "values")
    found = {f"nodes_{kind}": [plain(row[i]) for row in rows] for i, kind in enumerate(kinds)}
    found["nodes_values"] = [float(v) for v in found["nodes_values"]]
    return found | {"nodes_missing_value_tracks_true": [int(row[7]) for row in rows]}


def plain(x):
    return str(x) if isinstance(x, str) else int(x)


def walked(nodes: dict[str, list], x: np.ndarray) -> list[int]:
    """For each tree the number, in the lists, of the leaf that one row comes to."""
    at = {key: i for i, key in enumerate(zip(nodes["nodes_treeids"], nodes["nodes_nodeids"]))}
    found = []
    for tree in dict.fromkeys(nodes["nodes_treeids"]):
        i = at[tree, 0]
        while nodes["nodes_modes"][i] != "LEAF":
            number, limit = x[nodes["nodes_featureids"][i]], np.float32(nodes["nodes_values"][i])
            true = ASKS[nodes["nodes_modes"][i]](number, limit)
            true |= bool(np.isnan(number) and nodes["nodes_missing_value_tracks_true"][i])
            i = at[tree, nodes["nodes_truenodeids" if true else "nodes_falsenodeids"][i]]
        found.append(i)
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_every_mode_of_a_node(seed, how):
    rng = np.random.default_rng(seed)
    nodes = random_forest(rng, trees=4, columns=3)
    x = rng.choice([*range(-3, 4), np.nan, np.inf, -np.inf], (30, 3)).astype(np.float32)
    leaves = [i for i, mode in enumerate(nodes["nodes_modes"]) if mode == "LEAF"]
    weights = {i: float(rng.integers(-8, 9)) for i in leaves}
    model = model_of(
        "TreeEnsembleRegressor", x, FLOAT, **nodes, n_targets=1, aggregate_function=how, base_values=[0.5],
        target_ids=[0] * len(leaves), target_weights=list(weights.values()),
        target_treeids=[nodes["nodes_treeids"][i] for i in leaves],
        target_nodeids=[nodes["nodes_nodeids"][i] for i in leaves],
    )  # fmt: skip
    over = {"SUM": np.sum, "AVERAGE": np.mean, "MIN": np.min, "MAX": np.max}[how]
    wanted = [over([weights[i] for i in walked(nodes, row)]) + 0.5 for row in x]
    assert_near(by_cgraph(model, x)[0][:, 0], wanted, "float32 formulas")


def small_tree(**changed) -> bytes:
    given = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_featureids": [0, 0, 0], "nodes_values": [0.0, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0], "target_nodeids": [1, 2],
        "target_ids": [0, 0], "target_weights": [1.0, 2.0], "n_targets": 1,
    }  # fmt: skip
    return model_of("TreeEnsembleRegressor", X, FLOAT, **given | changed)


def test_children_may_have_two_parents():
    """Nodes 1 and 2 share both of theirs; leaves are shared, too."""
    given = {
        "nodes_treeids": [0] * 7, "nodes_nodeids": list(range(7)), "nodes_featureids": [0, 1, 1, 2, 2, 0, 0],
        "nodes_modes": ["BRANCH_LEQ"] * 5 + ["LEAF"] * 2, "nodes_values": [0.0, 1.0, -1.0, 0.5, 2.0, 0.0, 0.0],
        "nodes_truenodeids": [1, 3, 3, 5, 6, 0, 0], "nodes_falsenodeids": [2, 4, 4, 6, 5, 0, 0],
        "target_treeids": [0, 0], "target_nodeids": [5, 6], "target_ids": [0, 0], "target_weights": [1.0, 2.0],
    }  # fmt: skip
    x = np.array(list(itertools.product([-2, 0, 3], repeat=3)), np.float32)
    got = by_cgraph(model_of("TreeEnsembleRegressor", x, FLOAT, **given, n_targets=1), x)[0][:, 0]
    for (a, b, c), value in zip(x, got, strict=True):
        inner = 3 if b <= (1 if a <= 0 else -1) else 4
        assert value == ((1 if c <= 0.5 else 2) if inner == 3 else (2 if c <= 2 else 1))


def test_a_tree_may_be_one_leaf_and_leaves_that_no_node_leads_to_do_not_count():
    lists = ("treeids", "featureids", "truenodeids", "falsenodeids")
    leaf = small_tree(
        **{f"nodes_{name}": [0] for name in lists}, nodes_nodeids=[0], nodes_modes=["LEAF"], nodes_values=[0.0],
        target_treeids=[0], target_nodeids=[0], target_ids=[0], target_weights=[5.0],
    )  # fmt: skip
    np.testing.assert_array_equal(by_cgraph(leaf, X)[0], np.full((4, 1), 5))
    more = small_tree(
        nodes_treeids=[0] * 4, nodes_nodeids=[0, 1, 2, 3], nodes_modes=["BRANCH_LEQ"] + ["LEAF"] * 3,
        nodes_featureids=[0] * 4, nodes_values=[0.0] * 4, nodes_truenodeids=[1, 0, 0, 0],
        nodes_falsenodeids=[2, 0, 0, 0], target_treeids=[0] * 3, target_nodeids=[3, 1, 2], target_ids=[0] * 3,
        target_weights=[100.0, 1.0, 2.0],
    )  # fmt: skip
    np.testing.assert_array_equal(by_cgraph(more, X)[0], by_cgraph(small_tree(), X)[0])


@pytest.mark.parametrize("dtype", ["i4", "i8", "f8", "f4"])
def test_columns_of_integers_are_compared_as_floats(dtype):
    x = np.array([[-1, 9, 9], [0, 9, 9], [3, 9, 9]], dtype)
    model = onnx.ModelProto.FromString(small_tree(nodes_values=[0.5, 0.0, 0.0]))
    model.graph.input[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(x.dtype)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = len(x)
    np.testing.assert_array_equal(by_cgraph(model.SerializeToString(), x)[0][:, 0], [1, 1, 2])


@pytest.mark.parametrize("targets", [1, 2])
def test_repeated_weights_of_a_leaf_count_once_if_there_is_one_target(targets):
    """skl2onnx writes each leaf's number once for each class (decision_leaf)."""
    changed = {"target_treeids": [0] * 4, "target_nodeids": [2, 1, 1, 2], "target_ids": [0] * 4}
    model = small_tree(**changed, target_weights=[5.0, 1.0, 2.0, 3.0], n_targets=targets)
    low, high = (1, 5) if targets == 1 else (3, 8)  # those of onnxruntime
    np.testing.assert_array_equal(by_cgraph(model, X)[0][:, 0], [high, low, high, high])


@pytest.mark.parametrize("base", [[2.5], [2.5, -1.0], None])
def test_trees_without_weights_return_the_base_values(base):
    """All lists of weights are empty."""
    targets = len(base or [0])
    model = onnx.ModelProto.FromString(small_tree(n_targets=targets, **({"base_values": base} if base else {})))
    for attribute in model.graph.node[0].attribute:
        if attribute.name.startswith("target_"):
            attribute.ClearField("ints" if attribute.ints else "floats")
    (got,) = by_cgraph(model.SerializeToString(), X)
    np.testing.assert_array_equal(got, np.tile(np.float32(base or [0]), (len(X), 1)))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"nodes_truenodeids": [0, 0, 0]}, "is its own descendant"),
        ({"nodes_truenodeids": [7, 0, 0]}, "does not exist"),
        ({"nodes_featureids": [3, 0, 0]}, "column 3"),
        ({"nodes_featureids": [-1, 0, 0]}, "column -1"),
        ({"nodes_modes": ["BRANCH_NEAR", "LEAF", "LEAF"]}, "BRANCH_NEAR"),
        ({"nodes_values": [0.0]}, "different lengths"),
        ({"nodes_nodeids": [0, 1, 1]}, "is listed twice"),
        ({"nodes_truenodeids": 1}, "attribute nodes_truenodeids is not a list of numbers"),
        ({"nodes_featureids": [0.5, 0.0, 0.0]}, "attribute nodes_featureids is not a list of integers"),
        ({"nodes_modes": "LEAF"}, "attribute nodes_modes is not a list of strings"),
        ({"nodes_modes": [1, 2, 3]}, "attribute nodes_modes is not a list of strings"),
        ({"target_treeids": [0]}, "weights name 1 trees and 2 nodes"),
        ({"target_ids": [0, 1]}, "outside 0 to 0"),
        ({"target_weights": [1.0]}, "a weight names a target outside"),
        ({"target_nodeids": [1, 9]}, "9"),
        ({"n_targets": 10**12}, "it would take"),
        ({"aggregate_function": "MODE"}, "MODE"),
        ({"post_transform": "CUBE"}, "CUBE"),
    ],
)
def test_trees_that_are_none(changed, said):
    with pytest.raises((FormatError, PositionError), match=said):
        load(small_tree(**changed))


def test_a_tree_deeper_than_pythons_stack():
    depth = 3000
    inner, leaf = list(range(depth)), list(range(depth, 2 * depth + 1))
    model = small_tree(
        nodes_treeids=[0] * (2 * depth + 1), nodes_nodeids=inner + leaf, nodes_featureids=[0] * (2 * depth + 1),
        nodes_modes=["BRANCH_GT"] * depth + ["LEAF"] * (depth + 1),
        nodes_values=[float(i) for i in inner] + [0.0] * (depth + 1),
        nodes_truenodeids=[*inner[1:], leaf[-1]] + [0] * (depth + 1), nodes_falsenodeids=leaf[:-1] + [0] * (depth + 1),
        target_treeids=[0] * (depth + 1), target_nodeids=leaf, target_ids=[0] * (depth + 1),
        target_weights=[float(i) for i in range(depth + 1)],
    )  # fmt: skip
    x = np.array([[-1, 0, 0], [0.5, 0, 0], [2999.5, 0, 0], [17.5, 0, 0]], np.float32)
    np.testing.assert_array_equal(by_cgraph(model, x)[0][:, 0], [0, 1, depth, 18])


def test_rows_over_their_largest_size_whatever_its_sign():
    """As scikit-learn and ONNX's reference have it; onnxruntime takes the largest number, signed."""
    found = by_cgraph(model_of("Normalizer", X[1:], FLOAT, norm="MAX"), X[1:])[0]
    assert_near(found, X[1:] / np.abs(X[1:]).max(1, keepdims=True), "float32 formulas")


def test_an_empty_list_of_names_leaves_the_labels_of_classes_integers():
    x = X[1:, :2]
    proto = onnx.load_from_string(model_of("LinearClassifier", x, BOTH, **MORE))
    names = helper.make_attribute("classlabels_strings", [], attr_type=onnx.AttributeProto.STRINGS)
    proto.graph.node[0].attribute.append(names)
    labels, _ = load(proto.SerializeToString(), shapes={"X": x.shape}).compile()(x)
    assert labels.dtype == np.int64
    check_against_onnxruntime(proto.SerializeToString(), x)
