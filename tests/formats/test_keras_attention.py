"""Attention of Keras with its masks, beside NumPy."""

import numpy as np
import pytest

from tests.support.keras_networks import (
    COUNTS,
    HEADS,
    IDS,
    OTHER,
    RNG,
    TABLE,
    WEIGHTS,
    C,
    E,
    F,
    N,
    T,
    X,
    heads,
    layer,
    masked_rows,
    normal,
    run,
    start,
)
from tests.support.tolerance import assert_near


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(w, query, value, key, seen=None):
    q, k, v = (
        np.einsum("ntc,chd->nhtd", x.astype(float), w[f"{name}/kernel"]) + w[f"{name}/bias"][:, None]
        for x, name in ((query, "query"), (key, "key"), (value, "value"))
    )
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    scores = scores if seen is None else np.where(seen, scores, -1e30)
    return np.einsum("nhtd,hdc->ntc", softmax(scores) @ v, w["attention_output/kernel"]) + w["attention_output/bias"]


Y, Z = normal(N, 6, 3), normal(N, 6, 2)
SEEN = RNG.random((N, T, 6)) > 0.3
SEEN[..., 0] = True


def test_heads_attend_with_keys_values_masks_and_order():
    w = heads(C, 2, 3, C)
    rows = [start("x", (T, C)), start("y", (6, 3)), start("z", (6, 2)), start("m", (T, 6), "bool")]
    refer = {name: [name, 0, 0] for name in "yzm"}
    uses = {
        "positions": (["x", "y", "z"], {}, None),
        "names": (["x"], {"value": refer["y"], "key": refer["z"]}, None),
        "mask": (["x", "y", "z"], {"attention_mask": refer["m"]}, SEEN[:, None]),
        "order": (["x", "y", "z"], {"use_causal_mask": True}, np.tri(T, 6, dtype=bool)),
        "both": (["x", "y", "z"], {"attention_mask": refer["m"], "use_causal_mask": True},
                 SEEN[:, None] & np.tri(T, 6, dtype=bool)),
    }  # fmt: skip
    rows += [layer("MultiHeadAttention", name, reads, HEADS, named) for name, (reads, named, _) in uses.items()]
    rows.append(layer("MultiHeadAttention", "bare", ["x", "y", "z"], HEADS | {"use_bias": False}))
    bare = {name: x for name, x in w.items() if name.endswith("/kernel")}
    weights = dict.fromkeys(uses, w) | {"bare": bare}
    *found, unbiased = run(rows, weights, [X, Y, Z, SEEN], [(name, 0) for name in weights])
    for got, (_, _, seen) in zip(found, uses.values()):
        assert_near(got, attend(w, X, Y, Z, seen), "float32 sums near zero")
    no_bias = {name: x if name in bare else x * 0 for name, x in w.items()}
    assert_near(unbiased, attend(no_bias, X, Y, Z), "float32 sums near zero")


def test_heads_see_no_step_that_does_not_count():
    w = heads(C, C, C, C)
    named = {"value": ["f", 0, 0]}
    rows = masked_rows(
        layer("MultiHeadAttention", "a", ["e", "f"], HEADS), layer("MultiHeadAttention", "b", ["e"], HEADS, named)
    )
    found = run(rows, WEIGHTS | {"a": w, "b": w}, [IDS, OTHER], [("a", 0), ("b", 0)])
    want = attend(w, E, F, F, (COUNTS[:, :, None] & (OTHER != 0)[:, None])[:, None])
    for got in found:
        assert_near(got[COUNTS], want[COUNTS], "float32 sums near zero")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["Attention", "AdditiveAttention"])
