"""ONNX files: models of the onnx package's own tests, changed field by field, with their inputs as constants.

Protobuf knows every message's fields, so a change replaces any field of any message by another value of its type:
another size, operator, name, attribute, sub-graph. Constants matter most, because values that depend on them are
computed while reading.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.fuzz.mutate import TEXTS, mutated, number

FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
LARGEST = 20_000  # bytes of a sample
ATTRIBUTES = "axis axes keepdims kernel_shape strides pads dilations group batch_dims num_outputs direction to mode"
ATTRIBUTES += " hidden_size perm alpha k largest blocksize shape value depth reduction storage_order ceil_mode auto_pad"
ATTRIBUTES += " equation"


@cache
def samples() -> Sequence[bytes]:
    """Return small models, each unchanged and with the values of its inputs stored in it; and handmade loops and
    functions.
    """
    found = [small for folder in sorted(folder_of_tests().iterdir()) for small in both(folder)]
    return [*found, *handmade()]


def folder_of_tests() -> Path:
    return Path(onnx.__file__).parent / "backend/test/data/node"


def both(folder: Path) -> list[bytes]:
    """Return a test's model, and again with constants in place of its inputs."""
    path = folder / "model.onnx"
    if not path.exists() or path.stat().st_size > LARGEST:
        return []
    whole = path.read_bytes()
    model = onnx.load_from_string(whole)
    for i, x in enumerate(model.graph.input):
        data = folder / "test_data_set_0" / f"input_{i}.pb"
        if not data.exists() or data.stat().st_size > LARGEST or x.type.WhichOneof("value") != "tensor_type":
            return [whole]
        tensor = onnx.TensorProto()
        tensor.ParseFromString(data.read_bytes())
        tensor.name = x.name
        model.graph.initializer.append(tensor)
    del model.graph.input[:]
    return [whole, model.SerializeToString()]


