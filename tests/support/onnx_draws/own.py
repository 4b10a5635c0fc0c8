"""Attention, embeddings, norms and products of onnxruntime's own domain."""

import numpy as np

from tests.support.draws import Draws
from tests.support.onnx_draws.bytes import OWN, scale, scaled, weights
from tests.support.onnx_draws.draws import Model, model, operator
from tests.support.onnx_draws.windows import windows, without_gaps


def tokens(d: Draws, high: int, *shape: int) -> np.ndarray:
    return d.numbers("int32", *shape, low=0, high=high)


def mask(d: Draws, batch: int, queries: int, keys: int) -> np.ndarray | None:
    """Of any form; each sample sees its first key."""
    shown = tokens(d, 1, batch, queries, keys)
    shown[..., 0] = 1
    ends = tokens(d, keys - 1, batch) + np.int32(1)
    return d.of(None, shown, shown[:, 0], ends, np.concatenate([ends, np.zeros(batch, "i4")]))


@operator(OWN + "Attention")
def attention(d: Draws, kind: str = OWN + "Attention") -> Model:
    batch, length, heads, past, width = d.whole(1, 3), d.whole(1, 4), d.whole(1, 3), d.of(0, 2), d.whole(1, 5)
    size, values = d.whole(1, 4), d.of(None, 3)
    ends = [heads * size, heads * size, heads * (values or size)]
    values = None if past else values
    ends = [heads * size] * 3 if values is None else ends
    operands = [d.normal(batch, length, width), d.normal(width, sum(ends)), d.normal(sum(ends))]
    operands += [mask(d, batch, length, length + past), d.normal(2, batch, heads, past, size) if past else None]
    if not past:
        operands.append(d.of(None, d.normal(d.of(1, batch), d.of(1, heads), length, length)))
    more = {"num_heads": heads} | d.maybe(unidirectional=1, scale=0.3, mask_filter_value=-2.0)
    more |= {} if values is None else {"qkv_hidden_sizes": ends}
    return model(kind, *without_end(operands), constant=(1, 2), results=2 if past else 1, **more)


def without_end(operands: list) -> list:
    """Operands without absent ones at the end."""
    while operands[-1] is None:
        operands = operands[:-1]
    return operands


@operator(OWN + "MultiHeadAttention")
def heads_attention(d: Draws) -> Model:
    batch, queries, keys, heads, past = d.whole(1, 3), d.whole(1, 4), d.whole(1, 4), d.whole(1, 3), d.of(0, 2)
    size, values = d.whole(1, 4), d.whole(1, 4)
    keys, values = (queries, size) if past else (keys, values)
    operands = [d.normal(batch, n, heads * m) for n, m in ((queries, size), (keys, size), (keys, values))]
    operands += [d.of(None, d.normal(heads * (2 * size + values)))]
    seen = mask(d, batch, queries, keys + past)
    operands += [None if seen is not None and seen.shape == (2 * batch,) else seen]
    operands += [d.of(None, d.normal(1, heads, queries, keys + past))]
    operands += [d.normal(batch, heads, past, size) for _ in "kv"] if past else []
    more = {"num_heads": heads} | d.maybe(scale=0.3, mask_filter_value=-2.0)
    more |= d.maybe(unidirectional=1) if keys == queries else {}
    return model(OWN + "MultiHeadAttention", *without_end(operands), results=3 if past else 1, **more)


