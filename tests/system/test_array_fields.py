"""Offsets of the fields of arrays, dtypes and tuples: those of this interpreter, or none."""

import pickle

import numpy as np
import pytest

from cgraph.system import array_fields
from cgraph.system.array_fields import has_array_fields, has_fields, holds_items, word_of


def test_this_interpreter_has_the_fields():
    assert has_array_fields()
    for probe in (np.zeros((1, 2, 3), np.int8), np.zeros((0, 4)), np.asfortranarray(np.ones((3, 2))), np.array(True)):
        assert has_fields(probe)
    assert holds_items(("a", 1, None)) and holds_items(())


@pytest.mark.parametrize("field", ["HEAD", "DATA", "NDIM", "SHAPE", "DTYPE", "FLAGS"])
def test_a_field_elsewhere_is_noticed(monkeypatch, field):
    probe = np.arange(6, dtype="f4").reshape(2, 3)[1:]
    monkeypatch.setattr(array_fields, field, getattr(array_fields, field) + 8)
    assert not has_fields(probe)


def test_items_elsewhere_are_noticed(monkeypatch):
    monkeypatch.setattr(array_fields, "ITEMS", array_fields.ITEMS - 8)
    assert not holds_items((1, 2))


@pytest.mark.parametrize(("name", "value"), [("name", "pypy")])
def test_other_interpreters_have_none(monkeypatch, name, value):
    monkeypatch.setattr(array_fields.sys.implementation, name, value)
    assert not has_array_fields.__wrapped__()


def test_equal_dtypes_have_one_word_and_others_have_another():
    dtypes = [np.dtype(x) for x in ("f4", "f8", "i4", "i8", "u1", "b1", "c8", ">f4", object)]
    assert len({word_of(x) for x in dtypes}) == len(dtypes)
    for x in dtypes:
        copy = pickle.loads(pickle.dumps(x))
        assert word_of(copy) == word_of(x)


def test_an_array_that_is_not_aligned_has_its_fields_and_other_flags():
    """Which flags an array has is read beside whether it is in order."""
    bytes_of = np.zeros(64, np.uint8)
    for probe in (bytes_of[1:33].view("f4"), bytes_of[3:35].view("f8").reshape(2, 2), bytes_of[1:33].view("f4")[::2]):
        assert not probe.flags.aligned and has_fields(probe)


def answer(value):
    return lambda *args: value


@pytest.mark.parametrize(("name", "value"), [
    ("holds_items", answer(False)), ("has_fields", answer(False)), ("word_of", answer(7)),
    ("has_fields", lambda probe: probe.ndim != 3), ("has_fields", lambda probe: probe.dtype != np.uint8),
])  # fmt: skip
def test_every_condition_holds_of_every_probe(monkeypatch, name, value):
    assert has_array_fields.__wrapped__()
    monkeypatch.setattr(array_fields, name, value)
    assert not has_array_fields.__wrapped__()


def test_an_interpreter_of_other_words_has_none(monkeypatch):
    monkeypatch.setattr(array_fields.ctypes, "sizeof", lambda kind: 4)
    assert not has_array_fields.__wrapped__()


def test_a_length_elsewhere_is_noticed(monkeypatch):
    """A tuple as long as the number at another place is none."""
    probe = (1, 2)
    assert holds_items(probe)
    monkeypatch.setattr(array_fields, "HEAD", array_fields.HEAD - 8)  # the address of the type
    assert not holds_items(probe)


@pytest.mark.parametrize("part", ["number", "kind", "shape", "dtype", "data"])
def test_a_field_with_another_content_is_noticed(monkeypatch, part):
    probe = np.arange(6, dtype="f4").reshape(2, 3)
    if part == "number":
        monkeypatch.setattr(array_fields, "word_of", lambda dtype: (dtype.num + 1) << 32)
    elif part == "data":
        monkeypatch.setattr(array_fields, "by_interface", lambda array: array.ctypes.data + 4)
    elif part == "kind":
        probe = probe.view(np.matrix)
    elif part == "shape":
        monkeypatch.setattr(array_fields, "SHAPE", array_fields.SHAPE + 8)  # of strides
    else:
        monkeypatch.setattr(array_fields, "DTYPE", array_fields.DTYPE - 8)  # of the base
    assert not has_fields(probe)
