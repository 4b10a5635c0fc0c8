"""What TFLite operators are not read with: each condition alone; and what just keeps to it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.tflite import load
from cgraph.formats.tflite.source import TfliteSource
from tests.support.tflite_models import Network, Table

IMAGE, BYTES = (1, 4, 6, 3), {"scale": 0.5, "zero": 0}
STEPS = {"stride_w": 1, "stride_h": 1}
WINDOW = {"window_w": 2, "window_h": 2, **STEPS}


def whole(net: Network, *numbers: int, shape: tuple[int, ...] | None = None) -> int:
    array = np.array(numbers, "int32")
    return net.constant(array if shape is None else array.reshape(shape))


def floats(net: Network, *shape: int) -> int:
    return net.constant(np.ones(shape, "float32"))


def on_image(kind: str, *rest: Callable[[Network], int], shape: tuple[int, ...] = IMAGE, **options: Any) -> Any:
    """An operator on an image of floats, and on what is made of the rest."""
    return lambda net: net.op(kind, [net.input(shape), *(make(net) for make in rest)], **options)


def numbers(*values: int, shape: tuple[int, ...] | None = None) -> Callable[[Network], int]:
    return lambda net: whole(net, *values, shape=shape)


def ones(*shape: int) -> Callable[[Network], int]:
    return lambda net: floats(net, *shape)


def parts(kind: str, operands: Callable[[Network], list[int]], results: int, **options: Any) -> Any:
    return lambda net: net.op(kind, operands(net), *["float32"] * results, **options)[0]


def bytes_to(kind: str, result: dict[str, Any], *rest: Any, **options: Any) -> Any:
    """An operator on an image of int8."""
    return lambda net: net.op(
        kind, [net.input(IMAGE, "int8", **BYTES), *(make(net) for make in rest)], {"dtype": "int8", **result}, **options
    )


VOLUMES = STEPS | {"stride_d": 1}
CONV = (ones(2, 3, 3, 3), ones(2))
REFUSED = {
    "padding": (on_image("CONV_2D", *CONV, padding=2, **STEPS), "the padding 2 is not supported"),
    "a stride of 0": (on_image("CONV_2D", *CONV, stride_w=0, stride_h=1), "stride is 1 x 0"),
    "a dilation of 0": (on_image("CONV_2D", *CONV, dilation_h=0, **STEPS), "dilation is 0 x 1"),
    "an activation": (on_image("CONV_2D", *CONV, activation=5, **STEPS), "the activation 5 is not supported"),
    "channels": (on_image("CONV_2D", ones(2, 3, 3, 2), ones(2), **STEPS), "3 channels and filters of 2"),
    "filters of three axes": (on_image("CONV_2D", ones(2, 3, 3), ones(2), **STEPS), "does not have 4 axes"),
    "a row of pixels": (on_image("CONV_2D", *CONV, shape=(4, 6, 3), **STEPS), "does not have four axes"),
    "filters of float16": (
        on_image("CONV_2D", lambda net: net.constant(np.ones((2, 3, 3, 3), "float16")), ones(2), **STEPS),
        "float16 are not supported here",
    ),
    "a transposed result of three axes": (
        lambda net: net.op("TRANSPOSE_CONV", [whole(net, 1, 4, 6), floats(net, 2, 3, 3, 3), net.input(IMAGE)], **STEPS),
        "result's shape .* does not fit",
    ),
    "a transposed result of more samples": (
        lambda net: net.op(
            "TRANSPOSE_CONV", [whole(net, 2, 4, 6, 2), floats(net, 2, 3, 3, 3), net.input(IMAGE)], **STEPS
        ),
        "result's shape .* does not fit",
    ),
    "a transposed result of other channels": (
        lambda net: net.op(
            "TRANSPOSE_CONV", [whole(net, 1, 4, 6, 3), floats(net, 2, 3, 3, 3), net.input(IMAGE)], **STEPS
        ),
        "result's shape .* does not fit",
    ),
    "a pool to another scale": (bytes_to("MAX_POOL_2D", {"scale": 0.25, "zero": 0}, **WINDOW), "another scale"),
    "a pool to another zero": (bytes_to("MAX_POOL_2D", {"scale": 0.5, "zero": 1}, **WINDOW), "another scale"),
    "a resize to another scale": (
        bytes_to("RESIZE_BILINEAR", {"scale": 0.25, "zero": 0}, numbers(3, 3)), "whose result has another scale",
    ),
    "two kinds of coordinates": (
        on_image("RESIZE_BILINEAR", numbers(3, 3), align_corners=True, half_pixel=True), "exclude each other",
    ),
    "three sizes": (on_image("RESIZE_BILINEAR", numbers(3, 3, 3)), "images of .* pixels"),
    "no pixels": (on_image("RESIZE_NEAREST_NEIGHBOR", numbers(3, 0)), "images of .* pixels"),
    "axes beyond": (on_image("SUM", numbers(4)), "the axes .* are outside a tensor of 4 axes"),
    "axes before": (on_image("SUM", numbers(-5)), "the axes .* are outside a tensor of 4 axes"),
    "two places": (on_image("ARG_MAX", numbers(0, 1)), "one axis is expected, not 2"),
    "half an axis": (on_image("SUM", ones(1)), "numbers of float32 cannot describe axes"),
    "many axes": (on_image("SUM", numbers(*[0] * 65)), "65 numbers of int32 cannot describe axes"),
    "a sum of no numbers": (
        lambda net: net.op(
            "MEAN", [net.input((0, 3), "int8", **BYTES), whole(net, 0)], {"dtype": "int8", **BYTES}
        ), "a sum of 0 numbers",
    ),
    "gathered by sample": (on_image("GATHER", numbers(0, 0), axis=1, batch_axes=1), "1 axes of a batch, up to axis 1"),
    "two hot numbers": (
        lambda net: net.op(
            "ONE_HOT", [net.input((3,), "int32"), whole(net, 4), floats(net, 2), floats(net, 1)], axis=-1
        ),
        "the on value has 2 elements, the off value 1",
    ),
    "two cold numbers": (
        lambda net: net.op(
            "ONE_HOT", [net.input((3,), "int32"), whole(net, 4), floats(net, 1), floats(net, 2)], axis=-1
        ),
        "the on value has 1 elements, the off value 2",
    ),
    "two depths": (
        lambda net: net.op(
            "ONE_HOT", [net.input((3,), "int32"), whole(net, 4, 4), floats(net, 1), floats(net, 1)], axis=-1
        ),
        "2 numbers, one is expected",
    ),
    "shuffled weights": (
        on_image("FULLY_CONNECTED", ones(2, 3), ones(2), weights_format=1), ".shuffled. is not supported",
    ),
    "rows that do not fit": (on_image("FULLY_CONNECTED", ones(2, 7), ones(2)), "cannot be cut into rows of 7"),
    "rows of another length, kept": (
        on_image("FULLY_CONNECTED", ones(2, 6), ones(2), keepdims=True), "cannot be cut into rows of 6",
    ),
    "two dtypes": (lambda net: net.op("ADD", [net.input((3,)), net.input((3,), "int32")]), "of float32 and int32"),
    "integers as bytes": (
        lambda net: net.op("QUANTIZE", [net.input((3,), "int32")], {"dtype": "int8", **BYTES}), "int32 is not float32",
    ),
    "no shape": (on_image("RESHAPE"), "it has no shape"),
    "two new axes": (on_image("EXPAND_DIMS", numbers(0, 1)), "2 numbers, one is expected"),
    "parts of another count": (
        parts("SPLIT", lambda net: [whole(net, 1), net.input(IMAGE)], 2, count=4), "not cut into 4 equal results of 2",
    ),
    "unequal parts": (
        parts("SPLIT", lambda net: [whole(net, 2), net.input(IMAGE)], 4, count=4), "an axis of 6 is not cut",
    ),
    "sizes of another sum": (
        parts("SPLIT_V", lambda net: [net.input(IMAGE), whole(net, 2, 3), whole(net, 2)], 2, count=2), "not cut into",
    ),
    "negative sizes": (
        parts("SPLIT_V", lambda net: [net.input(IMAGE), whole(net, 8, -2), whole(net, 2)], 2, count=2), "not cut into",
    ),
    "sizes of another count": (
        parts("SPLIT_V", lambda net: [net.input(IMAGE), whole(net, 2, 2, 2), whole(net, 2)], 2, count=2), "not cut",
    ),
    "an axis beyond": (
        parts("SPLIT", lambda net: [whole(net, 4), net.input(IMAGE)], 2, count=2), "axis 4 is outside a tensor of 4",
    ),
    "an axis before": (
        parts("SPLIT", lambda net: [whole(net, -5), net.input(IMAGE)], 2, count=2), "axis -5 is outside a tensor of 4",
    ),
    "another count of packed": (
        lambda net: net.op("PACK", [net.input((3,)), net.input((3,))], count=3, axis=0), "2 operands, 3 are expected",
    ),
    "another count of parts": (
        parts("UNPACK", lambda net: [net.input((3, 4))], 2, count=2, axis=0), "does not have 2 parts along axis 0",
    ),
    "parts along an axis that is not there": (
        parts("UNPACK", lambda net: [net.input((3, 4))], 2, count=2, axis=2), "does not have 2 parts along axis 2",
    ),
    "begins of fewer axes": (on_image("SLICE", numbers(0, 0, 0), numbers(1, 1, 1, 1)), "3 and 4 numbers for 4 axes"),
    "sizes of fewer axes": (on_image("SLICE", numbers(0, 0, 0, 0), numbers(1, 1, 1)), "4 and 3 numbers for 4 axes"),
    "a slice that ends outside": (on_image("SLICE", numbers(0, 0, 0, 2), numbers(1, 1, 1, 2)), "exceed the shape"),
    "a slice that begins outside": (on_image("SLICE", numbers(0, 0, 0, -1), numbers(1, 1, 1, 2)), "exceed the shape"),
    "a slice that goes back": (on_image("SLICE", numbers(0, 0, 0, 2), numbers(1, 1, 1, -2)), "exceed the shape"),
    "a step of 0": (on_image("STRIDED_SLICE", numbers(0), numbers(1), numbers(0)), "do not fit"),
    "ends of another count": (on_image("STRIDED_SLICE", numbers(0), numbers(1, 1), numbers(1)), "do not fit"),
    "steps of another count": (on_image("STRIDED_SLICE", numbers(0), numbers(1), numbers(1, 1)), "do not fit"),
    "widths of fewer axes": (on_image("PAD", numbers(*[0] * 6, shape=(3, 2))), "widths .* for 4 axes"),
    "widths below 0": (on_image("PAD", numbers(*[0] * 7, -1, shape=(4, 2))), "widths .* for 4 axes"),
    "widths of floats": (on_image("PAD", ones(4, 2)), "widths .* for 4 axes"),
    "two numbers to fill with": (
        on_image("PADV2", numbers(*[1] * 8, shape=(4, 2)), ones(2)), "2 numbers to fill with",
    ),
    "an edge thrice": (on_image("MIRROR_PAD", numbers(*[1] * 8, shape=(4, 2)), mode=2), "mirror padding of mode 2"),
    "near channels": (on_image("LOCAL_RESPONSE_NORMALIZATION", radius=-1), "the radius -1 is negative"),
    "channels of rows": (on_image("LOCAL_RESPONSE_NORMALIZATION", shape=(4, 6)), "does not have four axes"),
    "windows of nothing": (on_image("L2_POOL_2D", window_w=0, window_h=2, **STEPS), "window is 2 x 0"),
    "one bit": (on_image("FAKE_QUANT", min=-1.0, max=1.0, bits=1), "1 bits from -1.0 to 1.0"),
    "17 bits": (on_image("FAKE_QUANT", min=-1.0, max=1.0, bits=17), "17 bits from -1.0 to 1.0"),
    "limits above 0": (on_image("FAKE_QUANT", min=0.5, max=1.0, bits=8), "finite limits with 0 between"),
    "limits below 0": (on_image("FAKE_QUANT", min=-1.0, max=-0.5, bits=8), "finite limits with 0 between"),
    "limits that are equal": (on_image("FAKE_QUANT", bits=8), "finite limits with 0 between"),
    "limits that are infinite": (on_image("FAKE_QUANT", max=float("inf"), bits=8), "finite limits with 0 between"),
    "a narrow range": (on_image("FAKE_QUANT", max=1.0, bits=8, narrow=True), "narrow_range is not supported"),
    "bits of another size": (lambda net: net.op("BITCAST", [net.input((3,))], "int64"), "bitcast"),
    "volumes of four axes": (on_image("CONV_3D", ones(1, 1, 1, 3, 2), **VOLUMES), "does not have five axes"),
    "channels of volumes": (
        on_image("CONV_3D", ones(1, 1, 1, 2, 2), shape=(1, 2, *IMAGE[1:]), **VOLUMES), "do not have the 3 channels",
    ),
    "a step of volumes": (
        on_image("CONV_3D", ones(1, 1, 1, 3, 2), shape=(1, 2, *IMAGE[1:]), **VOLUMES | {"stride_d": 0}),
        "stride is .0, 1, 1.; each must be 1 or more",
    ),
    "a transposed volume of other channels": (
        lambda net: net.op(
            "CONV_3D_TRANSPOSE",
            [whole(net, 1, 2, 4, 6, 2), floats(net, 1, 1, 1, 2, 4), net.input((1, 2, *IMAGE[1:]))], **VOLUMES,
        ),
        "the result's shape .* does not fit",
    ),
    "a transposed volume of more samples": (
        lambda net: net.op(
            "CONV_3D_TRANSPOSE",
            [whole(net, 2, 2, 4, 6, 2), floats(net, 1, 1, 1, 2, 3), net.input((1, 2, *IMAGE[1:]))], **VOLUMES,
        ),
        "the result's shape .* does not fit",
    ),
    "blocks of channels": (on_image("DEPTH_TO_SPACE", block=2), "has no blocks of 2"),
    "blocks of rows": (on_image("SPACE_TO_DEPTH", shape=(1, 3, 4, 2), block=2), "has no blocks of 2"),
    "blocks of columns": (on_image("SPACE_TO_DEPTH", shape=(1, 4, 3, 2), block=2), "has no blocks of 2"),
    "blocks of nothing": (on_image("SPACE_TO_DEPTH", block=0), "has no blocks of 0"),
    "padding of other axes": (
        on_image("SPACE_TO_BATCH_ND", numbers(2, 2), numbers(0, 0, shape=(1, 2))), "and padding .* do not fit",
    ),
    "padding below 0": (
        on_image("SPACE_TO_BATCH_ND", numbers(2, 2), numbers(0, 0, 0, -1, shape=(2, 2))), "and padding .* do not fit",
    ),
    "blocks of 0": (
        on_image("SPACE_TO_BATCH_ND", numbers(0, 2), numbers(0, 0, 0, 0, shape=(2, 2))), "and padding .* do not fit",
    ),
    "blocks that do not fit": (
        on_image("SPACE_TO_BATCH_ND", numbers(3, 2), numbers(0, 0, 0, 0, shape=(2, 2))), "not made of blocks",
    ),
    "crops of other axes": (
        on_image("BATCH_TO_SPACE_ND", numbers(1, 1), numbers(0, 0, shape=(1, 2))), "and crops .* do not fit",
    ),
    "crops below 0": (
        on_image("BATCH_TO_SPACE_ND", numbers(1, 1), numbers(0, 0, 0, -1, shape=(2, 2))), "and crops .* do not fit",
    ),
    "samples that do not fit": (
        on_image("BATCH_TO_SPACE_ND", numbers(2, 1), numbers(0, 0, 0, 0, shape=(2, 2))), "and crops .* do not fit",
    ),
    "blocks of all axes": (
        on_image("BATCH_TO_SPACE_ND", numbers(1, 1, 1, 1), numbers(*[0] * 8, shape=(4, 2))), "and crops .* do not fit",
    ),
    "an infinite scale": (
        lambda net: net.op("QUANTIZE", [net.input((3,), "int8", scale=float("inf"))], {"dtype": "int8", **BYTES}),
        "scale",
    ),
    "no scale": (
        lambda net: net.op("DEQUANTIZE", [net.constant(np.ones(3, "int8"))]), "without a scale",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_is_named(name):
    build, match = REFUSED[name]
    net = Network()
    with pytest.raises(FormatError, match=match):
        load(net.bytes(build(net)))


def summed(x: np.ndarray) -> np.ndarray:
    return np.repeat(x.sum(-1, keepdims=True) + 1, 2, -1)


READ: dict[str, tuple[Any, Callable[[np.ndarray], np.ndarray]]] = {  # what just keeps to the conditions above
    "the last axis": (on_image("SUM", numbers(-4)), lambda x: x[0]),
    "64 axes": (on_image("SUM", numbers(*[0] * 64)), lambda x: x[0]),
    "a slice to the end": (on_image("SLICE", numbers(0, 0, 0, 1), numbers(1, 4, -1, 2)), lambda x: x[..., 1:]),
    "a slice of nothing": (on_image("SLICE", numbers(0, 4, 0, 1), numbers(1, 0, -1, 2)), lambda x: x[:, 4:, :, 1:]),
    "one pixel": (on_image("RESIZE_BILINEAR", numbers(1, 1)), lambda x: x[:, :1, :1]),
    "parts of one": (parts("UNPACK", lambda net: [net.input((3, 4))], 4, count=4, axis=-1), lambda x: x[:, 0]),
    "blocks of one": (on_image("SPACE_TO_DEPTH", block=1), lambda x: x),
    "blocks of the columns": (
        on_image("SPACE_TO_BATCH_ND", numbers(1, 6), numbers(0, 0, 0, 0, shape=(2, 2))),
        lambda x: x[0].transpose(1, 0, 2)[:, :, None],
    ),
    "rows, kept": (on_image("FULLY_CONNECTED", ones(2, 3), ones(2), keepdims=True), summed),
    "rows of another length": (
        on_image("FULLY_CONNECTED", ones(2, 6), ones(2)), lambda x: summed(x.reshape(12, 6)),
    ),
    "the rest of an axis": (
        parts("SPLIT_V", lambda net: [net.input(IMAGE), whole(net, 6, -1), whole(net, 2)], 2, count=2),
        lambda x: x,
    ),
}  # fmt: skip


@pytest.mark.parametrize("engine", ["cpu", "reference"])
@pytest.mark.parametrize("name", READ)
def test_what_keeps_to_it_is_read(name, engine):
    build, meaning = READ[name]
    net = Network()
    model = load(net.bytes(build(net)))
    (given,) = model.inputs
    x = np.random.default_rng(3).integers(-9, 9, given.shape).astype(given.dtype)
    np.testing.assert_array_equal(model.compile(engine=engine)(x)[0], meaning(x))


def test_operators_without_an_importer_are_counted():
    net = Network()
    x = net.input((3,))
    y = net.op("MULTINOMIAL", [net.op("UNIQUE", [net.op("UNIQUE", [x])]), x])
    with pytest.raises(FormatError, match=r"2 operators are not supported: MULTINOMIAL, UNIQUE \(2 times\)"):
        load(net.bytes(y))


@pytest.mark.parametrize("times", [4, 5])
def test_constants_that_are_made_floats_are_charged_each_time(times):
    """16 MiB each, of 64 and two for each of the file's four."""
    net = Network()
    constant = net.constant(np.zeros(4 << 20, "int8"), scale=0.5)
    raw = net.bytes(*(net.op("DEQUANTIZE", [constant]) for _ in range(times)))
    if times == 4:
        assert len(load(raw).outputs) == 4
        return
    with pytest.raises(FormatError, match="bytes while reading"):
        load(raw)


