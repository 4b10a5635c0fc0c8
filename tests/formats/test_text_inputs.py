"""Texts as scikit-learn's pipelines read them: case, tokens and n-grams of an input of strings, as onnxruntime does."""

import pickle
import re

import numpy as np
import pytest
from onnx import TensorProto, helper

import cgraph as cg
from cgraph.errors import FormatError, InputError
from cgraph.formats.onnx import compile_sizes, load
from tests.support.tolerance import assert_near

STRING, FLOAT = TensorProto.STRING, TensorProto.FLOAT
TEXTS = np.array(["The quick brown fox", "jumps OVER the lazy dog", "", "a # fox, # a DOG!", "Été 42 fox fox"], object)
WORDS = {"mark": 0, "mincharnum": 1, "pad_value": "#", "tokenexp": "[a-z]+"}
POOL = ["fox", "the", "dog", "#", "lazy", "dog", "quick", "fox", "#", "#"]
GRAMS = {
    "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "mode": "TF", "ngram_counts": [0, 4],
    "ngram_indexes": [0, 1, 2, 3, 4, 5, 6], "pool_strings": POOL,
}  # fmt: skip


def node(kind, reads, writes, domain="", **attributes):
    return helper.make_node(kind, reads.split(), writes.split(), domain=domain, **attributes)


def tokenizer(**changes):
    return node("Tokenizer", "words", "tokens", "com.microsoft", **{**WORDS, **changes})


def lower(reads="x", writes="words", case="LOWER", **attributes):
    return node("StringNormalizer", reads, writes, case_change_action=case, locale="C.UTF-8", **attributes)


def counted(reads="tokens", writes="y", **changes):
    return node("TfIdfVectorizer", reads, writes, **{**GRAMS, **changes})