def test_plain_attention(kind, causal):
    scale = normal(C) if kind == "AdditiveAttention" else np.float32(0.7)
    options = {"use_scale": True, "score_mode": "dot"}
    named = {"use_causal_mask": True} if causal else {}
    rows = masked_rows(
        layer(kind, "a", ["e", "f"], options, named), layer(kind, "b", ["e", "g", "f"], {"use_scale": False})
    )
    found, plain = run(rows, WEIGHTS | {"a": {"scale": np.asarray(scale)}}, [IDS, OTHER], [("a", 0), ("b", 0)])
    for got, factor, seen in ((found, scale, (OTHER != 0)[:, None]), (plain, 1, np.ones((N, 1, T), bool))):
        if kind == "Attention":
            scores = E.astype(float) @ F.transpose(0, 2, 1) * factor
        else:
            scores = (np.tanh(E[:, :, None].astype(float) + F[:, None]) * factor).sum(-1)
        seen = seen & np.tri(T, dtype=bool) if causal and got is found else seen
        want = softmax(np.where(seen, scores, scores - 1e9)) @ F
        assert_near(got, want * COUNTS[..., None], "float32 sums near zero")


@pytest.mark.parametrize("kind", ["Attention", "AdditiveAttention"])
def test_plain_attention_sees_no_later_key_of_a_longer_sequence_and_has_the_scale_of_its_kind(kind):
    """Of 5 queries and 7 keys. Unless told otherwise AdditiveAttention has a scale, and Attention has none."""
    keys, scale = normal(N, 7, C), normal(C)
    rows = [start("x", (T, C)), start("y", (7, C)), layer(kind, "a", ["x", "y"], {}, {"use_causal_mask": True})]
    (found,) = run(rows, {"a": {"scale": scale}}, [X, keys], [("a", 0)])
    if kind == "Attention":
        scores = X.astype(float) @ keys.transpose(0, 2, 1)
    else:
        scores = (np.tanh(X[:, :, None].astype(float) + keys[:, None]) * scale).sum(-1)
    seen = np.tri(T, 7, dtype=bool)
    assert_near(found, softmax(np.where(seen, scores, scores - 1e9)) @ keys, "float32 sums near zero")


SIDES = {"MultiHeadAttention": HEADS, "Attention": {}, "AdditiveAttention": {"use_scale": False}}


@pytest.mark.parametrize("kind", SIDES)
def test_steps_behind_attention_count_as_those_of_its_queries(kind):
    rows = masked_rows(layer(kind, "m", ["e", "g"], SIDES[kind]), layer("GlobalAveragePooling1D", "a", ["m"]))
    y, mean = run(rows, WEIGHTS | {"m": heads(C, C, C, C)}, [IDS, OTHER], [("m", 0), ("a", 0)])
    assert_near(mean, (y * COUNTS[..., None]).sum(1) / COUNTS.sum(1)[:, None], "float32 sums near zero")


@pytest.mark.parametrize("masked", ["e g g", "g e g", "g g e", "e f g", "g e f", "e g f", "e f h"])
def test_heads_see_keys_that_count_as_values_and_as_keys(masked):
    """Each of the three sequences may have a mask: `h` has another one than `e` and `f`."""
    w = heads(C, C, C, C)
    third = np.roll(IDS, 1, 0).copy()
    values = {"e": (E, COUNTS), "f": (F, OTHER != 0), "g": (F, None), "h": (TABLE[third], third != 0)}
    rows = [start("k", (T,), "int32"), layer("Embedding", "h", ["k"], {"mask_zero": True})]
    rows = masked_rows(*rows, layer("MultiHeadAttention", "a", masked.split(), HEADS))
    weights = WEIGHTS | {"a": w, "h": {"embeddings": TABLE}}
    (found,) = run(rows, weights, [IDS, OTHER, third], [("a", 0)])
    (q, qm), (v, vm), (k, km) = (values[name] for name in masked.split())
    seen = np.ones((N, T, T), bool)
    for mask, axis in ((qm, 2), (vm, 1), (km, 1)):
        seen = seen if mask is None else seen & np.expand_dims(mask, axis)
    rows_seen = seen.any(-1)
    assert_near(found[rows_seen], attend(w, q, v, k, seen[:, None])[rows_seen], "float32 sums near zero")