def handmade() -> list[bytes]:
    """Return a loop, a function in a function, and large and small tensors."""
    x = helper.make_tensor_value_info("x", FLOAT, (2, 4))
    y = helper.make_tensor_value_info("y", FLOAT, None)
    inner = helper.make_function("d", "G", ["v"], ["w"], [helper.make_node("Relu", ["v"], ["w"])], [opset("")])
    call = [helper.make_node("G", [a], [b], domain="d") for a, b in (("v", "t"), ("t", "w"))]
    outer = helper.make_function("d", "F", ["v"], ["w"], call, [opset(""), helper.make_opsetid("d", 1)])
    turn = helper.make_graph(
        [helper.make_node("Add", ["s", "s"], ["n"]), helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [helper.make_tensor_value_info(name, kind, ()) for name, kind in (("i", INT64), ("c", BOOL), ("s", FLOAT))],
        [helper.make_tensor_value_info("d", BOOL, ()), helper.make_tensor_value_info("n", FLOAT, None)],
    )
    tensors = {
        "w": np.ones((4, 300), "f4"), "shape": np.array([2, 10, 30]), "trips": np.array(3), "go": np.array(True),
        "places": np.array([[0, 1], [1, 2]]), "box": np.zeros((1, 3, 4), "f4"),
    }  # fmt: skip
    nodes = [
        helper.make_node("F", ["x"], ["f"], domain="d"),
        helper.make_node("Loop", ["trips", "go", "f"], ["l"], body=turn),
        helper.make_node("MatMul", ["l", "w"], ["m"]),
        helper.make_node("Reshape", ["m", "shape"], ["r"]),
        helper.make_node("GatherND", ["r", "places"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(v, n) for n, v in tensors.items()])
    model = helper.make_model(graph, opset_imports=[opset(""), helper.make_opsetid("d", 1)], functions=[inner, outer])
    return [model.SerializeToString()] * 8


def opset(domain: str) -> Any:
    return helper.make_opsetid(domain, 18)


@cache
def operators() -> Sequence[str]:
    from cgraph.formats.onnx.operators import FAMILY_OF

    return sorted(FAMILY_OF)


def change(whole: bytes, rng: Random, samples: Sequence[bytes]) -> bytes:
    model = onnx.ModelProto()
    model.ParseFromString(whole)
    for _ in range(rng.randint(1, 4)):
        kind = rng.random()
        if kind < 0.6:
            change_field(model.graph if rng.random() < 0.9 else model, rng)
        elif kind < 0.75 and model.graph.node:
            rng.choice(model.graph.node).op_type = rng.choice(operators())
        elif kind < 0.85:
            add_node(model.graph, rng)
        elif kind < 0.95:
            add_constant(model.graph, rng)
        else:
            take_over(model.graph, rng.choice(samples))
    found = model.SerializeToString()
    return found if rng.random() < 0.9 else mutated(found, rng)


def change_field(message: Any, rng: Random) -> None:
    """Replace the value of one field, of this message or of one within it."""
    set_fields = [f for f, _ in message.ListFields()]
    field = rng.choice(set_fields if set_fields and rng.random() < 0.9 else list(message.DESCRIPTOR.fields))
    many = field.is_repeated
    inner = field.cpp_type == field.CPPTYPE_MESSAGE
    value = getattr(message, field.name)
    if inner and many and value and rng.random() < 0.8:
        change_field(rng.choice(value), rng)
    elif inner and not many:
        change_field(value, rng)
    elif inner and value:
        at = rng.randrange(len(value))
        if rng.random() < 0.5:
            del value[at]
        else:
            value.add().CopyFrom(value[at])
    elif many and not inner:
        items = list(value)
        at = rng.randrange(len(items) + 1)
        items[at : at + rng.randint(0, 1)] = [random_value(field, rng) for _ in range(rng.randint(0, 2))]
        del value[:]
        value.extend(items)
    elif not inner:
        setattr(message, field.name, random_value(field, rng))


def random_value(field: Any, rng: Random) -> Any:
    """Return a random value of a field's type."""
    kind = field.cpp_type
    if kind == field.CPPTYPE_STRING:
        text = rng.choice([*TEXTS, "x", "y", rng.choice(ATTRIBUTES.split()), rng.choice(operators())])
        text = text.encode("utf-8", "replace")
        return text if field.type == field.TYPE_BYTES else text.decode()
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return float(rng.choice([0.0, -1.0, 1e30, float("nan"), float("inf"), number(rng) % 10**30]) % 3e38)
    if kind == field.CPPTYPE_ENUM:
        return rng.choice(field.enum_type.values).number
    bits, signed = {field.CPPTYPE_INT32: (32, 1), field.CPPTYPE_INT64: (64, 1), field.CPPTYPE_UINT64: (64, 0)}.get(
        kind, (32, 0)
    )
    n = rng.choice([number(rng), rng.randint(-2, 9)]) % 2**bits
    return n - 2**bits if signed and n >= 2 ** (bits - 1) else n


def names_of(graph: Any) -> list[str]:
    found = [x.name for x in (*graph.input, *graph.initializer)]
    return [*found, *(name for node in graph.node for name in node.output), ""]


def add_node(graph: Any, rng: Random) -> None:
    """Add a node of any operator on existing values, and a reader of its result."""
    names = names_of(graph)
    node = helper.make_node(
        rng.choice(operators()), [rng.choice(names) for _ in range(rng.randint(0, 4))], [f"new{rng.randrange(9)}"]
    )
    for _ in range(rng.randint(0, 3)):
        value = rng.choice([number(rng) % 2**62, [rng.randint(-1, 4) for _ in range(rng.randint(0, 4))], "x", 0.5])
        node.attribute.append(helper.make_attribute(rng.choice(ATTRIBUTES.split()), value, attr_type=kind_of(value)))
    graph.node.insert(rng.randrange(len(graph.node) + 1), node)
    graph.output.append(helper.make_tensor_value_info(node.output[0], FLOAT, None))


def kind_of(value: Any) -> Any:
    kinds = {list: onnx.AttributeProto.INTS, int: onnx.AttributeProto.INT, str: onnx.AttributeProto.STRING}
    return kinds.get(type(value), onnx.AttributeProto.FLOAT)


def add_constant(graph: Any, rng: Random) -> None:
    """Add a small constant that a node reads, often one that determines a size."""
    value = rng.choice(
        [
            np.array([number(rng) % 2**62 for _ in range(rng.randint(0, 4))], np.int64),
            np.array(number(rng) % 2**62, np.int64),
            np.array([rng.randint(-3, 3) for _ in range(rng.randint(0, 5))], np.int64),
            np.array([rng.choice([1e9, 0.5, -1, np.nan, np.inf])] * rng.randint(1, 4), np.float32),
            np.zeros([rng.choice([0, 1, 2, 30]) for _ in range(rng.randint(0, 3))], np.float32),
        ]
    )
    name = f"added{rng.randrange(9)}"
    graph.initializer.append(numpy_helper.from_array(value, name))
    readers = [node for node in graph.node if node.input]
    if readers:
        node = rng.choice(readers)
        node.input[rng.randrange(len(node.input))] = name


def take_over(graph: Any, other: bytes) -> None:
    """Add the nodes and constants of another model to this one."""
    model = onnx.ModelProto()
    model.ParseFromString(other)
    graph.initializer.extend(model.graph.initializer)
    graph.node.extend(model.graph.node)
    graph.output.extend(model.graph.output)
