"""Chains of pointwise ops between bytes are tables: what their ops mean for every byte, in and out of lanes."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.traverse import post_order
from cgraph.kernels.table8.calls import BLOCK, table_calls
from cgraph.kernels.target import target_named
from cgraph.ops.physical.table import ByteTable
from cgraph.passes.integers.byte_tables import MOST_NODES
from cgraph.passes.integers.compute_integers import compute_integers
from tests.passes.integers.test_compute_integers import KINDS, TARGETS, Net, drawn, scale_of
from tests.support.kernels import ORDERS, run_calls, view_of

CHAINS = {
    "sigmoid": cg.sigmoid,
    "silu": lambda x: x * cg.sigmoid(x),
    "hard swish": lambda x: x * cg.minimum(cg.maximum(x + 3.0, 0.0), 6.0) / np.float32(6),
    "leaky": lambda x: cg.maximum(x, 0.1 * x),
    "infinite": lambda x: 1 / x,
    "none": lambda x: cg.sqrt(x),
    "other bytes": lambda x: x,
}


def tables(*nodes):
    return [node for node in post_order(compute_integers(nodes)) if isinstance(node.op, ByteTable)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())
def test_every_byte_becomes_what_the_ops_mean(chain, kind):
    x = cg.Var((3, 256), kind, name="x")
    low = np.iinfo(kind).min
    y = cg.quantize(chain(cg.dequantize(x, np.float32(0.05), low + 100)), np.float32(0.03), low + 30, kind)
    assert len(tables(y)) == 1
    value = np.stack([np.random.default_rng(i).permutation(256) for i in range(3)]).astype("u1").view(kind)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(cg.compile(y, [x])(value), evaluate([y], {x: value})[0])


def test_bytes_on_the_way_are_part_of_the_chain():
    net = Net()
    x = cg.Var((1, 8, 6, 6), name="x")
    given = net.bytes(x)
    swish = net.bytes(given * net.bytes(cg.sigmoid(given), 1 / 256, 0))
    (table,) = tables(swish)
    again = net.bytes(cg.sigmoid(given), 1 / 256, 0)
    assert len(tables(swish, again)) == 2  # what is read elsewhere, too, has a table of its own
    value = drawn(x)
    np.testing.assert_array_equal(cg.compile(swish, [x])(value), evaluate([swish], {x: value})[0])
    assert table.operands[0].dtype == np.uint8


@pytest.mark.parametrize("kind", KINDS)
def test_several_bytes_on_the_way_are_part_of_the_chain_if_all_begin_with_one_value(kind):
    net, low = Net(kind), np.iinfo(kind).min
    x, y = (cg.Var((4, 5), name=name) for name in "xy")
    a, b = net.bytes(x), net.bytes(y)
    for order in (1, -1):
        for other, count in ((a, 1), (b, 2)):
            parts = net.bytes(cg.sigmoid(a), 1 / 256, low), net.bytes(cg.tanh(other), 1 / 128, low + 128)
            first, second = parts[::order]
            made = net.bytes(first * second + a)
            assert len(tables(made)) == count
            values = {x: drawn(x), y: drawn(y)}
            np.testing.assert_array_equal(cg.compile(made, [x, y])(*values.values()), evaluate([made], values)[0])


def test_what_reads_two_values_or_other_shapes_is_no_table():
    net = Net()
    a, b = (net.bytes(cg.Var((4, 5), name=name)) for name in "ab")
    row = net.bytes(cg.Var((5,), name="row"))
    for made in (a + b, a * row, a + np.arange(5, dtype="f4"), cg.cumsum(a, 1)):
        assert not tables(net.bytes(made))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TARGETS)
def test_images_stay_in_lanes(target, kind):
    net = Net(kind)
    x = cg.Var((2, 3, 13, 11), name="x")
    first = net.bytes(net.conv(net.bytes(x), 24))
    # 0 becomes another byte than the next frame's zero point, and the same
    curved = net.bytes(cg.sigmoid(first), 1 / 256, np.iinfo(kind).min)
    silu = net.bytes(first * curved)
    made = [net.conv(curved, 16), net.conv(silu, 16), net.bytes(net.conv(silu, 8, 3, 2))]
    value = drawn(x)
    roots = compute_integers(tuple(made))
    assert sum(isinstance(node.op, ByteTable) for node in post_order(roots)) == 2
    whole = cg.compile(made, [x], engine=CpuEngine(target, 2, poison=True))
    assert not any(n.name == "to_plain" and n.dtype == np.uint8 and n.shape[1] > 8 for n in whole.compiled.layout.steps)
    banded = cg.compile(made, [x], engine=CpuEngine(target, 1, poison=True), bands=20)
    for got, some, want in zip(whole(value), banded(value), evaluate(roots, {x: value}), strict=True):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(some, want)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("target", TARGETS)
def test_kernels_read_and_write_any_strides(target, order):
    rng = np.random.default_rng(0)
    table, target = rng.permutation(256).astype("u1"), target_named(target)
    sources = (
        rng.integers(0, 256, BLOCK + 77), rng.integers(0, 256, (3, 200))[:, 5:190], rng.integers(0, 256, (9, 7)).T,
        rng.integers(0, 256, (2, 3, 4, 10))[:, ::2, 1:3, ::-1], rng.integers(0, 256, ()), np.zeros((0, 4), int),
    )  # fmt: skip
    for x in sources:
        x = x.astype("u1") if x.flags.c_contiguous else x.astype("u1", order="K")
        out = np.zeros_like(x, order="C")
        run_calls(table_calls(target, view_of(out), view_of(x), view_of(table)), target, order)
        np.testing.assert_array_equal(out, table[x])
        inside = np.zeros((*x.shape, 2), "u1")[..., 0]
        run_calls(table_calls(target, view_of(inside), view_of(x), view_of(table)), target, order)
        np.testing.assert_array_equal(inside, table[x])


def test_scales_alone_make_a_table():
    net = Net()
    x = cg.Var((1, 16, 8, 8), name="x")
    part = net.bytes(x, 0.02, 100)
    made = net.bytes(cg.concat([part, net.bytes(cg.max_pool2d(part, 3, 1, 1), 0.03, 90)], 1), 0.03, 90)
    assert len(tables(made)) == 2 and scale_of(made) == np.float32(0.03)
    value = drawn(x)
    np.testing.assert_array_equal(cg.compile(made, [x])(value), evaluate([made], {x: value})[0])


def looked_up(table, x, to="int32"):
    """Bytes of a table at bytes, as TFLite's reader writes it."""
    return cg.take(cg.Const(table) if isinstance(table, np.ndarray) else table, x.astype(to))


