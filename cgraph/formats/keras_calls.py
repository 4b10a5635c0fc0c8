"""The calls of layers in a description by Keras 2 or 3: which tensors each use of a layer reads."""

from collections.abc import Iterator
from typing import Any

from cgraph.errors import FormatError
from cgraph.record import Record

TENSOR = "__keras_tensor__"
NETWORKS = FUNCTIONAL, MODEL, SEQUENTIAL = "Functional", "Model", "Sequential"
UNUSED = "training"
"""An argument that decides nothing in a network that is not trained."""


class Tensor(Record):
    """A result of a layer.

    Fields
        layer: the layer's name
        use, output: numbers, as Keras writes them: a network that is a layer may count its uses from 1
    """

    layer: str
    use: int = 0
    output: int = 0


Argument = Tensor | float | bool | tuple[Tensor | float | bool, ...]


class LayerCall(Record):
    """One use of a layer: what it reads by position, and by name."""

    operands: tuple[Tensor | float, ...] = ()
    named: dict[str, Argument] = {}  # noqa: RUF012 # nobody changes it

    def tensors(self) -> Iterator[Tensor]:
        """Yield all tensors that it reads."""
        for x in (*self.operands, *self.named.values()):
            yield from (y for y in (x if isinstance(x, tuple) else (x,)) if isinstance(y, Tensor))


def calls_of(row: dict[str, Any]) -> list[LayerCall]:
    """Return the uses of a layer. FormatError if one is called with anything but tensors, numbers and True.

    Keras 2 writes ``[[["a", 0, 0, {}], …]]``, Keras 3 ``[{"args": [tensor or [tensor, …]], "kwargs": {}}]``.
    """
    name = f"layer {row['name']!r:.80}"
    return [call_of(node, name) for node in row.get("inbound_nodes", [])] or [LayerCall()]


def call_of(node: Any, name: str) -> LayerCall:
    """Return one use of the layer that messages call `name`."""
    if isinstance(node, dict) and "args" in node:
        operands = [y for x in node["args"] for y in (x if isinstance(x, list) else [x])]
        return LayerCall(tuple(operand(x, name) for x in operands), named_of(node.get("kwargs", {}), name))
    if isinstance(node, list) and len(node) == 4 and isinstance(node[3], dict):  # a function of TensorFlow
        node = [node]
    if not isinstance(node, list) or not all(isinstance(x, list) and x and isinstance(x[0], str) for x in node):
        raise FormatError(f"{name} reads a {type(node).__name__}, not a list of layers")
    options = node[0][3] if node and len(node[0]) > 3 and isinstance(node[0][3], dict) else {}
    return LayerCall(tuple(entries(node)), named_of(options, name))


def entries(value: Any) -> list[Tensor]:
    """Return the tensors of ``["a", 0, 0]`` or ``[["a", 0, 0], …]``: layer, use, number of the output."""
    if not isinstance(value, list):
        raise FormatError(f"its inputs or outputs are a {type(value).__name__}. Save a network with a list of them")
    rows = [value] if value and isinstance(value[0], str) else value
    return [Tensor(str(row[0]), *(int(x) for x in row[1:3])) for row in rows]


def operand(value: Any, name: str) -> Tensor | float:
    """Return an argument by position."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    tensor = tensor_in(value)
    if tensor is None:
        raise FormatError(f"{name} is called with {value!r:.40}; only tensors and numbers are supported")
    return tensor


def named_of(options: dict[str, Any], name: str) -> dict[str, Argument]:
    """Return the arguments by name, without those that are None or False."""
    arguments = {}
    for option, value in options.items():
        values = value if isinstance(value, list) and not is_entry(value) else [value]
        if option == UNUSED or all(x is None or x is False for x in values):
            continue
        tensors = tuple(x if isinstance(x, bool) else operand(x, f"{name}, {option}=") for x in values)
        arguments[option] = tensors if values is value else tensors[0]
    return arguments


def is_entry(value: Any) -> bool:
    """Return if Keras 2 has written a tensor: ``["a", 0, 0]``."""
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str)


def tensor_in(value: Any) -> Tensor | None:
    """Return the tensor that a value describes, or None."""
    if is_entry(value):
        return entries(value)[0]
    if isinstance(value, dict) and value.get("class_name") == TENSOR:
        layer, use, output = value["config"]["keras_history"]
        return Tensor(str(layer), int(use), int(output))
    return None


def first_uses(rows: list[dict[str, Any]], calls: dict[str, list[LayerCall]], ends: list[Tensor]) -> dict[str, int]:
    """Return the number that Keras gives the first use of each layer.

    A functional network that is a layer has a use before the first one, which is its own definition.
    """
    first = {row["name"]: int(row["class_name"] in (FUNCTIONAL, MODEL)) for row in rows}
    last: dict[str, int] = {}
    for x in (*ends, *(t for some in calls.values() for call in some for t in call.tensors())):
        last[x.layer] = max(last.get(x.layer, 0), x.use)
    for row in rows:
        name = row["name"]
        if row["class_name"] == SEQUENTIAL and last.get(name, 0) == len(calls[name]):
            first[name] = 1
    return first
