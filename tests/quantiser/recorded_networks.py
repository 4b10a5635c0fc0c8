"""Drawn networks: their layers, the values that become bytes with the values whose scale they have, and the scales.

``python -m tests.quantiser.recorded_networks`` writes `recorded_networks.txt` anew, and with a number after it prints
all facts of one network.
"""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cgraph as cg
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import ConstOp
from cgraph.ops.quantise import Dequantize, Quantize
from cgraph.quantiser.network import Network, network_of, prepare
from cgraph.quantiser.quantise import quantise
from tests.quantiser.nets import Net

RECORD = Path(__file__).with_suffix(".txt")
COUNT, MEASURED = 60, 5
SHAPE = (2, 4, 8, 6)
CHOICES: tuple[dict[str, Any], ...] = (
    {},
    {"method": "percentile", "images": "int8", "symmetric": True},
    {"method": "entropy", "correct": False},
    {"agreement": 0.9, "sensitivity": True},
)


def row(net: Net, n: int) -> np.ndarray:
    return net.normal(n, 1, 1)


IMAGES = {
    "conv": lambda net, x: net.conv(x, 8),
    "conv and relu": lambda net, x: cg.relu(net.conv(x, 6, 3, 1)),
    "relu6": lambda net, x: cg.relu6(net.conv(x, 8, 1)),
    "clip": lambda net, x: cg.clip(net.conv(x, 4, 1), -1, None),
    "groups": lambda net, x: cg.relu(net.conv(x, 2 * x.shape[1], 3, 1, x.shape[1])),
    "scaled": lambda net, x: row(net, 6) * net.conv(x, 6, 1) + row(net, 6),
    "without bias": lambda net, x: cg.conv2d(x, net.normal(5, x.shape[1], 2, 1), 1, (1, 0, 0, 0)),
    "normed": lambda net, x: cg.batch_norm(net.conv(x, 4, 1), *(abs(net.normal(4)) + np.float32(0.5) for _ in "abcd")),
    "max_pool": lambda net, x: cg.max_pool2d(x, 2, 1, (1, 0, 0, 1)),
    "avg_pool": lambda net, x: cg.avg_pool2d(x, (2, 1), 1),
    "pad": lambda net, x: cg.pad(x, [(0, 0), (0, 1), (1, 0), (0, 2)]),
    "pad by 1": lambda net, x: cg.pad(x, [(0, 0), (0, 0), (1, 0), (0, 2)], constant_values=1.0),
    "slice": lambda net, x: x[:, :, 1:, ::-1],
    "transpose": lambda net, x: cg.transpose(x, (0, 1, 3, 2)),
    "resize": lambda net, x: cg.resize(x, (6, 5)),
    "swish": lambda net, x: x * cg.sigmoid(x),
    "gate": lambda net, x: x * cg.sigmoid(net.conv(cg.mean(x, (2, 3), keepdims=True), x.shape[1], 1)),
    "softmax": lambda net, x: cg.softmax(x, 1),
    "residual": lambda net, x: cg.relu(net.conv(x, x.shape[1]) + x),
    "twice": lambda net, x: net.conv(x, 4) + net.conv(x, 4, 1),
    "concat": lambda net, x: cg.concat([x, cg.relu(net.conv(x, 3)), cg.Const(net.normal(2, 1, *x.shape[2:]))], 1),
    "tanh": lambda net, x: cg.tanh(x),
    "sum of rows": lambda net, x: x + cg.sum(x, 3, keepdims=True),
}
ENDS = {
    "scores": lambda net, x: cg.softmax(net.linear(cg.mean(x, (2, 3)), 5)),
    "rows": lambda net, x: net.linear(cg.relu(net.linear(cg.reshape(x, (x.shape[0], -1)), 6)), 4),
    "matrices": lambda net, x: cg.reshape(x, (*x.shape[:2], -1)) @ net.normal(x.shape[2] * x.shape[3], 3),
    "computed": lambda net, x: cg.transpose(x, (0, 1, 3, 2)) @ x,
    "images": lambda net, x: net.conv(x, 3),
    "both": lambda net, x: [net.conv(x, 3), x],
}


def drawn(number: int) -> tuple[list[cg.Node], cg.Var]:
    """The outputs and the input of a network."""
    rng, net = np.random.default_rng([3, number]), Net(number)
    x = y = cg.Var(SHAPE, name="image")
    names = [*rng.choice(list(IMAGES), rng.integers(2, 5))]
    for name in names:
        y = IMAGES[name](net, y)
    found = ENDS[list(ENDS)[number % len(ENDS)]](net, y)
    return found if isinstance(found, list) else [found], x


def structure(network: Network) -> Iterator[str]:
    """Layers, values that become bytes, and those whose scales they have."""
    at = {x: i for i, x in enumerate(network.order)}
    for layer in network.all_layers:
        kept = "" if layer in network.layers else " stays float"
        sums = f"{np.abs(layer.weights).sum():.3g} {np.abs(layer.bias).sum():.3g}"
        yield f"{layer.name} {at[layer.core]} {at[layer.end]} {at[layer.last]} axis {layer.axis}, {sums}{kept}"
    yield ", ".join(f"{at[x]} {x.op.name} as {at[root]}" for x, root in network.bytes.items())


def measured(outputs: list[cg.Node], x: cg.Var, options: dict[str, Any]) -> Iterator[str]:
    """Scales and zero points of a quantised network, and what is reported of its layers."""
    samples = [np.random.default_rng([5, i]).standard_normal(SHAPE).astype("f4") for i in range(3)]
    found = quantise(outputs, x, samples, **options)
    for node in post_order(found.outputs):
        if isinstance(node.op, Quantize | Dequantize):
            value, scale, zero = node.operands
            yield f"{node.op.name} {value.spec} {number_of(scale)} {number_of(zero)} {number_of(value)}"
    yield f"{found.report.weights} {found.report.layers} {sorted(found.report.skipped)} {len(found.report.table)}"


def number_of(x: cg.Node) -> str:
    """The first digits of the numbers of a constant; int32 biases depend on the order of sums, so only their shape."""
    while not isinstance(x.op, ConstOp):
        if not x.operands or x.op.name not in ("broadcast_to", "reshape"):
            return x.op.name
        x = x.operands[0]
    array = x.op.array
    return f"int32 {array.shape}" if array.dtype == np.int32 else f"{np.abs(array.astype('f8')).mean():.2g}"


def facts(number: int) -> list[str]:
    """All facts of a network."""
    outputs, x = drawn(number)
    network = network_of(prepare(outputs, [x]))
    lines = [*structure(network)]
    names = [layer.name for layer in network.layers]
    for some in (names[:1], names[1:2], names[1:]):
        lines += structure(network.without(some))
    if number < MEASURED and names:
        lines += [line for options in CHOICES for line in measured(outputs, x, options)]
    return lines


def line(number: int) -> str:
    """A line of the record."""
    text = "\n".join(facts(number))
    return f"{number}: {text.count(' as ')} values of bytes; {hashlib.sha256(text.encode()).hexdigest()[:12]}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.stdout.write("\n".join([*facts(int(sys.argv[1])), ""]))
    else:
        RECORD.write_text("".join(f"{line(i)}\n" for i in range(COUNT)))
