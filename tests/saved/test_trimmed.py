"""Saved functions whose results have dynamic lengths, alternatives, conditions or strings."""

import json
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError, InputError
from cgraph.formats.model import Alternative, Model
from cgraph.ir.spec import Spec
from cgraph.running.string_codes import StringCodes
from cgraph.running.text_features import TextFeature, TextInput, TextSplitter
from cgraph.saved.layout import MANIFEST, with_sum
from cgraph.saved.manifest import SavedOutput, SavedVar
from cgraph.saved.trimmed import case_of, pair_of, strings_of, trims_entry, trims_of

TABLE = np.arange(12, dtype="f4").reshape(3, 4)


def model_of_lengths():
    """Rows up to n (their double, flattened, if n is 3), a count of calls, and the condition that n is not 2."""
    x, n, count = cg.Var((3, 4), name="x"), cg.Var((), "int64", "n"), cg.Var((), "int64", "count")
    flat = (Alternative(n == 3, cg.reshape(2 * x, (12,)), {0: n * 4}),)
    model = Model(
        (x, n, count), (x + 0, count + 1, x + 1), ("rows", "next", "more"), counts={0: {0: n + 0}, 2: {1: n + 1}},
        choices={0: flat}, checks={n != 2: "n is not 2"},
    )  # fmt: skip
    return model.with_state({"count": "next"})


def model_of_strings():
    """Codes in, codes out, and whether each is the second word."""
    words = cg.Var((3,), "int64", "words")
    strings = StringCodes({"no": 0, "yes": 1}, frozenset([words]), frozenset([0]))
    return Model((words,), (words[::-1] + 0, words == 1), ("back", "is_yes"), strings=strings)


def copies(function, folder):
    """A saved and loaded function, the same saved again, and one from a pickle."""
    function.save(folder / "one")
    first = cg.load(folder / "one")
    first.save(folder / "two")
    return [first, cg.load(folder / "two"), pickle.loads(pickle.dumps(function))]


def test_lengths_alternatives_conditions_and_state(tmp_path):
    function = model_of_lengths().compile()
    for copy in copies(function, tmp_path):
        assert copy.names == ("rows", "more")
        for calls, n in enumerate((0, 1, 3), 1):
            rows, more = copy(TABLE, n)
            np.testing.assert_array_equal(rows, (2 * TABLE).reshape(-1) if n == 3 else TABLE[:n])
            np.testing.assert_array_equal(more, (TABLE + 1)[:, : n + 1])
            assert copy.state["count"].value == calls
        with pytest.raises(InputError, match="n is not 2"):
            copy(TABLE, 2)
        with pytest.raises(InputError, match="4 elements along axis 0 of a result whose maximum is 3"):
            copy(TABLE, 4)
        assert copy.state["count"].value == 3


def test_strings(tmp_path):
    for copy in copies(model_of_strings().compile(), tmp_path):
        back, is_yes = copy(["yes", "new", "no"])
        assert back.tolist() == ["no", "new", "yes"] and is_yes.tolist() == [True, False, False]
        with pytest.raises(InputError, match="not a string"):
            copy([1, 2, 3])


def test_a_graph_beside_it_is_refused(tmp_path):
    with pytest.raises(FormatError, match="no lengths and no strings"):
        model_of_strings().compile().save(tmp_path / "f", graph=b"")
    assert not (tmp_path / "f").exists()


def changed(entry, *path, value):
    """The entry with another value at a path."""
    entry = json.loads(json.dumps(entry))
    place = entry
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return entry


def load_changed(model, folder, change):
    """Save the function of a model, change one value of its entry, and load it."""
    model.compile().save(folder)
    entries = json.loads((folder / MANIFEST).read_text())
    del entries["crc32"]
    *path, value = change
    entries["trims"] = changed(entries["trims"], *path, value=value)
    (folder / MANIFEST).write_bytes(with_sum(json.dumps(entries)))
    return cg.load(folder)


@pytest.mark.parametrize(
    "change",
    [
        ("cases", 0, 0, 1, 99), ("cases", 0, 0, 1, -1), ("cases", 0, 0, 0, 0), ("cases", 0, 0, 0, 99), ("cases", 0, []),
        ("cases", 0, 1, 0, 3), ("cases", 0, 1, 2, [[2, 3]]), ("cases", 0, 1, 2, [[0, 0]]),
        ("cases", 0, 1, 2, [[0, 99]]),
        ("cases", []), ("cases", {}), ("cases", 0, 1), ("texts", 0, 1), ("texts", ["a"] * 20), ("texts", ["a", "b"]),
        ("strings", {}), ("strings", {"words": [1], "inputs": [], "outputs": []}),
        ("strings", {"words": ["a", "a"], "inputs": [], "outputs": []}),
        ("strings", {"words": ["a"], "inputs": [9], "outputs": []}),
        ("strings", {"words": ["a"], "inputs": [0], "outputs": []}),
        ("strings", {"words": ["a"], "inputs": [], "outputs": [2]}),
    ],
    ids=str,
)  # fmt: skip
def test_an_entry_that_does_not_fit_is_refused(tmp_path, change):
    with pytest.raises(FormatError, match="malformed"):
        load_changed(model_of_lengths(), tmp_path / "f", change)


