"""Constructs that formats of networks may repeat: Keras, TFLite, ONNX and saved functions, for
`benchmarks.fuzz.amplify`.
"""

import io
import json
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.fuzz import keras_files, saved_functions
from benchmarks.fuzz.amplify import Construct
from benchmarks.fuzz.constructs import names, probed
from cgraph.formats.tflite.schema import NAMES
from cgraph.saved.layout import MANIFEST, with_sum
from tests.support.tflite_models import Table, written

# -- Keras ------------------------------------------------------------------------------------------------------------


def h5(fill: Callable[[Any, Any], None]) -> bytes:
    """Return a file that a function fills, which gets h5py, too."""
    import h5py

    out = io.BytesIO()
    with h5py.File(out, "w") as file:
        fill(file, h5py)
    return out.getvalue()


def described(text: str) -> bytes:
    """Return a file with this description."""

    def fill(file: Any, h5py: Any) -> None:
        file.attrs["model_config"] = text

    return h5(fill)


def keras(layers: list[dict[str, Any]]) -> bytes:
    """Return a network of these layers and an input `c`; its output is `a`."""
    first = {"name": "c", "class_name": "InputLayer", "config": {"batch_shape": [None, 1]}}
    config = {"layers": [*layers, first], "input_layers": [["c", 0, 0]], "output_layers": [["a", 0, 0]]}
    return described(json.dumps({"class_name": "Functional", "config": config}, separators=(",", ":")))


def added(name: str, inbound: Any) -> dict[str, Any]:
    return {"name": name, "class_name": "Add", "config": {}, "inbound_nodes": [inbound]}


def wide_and_deep(count: int) -> bytes:
    """Return as many layers, each of which reads the one before that many times."""
    n = max(int(count**0.5), 1)
    return keras([added("a", [["0"]]), added("0", [["c"]]), *(added(f"{i}", [[f"{i - 1}"]] * n) for i in range(1, n))])


def backwards(count: int) -> bytes:
    return keras(
        [added("a", [["0"]]), *(added(f"{i}", [[f"{i + 1}"]]) for i in range(count)), added(f"{count}", [["c"]])]
    )


def one_chunk(raw: bytes, filters: int) -> bytes:
    """Return a dataset of one chunk of 4,000 bytes with these stored bytes."""

    def fill(file: Any, h5py: Any) -> None:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((1000,))
        for _ in range(filters):
            properties.set_filter(h5py.h5z.FILTER_DEFLATE, h5py.h5z.FLAG_OPTIONAL, (9,))
        space = h5py.h5s.create_simple((1000,))
        data = h5py.h5d.create(file.id, b"w", h5py.h5t.IEEE_F32LE, space, properties)
        data.write_direct_chunk((0,), raw, 0)

    return h5(fill)


def deflate_bomb(mbytes: int, times: int) -> bytes:
    """Return a chunk that is packed several times and unpacks to so many megabytes."""
    machine = zlib.compressobj(9)
    raw = b"".join(machine.compress(bytes(1 << 20)) for _ in range(mbytes)) + machine.flush()
    for _ in range(times - 1):
        raw = zlib.compress(raw, 9)
    return one_chunk(raw, times)


def datasets(count: int) -> bytes:
    def fill(file: Any, h5py: Any) -> None:
        for i in range(count):
            file.create_dataset(f"{i}", data=np.zeros(1, "f4"))

    return h5(fill)


def groups(count: int) -> bytes:
    def fill(file: Any, h5py: Any) -> None:
        group = file
        for _ in range(count):
            group = group.create_group("g")

    return h5(fill)


def chunks(count: int) -> bytes:
    def fill(file: Any, h5py: Any) -> None:
        file.create_dataset("w", data=np.zeros(count, "u1"), chunks=(1,))

    return h5(fill)


def zeros_in_chunks(count: int) -> bytes:
    def fill(file: Any, h5py: Any) -> None:
        file.create_dataset("w", data=np.zeros(count << 20, "u1"), chunks=(1 << 20,), compression="gzip")

    return h5(fill)


