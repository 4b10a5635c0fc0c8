"""onnxruntime's operators for encoders: every form of mask, past, bias and packing, as onnxruntime computes them."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from tests.support.microsoft import assert_same, model_of

pytest.importorskip("onnxruntime")
B, S, H, D, P = 2, 5, 3, 4, 3  # samples, tokens, heads, elements of a head, earlier tokens


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def floats(rng, *shape):
    return rng.standard_normal(shape).astype("f4")


def masks(rng, queries, keys):
    """By form; each sample sees at least one key."""
    lengths = np.array([keys - 1, keys - 3], "i4")
    drawn = rng.integers(0, 2, (B, queries, keys)).astype("i4")
    drawn[..., 0] = 1
    return {
        "none": None,
        "keys": drawn[:, 0],
        "queries": drawn,
        "lengths": lengths,
        "ends and starts": np.concatenate([lengths, [1, 0]]).astype("i4"),
    }


@pytest.mark.parametrize("form", ["none", "keys", "queries", "lengths", "ends and starts"])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("past", [0, P])
def test_attention_with_projections(rng, tmp_path, form, causal, past):
    x, w, b = floats(rng, B, S, 7), floats(rng, 7, 3 * H * D), floats(rng, 3 * H * D)
    mask = masks(rng, S, S + past)[form]
    operands = [x, w, b, mask, floats(rng, 2, B, H, past, D) if past else None]
    assert_same(tmp_path / "m.onnx", "Attention", operands, 2, (1, 2), num_heads=H, unidirectional=causal)


@pytest.mark.parametrize("leading", [(B, H), (1, 1), (1, H), (B, 1)])
@pytest.mark.parametrize("form", ["none", "keys"])
def test_attention_with_a_bias_of_the_scores(rng, tmp_path, leading, form):
    """Values are wider than keys, the factor and what hides a key are given."""
    x, w, b = floats(rng, B, S, 7), floats(rng, 7, H * (2 * D + 6)), floats(rng, H * (2 * D + 6))
    operands = [x, w, b, masks(rng, S, S)[form], None, floats(rng, *leading, S, S)]
    sizes = [H * D, H * D, H * 6]
    how = {"qkv_hidden_sizes": sizes, "scale": 0.3, "mask_filter_value": -3.0}
    assert_same(tmp_path / "m.onnx", "Attention", operands, 1, (1, 2), num_heads=H, **how)


def parts(rng, form, keys):
    """Queries, keys and values of each form that onnxruntime has on a CPU."""
    q, k, v = floats(rng, B, S, H * D), floats(rng, B, keys, H * D), floats(rng, B, keys, H * D)
    return {
        "apart": (q, k, v),
        "heads": (q, floats(rng, B, H, keys, D), floats(rng, B, H, keys, D)),
        "wide values": (q, k, floats(rng, B, keys, H * 6)),
    }[form]


@pytest.mark.parametrize("given", ["apart", "heads", "wide values"])
@pytest.mark.parametrize("form", ["none", "keys", "queries", "lengths"])
def test_attention_of_heads(rng, tmp_path, given, form):
    operands = [*parts(rng, given, 7), None, masks(rng, S, 7)[form]]
    assert_same(tmp_path / "m.onnx", "MultiHeadAttention", operands, num_heads=H)


def test_packed_operands_are_the_parts_beside_one_another(rng):
    """Queries, keys and values, or keys and values, of each head in one operand; onnxruntime has them on GPUs."""
    q, k, v = parts(rng, "apart", S)
    (want,) = load(model_of("MultiHeadAttention", [q, k, v], num_heads=H)).compile()(q, k, v)
    split = [x.reshape(B, S, H, D) for x in (q, k, v)]
    for operands in ([np.stack(split, 3), None, None], [q, np.stack(split[1:], 3), None]):
        given = [x for x in operands if x is not None]
        (got,) = load(model_of("MultiHeadAttention", operands, num_heads=H)).compile()(*given)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("given", ["apart", "heads", "wide values"])
def test_attention_of_heads_with_a_bias_of_the_projections(rng, tmp_path, given):
    values = 6 if given == "wide values" else D
    operands = [*parts(rng, given, 7), floats(rng, H * (2 * D + values))]
    assert_same(tmp_path / "m.onnx", "MultiHeadAttention", operands, num_heads=H, scale=0.4)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("form", ["none", "keys"])
@pytest.mark.parametrize("scores", [False, True])
def test_attention_of_heads_with_a_past(rng, tmp_path, causal, form, scores):
    mask, bias = masks(rng, S, S + P)[form], floats(rng, 1, H, S, S + P) if scores else None
    operands = [*parts(rng, "apart", S), floats(rng, 3 * H * D), mask, bias, *(floats(rng, B, H, P, D) for _ in "kv")]
    how = {"num_heads": H, "unidirectional": causal, "mask_filter_value": -5.0}
    assert_same(tmp_path / "m.onnx", "MultiHeadAttention", operands, 3, **how)


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize("mask", [False, True])
def test_embeddings(rng, tmp_path, segments, places, mask):
    tokens, segment = (rng.integers(0, n, (B, S)).astype("i4") for n in (11, 2))
    shown = (np.arange(S) < [[4], [2]]).astype("i4")
    operands = [
        tokens, segment if segments else None, floats(rng, 11, 8), floats(rng, 9, 8),
        floats(rng, 2, 8) if segments else None, floats(rng, 8), floats(rng, 8), shown if mask else None,
        rng.integers(0, 9, (B, S)).astype("i4") if places else None,
    ]  # fmt: skip
    constants = [i for i in (2, 3, 4, 5, 6) if operands[i] is not None]
    how = {"mask_index_type": 1} if mask else {}
    assert_same(tmp_path / "m.onnx", "EmbedLayerNormalization", operands, 3, constants, epsilon=1e-3, **how)


def test_what_is_not_supported_is_refused(rng):
    x, w, b = floats(rng, B, S, 7), floats(rng, 7, 3 * H * D), floats(rng, 3 * H * D)
    for name in ("do_rotary", "past_present_share_buffer"):
        with pytest.raises(FormatError, match="Export the model without them"):
            load(model_of("Attention", [x, w, b], num_heads=H, **{name: 1}))
    with pytest.raises(FormatError, match=r"a mask int32\[3,9\] is not supported: give \[batch\]"):
        load(model_of("Attention", [x, w, b, np.ones((3, 9), "i4")], num_heads=H))
    with pytest.raises(FormatError, match="Export the model without packing"):
        load(model_of("MultiHeadAttention", [floats(rng, B, S, H, 3, D), None, None, b], num_heads=H))
    q, k, v = parts(rng, "apart", S)
    with pytest.raises(FormatError, match="the result qk"):
        load(model_of("MultiHeadAttention", [q, k, v], 4, num_heads=H))


def test_projections_without_a_bias_have_one_of_zeros(rng):
    x, w = floats(rng, B, S, 7), floats(rng, 7, 3 * H * D)
    zeros = np.zeros(3 * H * D, "f4")
    (got,) = load(model_of("Attention", [x, w], num_heads=H)).compile()(x, w)
    (want,) = load(model_of("Attention", [x, w, zeros], num_heads=H)).compile()(x, w, zeros)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("unsupported", [8, 9])
def test_buffers_and_indirections_of_heads_are_refused(rng, unsupported):
    """Operands 8 and 9; the bias of keys and values that are packed beside each other is, too."""
    more = [None] * (unsupported - 3) + [np.ones((2,), "i4")]
    with pytest.raises(FormatError, match="a shared buffer of the past, cache_indirection and the result qk are not"):
        load(model_of("MultiHeadAttention", [*parts(rng, "apart", S), *more], num_heads=H))
    packed = [floats(rng, B, S, H * D), floats(rng, B, S, H, 2, D), None, floats(rng, 3 * H * D)]
    with pytest.raises(FormatError, match="Export the model without packing"):
        load(model_of("MultiHeadAttention", packed, num_heads=H))