@pytest.mark.parametrize("kept", [slice(1), slice(0), slice(None, None, -1)], ids=["first", "none", "last first"])
def test_an_output_without_a_last_case_that_needs_no_condition_is_refused(tmp_path, kept):
    """All conditions may be false in a run, which then has no result."""
    model_of_lengths().compile().save(tmp_path / "f")
    cases = json.loads((tmp_path / "f" / MANIFEST).read_text())["trims"]["cases"][0]
    conditions = [condition for condition, *_ in cases]
    assert len(conditions) == 2 and conditions[0] >= 0 > conditions[1]
    with pytest.raises(FormatError, match="malformed"):
        load_changed(model_of_lengths(), tmp_path / "g", ("cases", 0, cases[kept]))
    assert load_changed(model_of_lengths(), tmp_path / "h", ("cases", 0, cases[1:])).names == ("rows", "more")


def model_of_texts():
    """How often a word occurs in each text, and the codes of the texts in lower case."""
    row = cg.Var((3 * 2 + 3,), "int64", "texts")
    counts = TextFeature(
        np.arange(3), "LOWER", TextSplitter("[a-z]+", (), 1, False, "#"), {("fox",): 1, ("a", "b"): 0}, 1, 2
    )
    text = TextInput((3,), False, (counts, TextFeature(np.arange(3), "LOWER")))
    strings = StringCodes({"fox": 0}, frozenset([row]), frozenset([1]), {row: text})
    return Model((row,), (row[:6].reshape(3, 2) + 0, row[6:] + 0), ("counts", "words"), strings=strings)


def test_texts(tmp_path):
    for copy in copies(model_of_texts().compile(), tmp_path):
        counts, words = copy(["A x B fox", "FOX fox", ""])
        assert counts.tolist() == [[1, 1], [0, 2], [0, 0]] and words.tolist() == ["a x b fox", "fox fox", ""]


def model_of_two_inputs():
    """Two inputs of strings, of which the second alone is in lower case when a run reads it."""
    words, row = cg.Var((3,), "int64", "words"), cg.Var((3,), "int64", "texts")
    text = TextInput((3,), False, (TextFeature(np.arange(3), "LOWER"),))
    strings = StringCodes({"fox": 0, "dog": 1}, frozenset([words, row]), frozenset([0, 1]), {row: text})
    return Model((words, row), (words + 0, row[::-1] + 0), ("words", "texts"), strings=strings)


def test_the_texts_of_an_input_are_not_those_of_the_other(tmp_path):
    for copy in copies(model_of_two_inputs().compile(), tmp_path):
        words, texts = copy(["Dog", "fox", "new"], ["A", "FOX", "Dog"])
        assert words.tolist() == ["Dog", "fox", "new"] and texts.tolist() == ["dog", "fox", "a"]


def test_strings_of_a_file_from_before_there_were_texts_are_read(tmp_path):
    older = {"words": ["no", "yes"], "inputs": [0], "outputs": [0]}
    back, is_yes = load_changed(model_of_strings(), tmp_path / "f", ("strings", older))(["yes", "new", "no"])
    assert back.tolist() == ["no", "new", "yes"] and is_yes.tolist() == [True, False, False]


FIRST = ("strings", "texts", 0)
FEATURE = (*FIRST, "features", 0)


@pytest.mark.parametrize(
    "change",
    [
        ("strings", "texts", []),
        ("strings", "texts", {}),
        (*FIRST, 3),
        (*FIRST, "shape", [2]),
        (*FIRST, "shape", [-3]),
        (*FIRST, "codes", True),
        (*FIRST, "features", []),
        (*FIRST, "features", 0, 1),
        (*FEATURE, "index", [[3], [0, 1, 3]]),
        (*FEATURE, "index", [[3], [0, 1]]),
        (*FEATURE, "index", [[3], [0, 1, -1]]),
        (*FEATURE, "case", "TITLE"),
        (*FEATURE, "columns", 3),
        (*FEATURE, "columns", -1),
        (*FEATURE, "skips", -1),
        (*FEATURE, "grams", [[["a"], 2]]),
        (*FEATURE, "grams", [[[], 0]]),
        (*FEATURE, "grams", [[[1], 0]]),
        (*FEATURE, "splitter", ["a", ["b"], 1, False, "#"]),
        (*FEATURE, "splitter", [1, [], 1, False, "#"]),
        (*FEATURE, "splitter", ["a", [], -1, False, "#"]),
    ],
    ids=str,
)
def test_texts_that_do_not_fit_are_refused(tmp_path, change):
    with pytest.raises(FormatError, match="malformed"):
        load_changed(model_of_texts(), tmp_path / "f", change)


