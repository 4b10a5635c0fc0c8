"""Keras files: networks of every kind of layer, with their descriptions changed as JSON and their HDF5 as bytes."""

import io
import json
import tempfile
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np

from benchmarks.fuzz.mutate import TEXTS, changed_json, mutated, number

MOVES: dict[str, Any] = {"padding": "same", "strides": [1, 1], "data_format": "channels_last"}
ONES, ZEROS = np.ones(4, "f4"), np.zeros(4, "f4")
DENSE = [{"class_name": "Dense", "config": {"name": "d", "activation": "relu"}}]
Layer = tuple[str, dict[str, Any], dict[str, np.ndarray]]
LAYERS: list[Layer] = [
    ("ZeroPadding2D", {"padding": [[1, 0], [0, 1]]}, {}),
    (
        "Conv2D",
        {**MOVES, "kernel_size": [3, 3], "activation": "relu"},
        {"kernel": np.ones((3, 3, 2, 4), "f4"), "bias": ZEROS},
    ),
    ("DepthwiseConv2D", {**MOVES, "kernel_size": [3, 3]}, {"depthwise_kernel": np.ones((3, 3, 4, 1), "f4")}),
    ("BatchNormalization", {"epsilon": 0.001}, {"moving_mean": ZEROS, "moving_variance": ONES}),
    ("MaxPooling2D", {**MOVES, "pool_size": [2, 2], "strides": [2, 2]}, {}),
    ("AveragePooling2D", {**MOVES, "pool_size": [2, 2]}, {}),
    ("ReLU", {"max_value": 6.0}, {}),
    ("Flatten", {}, {}),
    ("Reshape", {"target_shape": [3, 3, 4]}, {}),
    ("GlobalAveragePooling2D", {}, {}),
    ("Dropout", {}, {}),
    ("Dense", {"activation": "softmax"}, {"kernel": np.ones((4, 3), "f4"), "bias": np.zeros(3, "f4")}),
]


@cache
def samples() -> Sequence[bytes]:
    """Return one network in three kinds of HDF5: plain, compressed, and written by the newest format."""
    return [
        written(description(), {}),
        written(description(), {"compression": "gzip", "chunks": True}),
        written(description(), {}, libver="latest"),
        written(description(), {}, userblock_size=512),
    ]


def description() -> dict[str, Any]:
    shape = {"batch_input_shape": [None, 5, 5, 2]}
    layers: list[Any] = [{"class_name": "InputLayer", "name": "in", "config": shape, "inbound_nodes": []}]
    before = "in"
    for i, (kind, config, _) in enumerate(LAYERS):
        name = f"l{i}"
        layers.append({"class_name": kind, "name": name, "config": config, "inbound_nodes": [[[before, 0, 0, {}]]]})
        before = name
    two = [["l6", 0, 0, {}], ["l5", 0, 0, {}]]
    for kind, own in (("Add", {}), ("Concatenate", {"axis": -1})):
        layers.append({"class_name": kind, "name": kind, "config": own, "inbound_nodes": [two]})
    config = {"layers": layers, "input_layers": [["in", 0, 0]], "output_layers": [[before, 0, 0], ["Add", 0, 0]]}
    return {"class_name": "Functional", "config": config}


