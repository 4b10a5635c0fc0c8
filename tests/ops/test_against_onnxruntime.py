"""What ops mean where NumPy has no such function: the same numbers as onnxruntime, for the public functions alone."""

import numpy as np
import pytest

import cgraph as cg
from tests.support.tolerance import assert_close

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def onnx_result(kind: str, xs: list[np.ndarray], outputs: int = 1, **attributes) -> list[np.ndarray]:
    """What onnxruntime computes for one operator; an operand of None is left out."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(xs)]
    results = [f"y{i}" for i in range(outputs)]
    node = onnx.helper.make_node(kind, names, results, **attributes)
    given = {name: x for name, x in zip(names, xs) if x is not None}
    typed = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in given.items()
    ]
    untyped = [onnx.ValueInfoProto(name=name) for name in results]
    graph = onnx.helper.make_graph([node], "one", typed, untyped)
    imports = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("com.microsoft", 1)]
    model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=9)
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)


def drawn(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype("float32") for shape in shapes]


def assert_same(node, want: np.ndarray, scale: float = 2) -> None:
    for engine in ("reference", "cpu"):
        assert_close(cg.compile(node, engine=engine, passes=False)(), want, scale)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(("stride", "pad", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 1, 2), (3, 2, 2, 1)])
def test_conv(axes, stride, pad, dilation, groups):
    x, f = drawn((2, 4, 9, 8, 7)[: axes + 2], (6, 4 // groups, 3, 2, 3)[: axes + 2])
    settings = {"strides": [stride] * axes, "dilations": [dilation] * axes, "pads": [pad] * 2 * axes, "group": groups}
    want = onnx_result("Conv", [x, f], **settings)[0]
    assert_same(getattr(cg, f"conv{axes}d")(x, f, stride, pad, dilation, groups), want)


@pytest.mark.parametrize(
    ("stride", "pad", "dilation", "groups", "more"), [(1, 0, 1, 1, 0), (2, 1, 1, 2, 1), (3, 1, 2, 1, 2)]
)
def test_conv_transpose(stride, pad, dilation, groups, more):
    x, f = drawn((2, 4, 5, 4), (4, 3, 3, 2))
    want = onnx_result(
        "ConvTranspose", [x, f], strides=[stride] * 2, dilations=[dilation] * 2, pads=[pad] * 4, group=groups,
        output_padding=[more] * 2,
    )[0]  # fmt: skip
    assert_same(cg.conv_transpose2d(x, f, stride, pad, dilation, groups, more), want)


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize(
    ("window", "stride", "pad"), [(2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 3, 0), ((3, 2), (2, 2), (1, 0, 1, 1))]
)
def test_pools(ceil, window, stride, pad):
    (x,) = drawn((2, 3, 9, 8))
    pads = list(pad) if isinstance(pad, tuple) else [pad] * 4
    shape = {
        "kernel_shape": [window] * 2 if isinstance(window, int) else list(window),
        "strides": [stride] * 2 if isinstance(stride, int) else list(stride),
        "pads": pads,
        "ceil_mode": int(ceil),
    }
    assert_same(cg.max_pool2d(x, window, stride, pad, ceil), onnx_result("MaxPool", [x], **shape)[0])
    for count_pad in (False, True):
        want = onnx_result("AveragePool", [x], count_include_pad=int(count_pad), **shape)[0]
        assert_same(cg.avg_pool2d(x, window, stride, pad, ceil, count_pad), want)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_lrn(size):
    (x,) = drawn((2, 6, 3, 4))
    want = onnx_result("LRN", [x], size=size, alpha=0.3, beta=0.6, bias=1.5)[0]
    assert_same(cg.lrn(x, size, 0.3, 0.6, 1.5), want)


@pytest.mark.parametrize("shape", [(8, 10), (3, 7), (1, 2), (9, 5)])
@pytest.mark.parametrize("coordinates", ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"])
def test_resize(shape, coordinates):
    (x,) = drawn((1, 2, 4, 5))
    lengths = np.array([1, 2, *shape])
    names = {"coordinate_transformation_mode": coordinates}
    want = onnx_result("Resize", [x, None, None, lengths], mode="linear", **names)[0]
    assert_same(cg.resize(x, shape, "linear", coordinates), want)
    for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        want = onnx_result("Resize", [x, None, None, lengths], mode="nearest", nearest_mode=rounding, **names)[0]
        assert_same(cg.resize(x, shape, "nearest", coordinates, rounding), want)


@pytest.mark.parametrize("aligned", [False, True])
def test_roi_align(aligned):
    (x,) = drawn((2, 3, 8, 9))
    boxes = np.array([[0.3, 0.2, 6.1, 5.9], [-4, 1, 12, 14.5], [2, 2, 2.2, 2.1]], "float32")
    batch = np.array([1, 0, 1])
    mode = "half_pixel" if aligned else "output_half_pixel"
    want = onnx_result(
        "RoiAlign", [x, boxes, batch], output_height=2, output_width=3, sampling_ratio=2, spatial_scale=0.5,
        coordinate_transformation_mode=mode,
    )[0]  # fmt: skip
    assert_same(cg.roi_align(x, boxes, batch, (2, 3), 2, 0.5, aligned), want)
    grid = "aligned" if aligned else "cells"
    assert_same(cg.roi_align_levels([x * 0, x], boxes, batch, [1, 1, 1], (2, 3), (1.0, 0.5), 2, grid), want)


def test_regions_from_corner_to_corner():
    (x,) = drawn((2, 3, 8, 9))
    boxes = np.array([[0.3, 0.2, 6.1, 5.9], [-4, 1, 12, 14.5], [2, 2, 2.2, 2.1]], "float32")
    batch, level = np.array([1, 0, 1]), np.zeros(3, "int64")
    parts = (boxes / [8, 7, 8, 7])[:, [1, 0, 3, 2]].astype("float32")
    want = onnx_result(
        "CropAndResize", [np.ascontiguousarray(x), parts, batch.astype("int32"), np.array([4, 5], "int32")],
        domain="com.microsoft", extrapolation_value=0.0,
    )[0]  # fmt: skip
    assert_same(cg.roi_align_levels([x], boxes, batch, level, (4, 5), (1.0,), 1, "corners"), want)


def test_non_maximum_suppression():
    rng = np.random.default_rng(3)
    low = rng.uniform(0, 10, (60, 2)).astype("float32")
    boxes = np.concatenate([low, low + rng.uniform(1, 5, (60, 2)).astype("float32")], 1)
    scores = rng.random(60).astype("float32")
    want = onnx_result(
        "NonMaxSuppression",
        [boxes[None], scores[None, None], np.array([20]), np.array([0.3], "float32"), np.array([0.2], "float32")],
    )[0][:, 2]
    places, count = cg.non_maximum_suppression(boxes, scores, 20, 0.3, 0.2)
    assert_same(count, np.array(len(want)))
    assert_same(places, np.concatenate([want, np.full(20 - len(want), -1)]))


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize("threshold", [0.0, 0.25, 1.0])
def test_a_score_and_an_overlap_that_just_reach_their_thresholds(threshold, engine):
    """A score must be above its threshold to stay; an overlap must be above its own to hide. Both are exact here."""
    boxes = np.array([[0, 0, 4, 4], [0, 0, 4, 2], [8, 8, 9, 9], [20, 20, 21, 21]], "float32")  # the second is half
    scores = np.array([1.0, 0.5, 0.25, 0.0], "float32")
    for share, hidden in ((0.5, []), (0.499, [1])):
        places, count = cg.non_maximum_suppression(boxes, scores, 4, share, threshold)
        want = [i for i in range(4) if scores[i] > threshold and i not in hidden]
        found, number = cg.compile([places, count], engine=engine)()
        assert number == len(want) and found.tolist() == want + [-1] * (4 - len(want))


def test_non_maximum_suppression_of_pictures_and_classes_at_once():
    rng = np.random.default_rng(4)
    low = rng.uniform(0, 10, (2, 60, 2)).astype("float32")
    boxes = np.concatenate([low, low + rng.uniform(1, 5, (2, 60, 2)).astype("float32")], 2)
    kinds, scores = rng.integers(0, 3, (2, 60)), rng.random((2, 60)).astype("float32")
    places, count = cg.non_maximum_suppression(boxes, scores, 60, 0.3, 0.2, groups=kinds)
    each = np.where(kinds[:, None] == np.arange(3)[:, None], scores[:, None], 0)
    threshold = [np.array([60]), np.array([0.3], "float32"), np.array([0.2], "float32")]
    rows = onnx_result("NonMaxSuppression", [boxes, each, *threshold])[0]
    for i in range(2):
        want = rows[rows[:, 0] == i, 2]
        want = want[np.argsort(-scores[i, want], kind="stable")]
        assert_same(count[i], np.array(len(want)))
        assert_same(places[i], np.concatenate([want, np.full(60 - len(want), -1)]))


@pytest.mark.parametrize("largest", [False, True])
def test_few_of_many(largest):
    (x,) = drawn((3, 500))
    want = onnx_result("TopK", [x, np.array([20])], 2, largest=int(largest))
    for got, one in zip(cg.top_k(x, 20, 1, largest), want):
        assert_same(got, one)


def test_lstm_cell():
    x, w, u, b = drawn((1, 2, 3), (16, 3), (16, 4), (16,))
    order = [0, 3, 1, 2]  # ONNX: i, o, f, c; here: i, f, c (called g), o
    packed = [np.concatenate(np.split(v, 4)[:1] + [np.split(v, 4)[k] for k in order[1:]]) for v in (w, u, b)]
    bias = np.concatenate([packed[2], np.zeros(16, "float32")])
    h, c = onnx_result("LSTM", [x, packed[0][None], packed[1][None], bias[None]], 3, hidden_size=4)[1:]
    zero = np.zeros((2, 4), "float32")
    got_h, got_c = cg.lstm_cell(x[0], zero, zero, w.T, u.T, b)
    assert_same(got_h, h[0])
    assert_same(got_c, c[0])


def test_gru_cell():
    x, w, u, b = drawn((1, 2, 3), (12, 3), (12, 4), (24,))
    want = onnx_result("GRU", [x, w[None], u[None], b[None]], 2, hidden_size=4, linear_before_reset=1)[1][0]
    inner, hidden = np.split(b, 2)
    inner = inner + np.concatenate([hidden[:8], np.zeros(4, "float32")])
    zero = np.zeros((2, 4), "float32")
    assert_same(cg.gru_cell(x[0], zero, w.T, u.T, inner, hidden[8:]), want)
