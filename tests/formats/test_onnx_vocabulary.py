"""Strings of ONNX files: inputs, labels and tables of strings, as onnxruntime has them; unknown ones; refusals."""

import pickle
import warnings

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import cgraph
from cgraph.errors import FormatError, InputError
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx import backend, load
from cgraph.formats.onnx.vocabulary import STRING, CodedStrings, Vocabulary, strings_of
from tests.support.tolerance import assert_near

ML = "ai.onnx.ml"
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
TABLE = np.array([["red", "s"], ["blue", "m"], ["green", ""], ["red", "xl"]], object)


def model_of(nodes, inputs, outputs, constants=(), version=4):
    """A serialised model; inputs and outputs are names, dtypes and shapes. `version`: of ai.onnx.ml."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*x) for x in inputs],
        [helper.make_tensor_value_info(*x) for x in outputs],
        list(constants),
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def one(kind, x, dtype=FLOAT, source=STRING, domain=ML, version=4, **attributes):
    node = helper.make_node(kind, ["x"], ["y"], domain=domain, **attributes)
    return model_of([node], [("x", source, x.shape)], [("y", dtype, None)], version=version)


def same(raw, feed, engine="cpu"):
    """AssertionError unless results equal onnxruntime's, strings included."""
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(raw, providers=["CPUExecutionProvider"])
    results = load(raw, shapes={k: v.shape for k, v in feed.items()}).compile(engine=engine)(**feed)
    for got, want in zip(results, session.run(None, feed), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        if got.dtype == object:
            assert got.tolist() == want.tolist()
        else:
            assert_near(got, want, "estimators of ONNX Runtime")
    return results


def test_categories_of_strings():
    raw = one("OneHotEncoder", TABLE[:, 0], cats_strings=["blue", "red", "red"], zeros=1)
    (got,) = load(raw).compile()(TABLE[:, 0])
    assert got.tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0], [0, 1, 1]]
    same(one("OneHotEncoder", TABLE[:, 0], cats_strings=["blue", "red", ""], zeros=1), {"x": TABLE[:, 0]})


@pytest.mark.parametrize(
    ("dtype", "attributes"),
    [
        (INT64, {"values_int64s": [3, 7], "default_int64": -2}),
        (FLOAT, {"values_floats": [0.5, 7.0], "default_float": 2.5}),
        (STRING, {"values_strings": ["rot", ""], "default_string": "?"}),
        (STRING, {"values_strings": ["rot", "blau"]}),
    ],
)
def test_labels_of_strings_are_encoded(dtype, attributes):
    same(one("LabelEncoder", TABLE, dtype, keys_strings=["red", "blue"], **attributes), {"x": TABLE})


@pytest.mark.parametrize("more", [{}, {"default_int64": 7, "default_string": "none"}])
def test_labels_of_the_first_version_are_classes_and_their_numbers(more):
    """ML.NET writes them."""
    (got,) = same(
        one("LabelEncoder", TABLE, INT64, classes_strings=["s", "red", "blue"], version=1, **more), {"x": TABLE}
    )
    assert got[0].tolist() == [1, 0]
    x = np.array([[0, 2], [3, -1]])
    raw = one("LabelEncoder", x, STRING, INT64, classes_strings=["s", "red", "blue"], version=1, **more)
    (names,) = same(raw, {"x": x})
    assert names[0].tolist() == ["s", "blue"]


def test_numbers_become_strings():
    x = np.array([[1, 2], [3, 1]], np.int64)
    attributes = {"keys_int64s": [1, 3], "values_strings": ["one", "three"], "default_string": "many"}
    (got,) = same(one("LabelEncoder", x, STRING, INT64, **attributes), {"x": x})
    assert got.tolist() == [["one", "many"], ["three", "one"]]


def test_tables_of_string_tensors():
    keys, values = (
        helper.make_tensor("t", STRING, [2], [a.encode(), b.encode()]) for a, b in (("red", "s"), ("R", "S"))
    )
    raw = one("LabelEncoder", TABLE, STRING, keys_tensor=keys, values_tensor=values)
    (got,) = load(raw).compile()(TABLE)
    assert got.tolist() == [["R", "S"], ["_Unused", "_Unused"], ["_Unused", "_Unused"], ["R", "_Unused"]]


def test_strings_are_moved_compared_and_returned_also_those_that_no_file_has():
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"]),
        helper.make_node("Concat", ["t", "t"], ["y"], axis=0),
        helper.make_node("Equal", ["t", "word"], ["same"]),
        helper.make_node("Shape", ["y"], ["n"]),
        helper.make_node("Where", ["same", "t", "word"], ["chosen"]),
    ]
    outputs = [("y", STRING, None), ("same", TensorProto.BOOL, None), ("n", INT64, None), ("chosen", STRING, None)]
    word = helper.make_tensor("word", STRING, [1], [b"red"])
    raw = model_of(nodes, [("x", STRING, TABLE.shape)], outputs, [word])
    results = same(raw, {"x": TABLE})
    assert results["chosen"].tolist() == [["red"] * 4, ["red"] * 4]
    other = np.array([["ä", "red"], ["日本", "ä"], ["", "\0"], ["x" * 900, "ä"]], object)
    assert load(raw).compile()(other)["y"][:2].tolist() == other.T.tolist()
    assert ReferenceEvaluator(onnx.load_from_string(raw)).run(None, {"x": TABLE})[2].tolist() == [4, 4]


