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