@operator(OWN + "GroupQueryAttention")
def grouped(d: Draws) -> Model:
    """Of one token behind a past whose buffer has no room left, so that all of it is compared."""
    batch, groups, each, size, past = d.whole(1, 3), d.whole(1, 2), d.whole(1, 3), 16, d.whole(1, 5)
    heads = groups * each
    q, k, v = (d.normal(batch, 1, n * size) for n in (heads, groups, groups))
    operands = d.of([q, k, v], [np.concatenate([q, k, v], 2), None, None])
    kept = [d.normal(batch, groups, past + 1, size) for _ in "kv"]
    operands += [*kept, np.full(batch, past, "i4"), np.array(past + 1, "i4")]
    more = {"num_heads": heads, "kv_num_heads": groups} | d.maybe(scale=0.4, softcap=0.5, local_window_size=2)
    if d.of(True, False):
        operands += [d.normal(past + 1, size // 2), d.normal(past + 1, size // 2)]
        more |= {"do_rotary": 1} | d.maybe(rotary_interleaved=1)
    return model(OWN + "GroupQueryAttention", *operands, constant=(5, 6), results=3, **more)


@operator(OWN + "EmbedLayerNormalization")
def embeddings(d: Draws) -> Model:
    batch, length, width, words = d.whole(1, 3), d.whole(1, 4), d.whole(2, 5), d.whole(3, 7)
    has_segments = d.of(True, False)
    operands = [tokens(d, words - 1, batch, length), tokens(d, 1, batch, length) if has_segments else None]
    operands += [d.normal(words, width), d.normal(5, width), d.normal(2, width) if has_segments else None]
    operands += [d.normal(width), d.normal(width), d.of(None, tokens(d, 1, batch, length))]
    operands += [d.of(None, tokens(d, 4, batch, length))]
    more = d.maybe(epsilon=0.25) | ({"mask_index_type": 1} if operands[7] is not None else {})
    constant = tuple(i for i in range(2, 7) if operands[i] is not None)
    results = d.of(2, 3)
    return model(OWN + "EmbedLayerNormalization", *without_end(operands), constant=constant, results=results, **more)


@operator(OWN + "SkipLayerNormalization", OWN + "SkipSimplifiedLayerNormalization")
def skip_norm(d: Draws, kind: str) -> Model:
    batch, length, width = d.whole(1, 3), d.whole(1, 4), d.whole(2, 5)
    skip = d.of((batch, length, width), (1, length, width), (length, width))
    operands = [d.normal(batch, length, width), d.normal(*skip), d.normal(width)]
    operands += [] if "Simplified" in kind else [d.of(None, d.normal(width))]
    return model(kind, *without_end([*operands, d.of(None, d.normal(width))]), **d.maybe(epsilon=0.25))


@operator(OWN + "RotaryEmbedding")
def rotated(d: Draws) -> Model:
    batch, length, heads, half = d.whole(1, 3), d.whole(1, 3), d.whole(1, 3), d.whole(1, 4)
    shape = d.of((batch, length, heads * 2 * half), (batch, heads, length, 2 * half))
    places = d.of(np.array([1]), d.numbers("int64", batch, length, low=0, high=5))
    more = d.maybe(interleaved=1)
    return model(OWN + "RotaryEmbedding", d.normal(*shape), places, d.normal(6, half), d.normal(6, half), **more)


@operator(OWN + "BiasGelu", OWN + "FastGelu", OWN + "Gelu", OWN + "QuickGelu")
def gelu(d: Draws, kind: str) -> Model:
    x = d.normal(*d.shape(1, 3))
    bias = [d.normal(x.shape[-1])] if "Bias" in kind or ("Fast" in kind and d.of(True, False)) else []
    return model(kind, x, *bias, **(d.maybe(alpha=d.of(1.0, 0.5)) if "Quick" in kind else {}))


@operator(OWN + "FusedMatMul")
def product(d: Draws) -> Model:
    m, k, n, batch = d.whole(1, 5), d.whole(1, 5), d.whole(1, 5), d.shape(0, 2, 3)
    flags = [d.of(0, 1), d.of(0, 1)]
    shapes = [(k, m) if flags[0] else (m, k), (n, k) if flags[1] else (k, n)]
    more = {name: 1 for name, flag in zip(("transA", "transB"), flags) if flag} | d.maybe(alpha=0.5)
    return model(OWN + "FusedMatMul", d.normal(*batch, *shapes[0]), d.normal(*d.of((), batch), *shapes[1]), **more)


@operator(OWN + "FusedGemm")
def fused_gemm(d: Draws) -> Model:
    m, k, n = (d.whole(1, 5) for _ in range(3))
    kind = d.of("Relu", "LeakyRelu", "HardSigmoid", "Elu", "Tanh")
    own = {"LeakyRelu": {"activation_alpha": 0.25}, "Elu": {"activation_alpha": 0.5}}.get(kind, {})
    own = {"activation_alpha": 0.25, "activation_beta": 0.4} if kind == "HardSigmoid" else own
    flags = d.maybe(transA=1, transB=1)
    shapes = [(k, m) if "transA" in flags else (m, k), (n, k) if "transB" in flags else (k, n)]
    shift = d.of((), (d.normal(n),), (d.normal(m, 1),))
    return model(
        OWN + "FusedGemm", *(d.normal(*s) for s in shapes), *shift, activation=kind, **own, **flags,
        **d.maybe(alpha=0.5, beta=0.25),
    )  # fmt: skip


@operator(OWN + "FusedConv")
def fused_conv(d: Draws) -> Model:
    how, groups = windows(d, 2), d.of(1, 2)
    kind, own = d.of(("Relu", None), ("LeakyRelu", [0.25]), ("Clip", [-0.5, 0.75]), ("HardSigmoid", [0.3, 0.4]))
    more = {"group": groups} if groups > 1 else {}
    more |= {"activation_params": own} if own else {}
    bias = d.of((), (d.normal(2 * groups),))
    x, f = d.normal(2, 2 * groups, 6, 7), d.normal(2 * groups, 2, *how["kernel_shape"])
    return model(OWN + "FusedConv", x, f, *bias, activation=kind, **how, **more)


@operator(OWN + "MatMulIntegerToFloat", OWN + "DynamicQuantizeMatMul")
def integers(d: Draws, kind: str) -> Model:
    m, k, n = (d.whole(1, 5) for _ in range(3))
    dtype, columns = d.of("int8", "uint8"), d.of((), (n,))
    y, (factor, zero) = weights(d, dtype, k, n), scale(d, dtype, *columns)
    x, rows = scaled(d, "uint8", *d.shape(0, 1), m, k), d.of(None, d.normal(n))
    if "Dynamic" in kind:
        return model(kind, *without_end([d.normal(*x[0].shape), y, factor, d.of(None, zero), rows]), constant=(1,))
    zeros = d.of([None, None], [x[2], zero], [x[2], None])
    return model(kind, *without_end([x[0], y, x[1], factor, *zeros, rows]))


@operator(OWN + "QAttention")
def byte_attention(d: Draws) -> Model:
    batch, length, heads, size, past = d.whole(1, 3), d.whole(1, 4), d.whole(1, 3), d.whole(1, 4), d.of(0, 2)
    width, total = d.whole(1, 5), 3 * heads * size
    x, dtype = scaled(d, "uint8", batch, length, width), d.of("int8", "uint8")
    factor, zero = scale(d, dtype, *d.of((), (total,)))
    seen = mask(d, batch, length, length + past)
    seen = None if seen is not None and seen.ndim == 3 else seen
    earlier = d.normal(2, batch, heads, past, size) if past else None
    operands = [x[0], weights(d, dtype, width, total), d.normal(total), x[1], factor, seen, x[2], zero, earlier]
    more = {"num_heads": heads} | d.maybe(unidirectional=1)
    return model(OWN + "QAttention", *without_end(operands), constant=(1, 4, 7), results=2 if past else 1, **more)


@operator(OWN + "QLinearAveragePool")
def byte_pool(d: Draws) -> Model:
    how = without_gaps(windows(d, 2, dilated=False, ceil_mode=d.of(0, 1))) | d.maybe(count_include_pad=1)
    return model(OWN + "QLinearAveragePool", *scaled(d, "uint8", 2, 3, 6, 7), *scale(d, "uint8"), **how)


@operator(OWN + "NhwcMaxPool")
def last_pool(d: Draws) -> Model:
    how = without_gaps(windows(d, 2, ceil_mode=d.of(0, 1)))
    return model(OWN + "NhwcMaxPool", d.numbers(d.of("int8", "uint8"), 2, 6, 7, 3, low=-99, high=99), **how)


@operator(OWN + "QLinearSoftmax")
def byte_softmax(d: Draws) -> Model:
    dtype, shape, opset = d.of("int8", "uint8"), d.shape(2, 4), d.of(11, 13)
    x = scaled(d, dtype, *shape)
    ends = [np.float32(1 / 256), np.array(0 if dtype[0] == "u" else -128, dtype)]
    axis = d.axis(len(shape)) if opset == 13 else d.whole(0, len(shape) - 1)
    constant = (1, 2, 3, 4)
    return model(OWN + "QLinearSoftmax", *x, *ends, constant=constant, more={"opset": opset}, axis=axis)


@operator(OWN + "QLinearWhere")
def byte_where(d: Draws) -> Model:
    dtype, shape = d.of("int8", "uint8"), d.shape(1, 3)
    shown = d.rng.random([d.of(1, n) for n in shape]) < 0.5
    parts = [*scaled(d, dtype, *shape), *scaled(d, dtype, *(d.of(1, n) for n in shape)), *scale(d, dtype)]
    return model(OWN + "QLinearWhere", shown, *parts, constant=(2, 3, 5, 6, 7, 8))


@operator(OWN + "MatMulNBits")
def few_bits(d: Draws) -> Model:
    bits, block, n, k = d.of(4, 8), d.of(16, 32), d.whole(1, 5), d.of(16, 24, 40, 64)
    count = -(-k // block)
    y = d.numbers("uint8", n, count, block * bits // 8, high=255)
    zeros = d.of(None, d.numbers("uint8", n, -(-count * bits // 8), high=255))
    factor, bias = d.positive(n, count) / np.float32(37), d.of(None, d.normal(n))
    operands = [d.normal(*d.shape(1, 2), k), y, factor, zeros, None, bias]
    held = tuple(i for i in (1, 2, 3, 5) if operands[i] is not None)
    more = {"K": k, "N": n, "bits": bits, "block_size": block}
    return model(OWN + "MatMulNBits", *without_end(operands), constant=held, **more)


@operator(OWN + "CDist")
def distances(d: Draws) -> Model:
    width = d.whole(1, 5)
    return model(
        OWN + "CDist", d.normal(d.whole(1, 4), width), d.normal(d.whole(1, 4), width),
        metric=d.of("sqeuclidean", "euclidean"),
    )  # fmt: skip


@operator(OWN + "Trilu")
def triangle(d: Draws) -> Model:
    k = [np.array(d.whole(-4, 4))] if d.of(True, False) else []
    return model(OWN + "Trilu", d.normal(*d.shape(2, 4, 5)), *k, constant=(1,) if k else (), **d.maybe(upper=0))


@operator(OWN + "Inverse")
def inverse(d: Draws) -> Model:
    n = d.whole(1, 4)
    return model(OWN + "Inverse", d.normal(*d.shape(0, 2, 3), n, n) + 4 * np.eye(n, dtype="f4"))
