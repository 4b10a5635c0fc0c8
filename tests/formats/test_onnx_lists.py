"""Long lists of attributes beside protobuf's own parser: every form of a list, random messages, damaged bytes."""

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from onnx import AttributeProto, helper

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx import lists, load, split
from cgraph.formats.onnx.lists import FLOATS, INTS, LONG, MOST_PARTS, STRINGS, USUAL, long_lists
from cgraph.formats.onnx.source import open_source
from cgraph.formats.onnx.wire import CHUNK, encode_varint

KINDS = {"floats": FLOATS, "ints": INTS, "strings": STRINGS}
TYPES = {"floats": AttributeProto.FLOATS, "ints": AttributeProto.INTS, "strings": AttributeProto.STRINGS}
BORDERS = [0, 1, 127, 128, 2**14, 2**31 - 1, 2**31, 2**62, 2**63 - 1, -1, -(2**31), -(2**31) - 1, -(2**63)]
LENGTHS = [0, 1, 4, 10, 127, 128, 300]
RANGES = {"bytes": (0, 128), "small": (0, 70_000), "negative": (-300, 300)}


def delimited(number, body):
    """A field of bytes."""
    return encode_varint(number << 3 | 2) + encode_varint(len(body)) + body


def varints(values):
    return [encode_varint(int(n) % 2**64) for n in values]


def field(name, values, packed=False):
    """The bytes of a list: one field of packed numbers, or one for each item."""
    if name == "strings":
        return b"".join(delimited(STRINGS, text) for text in values)
    floats = name == "floats"
    items = [np.float32(x).tobytes() for x in values] if floats else varints(values)
    if packed:
        return delimited(KINDS[name], b"".join(items))
    tag = bytes([KINDS[name] << 3 | (5 if floats else 0)])
    return b"".join(tag + item for item in items)


def attribute(name, *parts):
    """The bytes of an AttributeProto with parts of a list."""
    return b"\x0a\x01a" + b"".join(parts) + b"\xa0\x01" + bytes([TYPES[name]])


def model(raw):
    """The bytes of a model whose only node has one attribute."""
    return delimited(7, delimited(1, b"\x22\x01N" + delimited(5, raw)))


def parsed(raw):
    """The list that is read, and whether it stayed in the file. The graph is not built."""
    opened = open_source(model(raw))
    opened.allowance()
    proto = opened.proto.graph.node[0].attribute[0]
    items = opened.listed(proto)
    if items is None:
        name = {v: k for k, v in TYPES.items()}.get(proto.type)
        values = list(getattr(proto, name)) if name else []
        return [s.decode("utf-8", "replace") if isinstance(s, bytes) else s for s in values], False
    found = items.tolist()
    if items.is_numeric:
        array = items.array()
        np.testing.assert_array_equal(array, np.array(found, array.dtype))
        assert array.dtype in ("f4", "i4", "i8")
    return found, True


def expected(raw, name):
    """The list that protobuf reads."""
    values = list(getattr(onnx.AttributeProto.FromString(raw), name))
    return [s.decode("utf-8", "replace") for s in values] if name == "strings" else values


def assert_alike(raw, name, is_left_out=True):
    found, was_left_out = parsed(raw)
    want = expected(raw, name)
    assert was_left_out is is_left_out and len(found) == len(want)
    np.testing.assert_array_equal(found, want)


def draw(rng, name, count):
    """Random items of a list."""
    if name == "floats":
        return rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    if name == "ints":
        kind = rng.choice([*RANGES, "borders"])
        return rng.choice(BORDERS, count).tolist() if kind == "borders" else rng.integers(*RANGES[kind], count).tolist()
    alphabet = np.frombuffer(b"J\x4a\x00ab\x04\x0a\xff", np.uint8)  # J is the tag of a string
    return [rng.choice(alphabet, rng.choice(LENGTHS)).tobytes() for _ in range(count)]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("packed", [False, True])
