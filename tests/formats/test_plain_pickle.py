"""The pickle of data: plain values come back, nothing is called, every other instruction is named or refused."""

import pickle
from typing import Any

import pytest

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.plain_pickle import (
    DICT,
    LONGEST_TEXT,
    MARK,
    ByteStream,
    Global,
    PersistentId,
    PickledCall,
    PickleReader,
    describe,
    read_pickle,
)

ALLOWED = frozenset({DICT, Global("torch", "f")})
DICT_NAME = b"ccollections\nOrderedDict\n"


def text(x: str) -> bytes:
    return b"X" + len(x).to_bytes(4, "little") + x.encode()


@pytest.mark.parametrize("code", [b"ios\nsystem\n.", b"(cos\nsystem\no.", b"\x82\x01.", b"\x85P1\n.", b"}\x94\x81."])
def test_other_instructions_are_refused(code):
    with pytest.raises(FormatError):
        read_pickle(ByteStream(memoryview(b"\x80\x02N" + code)), frozenset(), Allowance(100))


def test_a_huge_memo_number_takes_no_memory():
    reader = PickleReader(frozenset({Global("a", "b")}), Allowance(100))
    reader.step("EMPTY_DICT", None)
    with pytest.raises(FormatError, match="the next one has the number 4294967295"):
        reader.step("LONG_BINPUT", 2**32 - 1)
    assert len(reader.memo) == 0
    reader.step("MARK", None)
    assert reader.stack[-1] is MARK
    with pytest.raises(FormatError, match="empty"):
        reader.pop()


def plain(code: bytes, allowed: frozenset[Global] = ALLOWED) -> Any:
    return read_pickle(ByteStream(memoryview(b"\x80\x02" + code)), allowed, Allowance(1000))