def test_a_pattern_without_a_bound_on_its_time_is_refused_in_a_saved_function_too(tmp_path):
    with pytest.raises(FormatError, match="the pattern .* is not supported"):
        load_changed(model_of_texts(), tmp_path / "f", (*FEATURE, "splitter", ["(a+)+b", [], 1, False, "#"]))


@pytest.mark.parametrize(
    ("entry", "fits"),
    [
        ([0, 1], True), ([1, 2], True), ([2, 1], False), ([-1, 1], False), ([0, -1], False), ([0, 3], False),
        ([0, 4], False), ([0, 0], False), ([0], False), ([0, 1, 2], False), (["0", 1], False), ([True, 1], False),
    ],
)  # fmt: skip
def test_an_axis_is_of_its_result_and_its_length_an_integer_among_the_outputs(entry, fits):
    """Of a result of two axes, beside two lengths; there is no output 3."""
    outputs = [cg.Var((3, 4)), cg.Var((), "int64"), cg.Var((1,), "uint8")]
    if fits:
        assert pair_of(entry, outputs, 2) == tuple(entry)
    else:
        with pytest.raises(FormatError, match="malformed"):
            pair_of(entry, outputs, 2)


@pytest.mark.parametrize(
    ("entry", "fits"),
    [
        ([-1, 0, []], True), ([1, 2, []], True), ([1, 0, [[0, 3]]], True), ([1, 4, []], False), ([4, 0, []], False),
        ([-2, 0, []], False), ([1, -1, []], False), ([2, 0, []], False), ([0, 0, []], False), ([1, 0, None], False),
        ([1, 0], False), ([None, 0, []], False), ([1, 0, [[2, 3]]], False), ([True, 0, []], False),
    ],
)  # fmt: skip
def test_a_case_has_a_condition_and_an_array_among_the_outputs(entry, fits):
    """Of four outputs: two axes, a condition, an integer of one axis, a length; -1 stands for no condition."""
    outputs = [cg.Var((3, 4)), cg.Var((), "bool"), cg.Var((3,), "int64"), cg.Var((), "int64")]
    if fits:
        case = case_of(entry, outputs)
        assert [case.condition if case.condition is not None else -1, case.place] == entry[:2]
        assert case.cut == dict(entry[2])
    else:
        with pytest.raises(FormatError, match="malformed"):
            case_of(entry, outputs)


@pytest.mark.parametrize(("texts", "fits"), [([], True), (["a"], True), (["a", "b"], False)])
def test_conditions_that_a_run_checks_are_the_last_outputs(texts, fits):
    manifest = SimpleNamespace(outputs=[SavedOutput(Spec((), np.dtype(bool)))], names=("y",))
    entry = {"cases": [[[-1, 0, []]]], "texts": texts, "strings": None}
    if fits:
        assert trims_of(entry, manifest).texts == tuple(texts)
        return
    with pytest.raises(FormatError, match="conditions"):
        trims_of(entry, manifest)


@pytest.mark.parametrize(("dtype", "fits"), [("i8", True), ("i4", True), ("u8", False), ("f4", False), ("?", False)])
def test_codes_of_strings_are_signed_integers(dtype, fits):
    x = SavedVar("x", Spec((3,), np.dtype(dtype)), "")
    manifest = SimpleNamespace(inputs=(x,))
    entry = {"words": ["a", "b"], "inputs": [0], "outputs": []}
    if fits:
        assert strings_of(entry, manifest, 1).numbers == {"a": 0, "b": 1}
        return
    with pytest.raises(FormatError, match="an input of strings"):
        strings_of(entry, manifest, 1)


def model_of_axes():
    """A result of two dynamic lengths, one of three alternatives of several, and two conditions."""
    x, n, m = cg.Var((3, 4), name="x"), cg.Var((), "int64", "n"), cg.Var((), "int64", "m")
    others = (
        Alternative(n == 0, x * 10, {1: m + 0}), Alternative(n == 1, cg.reshape(x + 1, (12,)), {0: m * 3}),
    )  # fmt: skip
    return Model(
        (x, n, m), (x * 2, x + 5), ("a", "b"), counts={0: {0: n + 0, 1: m + 0}, 1: {1: n + 1, 0: m - 1}},
        choices={1: others}, checks={n < 4: "n is too large", m > 0: "m must be positive"},
    )  # fmt: skip