def written(described: Any, options: dict[str, Any], change: Any = None, **file_options: Any) -> bytes:
    """Return a file with this description; `change` may modify its root."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.h5"
        with h5py.File(path, "w", **file_options) as file:
            file.attrs["model_config"] = stored(described if isinstance(described, str) else json.dumps(described))
            root = file.create_group("model_weights")
            for i, (_, _, weights) in enumerate(LAYERS):
                for name, x in weights.items():
                    root.create_dataset(f"l{i}/l{i}/{name}:0", data=x, **(options if x.ndim else {}))
            if change is not None:
                change(file, root)
        return path.read_bytes()


def stored(text: str) -> str | np.bytes_:
    """Return text as h5py writes it: of any length if possible, else of a fixed one."""
    raw = text.encode("utf-8", "surrogatepass")
    return np.bytes_(raw) if b"\0" in raw or raw.decode("utf-8", "replace") != text else text


@cache
def archives() -> Sequence[bytes]:
    """Return the archives of one network, stored and compressed."""
    return [archive(archived(), method) for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)]


def archived() -> dict[str, bytes]:
    """Return the members of an archive: the network is one layer of a sequential one, after a layer of its kind."""
    shape = {"class_name": "InputLayer", "config": {"name": "in", "batch_shape": [None, 2]}}
    inner = {"class_name": "Sequential", "config": {"name": "inner", "layers": [shape, *DENSE]}}
    outer = {"class_name": "Sequential", "config": {"name": "outer", "layers": [shape, *DENSE, inner]}}
    out = io.BytesIO()
    with h5py.File(out, "w") as file:
        for group in ("layers", "layers/sequential/layers"):
            file[f"{group}/dense/vars/0"], file[f"{group}/dense/vars/1"] = np.ones((2, 2), "f4"), np.ones(2, "f4")
    return {"config.json": json.dumps(outer).encode(), "model.weights.h5": out.getvalue()}


def archive(members: dict[str, bytes], method: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, contents in members.items():
            file.writestr(name, contents)
    return out.getvalue()


def change_archive(whole: bytes, rng: Random, samples: Sequence[bytes]) -> bytes:
    """Change the bytes of the archive, or its description, or its weights."""
    members, kind = archived(), rng.random()
    if kind < 0.3:
        return mutated(whole, rng)
    if kind < 0.65:
        config = json.loads(members["config.json"])
        for _ in range(rng.randint(1, 3)):
            config = changed_json(config, rng)
        members["config.json"] = json.dumps(config).encode("utf-8", "surrogatepass")
    else:
        members["model.weights.h5"] = mutated(members["model.weights.h5"], rng)
    return archive(members, rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))


def change(whole: bytes, rng: Random, samples: Sequence[bytes]) -> bytes:
    """Change the bytes, since building a new file takes longer; sometimes the description or the structure."""
    kind = rng.random()
    if kind < 0.7:
        return mutated(whole, rng)
    if kind < 0.9:
        described = description()
        for _ in range(rng.randint(1, 3)):
            described = changed_json(described, rng)
        return written(described, {})
    return written(description(), {}, lambda file, root: restructured(file, root, rng))


def restructured(file: Any, root: Any, rng: Random) -> None:
    """Return the file with links, kinds of arrays and sizes that Keras never writes."""
    name = f"l1/l1/{rng.choice(['kernel:0', 'more:0'])}"
    if name in root:
        del root[name]
    shape = tuple(rng.choice([0, 1, 3, 2**20, 2**31]) for _ in range(rng.randint(0, 3)))
    kind = rng.randrange(9)
    if kind == 0:
        root[name] = h5py.SoftLink(rng.choice(["/", "/model_weights", "/nowhere"]))
    elif kind == 1:
        root[name] = h5py.ExternalLink("other.h5", "/x")
    elif kind == 2:
        root[name] = root
    elif kind == 3 and shape and all(shape):
        root.create_dataset(name, shape, "f4", chunks=tuple(min(n, 64) for n in shape))
    elif kind == 4:
        root.create_dataset(name, (4,), "f4", external=[("other.bin", 0, 16)])
    elif kind == 5:
        codes = ["f2", ">f4", "f8", "i8", "?", "c8", "S5", "V3", h5py.string_dtype(), h5py.ref_dtype]
        root.create_dataset(name, (3,), rng.choice(codes))
    elif kind == 6:
        data = np.zeros(rng.choice([10, 10**5, 10**7]), "f4")
        root.create_dataset(name, data=data, compression="gzip")
    elif kind == 7:
        del file.attrs["model_config"]
        file.attrs["model_config"] = rng.choice([np.zeros(9), np.bytes_(b"{}"), "[" * 5000, number(rng) % 2**62])
    else:
        group = root
        for _ in range(rng.choice([5, 40])):
            group = group.create_group(rng.choice(["a", "b" * 300, *[t for t in TEXTS if t.isalnum()]]))