def test_constants_of_strings():
    nodes = [
        helper.make_node("Constant", [], ["a"], value_strings=["p", "q"]),
        helper.make_node("Constant", [], ["b"], value_string="q"),
        helper.make_node("Equal", ["a", "b"], ["same"]),
        helper.make_node("Where", ["x", "a", "b"], ["y"]),
    ]
    raw = model_of(nodes, [("x", TensorProto.BOOL, (2,))], [("y", STRING, None), ("same", TensorProto.BOOL, None)])
    y, equal = load(raw).compile()(np.array([True, False]))
    assert y.tolist() == ["p", "q"] and equal.tolist() == [False, True]


@pytest.mark.parametrize("kind", ["U", "O"])
def test_inputs_are_arrays_or_lists_of_strings(kind):
    function = load(one("OneHotEncoder", TABLE[:, 0], cats_strings=["red"], zeros=1)).compile()
    for words in (TABLE[:, 0].astype(kind), TABLE[:, 0].tolist()):
        assert function(words)[0].tolist() == [[1], [0], [0], [1]] == function(x=words)[0].tolist()
    assert function.run(None, {"x": TABLE[:, 0]})[0].tolist() == [[1], [0], [0], [1]]


def test_other_inputs_are_refused():
    function = load(one("OneHotEncoder", TABLE[:, 0], cats_strings=["red"], zeros=1)).compile()
    with pytest.raises(InputError, match=r"x holds nan of float, not a string: convert it with str"):
        function(np.array(["red", "a", "b", np.nan], object))
    with pytest.raises(InputError, match=r"x has shape \[3\], not \[4\]: pass strings of that shape"):
        function(["a", "b", "c"])


def test_a_function_of_strings_is_saved(tmp_path):
    function = load(one("OneHotEncoder", TABLE[:, 0], cats_strings=["red"], zeros=1)).compile()
    function.save(tmp_path / "f")
    for copy in (cgraph.load(tmp_path / "f"), pickle.loads(pickle.dumps(function))):
        assert copy(TABLE[:, 0].astype("U"))[0].tolist() == [[1], [0], [0], [1]]


def test_n_grams_of_strings():
    x = np.array([["a", "b", "a", "c"], ["b", "b", "a", "b"]], object)
    options = {
        "pool_strings": ["a", "b", "c", "a", "b", "b", "a"],
        "ngram_counts": [0, 3],
        "ngram_indexes": [0, 1, 2, 3, 4],
        "max_skip_count": 1,
        "min_gram_length": 1,
        "max_gram_length": 2,
        "mode": "TF",
    }
    same(one("TfIdfVectorizer", x, domain="", **options), {"x": x})


@pytest.mark.slow
def test_estimators_of_scikit_learn_on_strings():
    skl2onnx = pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(1)
    words, numbers = rng.choice(["red", "blue", "green"], (40, 2)).astype(object), rng.normal(size=(40, 3)).astype("f4")
    several = np.array(["no", "yes", "perhaps"])[np.digitize(numbers[:, 0], [-0.4, 0.4])]
    two = np.where(several == "no", "no", "yes")
    encoder = OneHotEncoder(handle_unknown="ignore")
    for estimator, x, y in (
        (OneHotEncoder(handle_unknown="ignore"), words, None),
        (OrdinalEncoder(), words, None),
        (make_pipeline(encoder, LogisticRegression()), words, several),
        (LogisticRegression(), numbers, two),
        (LogisticRegression(), numbers, several),
        (DecisionTreeClassifier(max_depth=3), numbers, several),
        (SVC(), numbers, several),
    ):
        kind = StringTensorType if x is words else FloatTensorType
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(x, y)
            options = {"zipmap": False} if y is not None else None
            made = skl2onnx.to_onnx(estimator, initial_types=[("X", kind([None, x.shape[1]]))], options=options)
        results = same(made.SerializeToString(), {"X": x})
        if y is not None:
            assert results[0].tolist() == estimator.predict(x).tolist()


def test_the_backend_takes_and_returns_strings():
    raw = one("LabelEncoder", TABLE, STRING, keys_strings=["red"], values_strings=["rot"])
    (got,) = backend.prepare(onnx.load_from_string(raw)).run([TABLE])
    assert got.tolist() == [["rot", "_Unused"], ["_Unused"] * 2, ["_Unused"] * 2, ["rot", "_Unused"]]


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Neg", "NonZero", "Unique"])
def test_an_operator_that_looks_into_strings_is_refused(kind):
    with pytest.raises(FormatError, match=rf"{kind}.*operand 0 is string\[4,2\], which it does not take.*in Python"):
        load(one(kind, TABLE, domain=""))


def test_damaged_tensors_of_strings_are_refused():
    tensor = helper.make_tensor("t", STRING, [2], [b"a", b"b"])
    assert strings_of(tensor, (2,), Allowance(0)).tolist() == ["a", "b"]
    with pytest.raises(FormatError, match=r"tensor 't' of strings \[3\] holds 2 values"):
        strings_of(tensor, (3,), Allowance(0))
    allowance = Allowance(0)
    allowance.nbytes = 300
    with pytest.raises(FormatError, match="tensor 't' would take 402 bytes"):
        strings_of(tensor, (2,), allowance)
    with pytest.raises(FormatError, match="its strings would take 400 bytes"):
        Vocabulary(allowance).codes(["a", "b"])


def test_a_word_has_one_code():
    words = Vocabulary(Allowance(0))
    assert words.codes(["a", "b", "a"]).tolist() == [0, 1, 0] and words.codes(["c", "b"]).tolist() == [2, 1]
    text = words.constant(np.array([["c"]], object))
    assert isinstance(text, CodedStrings) and text.text == "string[1,1]" and text.node.op.array.tolist() == [[2]]