def test_a_list_of_a_thousand_bytes_stays_in_the_file(name, packed):
    item = {"floats": 1.5, "ints": 300, "strings": b"texts"}[name]
    size = len(field(name, [item, item])) - len(field(name, [item]))
    count = -(-LONG // size)
    if packed and name != "strings":
        size, count = (4, LONG // 4) if name == "floats" else (2, LONG // 2)
    for n in (count - 2, count):
        raw = attribute(name, field(name, [item] * n, packed))
        assert_alike(raw, name, n == count or len(field(name, [item] * n, packed)) >= LONG)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_random_lists_are_those_of_protobuf(name, seed):
    """Packed and other parts, other fields in between, and lists that cross the chunks that are read at once."""
    rng = np.random.default_rng([seed, KINDS[name]])
    parts = [field(name, draw(rng, name, 1000))]
    for _ in range(rng.integers(6)):
        count = int(rng.choice([0, 1, USUAL - 1, USUAL, USUAL + 1, 2000, 40_000 if name != "strings" else 3000]))
        parts.append(field(name, draw(rng, name, count), bool(rng.integers(2))))
        if rng.integers(2):
            other = str(rng.choice(list(KINDS)))
            parts.append(field(other, draw(rng, other, int(rng.integers(200)))))
        if rng.integers(2):
            parts.append(delimited(13, b"some documentation") if rng.integers(2) else b"\x18\x07")
    rng.shuffle(parts)
    assert_alike(attribute(name, *parts), name)


def test_items_of_every_length_cross_the_borders_of_chunks():
    ints = [n for n in BORDERS for _ in range(9)] * 700
    texts = [bytes([65 + i % 26]) * (i % 130) for i in range(CHUNK // 40)]
    for shift in (0, 1, 2, 5, 9):
        assert_alike(attribute("ints", field("ints", [0] * shift + ints)), "ints")
        assert_alike(attribute("strings", field("strings", [b"s" * shift, *texts])), "strings")


def test_strings_that_contain_their_own_tag_are_found():
    for text in (b"J", b"JJ", b"J\x01J", b"J\x02J\x00", b"J\x00" * 40, b"J" * 200):
        assert_alike(attribute("strings", field("strings", [text] * 2000)), "strings")


def test_very_long_strings_are_left_to_protobuf():
    for length, is_left_out in ((2**14 - 1, True), (2**14, False)):
        assert_alike(attribute("strings", field("strings", [b"abc", b"J" * length])), "strings", is_left_out)


def test_a_list_of_very_many_parts_is_left_to_protobuf():
    for count, is_left_out in ((MOST_PARTS, True), (MOST_PARTS + 1, False)):
        parts = [field("ints", [7] * 40, packed=True)] * count
        assert_alike(attribute("ints", *parts), "ints", is_left_out)
    pairs = [field("ints", [7], packed=True), field("ints", [8])] * 3000
    floats = field("floats", [1.5] * 900)
    raw = attribute("ints", *pairs, floats, *pairs)
    assert_alike(raw, "ints", is_left_out=False)
    found = long_lists(memoryview(raw), 0, len(raw), Allowance(0))
    assert [(part.number, part.size) for part in found] == [(FLOATS, 900)]


@pytest.mark.parametrize(
    "unusual", [b"\xc0\x00\x07", b"\xc2\x00\x01\x07", b"\x42\x81\x00\x07", b"\x3d1234", b"\x45abcd", b"\x41abcdefgh"]
)
def test_unusual_tags_in_a_list_are_read_as_by_protobuf(unusual):
    """Longer than needed, or with the wire type of another field, which protobuf does not read."""
    ints = field("ints", range(900))
    found, _ = parsed(attribute("ints", ints, unusual, ints))
    assert found == expected(attribute("ints", ints, unusual, ints), "ints")


def test_lists_that_the_type_does_not_name_are_not_read():
    raw = b"\x0a\x01a" + field("floats", [1.5] * 900) + field("ints", [3] * 900) + b"\xa0\x01\x07"
    assert parsed(raw) == ([3] * 900, True)
    raw = b"\x0a\x01a" + field("floats", [1.5] * 900) + field("ints", [3] * 9) + b"\xa0\x01\x07"
    assert parsed(raw) == ([3] * 9, False)


@pytest.mark.parametrize("seed", range(40))
def test_damaged_lists_are_refused_or_are_those_of_protobuf(seed):
    rng = np.random.default_rng(seed)
    name = list(KINDS)[seed % 3]
    count = int(rng.integers(200, 600))
    whole = attribute(
        name, field(name, draw(rng, name, count), bool(rng.integers(2))), field(name, draw(rng, name, 300))
    )
    for _ in range(25):
        raw = bytearray(whole)
        for place in rng.integers(3, len(raw), rng.integers(1, 3)):
            raw[place] = rng.choice([0, 1, 0x40, 0x42, 0x4A, 0x3D, 0x7F, 0x80, 0xFF, int(rng.integers(256))])
        if rng.integers(3) == 0:
            del raw[int(rng.integers(3, len(raw))) :]
        try:
            proto = onnx.AttributeProto.FromString(bytes(raw))
        except DecodeError:
            proto = None
        try:
            found, _ = parsed(bytes(raw))
        except FormatError:
            continue
        assert proto is not None
        want = {t: list(getattr(proto, n)) for n, t in TYPES.items()}.get(proto.type, [])
        want = [s.decode("utf-8", "replace") if isinstance(s, bytes) else s for s in want]
        assert len(found) == len(want)
        np.testing.assert_array_equal(found, want)


FULL = field("ints", [5] * 2000)


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        ([FULL, b"\x40\x80"], "ends at|truncated"),
        ([FULL, b"\x40"], "truncated|wire type"),
        ([FULL, b"\x40" + b"\xff" * 10 + b"\x01"], "more than 64 bits"),
        ([delimited(INTS, b"\x05" * 2000 + b"\x85")], "the last number of the list at byte .* is truncated"),
        ([delimited(INTS, b"\x05" * 2000 + b"\xff" * 10 + b"\x01")], "a number has 11 bytes, at most 10"),
        ([delimited(INTS, b"\x05" * 2000 + b"\xff" * 70_000 + b"\x01")], "truncated or has more than 64 bits"),
        ([delimited(FLOATS, bytes(2003))], "the last number of the list at byte .* is truncated"),
        ([b"\x42\xff\x7f" + b"\x05" * 2000], "ends at"),
        ([field("strings", [b"ab"] * 900), b"\x4a\x7fab"], "ends at"),
    ],
)
def test_malformed_lists_are_refused(parts, match):
    name = "floats" if parts[0][:1] == b"\x3a" else "ints"
    raw = attribute(name, *parts) if not match.startswith("ends at") else b"\x0a\x01a\xa0\x01\x07" + b"".join(parts)
    with pytest.raises(DecodeError):
        onnx.AttributeProto.FromString(raw)
    with pytest.raises(FormatError, match=match):
        parsed(raw)


def test_bits_beyond_the_64th_are_dropped():
    for last in (b"\x01", b"\x02", b"\x7f"):
        number = b"\xff" * 9 + last
        for part in (b"\x40" + number, delimited(INTS, number)):
            assert_alike(attribute("ints", FULL, part * 9), "ints")


def test_a_file_with_a_mark_of_its_own_is_refused():
    mark = helper.make_attribute("a", [onnx.TensorProto(dims=[900], data_type=INTS)])
    mark.tensors[0].segment.end = 900
    mark.type = AttributeProto.INTS
    for more in (b"", FULL):
        with pytest.raises(FormatError, match="a tensor in segments is not supported"):
            parsed(mark.SerializeToString() + more)


def test_integers_are_narrow_if_all_of_them_fit():
    for value, dtype in ((2**31 - 1, "i4"), (2**31, "i8"), (-(2**31), "i4"), (-(2**31) - 1, "i8")):
        for packed in (False, True):
            opened = open_source(model(attribute("ints", field("ints", [*[1] * 90_000, value, 2], packed))))
            opened.allowance()
            array = opened.listed(opened.proto.graph.node[0].attribute[0]).array()
            assert array.dtype == dtype and array[-2:].tolist() == [value, 2]


def test_strings_become_indices():
    options = ("LEAF", "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "")
    want = np.random.default_rng(3).integers(0, len(options), 50_000)
    texts = [options[i].encode() for i in want]
    opened = open_source(model(attribute("strings", field("strings", texts))))
    opened.allowance()
    items = opened.listed(opened.proto.graph.node[0].attribute[0])
    np.testing.assert_array_equal(items.indices(options), want)
    with pytest.raises(FormatError, match="a lists 'BRANCH_GTE', which is not supported. Use LEAF, BRANCH_LEQ"):
        items.indices(options[:3] + ("",))


@pytest.mark.parametrize("packed", [False, True])
def test_lists_are_charged_before_they_are_decoded(packed):
    opened = open_source(model(attribute("ints", field("ints", [1] * 5000, packed))))
    budget = opened.allowance()
    items = opened.listed(opened.proto.graph.node[0].attribute[0])
    before = budget.nbytes
    items.array()
    assert before - budget.nbytes == 4 * 5000
    for read, nbytes in ((items.array, 4 * 5000), (items.tolist, 44 * 5000)):
        budget.nbytes = nbytes
        read()
        budget.nbytes = nbytes - 1
        with pytest.raises(FormatError, match="attribute a would take"):
            read()
    budget.nbytes, budget.work = 1 << 20, 1000
    with pytest.raises(FormatError, match="computed elements"):
        items.array()


def test_work_on_a_list_is_in_proportion_to_its_bytes():
    for raw in (field("ints", [1] * 10_000), field("ints", [1] * 100_000), field("strings", [b"J\x00"] * 50_000)):
        allowance = Allowance(0)
        before = allowance.work
        assert len(long_lists(memoryview(raw), 0, len(raw), allowance)) == 1
        assert before - allowance.work < 20 * len(raw) + 10_000


TOKENS = [f"word{i}" for i in range(400)]
NUMBERS = np.random.default_rng(5).standard_normal(2400).astype("f4").tolist()
OPERATORS = {
    "value_ints": ("Constant", "", None, {"value_ints": list(range(-700, 700))}),
    "value_floats": ("Constant", "", None, {"value_floats": NUMBERS}),
    "value_strings": ("Constant", "", None, {"value_strings": TOKENS}),
    "scaler": ("Scaler", "ai.onnx.ml", (3, 600), {"offset": NUMBERS[:600], "scale": NUMBERS[600:1200]}),
    "imputer": ("Imputer", "ai.onnx.ml", (3, 600), {"imputed_value_floats": NUMBERS[:600]}),
    "linear": (
        "LinearClassifier", "ai.onnx.ml", (3, 4),
        {"coefficients": NUMBERS, "intercepts": NUMBERS[:600], "classlabels_ints": list(range(1000, 1600))},
    ),
    "machine": (
        "SVMRegressor", "ai.onnx.ml", (3, 4),
        {"coefficients": NUMBERS[:600], "support_vectors": NUMBERS, "n_supports": 600, "rho": [0.5]},
    ),
    "encoder of integers": (
        "LabelEncoder", "ai.onnx.ml", (3, 4),
        {"keys_floats": [float(i) for i in range(900)], "values_int64s": list(range(900))},
    ),
    "encoder of strings": (
        "LabelEncoder", "ai.onnx.ml", (3, 4), {"keys_floats": [float(i) for i in range(400)], "values_strings": TOKENS},
    ),
    "one hot": ("OneHotEncoder", "ai.onnx.ml", (3, 4), {"cats_int64s": list(range(-3, 900))}),
    "n-grams": (
        "TfIdfVectorizer", "", (3, 4),
        {
            "mode": "TFIDF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0],
            "ngram_indexes": list(range(600)), "pool_int64s": list(range(600)), "weights": NUMBERS[:600],
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OPERATORS)
def test_importers_read_long_lists_as_short_ones(case, monkeypatch):
    kind, domain, shape, attributes = OPERATORS[case]
    names = ["x"] if shape else []
    node = helper.make_node(
        kind, names, ["y"] if kind != "LinearClassifier" else ["y", "z"], domain=domain, **attributes
    )
    integer = "int64" in str(attributes.keys()) and "keys_floats" not in attributes
    code = onnx.TensorProto.INT64 if integer else onnx.TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info(name, code, shape) for name in names]
    outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in node.output]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    graph = helper.make_graph([node], "g", inputs, outputs)
    raw = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    x = np.random.default_rng(1).integers(0, 12, shape or ()).astype("i8" if integer else "f4")

    def results():
        return load(raw).compile(engine="reference")(*([x] if shape else []))

    assert any(a.tensors for a in open_source(raw).proto.graph.node[0].attribute)
    long = results()
    monkeypatch.setattr(lists, "LONG", 1 << 40)
    monkeypatch.setattr(split, "LONG", 1 << 40)
    assert not any(a.tensors for a in open_source(raw).proto.graph.node[0].attribute)
    for found, want in zip(long, results(), strict=True):
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(found, want)


def test_two_attributes_of_one_name_are_refused():
    node = helper.make_node("LeakyRelu", ["x"], ["y"], alpha=0.5)
    node.attribute.append(helper.make_attribute("alpha", 0.25))
    value = helper.make_tensor_value_info
    graph = helper.make_graph([node], "g", [value("x", 1, [1])], [value("y", 1, [1])])
    raw = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()
    with pytest.raises(FormatError, match=r"the model: in LeakyRelu '' -> y: two attributes have the name 'alpha'"):
        load(raw)


def test_the_file_is_named_where_a_long_list_is_malformed(tmp_path):
    broken = delimited(INTS, b"\x05" * 2000 + b"\xff" * 10 + b"\x01")
    raw = attribute("ints", broken).replace(b"\x0a\x01a", b"\x0a\x0avalue_ints")
    node = delimited(1, b"\x12\x01y\x22\x08Constant" + delimited(5, raw))
    output = delimited(12, helper.make_tensor_value_info("y", 7, [2001]).SerializeToString())
    opset = delimited(8, helper.make_opsetid("", 18).SerializeToString())
    path = tmp_path / "broken.onnx"
    path.write_bytes(delimited(7, node + output) + opset)
    with pytest.raises(FormatError, match=r"broken\.onnx: in Constant '' -> y: a number has 11 bytes"):
        cg.load(path)
