"""Attention that is written out becomes one op: in the forms of exporters, and nowhere where somebody would notice."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.ir.traverse import post_order
from cgraph.memory.strategies import STRATEGIES
from cgraph.ops.attention import Attention
from cgraph.passes import rewrite_graph
from cgraph.passes.attention_masks import HIDDEN
from cgraph.passes.fuse_attention import fuse_attention
from tests.support.graphs import graphs
from tests.support.rewrites import assert_keeps_values, assert_leaves_nothing, assert_left, assert_same_values, ops_of
from tests.support.tolerance import assert_close

B, H, G, M, N, D, E = 2, 4, 2, 5, 5, 3, 6
LOWEST = float(np.finfo("float32").min)
TRIANGLE = np.tri(M, N, dtype=bool)
LATER = np.where(TRIANGLE, 0, -np.inf).astype("float32")


def heads(name, rows, columns, count=H):
    """Heads as a network has them: columns of one product, turned."""
    x = cg.Var((B, rows, count * columns), name=name)
    return cg.transpose(cg.reshape(x, (B, rows, count, columns)), (0, 2, 1, 3))


def operands(groups=H):
    return heads("q", M, D), heads("k", N, D, groups), heads("v", N, E, groups)


def products(q, k):
    return q @ cg.swapaxes(k, -1, -2)


def seen():
    return cg.Var((B, 1, 1, N), "bool", name="seen")


FORMS = {
    "bare": lambda s: s,
    "divided": lambda s: s / np.float32(2),
    "causal bool": lambda s: cg.where(TRIANGLE, s * 0.5, -np.inf),
    "causal, the lowest number": lambda s: cg.where(TRIANGLE, s, LOWEST),
    "causal numbers": lambda s: s * 0.5 + LATER,
    "causal, made in the graph": lambda s: s + cg.where(cg.tril(cg.full((M, N), True, "bool")), cg.zeros(()), -np.inf),
    "capped": lambda s: cg.tanh(s * 0.5 / np.float32(0.7)) * np.float32(0.7),
    "causal, capped and added": lambda s: (
        cg.where(TRIANGLE, np.float32(2) * cg.tanh(s * 0.25), -np.inf) + cg.Var((M, N), name="bias")
    ),
    "padding": lambda s: cg.where(seen(), s, -np.inf),
    "padding, hidden": lambda s: cg.where(cg.logical_not(seen()), -np.inf, s),
    "added": lambda s: s * 0.3 + cg.Var((B, 1, M, N), name="bias"),
    "added first": lambda s: cg.Var((H, M, N), name="bias") + s,
    "causal and added": lambda s: cg.where(TRIANGLE, s + cg.Var((M, N), name="bias"), -np.inf),
}


@pytest.mark.parametrize("name", FORMS)
def test_written_out_attention_is_one_op(name):
    q, k, v = operands()
    found = cg.softmax(FORMS[name](products(q, k)), -1) @ v
    op = only_attention(found)
    assert op.causal == name.startswith("causal")
    assert bool(op.softcap) == ("capped" in name)
    assert op.has_mask == (name.startswith(("padding", "added")) or name.endswith("and added"))
    assert_same_values(rewrite_graph, found)


def split_scores(s, *bias):
    """Scores of queries of 2 × 3 and keys of 3 × 2, with numbers added, and back."""
    parts = cg.reshape(s, (*s.shape[:-2], 2, 3, 3, 2))
    for x in bias:
        parts = parts + x if x.ndim > 2 else x + parts
    return cg.reshape(parts, s.shape)


ROWS, COLUMNS = (B, H, 2, 3, 3, 1), (B, H, 2, 3, 1, 2)  # relative positions: of key rows, of key columns


@pytest.mark.parametrize(
    "shapes", [(ROWS, COLUMNS), (COLUMNS,), ((2, 3, 1, 1), ROWS), ((3, 2),), (ROWS, COLUMNS, (3, 2))]
)
@pytest.mark.parametrize("also", [False, True])
def test_numbers_are_added_to_scores_of_rows_and_columns(shapes, also):
    """Relative positions of rows and columns, as mvitv2 and SAM add them, become one mask."""
    q, k, v = heads("q", 6, D), heads("k", 6, D), heads("v", 6, E)
    s = split_scores(products(q, k) * 0.5, *(cg.Var(x, name=f"bias{i}") for i, x in enumerate(shapes)))
    found = cg.softmax(s + cg.Var((6, 6), name="more") if also else s, -1) @ v
    assert only_attention(found).has_mask
    assert_same_values(rewrite_graph, found)


def test_numbers_are_added_to_split_scores_with_keys_before_queries():
    q, k, v = heads("q", 6, D), heads("k", 6, D), heads("v", 6, E)
    turned = split_scores(k @ cg.swapaxes(q, -1, -2), cg.Var(ROWS, name="rows"), cg.Var(COLUMNS, name="columns"))
    found = cg.swapaxes(v, -1, -2) @ cg.softmax(turned, -2)
    assert only_attention(found).has_mask
    assert_same_values(rewrite_graph, found)


SPLIT_OTHERWISE = {
    "scaled after the sum": lambda s: split_scores(s, cg.Var(ROWS, name="b")) * 0.5,
    "capped after the sum": lambda s: cg.tanh(split_scores(s, cg.Var(ROWS, name="b")) / 2.0) * 2.0,
    "scaled between": lambda s: cg.reshape((cg.reshape(s, (B, H, 2, 3, 3, 2)) + cg.Var(ROWS, name="b")) * 0.5, s.shape),
    "factors of queries after the sum": lambda s: split_scores(s, cg.Var(ROWS, name="b")) * cg.Var((H, 6, 1), name="f"),
    "axes of the sum exchanged": lambda s: cg.transpose(
        cg.reshape(s, (H, B, 6, 6)) + cg.Var((H, B, 6, 6), name="b"), (1, 0, 2, 3)
    ),
    "joined batches and heads below": lambda s: cg.reshape(
        cg.reshape(cg.reshape(s, (B * H, 6, 6)), (B, H, 2, 3, 3, 2)) + cg.Var(ROWS, name="b"), s.shape
    ),
    "beside a bool mask": lambda s: cg.where(
        cg.Var((6, 6), "bool", name="seen"), split_scores(s, cg.Var(ROWS, name="b")), -np.inf
    ),
}


@pytest.mark.parametrize("name", SPLIT_OTHERWISE)
def test_other_ops_on_split_scores_keep_the_values(name):
    q, k, v = heads("q", 6, D), heads("k", 6, D), heads("v", 6, E)
    found = cg.softmax(SPLIT_OTHERWISE[name](products(q, k)), -1) @ v
    assert Attention not in ops_of(fuse_attention((found,)))
    assert_same_values(rewrite_graph, found)


STEPS = {
    "seen": lambda s, name: cg.where(cg.Var((B, 1, M, N), "bool", name=name), s, -np.inf),
    "hidden": lambda s, name: cg.where(cg.Var((H, M, N), "bool", name=name), -np.inf, s),
    "added": lambda s, name: s + cg.Var((1, H, M, N), name=name),
    "added on the left": lambda s, name: cg.Var((M, N), name=name) + s,
    "causal": lambda s, name: cg.where(TRIANGLE, s, -np.inf),
    "causal, a low number": lambda s, name: cg.where(TRIANGLE, s, LOWEST),
    "causal numbers": lambda s, name: s + LATER,
    "factor": lambda s, name: s * np.float32(0.7),
    "divisor": lambda s, name: s / np.float32(3),
    "capped": lambda s, name: cg.tanh(s) * np.float32(0.6),
    "another leading axis": lambda s, name: cg.reshape(s, (1, *s.shape)[-5:]),
    "exchanged": lambda s, name: cg.swapaxes(s, -1, -2),
    "factors of queries": lambda s, name: s * cg.Var((H, M, 1), name=name),
    "factors of keys": lambda s, name: s * cg.Var((H, 1, N), name=name),
}


@pytest.mark.parametrize("outer", STEPS)
@pytest.mark.parametrize("inner", STEPS)
def test_any_two_steps_between_the_products_and_the_softmax_keep_their_meaning(inner, outer):
    q, k, v = operands()
    scores = STEPS[outer](STEPS[inner](products(q, k), "inner"), "outer")
    assert_same_values(rewrite_graph, cg.softmax(scores, -1) @ v)


def only_attention(found):
    """The op that the weights of a graph have become; no array of them is left."""
    (fused,) = rewrite_graph((found,))
    (node,) = (x for x in post_order([fused]) if isinstance(x.op, Attention))
    assert "softmax" not in ops_of([fused])
    return node.op


def test_factors_of_queries_and_keys_are_those_of_the_products():
    q, k, v = operands()
    turned = cg.transpose(k, (0, 1, 3, 2)) * np.float32(0.5)
    found = cg.softmax((q * np.float32(0.25)) @ turned, -1) @ v
    assert only_attention(found).scale == 0.125
    assert_same_values(rewrite_graph, found)


def test_a_factor_before_heads_are_split_and_turned_is_that_of_the_products():
    x = cg.Var((B, H * D, M), name="x") * np.float32(0.5)
    q = cg.transpose(cg.reshape(x, (B, H, D, M)), (0, 1, 3, 2))
    found = cg.softmax(products(q, heads("k", N, D)), -1) @ heads("v", N, E)
    assert only_attention(found).scale == 0.5
    assert_same_values(rewrite_graph, found)


def columns(name, rows, count):
    """Heads of channels by positions, as a convolution gives them."""
    return cg.reshape(cg.Var((B, H * count, rows), name=name), (B, H, count, rows))


TURNED = {
    "weights turned": lambda q, k, v, bias: v @ cg.swapaxes(cg.softmax(cg.swapaxes(q, 2, 3) @ k + bias, -1), 2, 3),
    "scores turned": lambda q, k, v, bias: v @ cg.softmax(cg.swapaxes(cg.swapaxes(q, 2, 3) @ k + bias, 2, 3), 2),
    "keys first": lambda q, k, v, bias: v @ cg.softmax(cg.swapaxes(k, 2, 3) @ q + cg.swapaxes(bias, -1, -2), -2),
    "keys first, turned back": lambda q, k, v, bias: (
        cg.softmax(cg.swapaxes(cg.swapaxes(k, 2, 3) @ q, 2, 3) + bias, 3) @ cg.swapaxes(v, 2, 3)
    ),
}


@pytest.mark.parametrize("name", TURNED)
def test_queries_keys_and_values_may_be_columns(name):
    n = 7
    q, k, v = columns("q", M, D), columns("k", n, D), columns("v", n, E)
    found = TURNED[name](q, k, v, cg.Var((H, M, n), name="bias"))
    assert only_attention(found).has_mask
    assert_same_values(rewrite_graph, found)


def test_a_triangle_on_turned_scores_is_a_mask():
    q, k, v = (columns(name, M, D) for name in "qkv")
    found = v @ cg.softmax(cg.swapaxes(k, 2, 3) @ q + LATER, 2)
    assert not only_attention(found).causal
    assert_same_values(rewrite_graph, found)


@pytest.mark.parametrize("batch", [1, 2])
def test_masks_of_windows_and_heads_are_one_mask(batch):
    """As exports of shifted windows have them: scores, once more split into pictures and windows, and joined again."""
    windows = 3
    shape = (batch * windows, H)
    q, k, v = (cg.Var((*shape, rows, n), name=name) for name, rows, n in (("q", M, D), ("k", N, D), ("v", N, E)))
    scores = products(q, k) + cg.Var((1, H, M, N), name="positions")
    scores = cg.reshape(scores, (batch, windows, H, M, N)) + cg.Var((1, windows, 1, M, N), name="shifted")
    found = cg.softmax(cg.reshape(scores, (*shape, M, N)), -1) @ v
    assert only_attention(found).has_mask
    assert_same_values(rewrite_graph, found)


def test_joined_batches_and_heads_are_split_where_a_mask_needs_it():
    """As Bloom is exported: numbers for a head's keys are added to joined products, a padding mask to split ones."""
    q, k, v = (cg.Var((B * H, M, n), name=name) for name, n in (("q", D), ("k", D), ("v", E)))
    scores = cg.reshape(products(q, k) + cg.Var((B * H, 1, N), name="slopes"), (B, H, M, N))
    scores = scores + cg.where(cg.logical_and(TRIANGLE, seen()), np.float32(0), np.float32(LOWEST))
    found = cg.reshape(cg.softmax(scores, -1), (B * H, M, N)) @ v
    only_attention(found)
    assert_same_values(rewrite_graph, found)


