"""Operators that compute strings of constants, beside the reference evaluator of onnx; what they cost and refuse."""

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import cgraph as cg
from cgraph.errors import FormatError, InputError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.vocabulary import STRING

WORDS = np.array(["monday", "Tuesday", "MONDAY", "a b  c", ""], object)


def model_of(kind, arrays, kinds, **attributes):
    """A model of one node on inputs of strings x0, x1 …"""
    names = [f"x{i}" for i in range(len(arrays))]
    outputs = [f"y{i}" for i in range(len(kinds))]
    graph = helper.make_graph(
        [helper.make_node(kind, names, outputs, **attributes)],
        "g",
        [helper.make_tensor_value_info(n, STRING, x.shape) for n, x in zip(names, arrays)],
        [helper.make_tensor_value_info(n, k, None) for n, k in zip(outputs, kinds)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()


def check(kind, *arrays, kinds=(STRING,), **attributes):
    raw, feed = model_of(kind, arrays, kinds, **attributes), {f"x{i}": x for i, x in enumerate(arrays)}
    results = load(raw, constants=feed).compile()(**feed)
    for got, want in zip(results, ReferenceEvaluator(onnx.load_from_string(raw)).run(None, feed), strict=True):
        assert got.shape == np.shape(want) and got.tolist() == want.tolist()
    return results


@pytest.mark.parametrize("case", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("exact", [0, 1])
def test_words_are_dropped_and_change_case(case, exact):
    """The reference ignores is_case_sensitive=0 beside NONE, against the operator's text."""
    options = {"case_change_action": case, "is_case_sensitive": int(exact or case == "NONE")}
    check("StringNormalizer", WORDS[:3], stopwords=["monday"], **options)
    check("StringNormalizer", WORDS[None, :3], stopwords=["monday"], **options)
    check("StringNormalizer", WORDS[:3], **options)


def test_words_are_dropped_in_any_case():
    raw = model_of("StringNormalizer", (WORDS[:3],), (STRING,), stopwords=["Monday"])
    assert load(raw, constants={"x0": WORDS[:3]}).compile()(WORDS[:3])[0].tolist() == ["Tuesday"]


def test_one_empty_string_is_left_of_nothing():
    (got,) = check("StringNormalizer", WORDS[:1], stopwords=["monday"], is_case_sensitive=1)
    assert got.tolist() == [""]


@pytest.mark.parametrize("shapes", [((5,), (5,)), ((5, 1), (5,)), ((), ()), ((0,), (1,))], ids=str)
def test_strings_are_joined(shapes):
    x, y = (np.resize(WORDS, shape) if shape != (0,) else WORDS[:0] for shape in shapes)
    (got,) = load(model_of("StringConcat", (x, y), (STRING,)), constants={"x0": x, "x1": y}).compile()(x, y)
    want = np.asarray(np.add(*np.broadcast_arrays(x, y)), object)
    assert got.shape == want.shape and got.tolist() == want.tolist()


@pytest.mark.parametrize(
    "options", [{}, {"delimiter": " "}, {"delimiter": "on", "maxsplit": 1}, {"maxsplit": 1}], ids=str
)
def test_strings_are_split(options):
    raw = model_of("StringSplit", (WORDS,), (STRING, onnx.TensorProto.INT64), **options)
    parts, counts = load(raw, constants={"x0": WORDS}).compile()(WORDS)
    for row, count, word in zip(parts, counts, WORDS, strict=True):
        assert row[:count].tolist() == word.split(options.get("delimiter"), options.get("maxsplit", -1))
        assert set(row[count:]) <= {""}


def test_strings_of_an_input_are_refused_and_the_advice_works():
    raw = model_of("StringNormalizer", (WORDS[:3],), (STRING,), case_change_action="UPPER", stopwords=["x"])
    with pytest.raises(FormatError, match=r"StringNormalizer.*operand 0 must be constant.*constants={'x0': value}"):
        load(raw)
    assert load(raw, constants={"x0": WORDS[:3]}).compile()(WORDS[:3])[0].tolist() == ["MONDAY", "TUESDAY", "MONDAY"]
    with pytest.raises(InputError, match="x0 holds 3 of int, not a string"):
        load(raw, constants={"x0": [3, 4, 5]})


@pytest.mark.parametrize(
    ("x", "how"),
    [
        (WORDS[:4].reshape(2, 2), "LOWER"),
        (WORDS, "TITLE"),
        (WORDS[:1].reshape(()), "LOWER"),
        (WORDS[:4].reshape(1, 2, 2), "LOWER"),
    ],
)
def test_other_rows_and_cases_are_refused(x, how):
    with pytest.raises(FormatError, match=f"case_change_action '{how}' of strings .* is not supported. Use NONE"):
        load(model_of("StringNormalizer", (x,), (STRING,), case_change_action=how), constants={"x0": x})


def test_long_joined_strings_are_charged():
    x = np.array(["x" * 10**6] * 40, object)
    nodes = [helper.make_node("StringConcat", ["x0", "x0"], ["a"]), helper.make_node("StringConcat", ["a", "a"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x0", STRING, x.shape)],
        [helper.make_tensor_value_info("y", STRING, None)],
    )
    raw = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    with pytest.raises(FormatError, match="StringConcat.*it would take .* bytes"):
        load(raw, constants={"x0": x})


PATTERNS = [r"\w+day", "(?:mon|tues|Tues)day|", r"[^ ]*", "a b  c", r".*\bb\b.*", "x"]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("shape", [(5,), (5, 1), (1, 5, 1), (0,)], ids=str)
@pytest.mark.parametrize("is_constant", [False, True])
def test_strings_are_matched_as_a_whole(pattern, shape, is_constant):
    runtime = pytest.importorskip("onnxruntime")
    x = WORDS.reshape(shape) if shape != (0,) else WORDS[:0]
    raw = model_of("RegexFullMatch", (x,), (onnx.TensorProto.BOOL,), pattern=pattern)
    session = runtime.InferenceSession(raw, providers=["CPUExecutionProvider"])
    (want,) = session.run(None, {"x0": x})
    (got,) = load(raw, constants={"x0": x} if is_constant else {}).compile()(x)
    np.testing.assert_array_equal(got, want, strict=True)


def test_matches_beside_moved_strings_and_their_codes(tmp_path):
    """Of the same input: in another case, in another order, and compared; also of a saved function."""
    nodes = [
        helper.make_node("StringNormalizer", ["x"], ["low"], case_change_action="LOWER"),
        helper.make_node("RegexFullMatch", ["low"], ["a"], pattern="[a-z]+day"),
        helper.make_node("Gather", ["x", "places"], ["moved"]),
        helper.make_node("RegexFullMatch", ["moved"], ["b"], pattern="[A-Z]+"),
        helper.make_node("Equal", ["x", "moved"], ["c"]),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", STRING, (5,))],
        [helper.make_tensor_value_info(n, onnx.TensorProto.BOOL, None) for n in "abc"],
        [helper.make_tensor("places", onnx.TensorProto.INT64, (5,), [2, 1, 0, 4, 3])],
    )  # fmt: skip
    raw = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    function = load(raw).compile()
    function.save(tmp_path / "saved")
    for f in (function, cg.load(tmp_path / "saved")):
        a, b, c = f(WORDS)
        assert a.tolist() == [True, True, True, False, False]
        assert b.tolist() == [True, False, False, False, False]
        assert c.tolist() == [False, True, False, False, False]


def test_other_patterns_and_long_constants_are_refused():
    for pattern in (r"\1", "a{1001}", "(a"):
        with pytest.raises(FormatError, match="RegexFullMatch.*RE2 cannot read the pattern"):
            load(model_of("RegexFullMatch", (WORDS,), (onnx.TensorProto.BOOL,), pattern=pattern))
    x = np.array(["a" * 10_000_000], object)
    with pytest.raises(FormatError, match="RegexFullMatch.*computed elements"):
        load(model_of("RegexFullMatch", (x,), (onnx.TensorProto.BOOL,), pattern="a*"), constants={"x0": x})
