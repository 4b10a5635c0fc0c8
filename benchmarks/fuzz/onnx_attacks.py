"""Small ONNX files that are expensive to read: each generator takes a number with which the cost may grow.

An attack passes if it is read, or refused, within the limits of `benchmarks.fuzz.child`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper

from benchmarks.fuzz.collisions import pairs_of_one_hash

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node, info = helper.make_node, helper.make_tensor_value_info
Graph = tuple[list, dict[str, Any]]  # nodes, and constants by name


def model(
    nodes: Sequence[Any], constants: dict[str, Any] | None = None, stored: Sequence[Any] = (), functions: Any = ()
) -> bytes:
    """Return a model with an input ``x [1]`` and an output ``y``."""
    arrays = [numpy_helper.from_array(np.asarray(v), name) for name, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", [info("x", FLOAT, (1,))], [info("y", FLOAT, None)], [*arrays, *stored])
    imports = [helper.make_opsetid(domain, n) for domain, n in (("", 18), ("d", 1), ("ai.onnx.ml", 3))]
    return helper.make_model(graph, opset_imports=imports, ir_version=9, functions=functions).SerializeToString()


def loop(body: Sequence[Any], turns: int, stored: Sequence[Any] = (), **constants: Any) -> Graph:
    """Return a loop that passes a value ``s [1]`` on as ``so``."""
    inputs = [info("i", INT64, ()), info("c", BOOL, ()), info("s", FLOAT, (1,))]
    ends = [info("co", BOOL, ()), info("so", FLOAT, None)]
    inner = helper.make_graph([node("Identity", ["c"], ["co"]), *body], "b", inputs, ends, list(stored))
    return [node("Loop", ["n", "t", "x"], ["y"], body=inner)], dict(n=np.int64(turns), t=np.array(True), **constants)


def large(n: int) -> Any:
    return numpy_helper.from_array(np.arange(n, dtype=np.float32), "W")


def numbers(n: int) -> Any:
    """Return a tensor whose numbers are not raw bytes, and are spread over several fields."""
    return TensorProto(name="W", data_type=TensorProto.INT8, dims=[n], int32_data=[1] * n)


SUMMED = [node("ReduceSum", ["W"], ["w"], keepdims=0), node("Add", ["s", "w"], ["so"])]


def function(body: Sequence[Any], attributes: Sequence[str] = (), imports: int = 0) -> Any:
    opsets = [helper.make_opsetid("", 18)] + [helper.make_opsetid("q", 1)] * imports
    return helper.make_function("d", "F", ["a"], ["b"], list(body), opsets, list(attributes))


CALL = [node("F", ["s"], ["so"], domain="d")]


def sequence_of_sequences(n: int) -> bytes:
    nodes = [node("SequenceConstruct", ["x"], ["s0"])]
    nodes += [node("SequenceInsert", [f"s{i}", "x"], [f"s{i + 1}"]) for i in range(n)]
    return model([*nodes, node("SequenceAt", [f"s{n}", "z"], ["y"])], {"z": np.int64(0)})


def erased_sequences(n: int) -> bytes:
    nodes = [node("SequenceConstruct", ["x"] * n, ["s0"])]
    nodes += [node("SequenceErase", [f"s{i}"], [f"s{i + 1}"]) for i in range(n - 1)]
    return model([*nodes, node("SequenceAt", [f"s{n - 1}", "z"], ["y"])], {"z": np.int64(0)})


def read_sequences(n: int) -> bytes:
    nodes = [node("SequenceConstruct", ["x"] * n, ["s"])]
    nodes += [node("SequenceLength", ["s"], [f"n{i}"]) for i in range(n)]
    return model([*nodes, node("SequenceAt", ["s", "z"], ["y"])], {"z": np.int64(0)})


def referenced_attribute(n: int) -> bytes:
    """Return nodes of a function that all read one attribute of the call."""
    body = [node("Relu", ["a"], ["b"])]
    for i in range(n):
        constant = node("Constant", [], [f"c{i}"])
        constant.attribute.append(AttributeProto(name="value", type=AttributeProto.TENSOR, ref_attr_name="v"))
        body.append(constant)
    call = node("F", ["x"], ["y"], domain="d")
    call.attribute.append(helper.make_attribute("v", numbers(1000 * n)))
    return model([call], functions=[function(body, ["v"])])


def long_branch(n: int) -> bytes:
    then = helper.make_graph([node("Sum", [""] * n, ["q"])], "then", [], [info("q", FLOAT, (1,))])
    other = helper.make_graph([node("Identity", ["s"], ["q2"])], "else", [], [info("q2", FLOAT, (1,))])
    chosen = node("If", ["fa"], ["so"], then_branch=then, else_branch=other)
    return model(*loop([chosen], 4000, fa=np.array(False)))


def long_attributes(n: int) -> bytes:
    """Return a node with many attributes in every iteration."""
    step = node("Identity", ["s"], ["so"])
    step.attribute.extend([AttributeProto(name="a")] * n)
    return model(*loop([step], 4000))


def long_call(n: int) -> bytes:
    step = node("F", ["s"] + [""] * n, ["so"], domain="d")
    inner = function([node("Relu", ["a"], ["b"])])
    inner.input.extend(["z"] * n)
    return model(*loop([step], 4000), functions=[inner])


def numbers_each_turn(n: int) -> bytes:
    step = [node("Constant", [], ["k"], value_ints=[1] * n), node("Identity", ["s"], ["so"])]
    return model(*loop(step, 4000))


def small_constants(n: int) -> bytes:
    stored = [numpy_helper.from_array(np.float32([i]), f"w{i}") for i in range(n)]
    return model(*loop([node("Identity", ["s"], ["so"])], 4000, stored))


def loop_constant(tensor: Any) -> bytes:
    return model(*loop(SUMMED, 3000, [tensor]))


def loop_constant_node(tensor: Any) -> bytes:
    return model(*loop([node("Constant", [], ["W"], value=tensor), *SUMMED], 3000))


def sparse(dims: Sequence[int], positions: Any = ((0,),)) -> bytes:
    raw = model([node("Relu", ["x"], ["y"])])
    found = ModelProto.FromString(raw)
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    found.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(positions, np.int64)), dims)
    )
    return found.SerializeToString()


def many_sparse(n: int) -> bytes:
    found = ModelProto.FromString(sparse([1 << 20]))
    for i in range(n):
        found.graph.sparse_initializer.append(found.graph.sparse_initializer[0])
        found.graph.sparse_initializer[-1].values.name = f"w{i}"
    return found.SerializeToString()


def dims(n: int) -> bytes:
    return model([node("Relu", ["x"], ["y"])], stored=[TensorProto(name="W", data_type=1, dims=[3] * n)])


def equal_hashes(n: int) -> bytes:
    trees, places = zip(*pairs_of_one_hash(n))
    lists = {"featureids": [0] * n, "values": [0.0] * n, "modes": ["LEAF"] * n, "truenodeids": [0] * n}
    lists |= {"falsenodeids": [0] * n, "treeids": trees, "nodeids": places}
    ends = {"target_treeids": trees[:1], "target_nodeids": places[:1], "target_ids": [0], "target_weights": [1.0]}
    nodes = {f"nodes_{name}": values for name, values in lists.items()}
    return model([node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, **nodes, **ends)])


def machine(n: int) -> bytes:
    """Return a support vector machine of many classes, with a score for each pair."""
    lists = {"classlabels_ints": [0, 1], "vectors_per_class": [1] + [0] * (n - 1), "coefficients": [1.0], "rho": [0.0]}
    return model([node("SVMClassifier", ["x"], ["y", "z"], domain="ai.onnx.ml", support_vectors=[1.0], **lists)])


def wide(kind: str) -> Callable[[int], bytes]:
    """Return a node of many operands."""
    return lambda n: model([node(kind, ["x"] * n, ["y"], **({"axis": 0} if kind == "Concat" else {}))])


def pieces(n: int) -> bytes:
    names = [f"p{i:x}" for i in range(n)]
    return model([node("Split", ["W"], names, num_outputs=n), node("Relu", ["x"], ["y"])], {"W": np.zeros(n, "f4")})


def evaluated_again(n: int) -> bytes:
    """Return sizes that depend on a chain of numbers, which is computed for each size that is needed."""
    nodes = [node("ReduceMax", ["W"], ["c0"], keepdims=1)]
    nodes += [node("Abs", [f"c{i}"], [f"c{i + 1}"]) for i in range(n)]
    nodes += [node("Expand", ["x", f"c{n}"], [f"e{i}"]) for i in range(n)]
    return model([*nodes, node("Relu", ["x"], ["y"])], {"W": np.ones(5000, np.int64)})


def open_chain(n: int) -> bytes:
    """Return sizes that depend on the input, each checked after a long chain."""
    nodes = [node("Relu", ["x"], ["c0"])]
    nodes += [node("Sum", [f"c{i}", f"c{i}"], [f"c{i + 1}"]) for i in range(n)]
    nodes += [node("Less", [f"c{n}", "x"], ["l"]), node("NonZero", ["l"], ["p"])]
    nodes += [node("Slice", ["p", "zero", "one", "one"], [f"q{i}"]) for i in range(n)]
    return model([*nodes, node("Relu", ["x"], ["y"])], {"zero": np.array([0]), "one": np.array([1])})


def outputs(n: int) -> bytes:
    found = ModelProto.FromString(model([node("Relu", ["x"], ["y"])]))
    found.graph.output.extend([info("y", TensorProto.FLOAT16, None)] * n)
    return found.SerializeToString()


def long_names(n: int) -> bytes:
    """Return a model whose message repeats a long name of a refused node."""
    return model([node("Add", ["x" * 1000 * n], ["y"], name="n" * 1000 * n)])


def texts(n: int) -> bytes:
    return model([node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_strings=[""] * n)])


def inputs(n: int) -> bytes:
    found = ModelProto.FromString(model([node("Relu", ["x"], ["y"])]))
    found.graph.input.extend([info(f"i{i:x}", FLOAT, (1,)) for i in range(n)])
    return found.SerializeToString()


ATTACKS: dict[str, tuple[Callable[[int], bytes], int]] = {
    "sequences that grow": (sequence_of_sequences, 9000),
    "sequences that shrink": (erased_sequences, 9000),
    "sequences that are read": (read_sequences, 20_000),
    "an attribute that many nodes refer to": (referenced_attribute, 1000),
    "names in a branch of a loop": (long_branch, 100_000),
    "attributes in a loop": (long_attributes, 20_000),
    "operands of a call in a loop": (long_call, 50_000),
    "imports of a function in a loop": (
        lambda n: model(*loop(CALL, 4000), functions=[function([node("Relu", ["a"], ["b"])], imports=n)]),
        50_000,
    ),
    "numbers of an attribute in a loop": (numbers_each_turn, 100_000),
    "small constants in a loop": (small_constants, 2000),
    "a constant in a loop": (lambda n: loop_constant(large(n)), 1 << 18),
    "a constant node in a loop": (lambda n: loop_constant_node(large(n)), 1 << 18),
    "a constant of numbers in a loop": (lambda n: loop_constant(numbers(n)), 1 << 18),
    "a constant node of numbers in a loop": (lambda n: loop_constant_node(numbers(n)), 1 << 18),
    "a sparse tensor of many axes": (lambda n: sparse([1] * n, np.zeros((0, n))), 3_000_000),
    "a sparse tensor of many axes, one element": (lambda n: sparse([1] * n, np.zeros((1, n))), 200_000),
    "sparse tensors": (many_sparse, 2000),
    "a sparse tensor of one large axis and one empty one": (lambda n: sparse([0, n, n], [[0, 0, 0]]), 1 << 60),
    "a tensor of many axes": (dims, 1_000_000),
    "trees whose nodes have one hash": (equal_hashes, 45_000),
    "a support vector machine": (machine, 100_000),
    "a sum": (wide("Sum"), 200_000),
    "a maximum": (wide("Max"), 200_000),
    "a concatenation": (wide("Concat"), 200_000),
    "pieces": (pieces, 100_000),
    "a chain that is evaluated again": (evaluated_again, 2500),
    "a chain that is asked about again": (open_chain, 2500),
    "outputs": (outputs, 40_000),
    "inputs": (inputs, 60_000),
    "long names": (long_names, 4000),
    "texts": (texts, 2_000_000),
}


def fields_of_models() -> Iterator[tuple[str, tuple[int, ...], Any]]:
    """Yield each field of each message within a ModelProto: its name, the field numbers that lead to it, and itself."""
    paths: dict[str, tuple[int, ...]] = {"onnx.ModelProto": ()}
    waiting: list[Any] = [ModelProto.DESCRIPTOR]
    while waiting:
        message = waiting.pop(0)
        path = paths[message.full_name]
        for field in message.fields:
            yield f"{message.name}.{field.name}", path, field
            if field.message_type is not None and field.message_type.full_name not in paths:
                paths[field.message_type.full_name] = (*path, field.number)
                waiting.append(field.message_type)


def repeated_fields(nbytes: int) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yield, for each field, a writer of a file with only very many of it."""
    for name, path, field in fields_of_models():
        yield name, partial(fill_field, path, field, nbytes)