@pytest.mark.parametrize(
    "value",
    [
        *(1, -(2**40), 2.5, True, False, None, "text", "", "\u00e9" * 200),
        *(255, 256, 65535, 65536, -1, 2**31, 2**2100),
        *((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], {}, [1, "a"], {"a": [1, {"b": ()}]}),
        [(f"{i}",) for i in range(300)],
    ],
    ids=lambda x: f"{x!r:.20}",
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_plain_values_come_back(value, protocol):
    found = read_pickle(ByteStream(memoryview(pickle.dumps(value, protocol))), frozenset(), Allowance(1000))
    assert found == value and type(found) is type(value)


def test_a_name_may_stand_on_the_stack_and_a_dictionary_may_have_attributes():
    name = text("collections") + text("OrderedDict") + b"\x93"
    assert plain(name + b")R}b.") == {}
    assert plain(name + b")R" + text("a") + b"K\x07s.") == {"a": 7}


REFUSED = {
    "a dictionary from arguments": (DICT_NAME + b"(K\x01tR.", "a dictionary from 1 arguments"),
    "a key that is a list": (b"}]K\x01s.", "neither text nor numbers"),
    "a key without a value": (b"}(K\x01u.", "neither text nor numbers"),
    "an item of what is no dictionary": (b"]K\x01K\x01s.", "a list of 0 is not a dict"),
    "an element of what is not a list": (b"}K\x01a.", "a dict of 0 is not a list"),
    "attributes of what is no dictionary": (b"]}b.", "a list of 0 is not a dict"),
    "a tuple without a mark": (b"K\x01t.", "needs a mark"),
    "a call of what is no function": (b"K\x01)R.", "it calls 1"),
    "a call with what are no arguments": (DICT_NAME + b"]R.", "it calls collections.OrderedDict"),
    "a name that is not text": (b"K\x01K\x02\x93.", "it names 1.2"),
    "a name of a mark": (b"(\x93.", "its empty stack"),
    "what was never noted": (b"h\x07.", "its memo has 0 values, none of the number 7"),
    "a number that was left out": (b"Nq\x01h\x00.", "none of the number 0"),
    "a number ahead of the count": (b"Nq\x00q\x02.", "has 1 values, and the next one has the number 2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused(name):
    code, match = REFUSED[name]
    with pytest.raises(FormatError, match=match):
        plain(code)


def test_a_memo_that_counts_from_one_is_read():
    """As Python 2 writes it."""
    assert plain(text("a") + b"q\x01h\x01\x86q\x02h\x02\x85.") == (("a", "a"),)


def test_numbers_as_keys_become_their_texts():
    """Numbers are the file's and could be chosen so that they collide; the texts' hashes are nobody's to choose."""
    assert plain(pickle.dumps({0: {7: "a"}, "b": 1}, 2)[2:]) == {"0": {"7": "a"}, "b": 1}


def test_a_call_and_a_persistent_id_are_only_noted():
    call = plain(b"ctorch\nf\nK\x01K\x02\x86R.")
    assert isinstance(call, PickledCall) and call.function == Global("torch", "f") and call.args == (1, 2)
    record = plain(text("a") + text("b") + b"\x86Q.")
    assert isinstance(record, PersistentId) and record.record == ("a", "b")
    for code in (b"cos\nsystem\n.", text("os") + text("system") + b"\x93."):
        with pytest.raises(FormatError, match="it names 'os'.'system', which is not allowed"):
            plain(code)


def test_items_go_to_the_container_below_their_mark_in_order():
    assert plain(b"](K\x01K\x02eK\x03a.") == [1, 2, 3]
    assert plain(b"}(" + text("a") + b"K\x01" + text("b") + b"K\x02u.") == {"a": 1, "b": 2}
    assert plain(b"(K\x01(K\x02ttK\x03\x86.") == ((1, (2,)), 3)
    assert plain(b"K\x01K\x02K\x03\x87.") == (1, 2, 3)


def test_the_memo_returns_the_same_object_and_numbers_may_be_stored_again():
    value = plain(b"]q\x00h\x00\x86.")
    assert value[0] is value[1]
    assert plain(b"K\x01q\x00K\x02q\x00h\x00\x87.") == (1, 2, 2)
    assert plain(b"K\x01q\x00K\x02q\x01K\x03q\x00h\x01\x87.") == (2, 3, 2)
    assert plain(b"K\x01\x94K\x02\x94h\x00h\x01\x86K\x07\x87.") == (2, (1, 2), 7)


def test_a_mark_is_no_value():
    reader = PickleReader(ALLOWED, Allowance(0))
    for name in ("EMPTY_LIST", "MARK"):
        reader.step(name, None)
    for name in ("TUPLE1", "APPEND", "MEMOIZE", "BINPERSID", "BUILD"):
        with pytest.raises(FormatError, match="reads its empty stack"):
            reader.step(name, None)
    reader.step("TUPLE", None)
    assert reader.stack == [[], ()]


def test_instructions_and_their_arguments_are_charged():
    allowance = Allowance(0)
    before = allowance.nbytes
    reader = PickleReader(ALLOWED, allowance)
    reader.step("NONE", None)
    assert before - allowance.nbytes == 128
    reader.step("BINUNICODE", "x" * 1000)
    assert before - allowance.nbytes >= 2 * 128 + 1000
    middle = allowance.nbytes
    reader.stack = [MARK, *[1] * 1000]
    reader.step("TUPLE", None)
    assert middle - allowance.nbytes >= 128 + 8 * 1000
    allowance.nbytes = 127
    with pytest.raises(FormatError, match="its description would take 128 bytes"):
        reader.step("NONE", None)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "None"),
        (True, "True"),
        (2.5, "2.5"),
        (2**64 - 1, str(2**64 - 1)),
        (-(2**64), "a huge number"),
        ("a" * 50, repr("a" * 40)),
        (Global("os", "system"), "os.system"),
        ((1, 2), "a tuple of 2"),
        ([], "a list of 0"),
        ({1: 2}, "a dict of 1"),
        (b"abc", "a bytes"),
    ],
)
def test_a_value_is_told_in_few_words(value, words):
    assert describe(value) == words