def test_bool_masks_one_in_the_other_are_one_mask():
    q, k, v = operands()
    other = cg.Var((H, M, N), "bool", name="other")
    found = cg.softmax(cg.where(seen(), cg.where(other, -np.inf, products(q, k)), -np.inf), -1) @ v
    assert only_attention(found).has_mask
    assert_same_values(rewrite_graph, found)


def test_factors_of_queries_stay_within_a_cap_and_below_a_mask():
    """As Swin v2 scales cosines: factors for each head, then relative positions."""
    q, k, v = operands()
    found = cg.softmax(products(q, k) * cg.Var((H, 1, 1), name="scales") + cg.Var((H, M, N), name="bias"), -1) @ v
    only_attention(found)
    assert_same_values(rewrite_graph, found)


def test_repeated_heads_of_keys_become_shared_ones():
    q, k, v = operands(G)
    found = cg.softmax(products(q, cg.repeat(k, H // G, 1)), -1) @ cg.repeat(v, H // G, 1)
    (fused,) = fuse_attention((found,))
    assert fused.op == Attention(1.0) and fused.operands[1].shape == (B, G, N, D)
    assert_same_values(fuse_attention, found)


@settings(max_examples=40)
@given(counts=st.tuples(*[st.sampled_from((1, 2, 3, 4))] * 3), batches=st.tuples(*[st.sampled_from((1, 2))] * 3))
def test_any_numbers_of_heads_that_are_repeated_or_broadcast_to_those_of_the_queries(counts, batches):
    """Each operand's heads as they are, or 1 and broadcast, or fewer and repeated: whatever the other one's are."""
    heads = 12
    q, k, v = (
        cg.Var((batch, count, rows, columns), name=name)
        for name, batch, count, rows, columns in zip("qkv", batches, counts, (M, N, N), (D, D, E))
    )
    q, k, v = (x if x.shape[1] == 1 and x is not q else cg.repeat(x, heads // x.shape[1], 1) for x in (q, k, v))
    found = cg.softmax(products(q, k), -1) @ v
    assert_same_values(rewrite_graph, found)


@pytest.mark.parametrize("lead", [(), (3,), (2, 3, 2)])
def test_any_number_of_leading_axes(lead):
    q, k, v = (cg.Var((*lead, *shape), name=name) for name, shape in (("q", (M, D)), ("k", (N, D)), ("v", (N, E))))
    found = cg.softmax(products(q, k) * 0.7, -1) @ v
    only_attention(found)
    assert_same_values(rewrite_graph, found)


SAFE = {
    "zero where NaN": lambda p: cg.where(cg.isnan(p), np.float32(0), p),
    "itself unless NaN": lambda p: cg.where(cg.logical_not(cg.isnan(p)), p, np.float32(0)),
}
SAFE_SCORES = {
    "bare": lambda s: s,
    "added": lambda s: s + cg.Var((B, 1, M, N), name="bias"),
    "added numbers": lambda s: s + LATER,
    "padding": lambda s: cg.where(cg.Var((B, 1, M, N), "bool", name="seen"), s, -np.inf),
    "causal bool": lambda s: cg.where(TRIANGLE, s * 0.5, -np.inf),
}


@pytest.mark.parametrize("safe", SAFE)
@pytest.mark.parametrize("name", SAFE_SCORES)
def test_weights_whose_nan_is_replaced_by_zero_are_safe(name, safe):
    q, k, v = operands()
    y = SAFE[safe](cg.softmax(SAFE_SCORES[name](products(q, k)), -1)) @ v
    op = only_attention(y)
    assert op.safe and op.causal == (name == "causal bool") and op.has_mask == name.startswith(("added", "padding"))
    assert_same_values(rewrite_graph, y)


def written_safe(q, k, v, mask):
    with np.errstate(all="ignore"):
        scores = q @ k.swapaxes(2, 3)
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
        weights = np.exp(scores - scores.max(3, keepdims=True))
        weights = weights / weights.sum(3, keepdims=True)
        return np.where(np.isnan(weights), 0, weights) @ v


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("memory", ["auto", "one_each"])
@pytest.mark.parametrize("special", [None, np.nan, np.inf, -np.inf], ids=str)
@pytest.mark.parametrize("place", ["q", "k", "v", "mask"])
@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_safe_weights_are_those_written_out_whatever_the_numbers(dtype, place, special, memory):
    """Whole rows are masked, and one number is not finite: the op, the graph written out and NumPy agree."""
    rng = np.random.default_rng(3)
    q, k, v, mask = xs = [
        cg.Var(shape, kind, name)
        for shape, kind, name in (
            ((B, H, M, D), "float32", "q"), ((B, H, N, D), "float32", "k"), ((B, H, N, E), "float32", "v"),
            ((B, 1, M, N), dtype, "mask"),
        )
    ]  # fmt: skip
    scores = products(q, k)
    weights = SAFE["zero where NaN"](
        cg.softmax(cg.where(mask, scores, -np.inf) if dtype == "bool" else scores + mask, -1)
    )
    y = weights @ v
    drawn = [rng.standard_normal(x.shape).astype("float32") for x in xs[:3]]
    visible = rng.random(mask.shape) > 0.4
    visible[:, :, 2] = False
    drawn.append(visible if dtype == "bool" else np.where(visible, rng.standard_normal(mask.shape), -np.inf))
    drawn = [x.astype(var.dtype) for x, var in zip(drawn, xs)]
    if special is not None:
        operand = drawn[("q", "k", "v", "mask").index(place)]
        operand.reshape(-1)[7] = operand.dtype == bool or special
    want = written_safe(*(x.astype("float64") if x.dtype != bool else x for x in drawn))
    only_attention(y)
    for outputs in ([y], [y, weights]):
        got = cg.compile(outputs, xs, engine=CpuEngine(poison=True), memory=memory)(*drawn)[0]
        assert_close(got, want.astype("float32"))


def test_safe_weights_have_the_same_bits_with_every_strategy_and_any_threads():
    q, k, v = operands()
    mask = cg.Var((B, 1, M, N), name="bias")
    y = SAFE["zero where NaN"](cg.softmax(products(q, k) + mask, -1)) @ v
    xs = [x for x in post_order([y]) if isinstance(x, cg.Var)]
    rng = np.random.default_rng(5)
    drawn = [rng.standard_normal(x.shape).astype("float32") for x in xs]
    next(a for x, a in zip(xs, drawn) if x is mask)[0, :, 1:3] = -np.inf
    want = cg.compile(y, xs)(*drawn)
    assert np.isfinite(want).all() and (want[0, :, 1:3] == 0).all()
    for options in [{"memory": x} for x in STRATEGIES] + [{"threads": 2}, {"threads": 3}]:
        threads = options.pop("threads", 1)
        got = cg.compile(y, xs, engine=CpuEngine(threads=threads, poison=True), **options)(*drawn)
        np.testing.assert_array_equal(got, want)


def test_turned_keys_of_joined_heads_are_read_where_they_are():
    """As torch writes it: heads joined to one axis, turned, and split again."""
    q, k, v = operands()
    turned = cg.reshape(cg.transpose(cg.reshape(k, (B * H, N, D)), (0, 2, 1)), (B, H, D, N))
    y = cg.softmax(q @ turned, -1) @ v
    (fused,) = fuse_attention((y,))
    assert all(x.shape[-2:] != (D, N) for x in post_order([fused]))
    assert_same_values(rewrite_graph, y)


def two_of(columns):
    return heads("q", M, columns), heads("k", N, columns)


def refused():
    """Graphs that only look like attention, or whose weights somebody reads."""
    q, k, v = operands()
    s, bias = products(q, k), cg.Var((M, N), name="bias")
    weights = cg.softmax(s, -1)
    yield "weights are an output", [weights @ v, weights]
    yield "weights have another user", [weights @ v, cg.sum(weights)]
    yield "scores are an output", [weights @ v, s]
    yield "scores have another user", [weights @ v, cg.max(s)]
    yield "a mask that is scaled", [cg.softmax((s + bias) * 2.0, -1) @ v]
    yield "numbers beside a bool mask", [cg.softmax(cg.where(seen(), s + bias, -np.inf), -1) @ v]
    yield "a mask with factors of queries", [cg.softmax((s + bias) * cg.Var((H, 1, 1), name="f"), -1) @ v]
    yield "factors of keys", [cg.softmax(s * cg.Var((H, 1, N), name="f"), -1) @ v]
    yield "queries and keys joined", [cg.softmax(cg.reshape(s, (B, H, 1, M * N)), -1) @ cg.Var((M * N, E), name="w")]
    yield "a factor below zero", [cg.softmax(s * -1.0, -1) @ v]
    yield "a factor of zero", [cg.softmax(s * 0.0, -1) @ v]
    yield "a cap of zero", [cg.softmax(cg.tanh(s) * 0.0, -1) @ v]
    yield "a mask within a cap of 1", [cg.softmax(cg.tanh(s + bias) * 1.0, -1) @ v]
    yield "queries and keys without elements", [cg.softmax(products(*two_of(0)), -1) @ v]
    yield "values without elements", [weights @ cg.Var((B, H, N, 0), name="w")]
    wide = [cg.Var((B, H, M, n), "float64", name=name) for name, n in (("q", D), ("k", D), ("v", E))]
    limit = cg.where(TRIANGLE, products(*wide[:2]), HIDDEN)
    yield "a number at the limit of those that hide", [cg.softmax(limit, -1) @ wide[2]]
    yield "a tanh without its factor", [cg.softmax(cg.tanh(s), -1) @ v]
    yield "a tanh of a factor", [cg.softmax(cg.tanh(s * 2.0), -1) @ v]
    yield "a tanh under a mask", [cg.softmax(cg.tanh(s) + bias, -1) @ v]
    yield "a softmax over queries", [cg.softmax(s, 2) @ v]
    yield "another function of the softmax", [cg.log_softmax(s, -1) @ v]
    yield "a choice that hides nothing", [cg.softmax(cg.where(seen(), s, 0.0), -1) @ v]
    yield "a lowest number where a row may have nothing else", [cg.softmax(cg.where(seen(), s, LOWEST), -1) @ v]
    yield "weights on the right side", [cg.swapaxes(v, -1, -2) @ weights]
    yield "weights of queries on the right side", [cg.swapaxes(v, -1, -2) @ cg.swapaxes(cg.softmax(s, 2), -1, -2)]
    zeros = SAFE["zero where NaN"]
    yield "safe weights are an output", [zeros(weights) @ v, zeros(weights)]
    yield "weights have another user than the safe ones", [zeros(weights) @ v, cg.sum(weights)]
    yield "NaN becomes another number", [cg.where(cg.isnan(weights), np.float32(1), weights) @ v]
    yield "NaN becomes another array", [cg.where(cg.isnan(weights), cg.Var(s.shape, name="z"), weights) @ v]
    yield "infinite weights become 0", [cg.where(cg.isinf(weights), np.float32(0), weights) @ v]
    yield "NaN of another array", [cg.where(cg.isnan(s), np.float32(0), weights) @ v]
    yield "numbers become 0", [cg.where(cg.isnan(weights), weights, np.float32(0)) @ v]
    yield "its gradient", cg.gradient(cg.sum(weights @ v), [q, k, v])


@pytest.mark.parametrize("name, outputs", list(refused()), ids=lambda x: x if isinstance(x, str) else "")
def test_it_is_left_alone(name, outputs):
    assert_left(fuse_attention, *outputs)


def test_an_upper_triangle_and_a_shifted_one_stay_masks():
    q, k, v = operands()
    for mask in (TRIANGLE.T, np.tri(M, N, 1, bool), np.tri(M, N, -1, bool) | np.eye(M, N, 1, bool)):
        assert only_attention(cg.softmax(cg.where(mask, products(q, k), -np.inf), -1) @ v).has_mask


@settings(max_examples=30)
@given(drawn=graphs())
def test_random_graphs_keep_their_values(drawn):
    assert_keeps_values(fuse_attention, drawn)
    assert_leaves_nothing(fuse_attention, drawn)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("kind", ["bool", "float32"])
def test_any_number_of_masks_of_one_kind_become_one(kind, count):
    q, k, v = operands()
    scores = products(q, k)
    for i, shape in enumerate([(H, M, N), (B, 1, 1, N), (M, 1)][:count]):
        mask = cg.Var(shape, kind, name=f"mask{i}")
        scores = cg.where(mask, scores, -np.inf) if kind == "bool" else scores + mask
    found = cg.softmax(scores, -1) @ v
    assert only_attention(found).has_mask
    assert_same_values(rewrite_graph, found)


QUERY_FACTORS = [  # of factors of scores: their shape, and whether they are the same for all keys
    ((M, 1), True), ((1,), True), ((N,), False), ((H, 1, 1), True), ((H, 1, N), False), ((1, N), False),
]  # fmt: skip


@pytest.mark.parametrize("shape, is_found", QUERY_FACTORS, ids=str)
def test_factors_that_are_the_same_for_all_keys_are_those_of_queries(shape, is_found):
    q, k, v = operands()
    found = cg.softmax(products(q, k) * cg.Var(shape, name="factor"), -1) @ v
    assert ("attention" in ops_of(fuse_attention((found,)))) == is_found
    assert_same_values(rewrite_graph, found)


@pytest.mark.parametrize(
    "shape, is_found", [((M,), True), ((1, M), True), ((1,), True), ((7, 1), False), ((H, 1, 1), True)], ids=str
)
def test_factors_of_queries_lie_along_the_last_axis_where_keys_come_first(shape, is_found):
    q, k, v = columns("q", M, D), columns("k", 7, D), columns("v", 7, E)
    found = v @ cg.softmax((cg.swapaxes(k, 2, 3) @ q) * cg.Var(shape, name="factor"), -2)
    assert ("attention" in ops_of(fuse_attention((found,)))) == is_found
    assert_same_values(rewrite_graph, found)


def test_a_factor_of_queries_on_either_side_is_that_of_the_products():
    q, k, v = operands()
    for scaled, scale in ((np.float32(0.25) * q, 0.25), (q * cg.Var((), name="f"), 1.0), (q / np.float32(4), 1.0)):
        found = cg.softmax(products(scaled, k), -1) @ v
        assert only_attention(found).scale == scale
        assert_same_values(rewrite_graph, found)


def test_a_factor_of_queries_that_another_node_reads_stays_with_them():
    q, k, v = operands()
    scaled = q * np.float32(0.25)
    outputs = [cg.softmax(products(scaled, k), -1) @ v, cg.exp(scaled)]
    fused = fuse_attention(tuple(outputs))
    assert fused[0].op == Attention(1.0)
    assert_same_values(rewrite_graph, *outputs)


def test_turned_channels_that_are_split_into_heads_are_keys_of_these_heads():
    """The transpose exchanges other axes than the last two of the heads."""
    rows = cg.Var((B, N, H * D), name="rows")
    turned = cg.reshape(cg.swapaxes(rows, 1, 2), (B, H, D, N))
    found = cg.softmax(heads("q", M, D) @ turned, -1) @ heads("v", N, E)
    only_attention(found)
    assert_same_values(rewrite_graph, found)


SHARED = {
    "not repeated": lambda n: cg.reshape(cg.exp(cg.Var((B, G, H // G, N, n), name=f"x{n}")), (B, H, N, n)),
    "repeated without a reshape before": lambda n: repeated(cg.Var((B, G, 1, N, n), name=f"x{n}")),
    "repeated after another reshape": lambda n: repeated(
        cg.reshape(cg.Var((B * G, N, n), name=f"x{n}"), (B, G, 1, N, n))
    ),
    "repeated one after the other": lambda n: cg.reshape(
        cg.broadcast_to(cg.Var((B, 1, G, N, n), name=f"x{n}"), (B, H // G, G, N, n)), (B, H, N, n)
    ),
}


def repeated(x):
    """Heads ``[b, g, 1, n, d]``, each H / G times in a row."""
    return cg.reshape(cg.broadcast_to(x, (B, G, H // G, *x.shape[-2:])), (B, H, *x.shape[-2:]))


@pytest.mark.parametrize("name", SHARED)
def test_heads_of_five_axes_that_are_joined_to_four_keep_their_values(name):
    found = cg.softmax(products(heads("q", M, D), SHARED[name](D)), -1) @ SHARED[name](E)
    only_attention(found)
    assert_same_values(rewrite_graph, found)