def model_of(nodes, shape=(5,), outputs=("y",), kind=FLOAT, constants=()):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", STRING, shape)],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        [helper.make_tensor(name, *x) for name, x in dict(constants).items()],
    )
    opsets = [helper.make_opsetid(*x) for x in (("", 21), ("com.microsoft", 1), ("ai.onnx.ml", 4))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def same(raw, x, engine="cpu"):
    """AssertionError unless results equal onnxruntime's."""
    runtime = pytest.importorskip("onnxruntime")
    try:
        session = runtime.InferenceSession(raw, providers=["CPUExecutionProvider"])
    except Exception as error:
        if "locale" in str(error):
            pytest.skip("the system has no locale C.UTF-8")
        raise
    results = load(raw).compile(engine=engine)(x)
    for got, want in zip(results, session.run(None, {"x": x}), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        if got.dtype == object:
            assert got.tolist() == want.tolist()
        else:
            assert_near(got, want, "estimators of ONNX Runtime")
    return results


SPLITTERS = {
    "words": {},
    "words of two characters": {"mincharnum": 2},
    "characters": {"tokenexp": "."},
    "marked words": {"mark": 1},
    "separators": {"tokenexp": None, "separators": [" ", "[,!]"]},
    "each character": {"tokenexp": None, "separators": [""]},
}


@pytest.mark.parametrize("name", SPLITTERS)
@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_ngrams_of_tokens_of_texts(name, engine):
    changes = {**WORDS, **SPLITTERS[name]}
    split = node("Tokenizer", "words", "tokens", "com.microsoft", **{k: v for k, v in changes.items() if v is not None})
    same(model_of([lower(), split, counted()]), TEXTS, engine)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_weights_of_tokens(mode):
    same(model_of([lower(), tokenizer(), counted(mode=mode, weights=[0.5, 1, 2, 3, 4, 5, 6])]), TEXTS)


def test_a_column_of_texts_is_flattened_before_and_after():
    to_row = node("Reshape", "x shape", "row")
    flat = node("Flatten", "tokens", "flat", axis=1)
    shape = {"shape": (TensorProto.INT64, [1], [-1])}
    got = same(
        model_of([to_row, lower("row"), tokenizer(), flat, counted("flat")], (5, 1), constants=shape), TEXTS[:, None]
    )
    whole = node("Identity", "x", "words")
    same(model_of([whole, tokenizer(tokenexp="[a-zA-Z]+"), flat, counted("flat")], (5, 1)), TEXTS[:, None])
    assert got[0].shape == (5, 7)


def test_an_input_whose_columns_are_read_as_texts_and_as_strings():
    table = np.stack([TEXTS, np.array(["red", "blue", "red", "?", "blue"], object)], 1)
    columns = {"zero": (TensorProto.INT64, [1], [0]), "one": (TensorProto.INT64, [1], [1])}
    columns["shape"] = (TensorProto.INT64, [1], [-1])
    nodes = [
        node("ArrayFeatureExtractor", "x zero", "first", "ai.onnx.ml"),
        node("ArrayFeatureExtractor", "x one", "second", "ai.onnx.ml"),
        node("Reshape", "first shape", "row"),
        lower("row"),
        tokenizer(),
        counted(),
        node("OneHotEncoder", "second", "colours", "ai.onnx.ml", cats_strings=["red", "blue"], zeros=1),
        node("Identity", "second", "strings"),
    ]
    raw = model_of(nodes, (5, 2), ("y", "colours"), constants=columns)
    same(raw, table)
    model = load(raw)
    assert model.inputs[0].name == "x" and model.inputs[0].shape == (5 * 2 + 5 * 7,)


def test_texts_in_another_case_are_strings_again():
    raw = model_of([lower(case="UPPER")], outputs=("words",), kind=STRING)
    assert same(raw, TEXTS)[0].tolist() == [word.upper() for word in TEXTS]
    encoder = node(
        "LabelEncoder", "words", "y", "ai.onnx.ml", keys_strings=["", "été 42 fox fox"], values_floats=[1.0, 2.0]
    )
    got = same(model_of([lower(), encoder]), TEXTS)
    assert got[0].tolist() == [0, 0, 1, 0, 2]


def test_constant_texts_are_split_once():
    import onnxruntime

    text = (STRING, [2], [b"fox dog", b"fox"])
    raw = model_of(
        [tokenizer(), node("Equal", "tokens tokens", "z"), node("Cast", "z", "y", to=FLOAT)], constants={"words": text}
    )
    (want,) = onnxruntime.InferenceSession(raw).run(None, {"x": TEXTS})
    np.testing.assert_array_equal(load(raw).compile()(TEXTS)[0], want)


def test_saved_pickled_and_sized_functions_split_texts(tmp_path):
    raw = model_of([lower(), tokenizer(), counted()])
    function = load(raw).compile()
    (want,) = function(TEXTS)
    function.save(tmp_path / "texts")
    for other in (cg.load(tmp_path / "texts"), pickle.loads(pickle.dumps(function))):
        np.testing.assert_array_equal(other(TEXTS)[0], want)
    sized = compile_sizes(model_of([lower(), tokenizer(), counted()], ("n",)))
    for n in (5, 1, 3):
        np.testing.assert_array_equal(
            sized(TEXTS[:n])[0], load(model_of([lower(), tokenizer(), counted()], (n,))).compile()(TEXTS[:n])[0]
        )


def test_scikit_learns_pipelines_give_their_predictions():
    pytest.importorskip("skl2onnx")
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import StringTensorType
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts = [text.replace("#", "") for text in TEXTS[[0, 1, 3, 4]]]
    x, y = np.array(texts, object), [0, 1, 1, 0]
    for vectorizer in (TfidfVectorizer(), CountVectorizer(ngram_range=(1, 2)), CountVectorizer(lowercase=False)):
        pipeline = make_pipeline(vectorizer, LogisticRegression()).fit(texts, y)
        options = {id(vectorizer): {"tokenexp": "[a-zA-Z0-9_]+"}}
        proto = convert_sklearn(
            pipeline, initial_types=[("x", StringTensorType([4, 1]))], target_opset=19, options=options
        )
        label = load(proto.SerializeToString()).compile()(x[:, None])[0]
        assert label.tolist() == pipeline.predict(texts).tolist()


REFUSED = {
    "tokens are read otherwise": ([tokenizer(), node("Shape", "tokens", "y")], r"operand 0 is string\[5,…\], tokens"),
    "tokens are an output": ([tokenizer(), node("Identity", "tokens", "y")], "output 'y' is .*tokens whose number"),
    "tokens of several texts in one": (
        [node("Reshape", "x s", "words"), tokenizer(), node("Flatten", "tokens", "f", axis=0), counted("f")],
        "operand 0 is string",
    ),
    "a pattern of groups": ([tokenizer(tokenexp="(a|b)+"), counted()], "the pattern .* is not supported"),
    "a pattern and separators": ([tokenizer(separators=[" "]), counted()], "either tokenexp or separators"),
    "tokens of no characters": ([tokenizer(mincharnum=0), counted()], "mincharnum of at least 1"),
    "stop words of an input": ([lower(stopwords=["fox"]), tokenizer(), counted()], "must be constant"),
    "an ngram twice": ([tokenizer(), counted(pool_strings=[*POOL[:3], "fox", *POOL[4:]])], "listed twice"),
    "two cases": ([lower(writes="z"), lower("z", case="UPPER"), tokenizer(), counted()], "Leave out one"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_call_cannot_split_is_refused_by_name(name):
    nodes, message = REFUSED[name]
    whole = [] if any("words" in n.output for n in nodes) else [node("Identity", "x", "words")]
    with pytest.raises(FormatError, match=message):
        load(model_of([*whole, *nodes], constants={"s": (TensorProto.INT64, [2], [5, 1])}))


def test_strings_of_another_shape_or_kind_are_refused_by_a_call():
    function = load(model_of([lower(), tokenizer(), counted()])).compile()
    with pytest.raises(InputError, match=r"x has shape \[4\], not \[5\]: pass strings"):
        function(TEXTS[:4])
    with pytest.raises(InputError, match="x holds 3 of int, not a string"):
        function(np.array([3, *TEXTS[1:]], object))


MOVED = {
    "tokens are transposed": ("Transpose", "tokens", 0),
    "tokens are joined to texts": ("Concat", "x tokens", 1),
    "tokens are flattened with the texts": ("Flatten", "tokens", 0),
}


@pytest.mark.parametrize("name", MOVED)
def test_tokens_are_not_moved(name):
    kind, reads, place = MOVED[name]
    options = {"axis": 0} if kind in ("Concat", "Flatten") else {}
    nodes = [node("Identity", "x", "words"), tokenizer(), node(kind, reads, "t", **options), counted("t")]
    with pytest.raises(FormatError, match=rf"operand {place} is string\[5,…\], tokens whose number a run decides"):
        load(model_of(nodes))


@pytest.mark.parametrize(("axis", "fits"), [(1, True), (2, True), (-1, True), (-2, True), (3, False), (0, False)])
def test_tokens_of_a_column_are_flattened_to_a_row_for_each_text(axis, fits):
    """Their shape is [5, 1, tokens]: axes 1 and 2 leave a row for each text."""
    flat = node("Flatten", "tokens", "flat", axis=axis)
    raw = model_of([node("Identity", "x", "words"), tokenizer(), flat, counted("flat")], (5, 1))
    if not fits:
        with pytest.raises(FormatError, match=r"operand 0 is string\[5,1,…\], tokens whose number"):
            load(raw)
        return
    (got,) = same(raw, TEXTS[:, None])
    want = load(model_of([node("Identity", "x", "words"), tokenizer(), counted()])).compile()(TEXTS)[0]
    np.testing.assert_array_equal(got, want)


STRINGS = {"a": (STRING, [2], [b"fox", b"dog"]), "i": (TensorProto.INT64, [2], [3, 1])}
OTHERS = {
    "constants among them": [node("Concat", "x a", "z", axis=0)],
    "of two inputs": [node("Concat", "x w", "z", axis=0)],
    "that a condition selects": [node("Where", "p x x", "z")],
    "of an input that another one places": [node("Gather", "x j", "z")],
}


@pytest.mark.parametrize("name", OTHERS)
def test_texts_are_moved_strings_of_one_input(name):
    inputs = ("x", STRING, (5,)), ("w", STRING, (5,)), ("p", TensorProto.BOOL, (5,)), ("j", TensorProto.INT64, (2,))

    def raw(nodes):
        graph = helper.make_graph(
            [*nodes, lower("z"), tokenizer(), counted()], "g",
            [helper.make_tensor_value_info(*x) for x in inputs],
            [helper.make_tensor_value_info("y", FLOAT, None)],
            [helper.make_tensor(key, *x) for key, x in STRINGS.items()],
        )  # fmt: skip
        opsets = [helper.make_opsetid(*x) for x in (("", 21), ("com.microsoft", 1), ("ai.onnx.ml", 4))]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()

    with pytest.raises(FormatError, match="operand 0 is neither constant nor moved strings of one input"):
        load(raw(OTHERS[name]))
    moved = load(raw([node("Concat", "x x", "twice", axis=0), node("Gather", "twice i", "z")])).compile()
    (want,) = load(model_of([lower(), tokenizer(), counted()])).compile()(TEXTS)
    got = moved(x=TEXTS, w=TEXTS, p=np.ones(5, bool), j=np.zeros(2, np.int64))[0]
    np.testing.assert_array_equal(got, want[[3, 1]])


def branch(nodes, name):
    return helper.make_graph(nodes, "b", [], [helper.make_empty_tensor_value_info(name)])


def test_several_inputs_of_texts_and_results_whose_lengths_and_axes_a_run_decides():
    """Each input has its own row of integers; one of them is moved and compared only, one is of numbers."""
    then = branch([node("Unsqueeze", "second zero", "t")], "t")
    other = branch([node("Neg", "second", "o")], "o")
    nodes = [
        lower(), tokenizer(), counted(writes="first"), lower("w", "lower"),
        node("Tokenizer", "lower", "parts", "com.microsoft", **WORDS), counted("parts", "second"),
        node("Compress", "first m", "some", axis=0), node("Compress", "second k", "few", axis=0),
        node("Add", "some few", "sums"),
        node("If", "p", "either", then_branch=then, else_branch=other),
        node("Equal", "v a", "same"), node("Identity", "v", "moved"), node("Mul", "n n", "square"),
        node("Identity", "lower", "small"),
    ]  # fmt: skip
    bools = TensorProto.BOOL
    inputs = {"n": (FLOAT, (2,)), "x": (STRING, (5,)), "v": (STRING, (2,)), "w": (STRING, (5,)), "m": (bools, (5,)),
              "k": (bools, (5,)), "p": (bools, ())}  # fmt: skip
    outputs = "first sums either same moved square small second".split()
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(name, *x) for name, x in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [helper.make_tensor(key, *x) for key, x in {**STRINGS, "zero": (TensorProto.INT64, [1], [0])}.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid(*x) for x in (("", 21), ("com.microsoft", 1))]
    raw = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    model = load(raw)
    assert {x.name: x.shape for x in model.inputs} == {
        "n": (2,), "x": (5 * 7,), "v": (2,), "w": (5 + 5 * 7,), "m": (5,), "k": (5,), "p": ()
    }  # fmt: skip
    function = model.compile()
    others = TEXTS[[3, 0, 0, 4, 1]]
    count = load(model_of([lower(), tokenizer(), counted()])).compile()
    (first,), (second,) = count(TEXTS), count(others)
    for mask, chosen in ((0b10110, True), (0b00001, False), (0, True)):
        m = np.array([mask >> i & 1 for i in range(5)], bool)
        feed = {"n": np.float32([3, -2]), "x": TEXTS, "v": np.array(["fox", "cat"], object), "w": others, "m": m,
                "k": m[::-1].copy(), "p": np.array(chosen)}  # fmt: skip
        got = dict(zip(outputs, function(**feed), strict=True))
        np.testing.assert_array_equal(got["first"], first)
        np.testing.assert_array_equal(got["second"], second)
        np.testing.assert_array_equal(got["sums"], first[m] + second[m[::-1]])
        np.testing.assert_array_equal(got["either"], second[None] if chosen else -second)
        assert got["same"].tolist() == [True, False] and got["moved"].tolist() == ["fox", "cat"]
        assert got["square"].tolist() == [9, 4] and got["small"].tolist() == [t.lower() for t in others]
    with pytest.raises(InputError, match="lengths known only at run time do not fit"):
        function(**feed | {"m": np.ones(5, bool)})


def test_numbers_of_a_pool_do_not_count_tokens():
    numbers = {k: v for k, v in GRAMS.items() if k != "pool_strings"} | {"pool_int64s": list(range(10))}
    nodes = [node("Identity", "x", "words"), tokenizer(), node("TfIdfVectorizer", "tokens", "y", **numbers)]
    with pytest.raises(FormatError, match=r"operand 0 is string\[5,…\], tokens whose number"):
        load(model_of(nodes))


@pytest.mark.parametrize("changes", [{"tokenexp": None, "separators": [" ", "[,!]"]}, {"mincharnum": 3}, {"mark": 1}])
@pytest.mark.parametrize("shape", [(5,), (1, 4), (0,)], ids=str)
def test_constant_texts_are_split_as_those_of_an_input(changes, shape):
    """Without texts there are no tokens."""
    options = {k: v for k, v in {**WORDS, **changes}.items() if v is not None}
    text = TEXTS[: int(np.prod(shape))].reshape(shape)
    stored = {"words": (STRING, list(shape), [t.encode() for t in text.reshape(-1)])}
    split = node("Tokenizer", "words", "y", "com.microsoft", **options)
    (got,) = load(model_of([split], outputs=("y",), kind=STRING, constants=stored)).compile()(TEXTS)
    pattern, least, mark = options.get("tokenexp"), options["mincharnum"], options["mark"]
    rows = [re.findall(pattern, t) if pattern else re.split("[ ,!]", t) for t in text.reshape(-1)]
    rows = [[part for part in row if len(part) >= least] for row in rows]
    rows = [["\x02", *row, "\x03"] for row in rows] if mark else rows
    width = max(map(len, rows), default=0)
    assert got.shape == (*shape, width)
    assert got.reshape(len(rows), width).tolist() == [row + ["#"] * (width - len(row)) for row in rows]
