"""onnxruntime's own operators of quantised values, with onnxruntime as the oracle."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from cgraph.ir.traverse import post_order
from cgraph.passes.integers.compute_integers import compute_integers
from tests.support.onnx_models import assert_equal_results
from tests.support.tolerance import assert_near

ort = pytest.importorskip("onnxruntime")
RNG = np.random.default_rng(0)
SCALE, ZERO = np.float32(0.05), np.uint8(120)


def weights(*shape, kind="int8"):
    """Weights of products with bytes: seven bits and a sign, since onnxruntime's pairs saturate without VNNI."""
    return numbers(*shape) if kind == "uint8" else RNG.integers(-64, 64, shape).astype(kind)


def numbers(*shape, kind="uint8", most=256):
    low = np.iinfo(kind).min
    return RNG.integers(low, low + most, shape).astype(kind)


def floats(*shape):
    return RNG.standard_normal(shape).astype("float32")


def model_of(kind, given, fixed=(), outputs=("y",), **attributes):
    """A model of one node; operands of None are left out, those in `fixed` are constants."""
    names = [name if x is not None else "" for name, x in given.items()]
    node = helper.make_node(kind, names, list(outputs), domain="com.microsoft", **attributes)
    there = {name: np.asarray(x) for name, x in given.items() if x is not None}
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in there.items()
        if name not in fixed
    ]
    constants = [numpy_helper.from_array(x, name) for name, x in there.items() if name in fixed]
    graph = helper.make_graph([node], "one", inputs, [onnx.ValueInfoProto(name=x) for x in outputs], constants)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9).SerializeToString()


def both(kind, given, fixed=(), **more):
    """Outputs of ours and of onnxruntime."""
    body, values = model_of(kind, given, fixed, **more), {n: np.asarray(x) for n, x in given.items() if x is not None}
    model = load(body)
    got = model.compile()(**{x.name: values[x.name] for x in model.inputs})
    session = ort.InferenceSession(body, providers=["CPUExecutionProvider"])
    return model, got, session.run(None, {x.name: values[x.name] for x in session.get_inputs()})


def assert_numbers(got, want, most=1):
    """As onnxruntime but for one quantum, in one of a hundred."""
    assert got.dtype == want.dtype and got.shape == want.shape
    far = np.abs(got.astype(int) - want.astype(int))
    assert far.max() <= most and (far > 0).mean() <= 0.01


PLACES = ("xs", "xz", "ys", "yz")
QUANTA = dict(zip(PLACES, (SCALE, ZERO, np.float32(0.0413), np.uint8(110))))


@pytest.mark.parametrize(
    "attributes", [{"strides": [2, 2]}, {"pads": [1] * 4, "count_include_pad": 1}, {"ceil_mode": 1}]
)
@pytest.mark.parametrize("last", [0, 1])
def test_average_pool_of_bytes(attributes, last):
    x = numbers(2, 9, 11, 5) if last else numbers(2, 5, 9, 11)
    more = {"kernel_shape": [3, 3], "channels_last": last, **attributes}
    _, (got,), (want,) = both("QLinearAveragePool", {"x": x, **QUANTA}, PLACES, **more)
    assert_numbers(got, want)


@pytest.mark.parametrize("last", [0, 1])
def test_mean_over_pixels_of_bytes(last):
    x = numbers(2, 9, 11, 5) if last else numbers(2, 5, 9, 11)
    _, (got,), (want,) = both("QLinearGlobalAveragePool", {"x": x, **QUANTA}, PLACES, channels_last=last)
    assert_numbers(got, want)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_max_pool_with_channels_last(kind):
    x = numbers(2, 9, 11, 5, kind=kind)
    _, (got,), (want,) = both("NhwcMaxPool", {"x": x}, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("axis", "opset"), [(-1, 13), (1, 13), (1, 11), (2, 12)])
def test_softmax_of_bytes(axis, opset):
    x = numbers(3, 7, 10)
    quanta = {**QUANTA, "ys": np.float32(1 / 256), "yz": np.uint8(0)}
    _, (got,), (want,) = both("QLinearSoftmax", {"x": x, **quanta}, PLACES, axis=axis, opset=opset)
    assert_numbers(got, want)


def test_choice_of_bytes():
    given = {"c": RNG.random((3, 1, 5)) < 0.5, "x": numbers(3, 4, 5), "xs": SCALE, "xz": ZERO}
    given |= {
        "y_": numbers(4, 1),
        "y_s": np.float32(0.03),
        "y_z": np.uint8(3),
        "ys": np.float32(0.04),
        "yz": np.uint8(9),
    }
    _, (got,), (want,) = both("QLinearWhere", given, (*PLACES, "y_s", "y_z"))
    assert_numbers(got, want)


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_products_of_numbers_as_floats(columns, bias, kind):
    n = 12
    given = {"a": numbers(2, 6, 19), "b": weights(19, n, kind=kind), "as": SCALE}
    given |= {"bs": (np.abs(floats(n)) if columns else np.float32(0.02)), "az": ZERO}
    given |= {"bz": np.asarray(128 if kind == "uint8" else 0, kind), "bias": floats(n) if bias else None}
    fixed = ("b", "bs", "bz", "bias")
    model, (got,), (want,) = both("MatMulIntegerToFloat", given, fixed)
    assert any(x.op.name == "integer_matmul" for x in post_order(compute_integers(tuple(model.outputs))))
    assert_near(got, want, "float32 products")


