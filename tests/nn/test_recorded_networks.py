"""The layers of every network of `nn.models` and of Mask R-CNN with all their numbers, the ops of its graph that move
or join pixels, and a digest of the graph, compared with a record.

Few tests see an epsilon, a rate of dropout, an initialiser, a rounding of padding or the order of layers of a whole
network. After a change that is meant: ``python -m tests.nn.test_recorded_networks`` writes the record anew.
"""

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import nn
from cgraph import Node, Var
from cgraph.record import replace
from cgraph.view.graph_text import lines_of
from nn.layer import Parameter
from nn.mode import Mode
from nn.models.mask_rcnn import MaskRCNN, Training, mask_rcnn, mask_rcnn_matterport, mask_rcnn_owl
from nn.models.mask_rcnn.backbone import ResNetTrunk
from nn.models.mask_rcnn.shapes import shapes_network
from nn.models.steps import nodes_of

SIZES = "inputs outputs channels features before after hidden few wide start config groups width".split()
OPS = frozenset("max_pool avg_pool max_pool2d avg_pool2d resize pad concat flip attention".split())
RECORD = Path(__file__).with_name("recorded_networks.txt")
NETWORKS: dict[str, Any] = {
    name: function
    for name in nn.models.__all__
    if inspect.isfunction(function := getattr(nn.models, name)) and "weights" in inspect.signature(function).parameters
} | {
    "blazeface back": lambda weights: nn.models.blazeface(weights, back=True),
    "inception_v3 torch": lambda weights: nn.models.inception_v3(weights, torch=True),
    "mobilenet_v2 torch": lambda weights: nn.models.mobilenet_v2(weights, torch=True),
    "llama with shared heads": lambda weights: nn.models.llama(weights, key_heads=2),
    "mask_rcnn 50": lambda weights: mask_rcnn(50, weights),
    "mask_rcnn 101 version 2": lambda weights: mask_rcnn(101, weights, version=2, eps=0.0),
    "mask_rcnn unfrozen": lambda weights: mask_rcnn(50, weights, frozen=False),
    "mask_rcnn_matterport": lambda weights: mask_rcnn_matterport(101, weights),
    "mask_rcnn_owl": mask_rcnn_owl,
    "shapes_network": shapes_network,
    "shapes_network by the other rule": lambda weights: by_the_other_rule(shapes_network(weights)),
    "losses of shapes_network": lambda weights: Training(shapes_network(weights), 3),
    "losses by the other rule": lambda weights: Training(by_the_other_rule(shapes_network(weights)), 3),
}


def by_the_other_rule(network: MaskRCNN) -> MaskRCNN:
    """A network with the rule of matterport in place of that of torchvision."""
    return replace(network, config=replace(network.config, rule="matterport"))


def text(value: Any) -> str:
    """A field as text: a Parameter by shape, initialiser and whether it is trained, a function by its name."""
    if isinstance(value, Parameter):
        return f"{list(value.shape)} of {value.start}{'' if value.trained else ' not trained'}"
    if isinstance(value, tuple):
        return f"({', '.join(map(text, value))})"
    return value.__qualname__ if callable(value) and hasattr(value, "__qualname__") else repr(value)


def plain(value: Any) -> bool:
    """True for a field that has no layers in it."""
    return all(map(plain, value)) if isinstance(value, tuple) else not isinstance(value, nn.Layer)


def described(layer: nn.Layer, sizes: bool) -> str:
    """Class and fields of a layer, except the layers in it; with `sizes` all of them, else those that are not usual."""
    usual = {name: x.default for name, x in inspect.signature(type(layer)).parameters.items()}
    fields = {name: text(x) for name, x in vars(layer).items() if plain(x) and x is not None}
    if not sizes:
        fields = {
            name: x.partition(" of ")[2] or x
            for name, x in fields.items()
            if name not in SIZES and (name not in usual or x != text(usual[name]))
        }
    return f"{type(layer).__name__}({', '.join(f'{name}={x}' for name, x in fields.items())})"


def recorded(name: str) -> Iterator[str]:
    """A line for the network with a digest of the places and sizes of its layers, then a line for each kind of layer
    with its number, for each such op, and for the graph, unless it is of a large Mask R-CNN.
    """
    network = NETWORKS[name](None)
    layers = network.layers()
    whole = "\n".join(f"{path} {described(x, True)}" for path, x in layers.items())
    yield f"{name}: {len(layers)} layers, {sha256(whole.encode()).hexdigest()[:10]}"
    for layer, count in Counter(described(x, False) for x in layers.values()).items():
        yield f"    {count} {layer}"
    if not (isinstance(network, MaskRCNN) and isinstance(network.trunk, ResNetTrunk)):
        outputs = outputs_of(network)
        nodes = nodes_of(outputs)
        for op, count in Counter(repr(x.op) for x in nodes if x.op.name in OPS).items():
            yield f"    {count} op {op}"
        yield f"    graph of {len(nodes)} nodes, {sha256(graph_text(outputs).encode()).hexdigest()[:10]}"


def outputs_of(network: nn.Layer) -> tuple[Node, ...]:
    """The results for a batch of two: losses in training, anything else in inference."""
    inputs = [Var((2, *x.shape), x.dtype, f"x{i}") for i, x in enumerate(network.samples)]
    results = network(*inputs, mode=Mode(training=isinstance(network, Training)))
    if isinstance(results, dict):
        return tuple(results.values())
    return results if isinstance(results, tuple) else (results,)


def graph_text(outputs: tuple[Node, ...]) -> str:
    """The text of a graph without the values of constant arrays, whose last bits depend on the processor."""
    return re.sub(r"(?m)^(%\d+ = const.* : \w+\[\d[\d,]*\]) = .*$", r"\1", lines_of(outputs))


@pytest.mark.parametrize("name", NETWORKS)
def test_the_layers_of_a_network_are_those_of_the_record(name):
    lines = RECORD.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(f"{name}: "))
    found = list(recorded(name))
    assert found == lines[first : first + len(found)]


if __name__ == "__main__":
    RECORD.write_text("".join(f"{line}\n" for name in NETWORKS for line in recorded(name)))
