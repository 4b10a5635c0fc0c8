"""Attention beyond its rows of cases: refusals, leading axes, the gradient in bands, bytes by the length."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import apply
from cgraph.kernels.attention.calls import Rule
from cgraph.ops.attention import Attention, positions
from cgraph.ops.attention_weights import QueryRows, attention_gradients
from tests.support.tolerance import assert_close

Q, K, V = (
    cg.Var(shape, "float64", name) for name, shape in (("q", (2, 4, 7, 3)), ("k", (2, 2, 5, 3)), ("v", (2, 2, 5, 6)))
)


def drawn(*nodes):
    rng = np.random.default_rng(0)
    return {x: rng.standard_normal(x.shape) > -1 if x.dtype == bool else rng.standard_normal(x.shape) for x in nodes}


MASKS = {
    "none": None,
    "of rows": cg.Var((2, 1, 7, 5), "float64", "rows"),
    "for all rows": cg.Var((1, 4, 1, 5), "float64", "spread"),
    "bool": cg.Var((2, 4, 7, 5), "bool", "seen"),
}


@pytest.mark.parametrize("most", [1, 100, 130])
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("rule", [Rule(0.5), Rule(0.5, True, 3), Rule(0.5, softcap=0.8)], ids=["all", "window", "cap"])
def test_gradients_in_bands_are_those_at_once(rule, name, most):
    """Bands of one query in a loop, and of a few, the last one filled up."""
    g, inner, mask = cg.Var((2, 4, 7, 6), "float64", "g"), cg.Var((2, 4, 7, 1), "float64", "inner"), MASKS[name]
    rows = QueryRows(Q, g, inner, positions(7, None))
    found, want = (
        [x for x in attention_gradients(rule, rows, K, V, mask, limit) if x is not None] for limit in (most, 10**6)
    )
    given = drawn(Q, K, V, g, inner, *([] if mask is None else [mask]))
    if name == "bool":
        given[mask][..., :2] = True  # else a query may see no key
    for one, two in zip(evaluate(found, given), evaluate(want, given), strict=True):
        assert_close(one, two)


def test_a_long_layer_and_its_gradient_need_bytes_in_proportion_to_the_length():
    def needs(length, differentiated):
        x = cg.Var((1, 2, length, 8), name="x")
        y = cg.scaled_dot_product_attention(x, x * 2, x * 3, causal=True)
        return cg.compile(cg.gradient(cg.sum(y), x) if differentiated else y, x).nbytes

    for differentiated in (False, True):
        short, long = (needs(n, differentiated) for n in (1024, 4096))
        assert long < 5 * short
        assert long < 4096 * 4096  # one array of scores has eight times as many bytes


@pytest.mark.parametrize(
    "shapes", [((3, 4), (5, 4), (5, 6)), ((7, 1, 3, 4), (2, 5, 4), (5, 6)), ((3, 2, 4, 3, 4), (2, 5, 4), (2, 5, 6))]
)
def test_leading_axes_broadcast_and_heads_are_shared(shapes):
    q, k, v = (cg.Var(s, "float64") for s in shapes)
    given = drawn(q, k, v)
    got = cg.scaled_dot_product_attention(q, k, v)
    a, b, c = given.values()
    if len(shapes[0]) == 5:
        b, c = np.repeat(b, 2, 0), np.repeat(c, 2, 0)
    scores = a @ np.swapaxes(b, -1, -2) / 2
    weights = np.exp(scores)
    assert_close(evaluate([got], given)[0], weights / weights.sum(-1, keepdims=True) @ c)


def test_no_keys_give_zeros_as_a_product_over_nothing_does():
    q, k, v = np.ones((3, 4), "float32"), np.ones((0, 4), "float32"), np.ones((0, 6), "float32")
    np.testing.assert_array_equal(cg.scaled_dot_product_attention(q, k, v).eval(), np.zeros((3, 6), "float32"))


@pytest.mark.parametrize("engine", ["cpu", "reference"])
@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0)])
def test_sizes_of_zero(shape, engine):
    """Without features every key has the same score, so that a result is the mean of the values."""
    q, k = np.ones(shape, "float32"), np.ones((2, 5, shape[2]), "float32")[: shape[0]]
    v = np.random.default_rng(1).standard_normal((2, 5, 6))[: shape[0]].astype("float32")
    want = np.broadcast_to(v.mean(1, keepdims=True), (*shape[:2], 6))
    assert_close(cg.compile(cg.scaled_dot_product_attention(q, k, v), engine=engine)(), want)


REFUSED = {
    "must be finite and >= 0": lambda: cg.scaled_dot_product_attention(Q, K, V, softcap=-1.0),
    "softcap is nan": lambda: cg.scaled_dot_product_attention(Q, K, V, softcap=float("nan")),
    "do not fit": lambda: cg.scaled_dot_product_attention(Q, V, V),
    "leading axes .* do not broadcast": lambda: cg.scaled_dot_product_attention(
        Q, cg.zeros((2, 4, 5, 3), "float64"), cg.zeros((2, 2, 5, 6), "float64")
    ),
    "are not a multiple of": lambda: cg.scaled_dot_product_attention(Q[:, :3], K, V),
    "leading axes": lambda: cg.scaled_dot_product_attention(
        Q, K[:1].reshape(1, 2, 5, 3), cg.zeros((3, 2, 5, 6), "float64")
    ),
    "mask .* does not broadcast": lambda: cg.scaled_dot_product_attention(Q, K, V, cg.zeros((7, 4))),
    "causal": lambda: cg.scaled_dot_product_attention(Q, K, V, window=3),
    "start without causal=True": lambda: cg.scaled_dot_product_attention(Q, K, V, start=np.array([1, 2])),
    "multiple of g": lambda: apply(Attention(1.0), Q, V, V),
    "must be int64": lambda: apply(Attention(1.0, True, 0, False, True), Q, K, V, cg.zeros((3,), "int64")),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_does_not_fit_is_refused(message):
    with pytest.raises(ShapeError, match=message):
        REFUSED[message]()


def test_other_dtypes_are_refused():
    with pytest.raises(DTypeError, match="one float dtype"):
        apply(Attention(1.0), Q, K, V.astype("float32"))
    with pytest.raises(DTypeError, match="must be bool"):
        apply(Attention(1.0, has_mask=True), Q, K, V, cg.zeros((1, 1, 1, 1), "int64"))


def plain_attention(q, k, v, mask=None, causal=False, scale=None, window=0, start=0, softcap=0.0):
    """Of arrays, by the formula."""
    heads = q.shape[-3] if q.ndim > 2 else 1
    k, v = (np.repeat(x, heads // x.shape[-3], -3) if x.ndim > 2 and x.shape[-3] > 1 else x for x in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    scores = softcap * np.tanh(scores / softcap) if softcap else scores
    if causal:
        own, keys = np.asarray(start)[..., None, None, None] + np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
        seen = (keys <= own) & (keys > own - (window or np.inf))
        scores = np.where(seen if q.ndim > 2 else seen[0], scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


LEADS = {  # of queries, of keys and values
    "none": ((), ()), "heads": ((4,), (4,)), "shared heads": ((2, 4), (2, 2)), "one head of keys": ((2, 4), (1, 1)),
    "two batches": ((3, 2, 4), (3, 2, 2)), "keys of all batches": ((3, 2, 4), (4,)),
}  # fmt: skip
WAYS = [
    ((3, 5), {}), ((3, 1), {"scale": 0.3}), ((1, 5), {"softcap": 0.7}), (None, {"causal": True}),
    ((3, 5), {"causal": True, "window": 2}), (None, {"causal": True, "start": 1}),
]  # fmt: skip


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize("kind", ["bool", "float64"])
@pytest.mark.parametrize("lead", LEADS)
def test_every_option_under_any_leading_axes_is_the_formula(lead, kind, engine):
    """Masks of each, of all rows or of all keys, with other leading axes; positions of each batch."""
    (of_q, of_k), rng = LEADS[lead], np.random.default_rng(0)
    shapes = (*of_q, 3, 2), (*of_k, 5, 2), (*of_k, 5, 6)
    values = [rng.standard_normal(shape) for shape in shapes]
    xs = [cg.Var(shape, "float64", name) for shape, name in zip(shapes, "qkv")]
    outputs, wants = [], []
    for number, (mask, options) in enumerate(WAYS):
        if mask is not None:
            front = tuple(n if (number + i) % 2 else 1 for i, n in enumerate(of_q))
            mask = rng.standard_normal((*front, *mask))
            mask = (mask > -0.7) | (np.arange(mask.shape[-1]) < 3) if kind == "bool" else mask
        if "start" in options and len(of_q) > 1:
            options = options | {"start": rng.integers(0, 3, of_q[:-1])}
        outputs.append(cg.scaled_dot_product_attention(*xs, mask, **options))
        wants.append(plain_attention(*values, mask, **options))
    for got, want in zip(cg.compile(outputs, xs, engine=engine)(*values), wants, strict=True):
        assert_close(got, want, 10)


@pytest.mark.parametrize("shapes", [
    ((2, 4, 3), (2, 5, 3), (2, 6, 2)), ((2, 4, 3), (2, 5, 4), (2, 5, 2)), ((3,), (5, 3), (5, 2)),
    ((4, 3), (3,), (5, 2)), ((4, 3), (5, 3), (5,)), ((2, 4, 3), (2, 5, 3), (2, 1, 2)),
], ids=str)  # fmt: skip
def test_queries_keys_and_values_that_do_not_fit_are_refused_with_their_shapes(shapes):
    xs = [cg.Var(shape, name=name) for shape, name in zip(shapes, "qkv")]
    with pytest.raises(ShapeError, match=r"queries float32\[.* do not fit; pass queries"):
        cg.scaled_dot_product_attention(*xs)