@pytest.mark.parametrize("columns", [False, True])
def test_products_of_floats_quantised_at_the_run(columns):
    given = {"a": floats(2, 6, 19), "b": weights(19, 12)}
    given |= {"bs": np.abs(floats(12)) if columns else np.float32(0.02), "bz": None, "bias": floats(12)}
    model, (got,), (want,) = both("DynamicQuantizeMatMul", given, ("b", "bs", "bias"))
    assert any(x.op.name == "integer_matmul" for x in post_order(compute_integers(tuple(model.outputs))))
    assert_near(got, want, "float32 products")


MASKS = {
    "none": None,
    "lengths": np.array([3, 5], "int32"),
    "seen": np.array([[1, 1, 0, 1, 1], [1, 1, 1, 1, 0]], "int32"),
}


def attention_of(mask, past=0, **attributes):
    hidden, heads = 24, 3
    given = {"x": numbers(2, 5, 16), "w": weights(16, 3 * hidden), "b": floats(3 * hidden)}
    given |= {"xs": np.float32(0.02), "ws": np.float32(0.01), "mask": mask, "xz": np.uint8(128), "wz": np.int8(0)}
    if past:
        given["past"] = floats(2, 2, heads, past, hidden // heads)
    fixed = ("w", "b", "xs", "ws", "xz", "wz")
    more = {"outputs": ("y", "present")} if past else {}
    return both("QAttention", given, fixed, num_heads=heads, **more, **attributes)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [0, 1])
def test_attention_by_a_product_of_bytes(mask, causal):
    _, got, want = attention_of(MASKS[mask], unidirectional=causal)
    assert_near(got[0], want[0], "float32 networks")


def test_attention_behind_a_past():
    _, got, want = attention_of(None, 4, unidirectional=1)
    for a, b in zip(got, want, strict=True):
        assert_near(a, b, "float32 networks")


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_norm_of_embedded_words(segments, masked):
    given = {"words": RNG.integers(0, 30, (2, 6)).astype("int32")}
    given["segments"] = RNG.integers(0, 2, (2, 6)).astype("int32") if segments else None
    tables = {"w": numbers(30, 16), "p": numbers(9, 16), "s": numbers(2, 16) if segments else None}
    tables |= {"gamma": numbers(16), "beta": numbers(16)}
    given |= tables | {"mask": RNG.integers(0, 2, (2, 6)).astype("int32") if masked else None}
    given |= {f"{k}s": None if x is None else SCALE for k, x in tables.items()}
    given |= {f"{k}z": None if x is None else ZERO for k, x in tables.items()}
    fixed = [name for name in given if name not in ("words", "segments", "mask")]
    _, got, want = both("QEmbedLayerNormalization", given, fixed, outputs=("y", "count"))
    assert_near(got[0], want[0], "float32 networks")
    np.testing.assert_array_equal(got[1], want[1])


