"""Attention on tile registers: which is chosen, one result however it is run, near that of float32."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import apply
from cgraph.kernels.target import target_named
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.rounded_layers import RoundedLayers
from cgraph.lowering.tile_attentions import tile_attentions
from cgraph.ops.attention import Attention
from cgraph.ops.physical.tile_attention import TiledAttention
from cgraph.ops.physical.tiled import TiledMatmul
from cgraph.record import replace
from tests.support.emulated import TilesEngine, emulate_tiles
from tests.support.kernels import TARGETS
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(4)
TILES = emulate_tiles(target_named("host"))


def compiled(y, inputs, target="host", threads=1, **options):
    return cg.compile(y, inputs, engine=TilesEngine(target, threads, poison=True), precision="bf16", **options)


def kinds(function):
    return {type(n.op) for n in function.compiled.layout.steps}


def block():
    """An encoder's attention: queries, keys and values by constants, several heads, and a product after it."""
    x = cg.Var((2, 40, 48), name="x")
    weights = [(RNG.standard_normal((48, 48)) / 7).astype("f4") for _ in range(4)]
    heads = [cg.swapaxes(cg.reshape(x @ w, (2, 40, 3, 16)), 1, 2) for w in weights[:3]]
    y = cg.scaled_dot_product_attention(*heads)
    return x, cg.reshape(cg.swapaxes(y, 1, 2), (2, 40, 48)) @ weights[3] + x


@pytest.mark.parametrize("target", TARGETS)
def test_an_encoder_has_one_result_however_it_is_run(target):
    x, y = block()
    numbers = RNG.standard_normal(x.shape).astype("f4")
    function = compiled(y, [x], target)
    assert {TiledAttention, TiledMatmul} <= kinds(function)
    want, floats = function(numbers), cg.compile(y, [x])(numbers)
    assert (want != floats).any() and np.abs(want - floats).max() <= 0.02 * np.abs(floats).max()
    for options in ({"threads": 2}, {"threads": 3}, {"memory": "one_each"}):
        np.testing.assert_array_equal(compiled(y, [x], target, **options)(numbers), want)


def attention(m, n, d, **options):
    x = [cg.Var((1, 2, rows, d), name=name) for name, rows in (("q", m), ("k", n), ("v", n))]
    return x, cg.scaled_dot_product_attention(*x, **options)


@pytest.mark.parametrize(
    ("m", "n", "d", "options"),
    [(15, 64, 32, {}), (64, 8, 32, {}), (64, 64, 8, {}), (64, 64, 32, {"causal": True, "start": 3})],
)
def test_few_queries_and_caches_stay_in_float32(m, n, d, options):
    inputs, y = attention(m, n, d, **options)
    function = compiled(y, inputs)
    assert TiledAttention not in kinds(function) and Attention in kinds(function)
    values = [RNG.standard_normal(x.shape).astype("f4") for x in inputs]
    np.testing.assert_array_equal(function(*values), cg.compile(y, inputs)(*values))


def test_float64_and_targets_without_tiles_keep_their_attention():
    inputs, y = attention(64, 64, 32)
    assert TiledAttention not in kinds(cg.compile(y, inputs, precision="bf16", engine=CpuEngine(tiles=False)))
    wide = [x.astype("float64") for x in inputs]
    assert TiledAttention not in kinds(compiled(cg.scaled_dot_product_attention(*wide), inputs))


@pytest.mark.parametrize("names", [None, frozenset(), frozenset({"a layer"})])
def test_attention_rounds_only_where_all_layers_may(names):
    """A choice of layers names products and convolutions: attention is none of them."""
    _, y = attention(64, 64, 32)
    options = LoweringOptions(pairs=True, layers=None if names is None else RoundedLayers(names))
    ((node,), *_) = [tile_attentions((y,), TILES, options)]
    assert type(node.op) is (TiledAttention if names is None else Attention)
    (node,) = tile_attentions((y,), TILES, LoweringOptions(pairs=True, layers=RoundedLayers(None)))
    assert isinstance(node.op, TiledAttention)


OTHERS = {"scale": 0.3, "causal": True, "window": 5, "has_mask": True, "softcap": 2.0, "safe": True}


@pytest.mark.parametrize("name", OTHERS)
def test_attention_on_tiles_has_all_fields_of_attention(name):
    assert {*OTHERS} == {*Attention._fields} - {"has_start"}  # with a start it stays Attention
    op = replace(Attention(0.5), **{name: OTHERS[name], "causal": name in ("causal", "window")})
    operands = [cg.Var((1, 2, 64, 32)) for _ in "qkv"] + [cg.Var((1, 2, 64, 64))] * op.has_mask
    (node,) = tile_attentions((apply(op, *operands),), TILES, LoweringOptions(pairs=True))
    assert type(node.op) is TiledAttention and node.operands == tuple(operands)
    assert [getattr(node.op, x) for x in Attention._fields] == [getattr(op, x) for x in Attention._fields]


def test_the_meaning_rounds_what_kernels_round():
    inputs, y = attention(33, 140, 20, causal=True, window=30, softcap=2.0)
    values = {x: RNG.standard_normal(x.shape).astype("f4") for x in inputs}
    (node,) = [n for n in compiled(y, inputs).compiled.layout.steps if isinstance(n.op, TiledAttention)]
    op = node.op
    got = compiled(apply(op, *inputs), inputs)(*values.values())
    sizes = {**values, inputs[2]: np.abs(values[inputs[2]])}
    want, terms = (evaluate([apply(op, *inputs)], x)[0] for x in (values, sizes))
    assert_near(got, want, "bfloat16 weights", terms)
    assert op.name == "attention"