@pytest.mark.parametrize(("scales", "zeros"), [(1, (1, 2, 3)), (3, (1, 2)), (3, (1, 2, 3, 4)), (3, (1, 1, 2, 2))])
def test_zero_points_that_are_not_one_or_one_for_each_scale_are_refused_when_their_tensor_is_read(scales, zeros):
    net = Network()
    x = net.tensor((3,), "int8")
    net.tensors[x][4] = Table({2: np.ones(scales, "f4"), 3: np.array(zeros, "i8"), 6: ("i", 0)})
    with pytest.raises(FormatError, match="fewer zero points than scales"):
        load_tensor(net, x)


@pytest.mark.parametrize(("scales", "zeros"), [(1, (2,)), (3, (2,)), (3, (2, 2)), (3, (1, 2, 3)), (1, (2, 2, 2))])
def test_zero_points_that_are_all_the_same_count_as_one(scales, zeros):
    net = Network()
    x = net.tensor((3,), "int8")
    net.tensors[x][4] = Table({2: np.ones(scales, "f4"), 3: np.array(zeros, "i8"), 6: ("i", 0)})
    found = load_tensor(net, x).quantised
    assert found.zeros.tolist() == (list(zeros) if len(set(zeros)) > 1 else [2])


def load_tensor(net: Network, number: int) -> Any:
    """A tensor as it is read from a file, before an operator asks for it."""
    return TfliteSource(memoryview(net.bytes(number)), "x").tensor(number)