@pytest.mark.parametrize("rows", [(1,), (3,), (2, 3), (40,)], ids=str)
@pytest.mark.parametrize(("k", "block"), [(64, 16), (96, 32), (80, 32), (200, 128)])
@pytest.mark.parametrize("zeros", [False, True])
def test_weights_of_four_bits(rows, k, block, zeros):
    n, blocks = 24, -(-k // block)
    given = {"x": floats(*rows, k), "b": numbers(n, blocks, block // 2), "scales": np.abs(floats(n * blocks))}
    given["zeros"] = numbers(n, (blocks + 1) // 2).reshape(-1) if zeros else None
    more = {"K": k, "N": n, "bits": 4, "block_size": block}
    model, (got,), (want,) = both("MatMulNBits", given, ("b", "scales", "zeros"), **more)
    assert sum(x.op.name == "block_matmul" for x in post_order(model.outputs)) == 1
    assert_near(got, want, "float32 long products by their largest")


def test_weights_of_four_bits_have_a_bias_and_eight_bits_are_read():
    given = {"x": floats(3, 40), "b": numbers(6, 2, 16), "scales": floats(12), "zeros": None, "order": None}
    given["bias"] = floats(6)
    more = {"K": 40, "N": 6, "block_size": 32}
    _, (got,), (want,) = both("MatMulNBits", given, ("b", "scales", "bias"), bits=4, **more)
    assert_near(got, want, "float32 small networks")
    model = load(model_of("MatMulNBits", given | {"b": numbers(6, 2, 32)}, ("b", "scales"), bits=8, **more))
    bytes_ = next(v for v in model.values.values() if v is not None and v.shape == (6, 2, 32)).op.array
    matrix = ((bytes_.astype("f4") - 128) * given["scales"].reshape(6, 2, 1)).reshape(6, 64)[:, :40]
    got = model.compile()(given["x"], given["bias"])[0]
    assert_near(got, given["x"] @ matrix.T + given["bias"], "float32 long products")


def test_weights_that_are_not_read_are_refused():
    given = {"x": floats(3, 40), "b": numbers(6, 2, 16), "scales": floats(12), "zeros": floats(6, 2)}
    for zeros, more, text in (
        (floats(6, 2), {"bits": 4, "block_size": 32}, "zero points of float32"),
        (None, {"bits": 2, "block_size": 32}, "2 bits"),
        (None, {"bits": 4, "block_size": 24}, "blocks of 24"),
        (None, {"bits": 4, "block_size": 64}, "elements do not make shape"),
    ):
        with pytest.raises(FormatError, match=text):
            load(model_of("MatMulNBits", given | {"zeros": zeros}, ("b", "scales", "zeros"), K=40, N=6, **more))
    order = {"zeros": None, "order": np.arange(40, dtype="int32")}
    with pytest.raises(FormatError, match="g_idx"):
        load(model_of("MatMulNBits", given | order, ("b", "scales", "order"), K=40, N=6, bits=4, block_size=32))


def test_what_is_not_there_is_refused():
    with pytest.raises(FormatError, match="a mask"):
        attention_of(np.ones((2, 4, 5), "int32"))
    with pytest.raises(FormatError, match="do_rotary"):
        attention_of(None, do_rotary=1)
    with pytest.raises(FormatError, match="channels_last is not supported"):
        both("QLinearAveragePool", {"x": numbers(2, 9, 5), **QUANTA}, PLACES, kernel_shape=[3], channels_last=1)


@pytest.mark.parametrize("scales", [(), (12,)])
@pytest.mark.parametrize("zeros", [None, (), (12,)])
@pytest.mark.parametrize("kind", ["MatMulIntegerToFloat", "DynamicQuantizeMatMul"])
@pytest.mark.parametrize("rows", [(6,), (2, 6), (2, 3, 6)])
def test_scales_and_zero_points_of_products_are_one_or_one_for_each_column(kind, scales, zeros, rows):
    dynamic = kind == "DynamicQuantizeMatMul"
    given = {"a": floats(*rows, 12) if dynamic else numbers(*rows, 12), "b": weights(12, 12, kind="uint8")}
    if not dynamic:
        given["as"] = SCALE
    given["bs"] = np.abs(floats(*scales)) + np.float32(0.01)
    if not dynamic:
        given["az"] = ZERO
    given |= {"bz": None if zeros is None else numbers(*zeros), "bias": floats(12)}
    _, (got,), (want,) = both(kind, given, ("b", "bs", "bz", "bias"))
    assert_near(got, want, "float32 products")


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("counted", [0, 1])
def test_average_pool_of_bytes_whose_axes_and_sides_differ(counted, last):
    x = numbers(2, 9, 11, 5) if last else numbers(2, 5, 9, 11)
    more = {"kernel_shape": [3, 2], "strides": [1, 2], "pads": [2, 0, 1, 1], "count_include_pad": counted}
    _, (got,), (want,) = both("QLinearAveragePool", {"x": x, **QUANTA}, PLACES, channels_last=last, **more)
    assert_numbers(got, want)


def test_attention_by_bytes_with_zero_points_columns_a_mask_and_a_past():
    hidden, heads = 24, 3
    given = {"x": numbers(2, 5, 16), "w": weights(16, 3 * hidden, kind="uint8"), "b": floats(3 * hidden)}
    given |= {"xs": np.float32(0.02), "ws": np.abs(floats(3 * hidden)) / 50 + np.float32(0.005)}
    given |= {"mask": np.array([[1, 1, 0, 1, 1, 1, 0], [1] * 7], "i4"), "xz": np.uint8(117)}
    given |= {"wz": numbers(3 * hidden), "past": floats(2, 2, heads, 2, hidden // heads)}
    fixed = [name for name in given if name not in ("x", "mask", "past")]
    _, got, want = both("QAttention", given, fixed, outputs=("y", "present"), num_heads=heads, unidirectional=1)
    for a, b in zip(got, want, strict=True):
        assert_near(a, b, "float32 networks")


@pytest.mark.parametrize("low, high", [(0, 0), (1, 3), (-3, -1), (-2, 1)])
def test_numbers_that_are_quantised_at_the_run_have_a_range_with_zero_in_it(low, high):
    x = np.linspace(low, high, 12, dtype="f4").reshape(3, 4)
    assert_equal_results("DynamicQuantizeLinear", [x], results=3)