def one_of_each_kind() -> list[str]:
    """Return one field of each kind that differs in cost: wire type, number in a message, data, documentation."""
    kinds = {
        (wire_type(field), field.default_value == [], name.endswith("_data"), field.name == "doc_string"): name
        for name, _, field in fields_of_models()
    }
    return sorted({*kinds.values(), "TensorProto.raw_data"})


def wire_type(field: Any) -> str:
    if field.message_type is not None:
        return "message"
    if field.type in (field.TYPE_STRING, field.TYPE_BYTES):
        return "text"
    return "float" if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE) else "integer"


def fill_field(path: Sequence[int], field: Any, nbytes: int) -> bytes:
    return within(path, filled(field, nbytes))


def filled(field: Any, nbytes: int) -> bytes:
    """Return many of one field: empty messages and texts; numbers of one byte, packed if possible."""
    kind = wire_type(field)
    if kind in ("message", "text"):
        one = varint(field.number << 3 | 2) + b"\0"
        return one * (nbytes // len(one))
    if kind == "float":
        one = varint(field.number << 3 | (5 if field.type == field.TYPE_FLOAT else 1)) + bytes(
            4 if field.type == field.TYPE_FLOAT else 8
        )
        return one * (nbytes // len(one))
    return varint(field.number << 3 | 2) + varint(nbytes) + b"\1" * nbytes


def within(path: Sequence[int], body: bytes) -> bytes:
    """Return a field within nested messages, and an empty graph beside it."""
    for number in reversed(path):
        body = varint(number << 3 | 2) + varint(len(body)) + body
    return body if path[:1] == (7,) else b"\x3a\x00" + body


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
