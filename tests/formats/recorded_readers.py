"""Graphs that readers make of the files of other tests: how many nodes of each op, and what reading was charged.

``python -m tests.formats.recorded_readers`` writes `recorded_readers.txt` anew. Read its difference: a node more is an
optimisation less, and a number less is something that a file of its size could describe without limit.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cgraph.formats import darknet, plain_pickle, tflite
from cgraph.formats.allowance import Allowance
from cgraph.formats.darknet import config
from cgraph.formats.keras_graph import graph_of
from cgraph.formats.keras_h5 import KerasFile, read_keras
from cgraph.formats.npz import read_npy, read_npz
from cgraph.formats.safetensors import read_safetensors
from cgraph.formats.torch_file import read_torch
from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order
from tests.formats import (
    test_darknet_heads,
    test_darknet_layers,
    test_keras_attention,
    test_keras_layers,
    test_keras_masks,
    test_keras_sequences,
    test_npz,
    test_safetensors,
    test_torch_file,
)
from tests.support import keras_networks, tflite_byte_cases, tflite_cases
from tests.support.recorded_texts import write_sections

RECORD = Path(__file__).with_name("recorded_readers.txt")
Outputs = Sequence[Node]


def tflite_outputs(cases: Any, name: str) -> Outputs:
    net, outputs, _ = cases.model_of(name)
    model = tflite.load(net.bytes(*outputs))
    return [*model.outputs, *model.updates.values()]


def keras_outputs(name: str) -> Outputs:
    options, weights, _ = test_keras_layers.LAYERS[name]
    return graph_of(test_keras_layers.network(name.split()[0], options, weights), {"batch": 3}).outputs


def keras_sequences() -> Iterator[tuple[str, Callable[[], Outputs]]]:
    """Yield layers of sequences, and a mean that reads the mask behind them."""
    of, masks = keras_networks, test_keras_masks
    heads = of.heads(of.C, of.C, of.C, of.C)
    for kind in (*masks.KEEP, *masks.LOSE):
        count = 1 + (kind in ("Average", "Maximum", "Minimum", "Multiply", "Subtract"))
        options = {**masks.KEEP, **masks.LOSE}[kind]
        yield kind, partial(masked_outputs, kind, "ef"[:count], options, masks.ARRAYS.get(kind, {}))
    for kind in ("MultiHeadAttention", "Attention", "AdditiveAttention"):
        for reads in ("eg", "ge", "gg", "ef"):
            yield f"{kind} of {reads}", partial(masked_outputs, kind, reads, test_keras_attention.SIDES[kind], heads)
    for kind in of.GATES:
        for options in test_keras_sequences.OPTIONS:
            arrays = of.stored(of.arrays(kind, options), "cell")
            yield f"{kind} {options}", partial(masked_outputs, kind, "e", of.PLAIN | options, arrays)
    for name in ("of joined steps", "of joined features", "of joined steps without one"):
        yield name, partial(built, of.masked_rows(masks.MASKS[name][0]), of.WEIGHTS)


def nested() -> Iterator[tuple[str, Callable[[], Outputs]]]:
    """Yield layers around layers, and networks in networks, of which some are used twice."""
    of = keras_networks
    start, relu = of.start("x", (of.T, of.C)), {"class_name": "ReLU", "config": {"name": "r"}}
    gru = {"class_name": "GRU", "config": of.PLAIN | {"name": "g"}}
    both = of.stored(of.arrays("GRU"), "b/forward_g/cell") | of.stored(of.arrays("GRU"), "b/backward_g/cell")
    first = {"class_name": "InputLayer", "config": {"name": "i", "batch_shape": [None, of.T, of.C]}}
    for depth in (1, 2):
        inner: dict[str, Any] = {"class_name": "Sequential", "config": {"name": "n", "layers": [first, relu]}}
        if depth == 2:
            inner = {"class_name": "Sequential", "config": {"name": "m", "layers": [first, inner, relu]}}
        inner |= {"name": "n", "inbound_nodes": [[["x", 0, 0]], [["n", 0, 0]]]}
        sums = of.layer("Add", "s", [["n", 0, 0], ["n", 1, 0]])
        yield f"a network in {depth}, twice", partial(built, [start, inner, sums], {})
    yield "each step", partial(built, [start, of.layer("TimeDistributed", "t", ["x"], {"layer": relu})], {})
    yield "both ways", partial(built, [start, of.layer("Bidirectional", "b", ["x"], {"layer": gru})], {"b": both})


def masked_outputs(kind: str, reads: str, options: dict[str, Any], weights: dict[str, Any]) -> Outputs:
    of = keras_networks
    rows = of.masked_rows(of.layer(kind, "m", reads, options))
    if options.get("return_sequences", True):
        rows.append(of.layer("GlobalAveragePooling1D", "a", "m"))
    return built(rows, of.WEIGHTS | {"m": weights})


def built(rows: list[dict[str, Any]], weights: dict[str, Any]) -> Outputs:
    """The last layer of some rows."""
    arrays = {name: {f"{name}/{path}": x for path, x in some.items()} for name, some in weights.items()}
    inputs = [[row["name"], 0, 0] for row in rows if row["class_name"] == "InputLayer"]
    whole = {"layers": rows, "input_layers": inputs, "output_layers": [[rows[-1]["name"], 0, 0]]}
    return graph_of(KerasFile({"class_name": "Functional", "config": whole}, arrays), {"batch": 3}).outputs


STEPS = {"padding": "same", "strides": 2}
WINDOWS: dict[str, tuple[dict[str, Any], dict[str, tuple[int, ...]]]] = {
    "Conv2D": ({"kernel_size": 3, **STEPS}, {"kernel": (3, 3, 2, 5), "bias": (5,)}),
    "Conv2DTranspose": ({"kernel_size": 3, **STEPS}, {"kernel": (3, 3, 5, 2), "bias": (5,)}),
    "DepthwiseConv2D": ({"kernel_size": 3, **STEPS}, {"kernel": (3, 3, 2, 3)}),
    "SeparableConv2D": (
        {"kernel_size": 3, **STEPS}, {"depthwise_kernel": (3, 3, 2, 3), "pointwise_kernel": (1, 1, 6, 4)},
    ),
    "Dense": ({}, {"kernel": (2, 5), "bias": (5,)}),
    "Resizing": ({"height": 3, "width": 5}, {}),
}  # fmt: skip


def window_outputs(kind: str) -> Outputs:
    options, shapes = WINDOWS[kind]
    weights = {name: np.ones(shape, "f4") for name, shape in shapes.items()}
    return graph_of(test_keras_layers.network(kind, options, weights), {"batch": 3}).outputs


def darknet_outputs(text: str, read: Callable[..., Any] = darknet.load) -> Outputs:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "net.cfg")
        path.write_text(text)
        return read(path, seed=0).outputs


def file_outputs(read: Callable[[Path], Any], write: Callable[[Path], Any]) -> Outputs:
    """None: a file of arrays, of which the charges alone are recorded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file.npz")
        made = write(path)
        if isinstance(made, bytes):
            path.write_bytes(made)
        read(path)
    return []


