"""Builders of Darknet layers. Source: the forward functions of layers in github.com/pjreddie/darknet.

A value between layers is ``[n, c, h, w]``, or ``[n, outputs]`` after a layer that outputs no image.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cgraph.formats.allowance import Allowance
from cgraph.formats.darknet.config import Section
from cgraph.formats.darknet.parameters import Parameters
from cgraph.ir.graph import OPS, Node
from cgraph.ops.leaf import Var
from cgraph.record import Record

PARTS = 8  # nodes for each operand of a route or a shortcut, which adapt its size
WINDOW = 2  # nodes of a window: its part of the image, and an added axis
NORM_EPS = 1e-6  # added to the standard deviation, not to the variance


@dataclass(eq=False)
class Net:
    """A network under construction. Changes: each layer adds its result.

    Fields
        parameters: source of the parameters of layers
        allowance: the remaining cost of reading the files
        steps: time steps in one run, for recurrent layers
        results: each layer's result
        outputs: layers whose result is an output
        updates: state of recurrent layers between runs
        size: rows and columns of the network's image; (1, 1) without one
        boxes: for each detection layer, the decoder of boxes and scores
    """

    parameters: Parameters
    allowance: Allowance
    steps: int = 1
    size: tuple[int, int] = (1, 1)
    results: list[Node] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    updates: dict[Var, Node] = field(default_factory=dict)
    boxes: list[Callable[[], tuple[Node, Node]]] = field(default_factory=list)


Layer = Callable[[Net, Section, Node], Node]
LAYERS: dict[str, Layer] = {}


def layer(*kinds: str) -> Callable[[Layer], Layer]:
    """Register a function for the kinds of section that it builds."""

    def register(function: Layer) -> Layer:
        LAYERS.update(dict.fromkeys(kinds, function))
        return function

    return register


def op(name: str, *args: Any, **options: Any) -> Any:
    return OPS[name](*args, **options)


ACTIVATIONS: dict[str, Callable[[Node], Node]] = {
    "linear": lambda x: x,
    "leaky": lambda x: op("leaky_relu", x, 0.1),
    "relu": lambda x: op("relu", x),
    "relu6": lambda x: op("relu6", x),
    "logistic": lambda x: op("sigmoid", x),
    "ramp": lambda x: op("relu", x) + 0.1 * x,
    "relie": lambda x: op("leaky_relu", x, 0.01),
    "tanh": lambda x: op("tanh", x),
    "elu": lambda x: op("elu", x),
    "selu": lambda x: op("selu", x),
    "swish": lambda x: op("swish", x),
    "mish": lambda x: op("mish", x),
    "loggy": lambda x: 2.0 * op("sigmoid", x) - 1.0,
    "hardtan": lambda x: op("clip", x, -1, 1),
}


def activate(s: Section, x: Node, default: str = "logistic") -> Node:
    name = s.text("activation", default)
    if name not in ACTIVATIONS:
        raise s.error(f"activation {name!r} is not supported. Use one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name](x)


def image(s: Section, x: Node) -> Node:
    """Return `x`, which must be an image."""
    if x.ndim != 4:
        raise s.error(f"the layer before outputs {x.shape[1]} numbers, but this one needs an image")
    return x


Statistics = tuple[Node, Node, Node]


def take_statistics(net: Net, name: str, shape: tuple[int, ...]) -> Statistics:
    """Return the scale, mean and variance of each channel, in the order of the file."""
    scale, mean, variance = (
        net.parameters.take(shape, f"{name}.{part}", start)
        for part, start in (("scale", 1.0), ("mean", 0.0), ("variance", 1.0))
    )
    return scale, mean, variance


def normalise(x: Node, shift: Node, statistics: Statistics) -> Node:
    """Return ``(x - mean) / (sqrt(variance) + NORM_EPS) * scale + shift`` for each channel."""
    scale, mean, variance = statistics
    return op("batch_norm", x, scale, shift, mean, op("square", op("sqrt", variance) + NORM_EPS), 0.0)


@layer("convolutional", "conv")
def convolutional(net: Net, s: Section, x: Node) -> Node:
    x, count, size, groups = image(s, x), s.size("filters", 1), s.size("size", 1), s.size("groups", 1)
    if s.integer("binary", 0) or s.integer("xnor", 0):
        raise s.error("binary filters are not supported. Set binary=0 and xnor=0")
    if x.shape[1] % groups:
        raise s.error(f"{groups} groups do not divide {x.shape[1]} channels")
    pad = size // 2 if s.integer("pad", 0) else s.integer("padding", 0)
    name, take = f"{s.index}.convolutional", net.parameters.take
    shift = take((count,), f"{name}.bias", 0.0)
    statistics = take_statistics(net, name, (count,)) if s.integer("batch_normalize", 0) else None
    filters = take((count, x.shape[1] // groups, size, size), f"{name}.filters", None)
    y = op("conv2d", x, filters, s.size("stride", 1), pad, s.size("dilation", 1), groups)
    if statistics is None:
        return activate(s, y + op("reshape", shift, (-1, 1, 1)))
    return activate(s, normalise(y, shift, statistics))


class Connected(Record):
    """A product with a matrix ``[outputs, inputs]``, then a shift or normalisation."""

    shift: Node
    matrix: Node
    statistics: Statistics | None

    def __call__(self, x: Node) -> Node:
        product = op("matmul", x, op("transpose", self.matrix))
        return product + self.shift if self.statistics is None else normalise(product, self.shift, self.statistics)


def take_connected(net: Net, s: Section, inputs: int, outputs: int, name: str) -> Connected:
    """Return the parameters of a product, in the order of the file; very old files store the matrix transposed."""
    shift = net.parameters.take((outputs,), f"{name}.bias", 0.0)
    if net.parameters.transposed:
        matrix = op("transpose", net.parameters.take((inputs, outputs), f"{name}.weights", None))
    else:
        matrix = net.parameters.take((outputs, inputs), f"{name}.weights", None)
    statistics = take_statistics(net, name, (outputs,)) if s.integer("batch_normalize", 0) else None
    return Connected(shift, matrix, statistics)


def rows_of(x: Node) -> Node:
    """Flatten each sample to one axis."""
    return op("reshape", x, (x.shape[0], x.size // max(x.shape[0], 1)))


@layer("connected", "conn")
def connected(net: Net, s: Section, x: Node) -> Node:
    x = rows_of(x)
    product = take_connected(net, s, x.shape[1], s.size("output", 1), f"{s.index}.connected")
    return activate(s, product(x))


@layer("local")
def local(net: Net, s: Section, x: Node) -> Node:
    """Build a locally connected layer: a convolution with weights ``[pixels, filters, c * size * size]`` per pixel."""
    x, count, size, stride = image(s, x), s.size("filters", 1), s.size("size", 1), s.size("stride", 1)
    pad = size // 2 if s.integer("pad", 0) else 0
    n, c = x.shape[:2]
    rows, columns = ((k + 2 * pad - size) // stride + 1 for k in x.shape[2:])
    if rows < 1 or columns < 1:
        raise s.error(f"a filter of {size} x {size} pixels is larger than the image of {x.shape[2]} x {x.shape[3]}")
    bias = net.parameters.take((count, rows, columns), f"{s.index}.local.bias", 0.0)
    filters = net.parameters.take((rows * columns, count, c * size * size), f"{s.index}.local.filters", None)
    padded = op("pad", x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    net.allowance.spend(f"a filter of {size} x {size} pixels", nodes=WINDOW * size * size)
    windows_at = []
    for i in range(size):
        for j in range(size):
            ends = i + (rows - 1) * stride + 1, j + (columns - 1) * stride + 1
            windows_at.append(padded[:, :, i : ends[0] : stride, j : ends[1] : stride])
    windows = op("reshape", op("stack", windows_at, 2), (n, c * size * size, rows * columns))
    y = op("matmul", filters, op("transpose", windows, (2, 1, 0)))  # [places, filters, n]
    y = op("reshape", op("transpose", y, (2, 1, 0)), (n, count, rows, columns))
    return activate(s, y + bias)


@layer("maxpool", "max")
def maxpool(net: Net, s: Section, x: Node) -> Node:
    """Build a max pool with `padding` rows and columns in all; half of them, rounded down, precede the image."""
    x, stride = image(s, x), s.size("stride", 1)
    size = s.size("size", stride)
    padding = s.integer("padding", size - 1)
    before = padding // 2
    behind = [max((n + padding - size) // stride * stride + size - n - before, 0) for n in x.shape[2:]]
    rows = [(n + padding - size) // stride + 1 for n in x.shape[2:]]
    y = op("max_pool2d", x, size, stride=stride, pad=(before, before, *behind))
    return y[:, :, : rows[0], : rows[1]]


@layer("avgpool", "avg")
def avgpool(net: Net, s: Section, x: Node) -> Node:
    return op("mean", image(s, x), (2, 3), keepdims=True)


def earlier(net: Net, s: Section, place: int) -> Node:
    """Return the result of another layer: by number, or relative to this one."""
    at = s.index + place if place < 0 else place
    if not 0 <= at < s.index:
        raise s.error(f"layer {place} does not come before this one")
    return net.results[at]


@layer("route")
def route(net: Net, s: Section, x: Node) -> Node:
    places = s.ints("layers")
    net.allowance.spend(f"a route of {len(places)} layers", nodes=PARTS * len(places))
    parts = [image(s, earlier(net, s, place)) for place in places]
    groups, number = s.size("groups", 1), s.integer("group_id", 0)
    if groups > 1:
        if not 0 <= number < groups:
            raise s.error(f"group {number} of {groups}")
        parts = [group_of(s, p, groups, number) for p in parts]
    return op("concat", parts, 1)


def group_of(s: Section, x: Node, groups: int, number: int) -> Node:
    """Return one of equal parts of the channels."""
    each, rest = divmod(x.shape[1], groups)
    if rest:
        raise s.error(f"{groups} groups do not divide {x.shape[1]} channels")
    return x[:, number * each : (number + 1) * each]


@layer("shortcut")
def shortcut(net: Net, s: Section, x: Node) -> Node:
    """Add the result of an earlier layer; if sizes differ, use strided pixels of the common channels."""
    x, places = image(s, x), s.ints("from")
    net.allowance.spend(f"a shortcut of {len(places)} layers", nodes=PARTS * len(places))
    for place in places:
        x = added(s, x, image(s, earlier(net, s, place)))
    return activate(s, x, "linear")


def added(s: Section, x: Node, y: Node) -> Node:
    if x.shape == y.shape:
        return x + y
    stride = max(y.shape[3] // x.shape[3], 1)
    sample = max(x.shape[3] // y.shape[3], 1)
    c = min(x.shape[1], y.shape[1])
    place = (slice(None), slice(0, c), slice(None, None, sample), slice(None, None, sample))
    part = y[:, :c, ::stride, ::stride]
    if x[place].shape != part.shape:
        raise s.error(f"images {list(x.shape)} and {list(y.shape)} do not fit")
    if sample == 1:
        return op("concat", [x[:, :c] + part, x[:, c:]], 1) if c < x.shape[1] else x + part
    return op("set_slice", x, place, x[place] + part)


@layer("upsample")
def upsample(net: Net, s: Section, x: Node) -> Node:
    stride = s.size("stride", 2)
    y = op("repeat", op("repeat", image(s, x), stride, 2), stride, 3)
    scale = s.number("scale", 1.0)
    return y if scale == 1 else y * scale


@layer("reorg")
def reorg(net: Net, s: Section, x: Node) -> Node:
    """Turn blocks of stride x stride pixels into channels, in the order of Darknet's loop."""
    x, k, extra = image(s, x), s.size("stride", 1), s.integer("extra", 0)
    n, c, h, w = x.shape
    if extra:
        return op("pad", op("reshape", x, (n, c * h * w)), [(0, 0), (0, extra)])
    if c % (k * k) or h % k or w % k or s.integer("reverse", 0):
        raise s.error(f"stride {k} does not fit an image {list(x.shape)}")
    split = op("transpose", op("reshape", x, (n, c // k**2, h, k, w, k)), (0, 3, 5, 1, 2, 4))
    return op("reshape", split, (n, c * k * k, h // k, w // k))


@layer("softmax", "soft")
def softmax(net: Net, s: Section, x: Node) -> Node:
    """Apply softmax in `groups` equal parts. Scores of a class tree stay unchanged: the tree is in another file."""
    x = rows_of(x)
    if s.text("tree"):
        return x
    groups = s.size("groups", 1)
    if x.shape[1] % groups:
        raise s.error(f"{groups} groups do not divide {x.shape[1]} numbers")
    parts = op("reshape", x / s.number("temperature", 1.0), (x.shape[0], groups, x.shape[1] // groups))
    return op("reshape", op("softmax", parts, -1), x.shape)


@layer("crop")
def crop(net: Net, s: Section, x: Node) -> Node:
    """Crop the centre of the image, and scale 0..1 to -1..1 unless `noadjust`."""
    x, h, w = image(s, x), s.size("crop_height", 1), s.size("crop_width", 1)
    top, left = (x.shape[2] - h) // 2, (x.shape[3] - w) // 2
    if top < 0 or left < 0:
        raise s.error(f"{h} x {w} pixels are more than the image's {x.shape[2]} x {x.shape[3]}")
    x = x[:, :, top : top + h, left : left + w]
    return x if s.integer("noadjust", 0) else x * 2.0 - 1.0


@layer("dropout", "cost")
def nothing(net: Net, s: Section, x: Node) -> Node:
    return x


@layer("activation")
def activation(net: Net, s: Section, x: Node) -> Node:
    return activate(s, x, "linear")


@layer("batchnorm")
def batchnorm(net: Net, s: Section, x: Node) -> Node:
    shape = (x.shape[1],)
    return normalise(x, op("zeros", shape), take_statistics(net, f"{s.index}.batchnorm", shape))