def test_bytes_are_read_in_turn_and_lines_to_their_end():
    stream = ByteStream(memoryview(b"abcline\nrest"))
    assert (stream.read(3), stream.tell(), stream.readline(), stream.tell()) == (b"abc", 3, b"line\n", 8)
    with pytest.raises(FormatError, match="it has a line of over 4 bytes"):
        stream.readline()
    assert (stream.read(9), stream.tell(), stream.read(1)) == (b"rest", 12, b"")
    stream.read(LONGEST_TEXT)
    with pytest.raises(FormatError, match=f"a text or number of {LONGEST_TEXT + 1} bytes"):
        stream.read(LONGEST_TEXT + 1)


@pytest.mark.parametrize("key", [2**48 - 1, -(2**48) + 1, "a"])
def test_keys_are_text_or_numbers_of_48_bits(key):
    assert plain(pickle.dumps({key: 1}, 2)[2:]) == {str(key): 1}
    if isinstance(key, int):
        with pytest.raises(FormatError, match="keys that are neither text nor numbers, or lacks a value: int"):
            plain(pickle.dumps({key + (1 if key > 0 else -1): 1}, 2)[2:])


def test_several_pickles_follow_each_other_and_a_torn_one_is_malformed():
    stream = ByteStream(memoryview(pickle.dumps([1], 2) + pickle.dumps({"a": 2}, 4)))
    assert [read_pickle(stream, frozenset(), Allowance(0)) for _ in range(2)] == [[1], {"a": 2}]
    with pytest.raises(FormatError, match="^malformed pickle: "):
        read_pickle(stream, frozenset(), Allowance(0))
    with pytest.raises(FormatError, match="^malformed pickle: "):
        plain(text("abcdef")[:-2])
    with pytest.raises(FormatError, match="reads its empty stack"):
        plain(b".")


@pytest.mark.parametrize("protocol", [2, 4])
def test_values_of_a_memo_of_many_are_the_same_objects(protocol):
    """Numbers of values beyond 255 have four bytes."""
    rows = [(f"{i}",) for i in range(300)]
    raw = pickle.dumps([rows, rows[5], rows[290]], protocol)
    found, early, late = read_pickle(ByteStream(memoryview(raw)), frozenset(), Allowance(1000))
    assert found == rows and early is found[5] and late is found[290]


def test_a_text_may_declare_its_length_in_eight_bytes():
    assert plain(b"\x8d" + (3).to_bytes(8, "little") + b"abc.") == "abc"


@pytest.mark.parametrize(("value", "words"), [(2**64, "a huge number"), (1 - 2**64, str(1 - 2**64)), (0, "0")])
def test_a_number_of_more_than_64_bits_is_huge(value, words):
    assert describe(value) == words
    assert describe(2**70) == describe(-(2**70)) == "a huge number"


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_memo_has_the_values_that_were_stored_and_no_more(number):
    code = b"K\x07q\x00K\x08q\x01" + b"h" + bytes([number]) + b"\x87."
    if number < 2:
        assert plain(code) == (7, 8, 7 + number)
        return
    with pytest.raises(FormatError, match="its memo has 2 values, none of the number 2"):
        plain(code)


@pytest.mark.parametrize(("first", "second", "words"), [
    (text("torch"), b"K\x01", "'torch'.1"), (b"K\x01", text("f"), "1.'f'"), (b"]", text("f"), "a list of 0.'f'"),
    (text("torch"), b"N", "'torch'.None"), (text("torch"), text("F"), "'torch'.'F'"),
])  # fmt: skip
def test_both_parts_of_a_name_are_text(first, second, words):
    with pytest.raises(FormatError, match=f"it names {words}, which is not allowed"):
        plain(first + second + b"\x93.")
    assert plain(text("torch") + text("f") + b"\x93.") == Global("torch", "f")


def test_keys_beyond_48_bits_and_of_other_types_are_refused():
    for key, kind in ((2**60, "int"), (-(2**60), "int"), (1.5, "float"), (None, "NoneType"), ((1,), "tuple")):
        with pytest.raises(FormatError, match=f"neither text nor numbers, or lacks a value: {kind}"):
            plain(pickle.dumps({key: 2}, 2)[2:])
    with pytest.raises(FormatError, match="lacks a value: float, int, str"):
        plain(pickle.dumps({"a": 1, 2**60: 2, 0.5: 3}, 2)[2:])
