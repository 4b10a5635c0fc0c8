"""Bytes for bytes by a table: every byte, blocks and vectors that end anywhere, any strides, in place."""

import numpy as np
import pytest

from cgraph.kernels.table8.calls import BLOCK, table_calls
from cgraph.kernels.target import target_named
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of

TABLE = np.random.default_rng(0).permutation(256).astype("u1")


def looked_up(x, out, target="host", order="all"):
    target = target_named(target)
    calls = table_calls(target, view_of(out), view_of(x), view_of(TABLE))
    run_calls(calls, target, order)
    return calls


def drawn(*shape):
    return np.random.default_rng(1).integers(0, 256, shape).astype("u1")


@pytest.mark.parametrize("target", TARGETS)
def test_every_byte(target):
    x, out = np.arange(256).astype("u1"), np.zeros(256, "u1")
    looked_up(x, out, target)
    np.testing.assert_array_equal(out, TABLE)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("columns", [1, 63, 64, 65, BLOCK - 1, BLOCK, 2 * BLOCK + 65])
def test_rows_of_any_length_and_nothing_beyond_them(columns, order, target):
    x, out = drawn(3, columns + 5), np.full((3, columns + 7), 9, "u1")
    looked_up(x[:, 2:-3], out[:, 3:-4], target, order)
    np.testing.assert_array_equal(out[:, 3:-4], TABLE[x[:, 2:-3]])
    assert (out[:, :3] == 9).all() and (out[:, -4:] == 9).all()


VIEWS = {
    "operand apart": lambda x, out: (x[..., ::2], out[..., :100]),
    "result apart": lambda x, out: (x[..., :100], out[..., ::2]),
    "columns": lambda x, out: (x.transpose(0, 2, 1, 3)[..., :1], out.transpose(0, 2, 1, 3)[..., :1]),
    "turned": lambda x, out: (x[::-1, ::-1, ::-1, ::-1], out),
    "spread": lambda x, out: (np.broadcast_to(x[:, :1, :, :1], x.shape), out),
    "some of every axis": lambda x, out: (x[1:, ::2, 1::2, ::3], out[:1, 1::2, ::2, 1::3][..., :66]),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("views", VIEWS.values(), ids=VIEWS.keys())
def test_any_strides(views, target):
    x, room = drawn(2, 4, 6, 200), np.full((2, 4, 6, 200), 9, "u1")
    x, out = views(x, room)
    shape = tuple(map(min, x.shape, out.shape))
    x, out = (a[tuple(map(slice, shape))] for a in (x, out))
    looked_up(x, out, target)
    np.testing.assert_array_equal(out, TABLE[x])
    out[...] = 9
    assert (room == 9).all()


@pytest.mark.parametrize("target", TARGETS)
def test_in_place(target):
    x = drawn(5, 200)
    want = TABLE[x[:, 10:190]]
    looked_up(x[:, 10:190], x[:, 10:190], target)
    np.testing.assert_array_equal(x[:, 10:190], want)


def test_one_element_and_none():
    x, out = drawn(), np.zeros((), "u1")
    looked_up(x, out)
    assert out == TABLE[x]
    assert looked_up(drawn(3, 0), np.zeros((3, 0), "u1")) == []
