"""MultiHeadAttention with every two of its features at once, against loops over heads, queries and keys."""

from itertools import combinations
from math import exp, sqrt, tanh

import numpy as np
import pytest

import nn
from cgraph.errors import ShapeError
from nn.layers.positions import alibi_slopes, relative_buckets
from nn.torch_names import TorchNames
from tests.nn.support import assert_close, draw, run

FEATURES, HEADS = 8, 4
OPTIONS = {
    "causal": {"causal": True}, "key_heads": {"key_heads": 2}, "one key head": {"key_heads": 1},
    "rotary": {"rotary": 100.0}, "window": {"causal": True, "window": 2}, "alibi": {"causal": True, "alibi": True},
    "buckets": {"buckets": 4, "farthest": 6}, "softcap": {"softcap": 0.7}, "no bias": {"use_bias": False},
}  # fmt: skip


def turned(x, base):
    """Pairs half a head apart ``[t, d]``, by angles that grow with the position."""
    found, half = x.copy(), x.shape[1] // 2
    for t in range(len(x)):
        for i in range(half):
            angle = t / base ** (2 * i / (2 * half))
            a, b = x[t, i], x[t, i + half]
            found[t, i], found[t, i + half] = (
                a * np.cos(angle) - b * np.sin(angle),
                b * np.cos(angle) + a * np.sin(angle),
            )
    return found


def attention(layer, x, y, mask):
    """One sample ``[t, features]`` and its keys ``[s, features]``; mask ``[t, s]``."""
    weights = {path: np.float64(v.value) for path, v in layer.parameters().items()}

    def linear(name, z):
        return z @ weights[f"{name}.weight"] + weights.get(f"{name}.bias", 0.0)

    q, k, v = linear("query", x), linear("key", y), linear("value", y)
    d, shared = FEATURES // HEADS, HEADS // (layer.key_heads or HEADS)
    found = np.zeros_like(q)
    for h in range(HEADS):
        mine, its = slice(h * d, (h + 1) * d), slice(h // shared * d, (h // shared + 1) * d)
        queries, keys = q[:, mine], k[:, its]
        if layer.rotary is not None:
            queries, keys = turned(queries, layer.rotary), turned(keys, layer.rotary)
        for i in range(len(x)):
            scores = []
            for j in range(len(y)):
                score = queries[i] @ keys[j] / sqrt(d)
                if layer.softcap:
                    score = layer.softcap * tanh(score / layer.softcap)
                if layer.alibi:
                    score += (j - i) * float(alibi_slopes(HEADS)[h])
                if layer.buckets:
                    at = relative_buckets(np.array([j - i]), layer.buckets, layer.farthest, layer.causal)[0]
                    score += weights["relative"][h, at]
                hidden = (layer.causal and j > i) or (layer.window and j <= i - layer.window)
                if mask is not None and mask.dtype == bool:
                    hidden = hidden or not mask[i, j]
                scores.append(-np.inf if hidden else score)
            shares = np.array([exp(s - max(scores)) for s in scores])
            found[i, mine] = shares / shares.sum() @ v[:, its]
    return linear("output", found)


def layer_of(*names):
    options = {}
    for name in names:
        options |= OPTIONS[name]
    if options.get("alibi") and options.get("buckets"):
        return None
    layer = nn.initialise(nn.MultiHeadAttention(FEATURES, HEADS, **options), 0)
    for i, x in enumerate(layer.parameters().values()):
        x.assign(draw(*x.shape, seed=i + 1))
    return layer


@pytest.mark.parametrize("mask", [None, "shared", "each"])
@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("names", list(combinations(OPTIONS, 2)), ids="-".join)
def test_two_features_and_a_mask_together(names, other, mask):
    """The mask hides besides whatever else is hidden or added; every query sees its own key."""
    layer = layer_of(*names)
    if layer is None:
        return  # refused
    t, s = 5, 7 if other and not layer.causal else 5
    x, y = draw(2, t, FEATURES, seed=20), draw(2, s, FEATURES, seed=21)
    rng = np.random.default_rng(3)
    hidden = rng.random((t, s) if mask == "shared" else (2, t, s)) < 0.6
    hidden[..., np.arange(t), np.arange(t)] = True
    given = [x] if not other and mask is None else [x, y if other else x]
    if mask is not None:
        given.append(hidden if mask == "shared" else hidden[:, None])
    got = run(layer, *given)
    for i in range(2):
        one = None if mask is None else hidden if mask == "shared" else hidden[i]
        assert_close(got[i], attention(layer, x[i], (y if other else x)[i], one), name="float32 layers")


@pytest.mark.parametrize("name", OPTIONS)
def test_what_the_mask_hides_has_no_part_in_the_result(name):
    """Whatever is written where nobody looks."""
    layer = layer_of(name)
    x, mask = draw(1, 5, FEATURES, seed=20), np.tri(5, dtype=bool)
    mask[4, 2] = mask[3, 2] = False
    mask[2, 1] = False
    changed = x.copy()
    changed[0, 2] = 50.0
    one, two = (run(layer, x, z, mask) for z in (x, changed))
    same = [0, 1, 3, 4]  # queries that do not see the third key
    assert_close(two[0, same], one[0, same])
    assert np.abs(two[0, 2] - one[0, 2]).max() > 1e-3


@pytest.mark.parametrize("use_bias", [True, False])
def test_packed_weights_of_pytorch_are_divided_into_those_of_the_layer(use_bias):
    """`torch.nn.MultiheadAttention` has one matrix for q, k and v, and biases if it is built with them."""
    rng = np.random.default_rng(0)
    arrays = {"in_proj_weight": rng.normal(size=(3 * FEATURES, FEATURES)), "out_proj.weight": np.eye(FEATURES)[::-1]}
    if use_bias:
        arrays |= {"in_proj_bias": rng.normal(size=3 * FEATURES), "out_proj.bias": rng.normal(size=FEATURES)}
    layer = nn.MultiHeadAttention(FEATURES, HEADS, use_bias=use_bias)
    names = TorchNames(arrays)
    values = layer.from_torch(names)
    assert values.keys() == layer.parameters().keys() and names.read == arrays.keys()
    for i, part in enumerate(("query", "key", "value")):
        rows = slice(i * FEATURES, (i + 1) * FEATURES)
        np.testing.assert_array_equal(values[f"{part}.weight"], arrays["in_proj_weight"][rows].T)
        if use_bias:
            np.testing.assert_array_equal(values[f"{part}.bias"], arrays["in_proj_bias"][rows])
    np.testing.assert_array_equal(values["output.weight"], arrays["out_proj.weight"].T)


@pytest.mark.parametrize(("heads", "key_heads"), [(0, None), (-2, None), (4, -1), (4, -4)])
def test_heads_of_queries_and_of_keys_are_at_least_one(heads, key_heads):
    with pytest.raises(ShapeError) as error:
        nn.MultiHeadAttention(8, heads, key_heads=key_heads)
    assert str(error.value) == f"heads is {heads} and key_heads {key_heads}. Pass at least 1 of each."


@pytest.mark.parametrize("heads", [1, 2, 3, 8, 12])
def test_slopes_are_float32_and_differ(heads):
    slopes = alibi_slopes(heads)
    assert slopes.dtype == np.float32 and len(set(slopes.tolist())) == heads and 0 < slopes.min() <= slopes.max() < 1
