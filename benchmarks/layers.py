"""Single convolution layers on one thread: ours on channel-blocked values, and onnxruntime's one-node models.

    python -m benchmarks.layers [part of a layer's name]

A one-node model converts the layout at both ends, so ratios of 1x1 layers favour ours.
"""

import sys
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.prepared import aligned, alternate, prepare, workspace
from cgraph.kernels.activation.calls import RELU
from cgraph.kernels.conv.calls import conv_calls, conv_nbytes
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.depthwise.calls import depthwise_calls, is_depthwise, pack_depthwise
from cgraph.kernels.kernel import Pointer, contiguous
from cgraph.kernels.target import host_target
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.pack import pack_bias, pack_conv
from cgraph.kernels.views.window import Window
from cgraph.kernels.winograd.calls import Winograd, is_winograd, pack_winograd, winograd_calls
from cgraph.kernels.winograd.rule import winograd_rule


@dataclass(frozen=True)
class Layer:
    c: int
    h: int
    k: int
    size: int
    stride: int = 1
    groups: int = 1
    is_plain: bool = False

    @property
    def shape(self) -> ConvShape:
        pad = (self.size // 2,) * 4
        window = Window((self.size,) * 2, (self.stride,) * 2, pad)
        return ConvShape(self.c, self.h, self.h, self.k, host_target(), window, self.groups, self.is_plain)


LAYERS = {
    "7x7/2 3->64 @224": Layer(3, 224, 64, 7, 2, is_plain=True),
    "1x1 64->256 @56": Layer(64, 56, 256, 1),
    "1x1 256->64 @56": Layer(256, 56, 64, 1),
    "3x3 64 @56": Layer(64, 56, 64, 3),
    "3x3 128 @28": Layer(128, 28, 128, 3),
    "3x3 256 @14": Layer(256, 14, 256, 3),
    "3x3 512 @7": Layer(512, 7, 512, 3),
    "1x1 1024->256 @14": Layer(1024, 14, 256, 1),
    "1x1/2 256->512 @56": Layer(256, 56, 512, 1, 2),
    "1x1 2048->512 @7": Layer(2048, 7, 512, 1),
    "3x3 128 @56, 32 groups": Layer(128, 56, 128, 3, groups=32),
    "3x3 512 @14, 32 groups": Layer(512, 14, 512, 3, groups=32),
    "3x3 256 @14, 2 groups": Layer(256, 14, 256, 3, groups=2),
    "depthwise 3x3 32 @112": Layer(32, 112, 32, 3, groups=32),
    "depthwise 3x3 144 @56": Layer(144, 56, 144, 3, groups=144),
    "depthwise 3x3 512 @14": Layer(512, 14, 512, 3, groups=512),
    "depthwise 3x3/2 96 @112": Layer(96, 112, 96, 3, 2, groups=96),
    "depthwise 5x5 240 @28": Layer(240, 28, 240, 5, groups=240),
    "3x3 256 @256 (FPN)": Layer(256, 256, 256, 3),
}


def laned_of(n: int, c: int, h: int, w: int, lanes: int, halo: int) -> BlockedView:
    value = BlockedView(Pointer(None), n, c, h, w, lanes, (halo,) * 4)
    array = aligned(value.nbytes).view("f4")
    array[:] = np.random.default_rng(0).standard_normal(array.size, "f4")
    return BlockedView(Pointer(array), n, c, h, w, lanes, (halo,) * 4)


def operands(layer: Layer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((layer.k, layer.c // layer.groups, layer.size, layer.size), "f4")
    return rng.standard_normal((1, layer.c, layer.h, layer.h), "f4"), filters, rng.standard_normal(layer.k, "f4")


def direct(layer: Layer):
    """Return a function that runs the direct kernel once."""
    shape = layer.shape
    x, filters, bias = operands(layer)
    packed = aligned(shape.weights_nbytes).view("f4")
    packed[:] = pack_conv(shape, filters).ravel()
    out = laned_of(1, shape.k, *shape.result, shape.lanes, 0)
    source = laned_of(1, layer.c, layer.h, layer.h, shape.lanes, layer.size // 2)
    view = contiguous(Pointer(x), x.shape, "f4")
    scratch = workspace(conv_nbytes(shape, 1))
    lowered = conv_calls(
        shape,
        out,
        view if layer.is_plain else source,
        Pointer(packed),
        Epilogue(Pointer(pack_bias(shape, bias)), activation=RELU),
        scratch,
    )
    return prepare(lowered.calls)


def depthwise(layer: Layer):
    """Return a function that runs the depthwise kernel once."""
    shape = layer.shape
    _, filters, bias = operands(layer)
    out = laned_of(1, shape.k, *shape.result, shape.lanes, 0)
    source = laned_of(1, layer.c, layer.h, layer.h, shape.lanes, layer.size // 2)
    epilogue = Epilogue(Pointer(pack_bias(shape, bias)), activation=RELU)
    return prepare(depthwise_calls(shape, out, source, Pointer(pack_depthwise(shape, filters)), epilogue).calls)


def winograd(layer: Layer, m: int):
    """Return a function that runs the layer's Winograd kernels once."""
    shape = layer.shape
    _, filters, bias = operands(layer)
    plan = Winograd(shape, 1, m)
    packed = aligned(plan.weights_nbytes).view("f4")
    packed[:] = pack_winograd(plan, filters).ravel()
    out = laned_of(1, shape.k, *shape.result, shape.lanes, 0)
    source = laned_of(1, layer.c, layer.h, layer.h, shape.lanes, 1)
    scratch = workspace(plan.nbytes)
    epilogue = Epilogue(Pointer(pack_bias(shape, bias)), activation=RELU)
    return prepare(winograd_calls(plan, out, source, Pointer(packed), epilogue, scratch).calls)


def onnxruntime_of(layer: Layer):
    """Return a function that runs the layer's one-node model once, on one thread."""
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper

    x, filters, bias = operands(layer)
    nodes = [
        helper.make_node(
            "Conv", ["x", "f", "b"], ["c"], strides=[layer.stride] * 2, pads=[layer.size // 2] * 4, group=layer.groups
        ),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    info = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", x.shape), ("y", None))
    ]
    weights = [numpy_helper.from_array(filters, "f"), numpy_helper.from_array(bias, "b")]
    graph = helper.make_graph(nodes, "layer", info[:1], info[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {"x": x}
    return lambda: session.run(None, feeds)


def row(name: str, layer: Layer) -> str:
    functions = {"depthwise": depthwise(layer)} if is_depthwise(layer.shape) else {"direct": direct(layer)}
    if is_winograd(layer.shape):
        functions |= {f"F{m}": winograd(layer, m) for m in (2, 4)}
    rule = f"   rule F{m}" if (m := winograd_rule(layer.shape, 1)) else ""
    times = alternate(functions | {"onnxruntime": onnxruntime_of(layer)})
    theirs = median(times.pop("onnxruntime"))
    cells = [f"{name:20} onnxruntime {theirs * 1e6:9.1f} us"]
    for kind, seconds in times.items():
        ours, rate = median(seconds), layer.shape.flops / min(seconds) / 1e9
        cells.append(f"{kind} {ours * 1e6:9.1f} us {rate:6.1f} GF/s ratio {theirs / ours:5.2f}")
    return "   ".join(cells) + rule


def main(wanted: str) -> None:
    for name, layer in LAYERS.items():
        if wanted in name:
            print(row(name, layer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