TABLE = np.random.default_rng(3).permutation(256).astype("u1")


@pytest.mark.parametrize("to", ["int32", "int64"])
def test_bytes_that_are_taken_at_bytes_are_a_table(to):
    x = cg.Var((3, 256), "uint8", "x")
    made = looked_up(TABLE, x, to)
    (table,) = tables(made)
    assert table.operands[0] is x
    value = np.stack([np.random.default_rng(i).permutation(256) for i in range(3)]).astype("u1")
    np.testing.assert_array_equal(cg.compile(made, [x])(value), TABLE[value])
    np.testing.assert_array_equal(evaluate(compute_integers((made,)), {x: value})[0], TABLE[value])
    assert compute_integers((looked_up(np.arange(256, dtype="u1"), x),)) == (x,)  # nothing is changed


OTHERS = {
    "a table of an input": lambda x: looked_up(cg.Var((256,), "uint8", "table"), x),
    "a short table": lambda x: looked_up(TABLE[:200], cg.minimum(x, np.uint8(199))),
    "a long table": lambda x: looked_up(np.tile(TABLE, 2), x),
    "a table of rows": lambda x: looked_up(TABLE.reshape(256, 1), x),
    "signed places": lambda x: looked_up(TABLE, cg.abs(cg.bitcast(x // 2, "int8"))),
    "places that are computed": lambda x: cg.take(cg.Const(TABLE), x.astype("int32") // 2),
    "a table of whole numbers": lambda x: looked_up(TABLE.astype("i4"), x),
    "a table of signed bytes": lambda x: looked_up(TABLE.view("i1"), x),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_taken_otherwise_is_no_table(name):
    x = cg.Var((4, 5), "uint8", "x")
    made = OTHERS[name](x)
    assert not tables(made)
    values = {v: np.random.default_rng(0).integers(0, 256, v.shape).astype("u1") for v in post_order([made])
              if isinstance(v, cg.Var)}  # fmt: skip
    np.testing.assert_array_equal(cg.compile(made, list(values))(*values.values()), evaluate([made], values)[0])


@pytest.mark.parametrize("count, is_table", [(MOST_NODES - 3, True), (MOST_NODES + 8, False)])
def test_chains_of_more_ops_than_are_looked_at_stay_ops(count, is_table):
    x = cg.Var((3, 256), "uint8", "x")
    y = cg.dequantize(x, np.float32(0.05), 100)
    for i in range(count):
        y = cg.tanh(y) if i % 2 else y + np.float32(0.25)
    made = cg.quantize(y, np.float32(0.01), 30, "uint8")
    assert bool(tables(made)) is is_table
    value = np.stack([np.random.default_rng(i).permutation(256) for i in range(3)]).astype("u1")
    got, want = cg.compile(made, [x])(value).astype(int), evaluate([made], {x: value})[0].astype(int)
    assert np.abs(got - want).max() <= (0 if is_table else 1)


def test_constants_that_are_quantised_are_no_table():
    made = cg.quantize(cg.tanh(cg.Const(np.linspace(-1, 1, 5, dtype="f4"))), np.float32(0.01), 30, "uint8")
    assert not tables(made)
    x = cg.Var((4,), name="x")
    quantised = cg.quantize(cg.tanh(x), np.float32(0.01), 30, "uint8")
    assert not tables(quantised)
