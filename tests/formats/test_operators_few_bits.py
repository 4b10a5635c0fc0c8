"""Conversions to numbers that no array has: beside the onnx package's reference, or its tables where that departs."""

import ml_dtypes
import numpy as np
import pytest

import cgraph as cg
from cgraph.dtypes.convert import convert
from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators.few_bits import four_bits, power_of_two
from tests.support.onnx_models import FLOAT, one

pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
WHOLE = {"UINT4": (0, 15), "INT4": (-8, 7), "UINT2": (0, 3), "INT2": (-2, 1)}


def floats(x) -> np.ndarray:
    """The values of a node, which a storage dtype holds."""
    return convert(cg.compile(x, [])(), np.dtype("float32"))


def there_and_back(nodes, x, *initializers, opset=25):
    """Run nodes from float32 `x` to float32 `y`."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name in "xy"]
    graph = helper.make_graph(nodes, "few bits", ends[:1], ends[1:], initializers)
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=13)
    return load(file.SerializeToString()).compile()(x)[0]


def test_floats_of_four_bits_are_the_nearest_of_sixteen_numbers_with_ties_to_even():
    exact = np.array(E2M1, "float32")
    halfway = (exact[1:] + exact[:-1]) / 2
    size = np.concatenate([exact, halfway, np.nextafter(halfway, 0), np.nextafter(halfway, 9), [6.1, 1e9, np.inf]])
    x = np.concatenate([size, -size]).astype("float32")
    got = floats(four_bits(cg.Const(x)))
    np.testing.assert_array_equal(got, x.astype(ml_dtypes.float4_e2m1fn).astype("float32"))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))
    assert floats(four_bits(cg.Const(np.float32([np.nan])))).tolist() == [0]
    assert floats(four_bits(cg.Const(np.int64([1, -5, 90])))).tolist() == [1, -4, 6]


@pytest.mark.parametrize("saturates", [0, 1])
@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_powers_of_two_are_rounded_as_the_package_does(mode, saturates):
    exact = np.array([2.0**-149, 2.0**-128, 2.0**-127, 2.0**-126, 0.25, 1, 2, 2.0**127], "float32")
    x = np.concatenate([f * exact for f in (0, 1, 1.25, 1.5, 1.75)] + [[np.nan]]).astype("float32")
    want = numpy_helper.to_float8e8m0(x, bool(saturates), mode).astype("float32")
    np.testing.assert_array_equal(floats(power_of_two(cg.Const(x), mode, saturates)), want)
    infinite = floats(power_of_two(cg.Const(np.float32([np.inf])), mode, saturates))
    assert infinite == 2.0**127 if saturates else np.isnan(infinite)  # the table of Cast


def test_another_mode_of_rounding_is_refused():
    with pytest.raises(FormatError, match="round_mode 'odd' is unknown. Use up, down or nearest"):
        load(one("Cast", [("x", FLOAT, (3,))], to=TensorProto.FLOAT8E8M0, round_mode="odd"))


@pytest.mark.parametrize("kind", WHOLE)
def test_integers_keep_their_lowest_bits(kind):
    low, high = WHOLE[kind]
    x = np.arange(-40, 40, dtype="float32")
    nodes = [
        helper.make_node("Cast", ["x"], ["q"], to=getattr(TensorProto, kind)),
        helper.make_node("Cast", ["q"], ["y"], to=TensorProto.FLOAT),
    ]
    np.testing.assert_array_equal(there_and_back(nodes, x), (x - low) % (high - low + 1) + low)


@pytest.mark.parametrize("is_told", [True, False])
@pytest.mark.parametrize("kind", [*WHOLE, "FLOAT4E2M1"])
def test_quantised_numbers_stay_in_their_range(kind, is_told):
    """By the attribute, or by the dtype of the zero point."""
    number, scale = getattr(TensorProto, kind), np.float32(0.5)
    x = np.linspace(-9, 9, 145, dtype="float32")
    zero = TensorProto(name="z", data_type=number, dims=[], raw_data=b"\1")  # 1, or 0.5 of a float
    operands, options = (["x", "s"], {"output_dtype": number}) if is_told else (["x", "s", "z"], {})
    nodes = [
        helper.make_node("QuantizeLinear", operands, ["q"], **options),
        helper.make_node("DequantizeLinear", ["q", *operands[1:]], ["y"]),
    ]
    got = there_and_back(nodes, x, numpy_helper.from_array(scale, "s"), zero)
    if kind == "FLOAT4E2M1":
        shift = np.float32(0 if is_told else 0.5)
        want = ((x / scale + shift).astype(ml_dtypes.float4_e2m1fn).astype("float32") - shift) * scale
    else:
        shift = 0 if is_told else 1
        want = (np.clip(np.rint(x / scale) + shift, *WHOLE[kind]) - shift) * scale
    np.testing.assert_array_equal(got, want)
    assert len(set(got.tolist())) == (15 if kind == "FLOAT4E2M1" else WHOLE[kind][1] - WHOLE[kind][0] + 1)


def test_a_value_takes_the_dtype_of_another():
    like = TensorProto(name="w", data_type=TensorProto.FLOAT4E2M1, dims=[1], raw_data=b"\0")
    nodes = [helper.make_node("CastLike", ["x", "w"], ["q"]), helper.make_node("Cast", ["q"], ["y"], to=1)]
    x = np.array([0.7, 2.4, -100], "float32")
    assert there_and_back(nodes, x, like).tolist() == [0.5, 2, -6]


def test_the_names_of_a_function_are_its_own():
    """A function's value may have the name of a packed one outside."""
    like = TensorProto(name="w", data_type=TensorProto.INT4, dims=[1], raw_data=b"\0")
    body = [helper.make_node("Add", ["a", "a"], ["w"]), helper.make_node("CastLike", ["a", "w"], ["b"])]
    function = helper.make_function("own", "f", ["a"], ["b"], body, [helper.make_opsetid("", 25)])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2,)) for name in "xy"]
    graph = helper.make_graph([helper.make_node("f", ["x"], ["y"], domain="own")], "g", ends[:1], ends[1:], [like])
    opsets = [helper.make_opsetid("", 25), helper.make_opsetid("own", 1)]
    file = helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=13)
    assert load(file.SerializeToString()).compile()(np.float32([0.7, 20]))[0].tolist() == [np.float32(0.7), 20]


@pytest.mark.parametrize("kind", ["COMPLEX64", "COMPLEX128"])
def test_a_dtype_that_is_not_read_is_named_with_those_that_are(kind):
    with pytest.raises(FormatError, match=f"the result has ONNX's dtype {kind}. Use one of float32, "):
        load(one("Cast", [("x", FLOAT, (3,))], to=getattr(TensorProto, kind)))