def hdf5(path: Path, **options: Any) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", **{x: options.pop(x) for x in ("userblock_size",) if x in options}) as file:
        file.attrs["model_config"] = '{"class_name": "é", "list": [1, {"a": 2}]}'
        file.create_dataset("model_weights/a/a/kernel:0", data=np.ones((30, 40), "f4"), **options)
        file.create_dataset("model_weights/a/a/bias:0", data=np.ones(7, ">i2"))


TENSORS = test_torch_file.tree(a=test_torch_file.tensor(), b=test_torch_file.tensor("1", 2, 1, (1,), (1,), "Long"))
STORED = {"0": test_torch_file.SIX, "1": np.array([5, 7])}
ARRAYS = {"a": np.ones((30, 40), "f4"), "b": np.ones(3, "i1"), "c": np.ones(500)}
SAFE = test_safetensors
FILES: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "torch, old": (read_torch, lambda path: test_torch_file.legacy(TENSORS, STORED)),
    "torch, zipped": (read_torch, lambda path: test_torch_file.zipped(TENSORS, STORED)),
    "npz": (read_npz, lambda path: np.savez(path, **ARRAYS)),
    "npz, packed": (read_npz, lambda path: np.savez_compressed(path, **ARRAYS)),
    "npz, packed, with a limit": (
        lambda path: read_npz(path, "1MiB"), lambda path: np.savez_compressed(path, **ARRAYS),
    ),
    "npy, unaligned": (
        read_npy,
        lambda path: test_npz.npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", bytes(24)),
    ),
    "safetensors": (
        read_safetensors,
        lambda path: SAFE.packed({"a": SAFE.entry("BF16", (4,)), "é": SAFE.entry("U8", (3,), (8, 11))}, bytes(11)),
    ),
    "hdf5": (read_keras, hdf5),
    "hdf5 behind other bytes": (read_keras, partial(hdf5, userblock_size=512)),
    "hdf5 in chunks": (read_keras, partial(hdf5, chunks=(7, 11), compression="gzip", shuffle=True)),
}  # fmt: skip

READERS: dict[str, Callable[[], Outputs]] = {
    **{f"tflite: {x}": partial(tflite_outputs, tflite_cases, x) for x in tflite_cases.CASES},
    **{f"tflite of bytes: {x}": partial(tflite_outputs, tflite_byte_cases, x) for x in tflite_byte_cases.CASES},
    **{f"keras: {x}": partial(keras_outputs, x) for x in test_keras_layers.LAYERS},
    **{f"files: {name}": partial(file_outputs, *pair) for name, pair in FILES.items()},
    **{f"keras: {x}": partial(window_outputs, x) for x in WINDOWS},
    **{f"keras sequences: {name}": read for name, read in (*keras_sequences(), *nested())},
    **{
        f"darknet: {name}": partial(darknet_outputs, test_darknet_layers.NET + row.text)
        for name, row in test_darknet_layers.ROWS.items()
    },
    **{
        f"darknet: {name}, decoded": partial(darknet_outputs, f"[net]\n{text}", darknet.load_detector)
        for name, (text, _) in test_darknet_heads.HEADS.items()
    },
}  # fmt: skip


@contextmanager
def charged() -> Iterator[Counter]:
    """Count what is compared with an allowance, by its unit, and how often."""
    costs: Counter = Counter()
    check = Allowance.check

    def note(self: Allowance, what: str, cost: float, left: int, unit: str) -> None:
        if cost:
            costs[unit] += cost
            costs["charges"] += 1
        check(self, what, cost, left, unit)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Allowance, "check", note)
        patched.setattr(config, "getsizeof", len)  # which is another number in another version of Python
        patched.setattr(plain_pickle, "sys", SimpleNamespace(getsizeof=lambda x: len(str(x))))
        yield costs


def line_of(name: str) -> str:
    with charged() as costs:
        outputs = READERS[name]()
    ops = Counter(x.op.name for x in post_order(outputs))
    return "\n".join(", ".join(f"{n:.15g} {what}" for what, n in sorted(x.items())) for x in (ops, costs))


if __name__ == "__main__":
    write_sections(RECORD, {name: line_of(name) for name in READERS})
