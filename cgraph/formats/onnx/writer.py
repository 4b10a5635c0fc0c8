"""save: write a graph as an ONNX model.

Vars that are inputs become inputs. Other Vars must have a value, which becomes an initialiser, as constants do.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.errors import FormatError, UnassignedError
from cgraph.formats.onnx.emit import EMITTERS, Emitted
from cgraph.formats.onnx.emit_layers import matches
from cgraph.formats.onnx.tensors import number_of_dtype, of_package
from cgraph.ir.graph import Node
from cgraph.ir.labels import distinct_names
from cgraph.ops.leaf import ConstOp, Var
from cgraph.ops.shape import Item
from cgraph.system.extras import missing_package

OPSET, IR_VERSION = 18, 8
LARGEST = (1 << 31) - 1  # bytes that protobuf writes


Outputs = Node | Sequence[Node] | Mapping[str, Node]


def save(path: str | Path, outputs: Outputs, inputs: Sequence[Var], names: Sequence[str] = ()) -> None:
    """Write a graph as an ONNX file; see `serialised`."""
    Path(path).write_bytes(serialised(outputs, inputs, names))


def serialised(outputs: Outputs, inputs: Sequence[Var], names: Sequence[str] = ()) -> bytes:
    """Return a graph as the bytes of an ONNX model.

    Parameters
        outputs: one node, several, or several by name
        inputs: Vars that become inputs; the others become initialisers
        names: names of the outputs, by default those of a dictionary, or output0, output1, …. A repeated name gets a
            suffix, such as ``y_1``
    Raises
        FormatError: ops have no ONNX operator (all are named with their count), or the model exceeds 2 GiB
        UnassignedError: a Var that is not an input has no value
    """
    if isinstance(outputs, Mapping):
        names, outputs = names or tuple(outputs), list(outputs.values())
    nodes = [outputs] if isinstance(outputs, Node) else list(outputs)
    labels = distinct_names(names or [f"output{i}" for i in range(len(nodes))], (x.name for x in inputs))
    plan = expressions(nodes)
    free_inputs = set(inputs)
    itself = {
        x.name
        for x, label in zip(nodes, labels, strict=True)
        if isinstance(x, Var) and x in free_inputs and x.name == label
    }
    writer = Writer(plan, inputs, set(labels) - itself)
    return writer.model(nodes, labels)


def expressions(outputs: Sequence[Node]) -> dict[Node, Emitted]:
    """Return the expressions of all needed nodes, operands first. FormatError that names ops without an operator."""
    ordered: dict[Node, Emitted] = {}
    missing: Counter[str] = Counter()
    waiting: list[tuple[Node, bool]] = [(x, False) for x in reversed(outputs)]
    expression_of: dict[Node, Emitted] = {}
    while waiting:
        x, done = waiting.pop()
        if x in ordered or isinstance(x, Var) or isinstance(x.op, ConstOp):
            continue
        if done:
            ordered[x] = expression_of[x]
            continue
        source = x.operands[0] if isinstance(x.op, Item) else x
        if source not in expression_of:
            expression = next(matches(source), None)
            make = EMITTERS.get(source.op.name)
            if expression is None and make is None:
                missing[source.op.name] += 1
                expression_of[source] = Emitted("", source.operands)
            else:
                expression_of[source] = expression or make(source)  # type: ignore[misc]
        waiting.append((source, True))
        waiting += [(v, False) for v in nodes_of(expression_of[source])]
    if missing:
        named = ", ".join(f"{name} ({n} times)" if n > 1 else name for name, n in sorted(missing.items()))
        raise FormatError(
            f"{len(missing)} ops have no ONNX operator: {named}. Replace them, or save with cgraph's own format "
            "(Function.save)"
        )
    return ordered


def nodes_of(expression: Emitted) -> list[Node]:
    """Return the nodes that an expression reads."""
    nodes: list[Node] = []
    for x in expression.operands:
        if isinstance(x, Emitted):
            nodes += nodes_of(x)
        elif isinstance(x, Node):
            nodes.append(x)
    return nodes


class Writer:
    """Creates the protos. Changes: nodes, initialisers and names grow.

    Fields
        plan: expressions of all nodes, operands first
        inputs: Vars that become inputs
        reserved: names in use
    """

    def __init__(self, plan: dict[Node, Emitted], inputs: Sequence[Var], reserved: set[str]) -> None:
        try:
            from onnx import helper, numpy_helper
        except ImportError:
            raise missing_package("onnx", "ONNX files") from None
        self.helper, self.numpy_helper = helper, numpy_helper
        self.plan, self.inputs, self.reserved = plan, list(inputs), reserved
        self.names: dict[Node, str] = {}
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.small: dict[tuple, str] = {}
        self.nbytes = 0
        for x in self.inputs:
            self.names[x] = self.fresh(x.name)

    def model(self, outputs: Sequence[Node], labels: Sequence[str]) -> bytes:
        """Return the serialised model."""
        for x, expression in self.plan.items():
            self.names[x] = self.emit(expression, x.op.name)
        for x, label in zip(outputs, labels):
            if self.name_of(x) != label:  # otherwise x is an input that is an output of the same name
                self.nodes.append(self.helper.make_node("Identity", [self.name_of(x)], [label]))
        graph = self.helper.make_graph(
            self.nodes,
            "cgraph",
            [self.info(self.names[x], x) for x in self.inputs],
            [self.info(label, x) for x, label in zip(outputs, labels)],
            self.initializers,
        )
        opset = self.helper.make_opsetid("", OPSET)
        return self.helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION).SerializeToString()

    def info(self, name: str, x: Node) -> Any:
        return self.helper.make_tensor_value_info(name, number_of_dtype(x.dtype), x.shape)

    def fresh(self, stem: str) -> str:
        """Return a name that is not in use."""
        name, i = stem, 0
        while name in self.reserved:
            i += 1
            name = f"{stem}_{i}"
        self.reserved.add(name)
        return name

    def emit(self, expression: Emitted, stem: str) -> str:
        """Add the nodes of an expression; return the name of its first result."""
        operands = ["" if x is None else self.operand(x, stem) for x in expression.operands]
        name = self.fresh(stem)
        results = [name, *(f"{name}:{i}" for i in range(1, expression.results))]
        proto = self.helper.make_node(expression.kind, operands, results, name=name, **expression.attributes)
        self.nodes.append(proto)
        return name

    def operand(self, x: Any, stem: str) -> str:
        if isinstance(x, Emitted):
            return self.emit(x, stem)
        return self.name_of(x) if isinstance(x, Node) else self.array(x, stem)

    def name_of(self, x: Node) -> str:
        """Return the name of a node's value; the first read of a Var or constant adds an initialiser."""
        if x in self.names:
            return self.names[x]
        if isinstance(x.op, Item):
            name = self.names[x.operands[0]]
            return name if x.op.index == 0 else f"{name}:{x.op.index}"
        if isinstance(x, Var):
            if x.cell.array is None:
                raise UnassignedError(
                    f"{x.name} {x.spec} (made at {x.where}) has no value. Assign it, or list it in inputs"
                )
            self.names[x] = self.array(x.cell.array, x.name, share=False)
        else:
            self.names[x] = self.array(x.op.array, x.name)  # type: ignore[attr-defined]
        return self.names[x]

    def array(self, x: np.ndarray, stem: str, share: bool = True) -> str:
        """Add an initialiser and return its name; equal small ones are shared if `share`."""
        number_of_dtype(x.dtype)  # refuses other dtypes
        key = (x.dtype, x.shape, x.tobytes()) if share and x.nbytes <= 256 else None
        if key in self.small:
            return self.small[key]
        self.nbytes += x.nbytes
        if self.nbytes > LARGEST:
            raise FormatError(
                f"the constants exceed {LARGEST} bytes, the limit of an ONNX file. Save with Function.save"
            )
        name = self.fresh(stem if key is None else f"{stem}_constant")
        array = of_package(np.ascontiguousarray(x)).reshape(x.shape)
        self.initializers.append(self.numpy_helper.from_array(array, name))
        if key is not None:
            self.small[key] = name
        return name