KERAS = (
    Construct("operands of one layer", lambda k: keras([added("a", [["c"]] * k)])),
    Construct("a text as operands", lambda k: keras([added("a", "b" * k), added("b", "c" * k)])),
    Construct("layers", lambda k: keras([added("a", [["c"]]), *(added(f"{i}", [["c"]]) for i in range(k))])),
    Construct("layers in the wrong order", backwards),
    Construct("layers with many operands", wide_and_deep),
    Construct("a name twice behind many", lambda k: described(names(k).decode() + ',"a":0,"a":0}')),
    Construct("megabytes of one chunk", lambda k: deflate_bomb(k, 1), 256),
    Construct("megabytes packed twice", lambda k: deflate_bomb(k, 2), 1024),
    Construct("megabytes of zeros in chunks", zeros_in_chunks, 256),
    Construct("chunks", chunks, 30_000),
    Construct("arrays", datasets, 5_000),
    Construct("groups in groups", groups, 5_000),
)


def archived(network: dict[str, Any], weights: Callable[[Any, Any], None], method: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive of Keras 3."""
    members = {"config.json": json.dumps(network, separators=(",", ":")).encode(), "model.weights.h5": h5(weights)}
    return keras_files.archive(members, method)


def within(count: int) -> bytes:
    """Return a network within as many others."""
    inner: dict[str, Any] = ONE_LAYER
    for i in range(count):
        inner = {"class_name": "Sequential", "config": {"name": f"{i}", "layers": [inner]}}
    return archived(inner, lambda file, h5py: None)


def networks(count: int) -> bytes:
    """Return as many networks of a layer, one after the other."""
    rows = [{"class_name": "Sequential", "config": {"name": f"{i}", "layers": [ONE_LAYER]}} for i in range(count)]
    return archived({"class_name": "Sequential", "config": {"layers": rows}}, lambda file, h5py: None)


def zeros_in_archive(count: int) -> bytes:
    def fill(file: Any, h5py: Any) -> None:
        file["layers/dense/vars/0"] = np.zeros(count << 20, "u1")

    return archived(ONE_LAYER, fill, zipfile.ZIP_DEFLATED)


ONE_LAYER = {"class_name": "ReLU", "config": {"name": "r", "batch_shape": [None, 1]}}
KERAS_ARCHIVE = (
    Construct("networks within one another", within, 300),
    Construct("networks", networks),
    Construct("megabytes of zeros in an archive", zeros_in_archive, 256),
)

# -- TFLite -----------------------------------------------------------------------------------------------------------

FLOATS = Table({0: np.array([1], "i4"), 1: ("b", 0)})


def tflite(
    tensors: list, operators: list, codes: list, inputs: Any = (0,), outputs: Any = (0,), buffers: Any = ()
) -> bytes:
    graph = Table({0: tensors, 1: np.array(inputs, "i4"), 2: np.array(outputs, "i4"), 3: operators})
    return written(Table({0: ("I", 3), 1: codes, 2: [graph], 4: list(buffers)}))


def code(name: str) -> Table:
    number = NAMES.index(name)
    return Table({0: ("b", min(number, 127)), 3: ("i", number)})


def operator(operands: Any, results: Any, number: int = 0) -> Table:
    return Table({0: ("I", number), 1: np.array(operands, "i4"), 2: np.array(results, "i4")})


def shared_scales(tensors: int, scales: int) -> bytes:
    """Return tensors that are all the same one, with many scales, all of them inputs."""
    details = Table({2: np.ones(scales, "f4"), 3: np.arange(scales, dtype="i8") % 3})
    one = Table({0: np.array([scales], "i4"), 1: ("b", 3), 4: details})
    return tflite([one] * tensors, [], [], np.arange(tensors))


def chain(count: int) -> bytes:
    """Return operators one after another."""
    return tflite(
        [FLOATS] * (count + 1), [operator([i], [i + 1]) for i in range(count)], [code("ABS")], outputs=[count]
    )


def shared_operands(count: int) -> bytes:
    """Return operators that share one list of operands."""
    numbers = np.zeros(count, "i4")
    rows = [Table({0: ("I", 0), 1: numbers, 2: np.array([i + 1], "i4")}) for i in range(count)]
    return tflite([FLOATS] * (count + 1), rows, [code("ADD_N")])


def colliding_operands(count: int) -> bytes:
    """Return operands whose numbers collide in a dictionary."""
    numbers = probed(count)
    tensors, more = [FLOATS] * (max(numbers) + 2), numbers[-1]
    return tflite(tensors, [operator([*numbers, *[more] * count], [max(numbers) + 1])], [code("ADD_N")], numbers)


def colliding_codes(count: int) -> bytes:
    numbers = probed(count)
    rows = [operator([0], [0], n) for n in [*numbers, *[numbers[-1]] * count]]
    return tflite([FLOATS], rows, [code("ABS")] * (max(numbers) + 1))


def long_names(count: int) -> bytes:
    name = "n" * 1000
    one = [Table({0: np.array([1], "i4"), 3: name}) for _ in range(1)] * count
    return tflite(one, [], [], np.arange(count))


TFLITE = (
    Construct("tensors that share scales", lambda k: shared_scales(k, k)),
    Construct("operators", chain),
    Construct("operands of one operator", lambda k: tflite([FLOATS] * 2, [operator([0] * k, [1])], [code("ADD_N")])),
    Construct("operators that share operands", shared_operands),
    Construct("numbers of operands that collide", colliding_operands),
    Construct("numbers of codes that collide", colliding_codes),
    Construct("inputs", lambda k: tflite([FLOATS] * k, [], [], np.arange(k))),
    Construct("outputs", lambda k: tflite([FLOATS], [], [], [0], np.zeros(k))),
    Construct("tensors that nobody reads", lambda k: tflite([FLOATS] * k, [], [])),
    Construct("letters of shared names", long_names),
    Construct("buffers", lambda k: tflite([FLOATS], [], [], buffers=[Table({})] * k)),
)

# -- ONNX -------------------------------------------------------------------------------------------------------------


def onnx_file(
    nodes: list, inputs: Any = ("x",), outputs: Any = ("y",), constants: Any = (), functions: Any = ()
) -> bytes:
    from onnx import TensorProto, helper, numpy_helper

    def info(name: str) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, (2,))

    tensors = [numpy_helper.from_array(x, name) for name, x in constants]
    graph = helper.make_graph(nodes, "g", [info(n) for n in inputs], [info(n) for n in outputs], tensors)
    domains = [helper.make_opsetid("", 18), helper.make_opsetid("d", 1), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=domains, functions=list(functions)).SerializeToString()


def node(kind: str, operands: list[str], results: list[str], **options: Any) -> Any:
    from onnx import helper

    return helper.make_node(kind, operands, results, **options)


def doubling_functions(count: int) -> bytes:
    """Return functions that each call the next one twice."""
    from onnx import helper

    domains = [helper.make_opsetid("", 18), helper.make_opsetid("d", 1)]
    calls = [helper.make_function("d", "f0", ["a"], ["b"], [node("Relu", ["a"], ["b"])], domains)]
    for i in range(1, count + 1):
        body = [node(f"f{i - 1}", ["a"], ["m"], domain="d"), node(f"f{i - 1}", ["m"], ["b"], domain="d")]
        calls.append(helper.make_function("d", f"f{i}", ["a"], ["b"], body, domains))
    return onnx_file([node(f"f{count}", ["x"], ["y"], domain="d")], functions=calls)


def loop(count: int) -> bytes:
    """Return a loop of 1,000 iterations with a body of many nodes."""
    from onnx import TensorProto, helper

    info, flag, value = helper.make_tensor_value_info, TensorProto.BOOL, TensorProto.FLOAT
    inputs = [info("i", TensorProto.INT64, ()), info("c", flag, ()), info("v0", value, (2,))]
    body = [node("Identity", ["c"], ["d"]), *(node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(count))]
    graph = helper.make_graph(body, "b", inputs, [info("d", flag, ()), info(f"v{count}", value, (2,))])
    return onnx_file([node("Loop", ["n", "", "x"], ["y"], body=graph)], constants=[("n", np.array(1000))])


def sparse(count: int) -> bytes:
    """Return a sparse constant that is far larger than its stored elements."""
    from onnx import helper, numpy_helper

    values = numpy_helper.from_array(np.ones(1, "f4"), "v")
    tensor = helper.make_sparse_tensor(values, numpy_helper.from_array(np.zeros(1, "i8"), "i"), [count])
    return onnx_file([node("Constant", [], ["y"], sparse_value=tensor)])


def trees(numbers: list[int]) -> bytes:
    """Return a regression tree whose nodes have these numbers, in a chain."""
    n, last = len(numbers), numbers[-1]
    follow = [*numbers[1:], last]
    nodes = {
        "treeids": [0] * n, "nodeids": numbers, "featureids": [0] * n, "modes": [*["BRANCH_LEQ"] * (n - 1), "LEAF"],
        "values": [0.5] * n, "truenodeids": follow, "falsenodeids": follow,
    }  # fmt: skip
    options: dict[str, Any] = {f"nodes_{name}": values for name, values in nodes.items()}
    options |= {"target_treeids": [0], "target_nodeids": [last], "target_ids": [0], "target_weights": [1.0]}
    return onnx_file([node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, **options)])


def relus(count: int) -> list:
    """Return nodes in a chain, from `v0` on."""
    return [node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]


def constants(count: int) -> list[tuple[str, np.ndarray]]:
    return [(f"c{i}", np.zeros(1)) for i in range(count)]


ONNX = (
    Construct("nodes", lambda k: onnx_file([node("Relu", ["x"], [f"v{i}"]) for i in range(k)], outputs=["v0"])),
    Construct(
        "nodes in a chain",
        lambda k: onnx_file(relus(k), ["v0"], [f"v{k}"]),
    ),
    Construct("operands of one node", lambda k: onnx_file([node("Sum", ["x"] * k, ["y"])])),
    Construct(
        "constants",
        lambda k: onnx_file([node("Relu", ["x"], ["y"])], constants=constants(k)),
    ),
    Construct("attributes", lambda k: onnx_file([node("Relu", ["x"], ["y"], **{f"a{i}": 1 for i in range(k)})])),
    Construct("numbers of an attribute", lambda k: onnx_file([node("ReduceSum", ["x"], ["y"], axes=[1] * k)])),
    Construct("outputs", lambda k: onnx_file([node("Relu", ["x"], ["y"])], outputs=["y"] * k)),
    Construct("inputs", lambda k: onnx_file([node("Relu", ["x0"], ["y"])], [f"x{i}" for i in range(k)])),
    Construct("letters of a name", lambda k: onnx_file([node("Relu", ["x"], ["y"], name="n" * k)])),
    Construct("functions that call one another twice", doubling_functions, 4096),
    Construct("nodes of a loop's body", loop, 20_000),
    Construct("elements of a sparse constant", sparse, 1 << 36),
    Construct("nodes of a tree", lambda k: trees(list(range(k)))),
    Construct("numbers of a tree that collide", lambda k: trees(probed(k))),
)

# -- saved functions --------------------------------------------------------------------------------------------------


def saved(change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return a saved function with another manifest, with a matching checksum."""
    files = saved_functions.unpacked(saved_functions.samples()[0])
    entries = json.loads(files[MANIFEST])
    entries.pop("crc32")
    change(entries)
    files[MANIFEST] = with_sum(json.dumps(entries))
    return saved_functions.packed(files)


def more(name: str, value: Any) -> Callable[[int], bytes]:
    def write(count: int) -> bytes:
        return saved(lambda entries: entries[name].extend([value] * count))

    return write


SAVED = (
    Construct("variables", more("variables", ["x", "f4", [1], "", -1])),
    Construct("outputs", more("outputs", ["f4", [1]])),
    Construct("empty lists", more("cells", [])),
    Construct("files", lambda k: saved(lambda entries: entries["files"].update({f"{i}": [0, 0] for i in range(k)}))),
    Construct("letters", lambda k: saved(lambda entries: entries.update(more="\U0001f600" + "x" * k))),
)