def test_lengths_of_several_axes_and_several_alternatives_and_conditions(tmp_path):
    for copy in [model_of_axes().compile(), *copies(model_of_axes().compile(), tmp_path)]:
        for n, m in ((2, 3), (3, 1), (0, 2), (1, 4), (2, 1), (3, 4)):
            a, b = copy(TABLE, n, m)
            np.testing.assert_array_equal(a, 2 * TABLE[:n, :m])
            own = (TABLE + 5)[: m - 1, : n + 1]
            want = {0: 10 * TABLE[:, :m], 1: (TABLE + 1).reshape(-1)[: 3 * m]}.get(n, own)
            np.testing.assert_array_equal(b, want)
        with pytest.raises(InputError, match="n is too large"):
            copy(TABLE, 4, 1)
        with pytest.raises(InputError, match="m must be positive"):
            copy(TABLE, 1, 0)
        with pytest.raises(InputError, match="5 elements along axis 1"):
            copy(TABLE, 2, 5)


def model_of_mixed_inputs():
    """Numbers, and two inputs of words, of which the second result is one."""
    x, first, second = cg.Var((3,), name="x"), cg.Var((3,), "int64", "first"), cg.Var((2,), "int64", "second")
    strings = StringCodes({"no": 0, "yes": 1}, frozenset([second, first]), frozenset([1]))
    outputs = x + first.astype("float32"), second[::-1] + 0, first == 1
    return Model((x, first, second), outputs, ("sum", "back", "is_yes"), strings=strings)


def test_strings_beside_numbers(tmp_path):
    x = np.float32([1, 2, 3])
    for copy in [model_of_mixed_inputs().compile(), *copies(model_of_mixed_inputs().compile(), tmp_path)]:
        total, back, is_yes = copy(x, ["yes", "no", "yes"], ["no", "yes"])
        assert total.tolist() == [2, 2, 4] and back.tolist() == ["yes", "no"] and is_yes.tolist() == [True, False, True]
        with pytest.raises(InputError, match="not a string"):
            copy(x, ["yes", "no", "yes"], [0, 1])
    entry = trims_entry(model_of_mixed_inputs().compile())["strings"]
    assert entry == {"words": ["no", "yes"], "inputs": [1, 2], "outputs": [1], "texts": [None, None]}


@pytest.mark.parametrize("kinds", [("b",), ("b", "b"), ("f", "b"), ("b", "f"), ("b", "i", "b")])
@pytest.mark.parametrize("shape", [(), (1, 1), (2,)])
def test_every_condition_is_one_bool(kinds, shape):
    """They follow an output that is no condition."""
    dtypes = {"b": "bool", "f": "float32", "i": "int64"}
    outputs = [SavedOutput(Spec((3,), np.dtype("f4")))]
    outputs += [SavedOutput(Spec(shape, np.dtype(dtypes[k]))) for k in kinds]
    manifest = SimpleNamespace(outputs=outputs, names=("y",))
    entry = {"cases": [[[-1, 0, []]]], "texts": [f"condition {k}" for k in kinds], "strings": None}
    if set(kinds) == {"b"} and shape != (2,):
        assert trims_of(entry, manifest).texts == tuple(entry["texts"])
        return
    with pytest.raises(FormatError, match="conditions of results of dynamic length"):
        trims_of(entry, manifest)


@pytest.mark.parametrize(("pairs", "cut"), [
    ([], {}), ([[0, 1]], {0: 1}), ([[0, 1], [1, 2]], {0: 1, 1: 2}), ([[1, 1], [0, 1]], {1: 1, 0: 1}),
    ([[0, 1], [2, 1]], None), ([[0, 1], [3, 1]], None), ([[0, 1], [1, 0]], None), ([[0, 1], [1, 3]], None),
])  # fmt: skip
def test_each_axis_of_a_case_has_its_length(pairs, cut):
    outputs = [cg.Var((3, 4)), cg.Var((), "int64"), cg.Var((1,), "uint8")]
    if cut is None:
        with pytest.raises(FormatError, match="malformed"):
            case_of([-1, 0, pairs], outputs)
        return
    assert case_of([-1, 0, pairs], outputs).cut == cut


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_each_input_of_strings_is_of_integers(wrong):
    inputs = tuple(SavedVar(f"x{i}", Spec((3,), np.dtype("f4" if i == wrong else "i8")), "") for i in range(3))
    for listed in ([0, 1], [1, 2], [2, 0], [2], []):
        entry = {"words": ["a"], "inputs": listed, "outputs": [0]}
        if wrong in listed:
            with pytest.raises(FormatError, match="an input of strings"):
                strings_of(entry, SimpleNamespace(inputs=inputs), 1)
            continue
        found = strings_of(entry, SimpleNamespace(inputs=inputs), 1)
        assert found.inputs == {inputs[i] for i in listed} and found.outputs == {0}
