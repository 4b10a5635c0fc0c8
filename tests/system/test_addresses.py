"""Addresses of arrays are those of NumPy's array interface, for any array."""

import numpy as np
import pytest

from cgraph.system import addresses

BASE = np.arange(24, dtype="f4").reshape(4, 6)
ARRAYS = {
    "whole": BASE,
    "view": BASE[1:, 2:],
    "backwards": BASE[::-1, ::-2],
    "transposed": BASE.T,
    "one": np.array(3.0),
    "empty": np.empty((0, 3)),
    "empty view": BASE[4:],
    "broadcast": np.broadcast_to(BASE[0], (5, 6)),
    "subclass": BASE.view(np.matrix),
    "read-only": np.frombuffer(b"abcdefgh", np.uint8),
    "record": np.zeros(3, [("x", "i1"), ("y", "f8")])["y"],
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
def test_both_ways_have_the_same_address(array):
    assert addresses.has_field()
    assert addresses.address_of(array) == addresses.by_field(array) == addresses.by_interface(array)
    assert isinstance(addresses.address_of(array), int)


def test_a_resized_array_has_its_new_address():
    x = np.zeros(4)
    for n in (1 << 20, 4, 1 << 22):
        x.resize(n, refcheck=False)
        assert addresses.address_of(x) == x.ctypes.data


def test_other_interpreters_read_the_interface(monkeypatch):
    monkeypatch.setattr(addresses.sys.implementation, "name", "pypy")
    assert not addresses.has_field()


def test_an_address_of_nothing_is_0_and_each_probe_counts(monkeypatch):
    """An array of another array's address is not read by its field."""
    monkeypatch.setattr(addresses, "by_field", lambda x: addresses.by_interface(x) if x.size > 1 else 8)
    assert not addresses.has_field()
    monkeypatch.setattr(addresses, "by_field", lambda x: addresses.by_interface(x) if x.size == 1 else 8)
    assert not addresses.has_field()
    monkeypatch.setattr(addresses, "by_field", lambda x: addresses.by_interface(x))
    assert addresses.has_field()
