"""What readers answer to files that they refuse: the whole texts, for the tables of other tests, which look at a part.

``python -m tests.formats.recorded_refusals`` writes `recorded_refusals.txt` anew. Read its difference: each line that
changed is read by people, or another check refuses that file now.
"""

import pickle
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.errors import CgraphError
from cgraph.formats import darknet
from cgraph.formats.allowance import Allowance
from cgraph.formats.darknet.parameters import FreeParameters, RandomParameters, StoredParameters
from cgraph.formats.deep_compression import read_deep_compression
from cgraph.formats.json_rows import json_rows
from cgraph.formats.keras_config import network_of
from cgraph.formats.keras_graph import graph_of, load_keras
from cgraph.formats.keras_h5 import read_keras
from cgraph.formats.load import ELSEWHERE, kind_of
from cgraph.formats.npz import read_npy, read_npz
from cgraph.formats.safetensors import read_safetensors
from cgraph.formats.tflite import load
from cgraph.formats.torch_file import read_torch
from cgraph.ir.spec import Spec
from cgraph.quantiser import Choices
from cgraph.saved import manifest
from cgraph.storage.cell import fitting_array, reader_of
from cgraph.storage.row_streams import RowSource
from cgraph.storage.weight_file import StreamedWeights, check_weights
from tests.formats import (
    test_darknet,
    test_darknet_heads,
    test_darknet_refusals,
    test_keras_archive,
    test_keras_config,
    test_keras_h5,
    test_keras_layers,
    test_keras_refusals,
    test_model,
    test_npz,
    test_plain_pickle,
    test_safetensors,
    test_tflite_attacks,
    test_tflite_bytes,
    test_tflite_refusals,
    test_tflite_source,
    test_torch_file,
)
from tests.formats.tflite import (
    test_control,
    test_custom,
    test_operators_recurrent,
    test_operators_shape,
    test_sparse,
    test_variables,
)
from tests.saved import test_parts, test_texts
from tests.storage import test_row_streams
from tests.support.recorded_texts import write_sections
from tests.support.tflite_byte_cases import Quantised
from tests.support.tflite_models import Network

RECORD = Path(__file__).with_name("recorded_refusals.txt")
OTHERS = re.compile(r"(is not JSON: |malformed pickle: |not a readable HDF5 file: |that is damaged: Error ).*")
"""Texts of Python and of libraries, which change with their versions."""

Read = Callable[[Path], Any]
Rows = Iterator[tuple[str, Read]]


def files(table: dict[str, Any], write: Callable[[Path, Any], Any], read: Read) -> Rows:
    """Rows of a table whose first column, or only one, is what a file holds."""
    for name, row in table.items():
        content = row[0] if isinstance(row, tuple) else row
        yield name, lambda path, content=content: (write(path, content), read(path))


def calls(table: dict[str, Any], call: Callable[..., Any]) -> Rows:
    """Rows of a table whose columns, or only one, are what is called with; the last of several is a message."""
    for name, row in table.items():
        columns = row[:-1] if isinstance(row, tuple) else (row,)
        yield name, lambda path, columns=columns: call(*columns)


def of_network(build: Callable[[Any], Any], kind: Callable[[], Any] = Network) -> Any:
    net = kind()
    return load(net.bytes(build(net)))


def of_bytes(build: Callable[[Any], Any]) -> Any:
    return of_network(build, lambda: Quantised("int8", np.random.default_rng(6)))


def torch_files() -> Rows:
    tensors = {str(i): row for i, row in enumerate(test_torch_file.SIZES)} | test_torch_file.NOT_TENSORS
    for layout in (test_torch_file.legacy, test_torch_file.zipped):
        raw = {
            name: layout(test_torch_file.tree(a=row[0]), {"0": test_torch_file.SIX}) for name, row in tensors.items()
        }
        for name, read in files(raw, Path.write_bytes, read_torch):
            yield f"{layout.__name__} {name}", read


CONTENTS: dict[str, tuple[bytes, Read]] = {
    "an empty model": (b"", kind_of),
    "a pointer": (b"version https://git-lfs.github.com/spec/v1", kind_of),
    "a page": (b" <!DOCTYPE html>", kind_of),
    "no model": (b"whatever", kind_of),
    "a number of entries without an end": (bytes(3), lambda path: read_deep_compression(path, [(1, 1, 2, 3)])),
    "a layer without its bias": (bytes(4 + 1024), lambda path: read_deep_compression(path, [(1, 1, 2, 3)])),
    "a layer too many": (bytes(4 + 1024 + 4 + 9), lambda path: read_deep_compression(path, [(1, 1, 2, 3)])),
    "half a header": (bytes(15), lambda path: StoredParameters(path, Allowance(0))),
    "a part of a number": (bytes(19), lambda path: StoredParameters(path, Allowance(0))),
    "too few weights": (bytes(20), lambda path: StoredParameters(path, Allowance(0)).take((1, 2), "w", None)),
    "too many weights": (bytes(24), lambda path: StoredParameters(path, Allowance(0)).finish()),
    "no archive": (b"PK\x03\x04 and more", read_npz),
    "no torch file": (pickle.dumps(5, 2), read_torch),
    "another protocol": (b"".join(pickle.dumps(x, 2) for x in (test_torch_file.MAGIC, 7, {})), read_torch),
    "no array": (b"whatever this is", read_npy),
    "rows twice": (b'{"a": [], "a": []}', lambda path: [*json_rows(path)]),
    "no weight file": (bytes(40), check_weights),
}
IMAGE, PAIR = Spec((1, 2, 3, 4), np.dtype("float32")), Spec((2,), np.dtype("float32"))


def rows_in(*heights: int) -> Any:
    """An image of seven rows in bands of four and three, of rows that come in parts of these heights."""
    parts = [np.zeros((2, 3, n, 5), "f4") for n in heights]
    return test_row_streams.read(RowSource(iter(parts), test_row_streams.SPEC, "x"), [4, 3])


CALLS: dict[str, Callable[[], Any]] = {
    "no state": lambda: test_model.summing().with_state({"none": "sum"}),
    "no result": lambda: test_model.summing().with_state({"total": "none"}),
    "another dtype": lambda: fitting_array(np.zeros(2, "i8"), PAIR, "x"),
    "another shape": lambda: fitting_array(np.zeros((1, 2), "f4"), PAIR, "x"),
    "another dtype and shape": lambda: fitting_array(np.zeros((3, 0), "f2"), PAIR, "x"),
    "the very dtype": lambda: fitting_array(np.zeros(2), PAIR, "x", exact=True),
    "a number too large": lambda: fitting_array(np.array([1, -1e39]), PAIR, "x"),
    "no numbers": lambda: fitting_array(np.array(["a", "b"]), PAIR, "x"),
    "a fraction": lambda: fitting_array([1, 0.5], Spec((2,), np.dtype("int16")), "x"),
    "another library": lambda: reader_of("tensorflow"),
    "no rows": lambda: RowSource(3.0, IMAGE, "x"),
    "rows of another width": lambda: RowSource([np.zeros((1, 2, 5), "f4")], IMAGE, "x")(np.zeros((1, 2, 3, 4), "f4")),
    "a list of rows": lambda: RowSource([[1.0]], IMAGE, "x")(np.zeros((1, 2, 3, 4), "f4")),
    "too few rows": lambda: rows_in(3, 2),
    "too many rows": lambda: rows_in(3, 4, 1),
    "a ring of nothing": lambda: StreamedWeights("w", ring=0),
    "a slice of nothing": lambda: StreamedWeights("w", slice="0B"),
    "a size of words": lambda: StreamedWeights("w", slice="many"),
    "another method": lambda: Choices(method="best"),
    "another image": lambda: Choices(images="int16"),
    "another share": lambda: Choices(agreement=1.01),
    "an entry of another type": lambda: manifest.get({"a": True}, "a", int),
    "items of another number": lambda: manifest.items([1, 2], 3),
    "a number twice": lambda: manifest.numbers({"a": [1, 1]}, "a", 3),
    "no integer": lambda: manifest.integers([1, 2.0], 2),
    "a negative length": lambda: manifest.spec_of("f4", [-1]),
    "a parameter of terabytes": lambda: FreeParameters().take((1 << 39,), "w", None),
    "a drawn parameter": lambda: RandomParameters(0, 1023).take((16, 16), "w", None),
    "bytes": lambda: Allowance(1 << 10).spend("this", nbytes=(64 << 20) + 2049),
    "work": lambda: Allowance(1 << 10).spend("this", work=(1 << 28) + (64 << 10) + 1),
    "nodes": lambda: Allowance(1 << 10).spend("this", nodes=50_005),
}


def hdf5_files(fills: dict[str, Callable[[Any], Any]]) -> Rows:
    """Files whose group of arrays a function fills."""
    for name, fill in fills.items():
        yield name, lambda path, fill=fill: read_keras(test_keras_h5.weights_file(path.parent, fill))


def elsewhere() -> Rows:
    """Files that another function reads."""
    for suffix in ELSEWHERE:
        yield suffix, lambda path, suffix=suffix: kind_of(write(path.with_suffix(suffix), b"whatever"))


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


TABLES: dict[str, Callable[[], Rows]] = {
    "contents": lambda: ((name, lambda path, row=row: row[1](write(path, row[0]))) for name, row in CONTENTS.items()),
    "calls": lambda: calls(CALLS, lambda call: call()),
    "elsewhere": elsewhere,
    "tflite": lambda: calls(test_tflite_refusals.REFUSED, of_network),
    "tflite attacks": lambda: calls(test_tflite_attacks.REFUSED, load),
    "tflite tensors": lambda: calls(test_tflite_source.REFUSED, lambda act: test_tflite_source.opened(act).tensor(0)),
    "tflite shapes": lambda: calls(test_operators_shape.REFUSED, lambda act: act()),
    "tflite graphs": lambda: calls(test_control.REFUSED, lambda *graphs: load(test_control.loop(*graphs))),
    "tflite custom operators": lambda: calls(test_custom.REFUSED, of_network),
    "tflite sparse levels": lambda: calls(test_sparse.LEVELS, lambda change: load(test_sparse.changed(change))),
    "tflite variables": lambda: calls({x.__name__: x for x in test_variables.REFUSED}, of_network),
    "tflite LSTMs": lambda: calls(test_operators_recurrent.LSTMS, of_network),
    "tflite LSTMs of bytes": lambda: calls(test_operators_recurrent.BYTES, of_bytes),
    "tflite bytes": lambda: calls(test_tflite_bytes.REFUSED, of_bytes),
    "safetensors": lambda: files(test_safetensors.ATTACKS, Path.write_bytes, read_safetensors),
    "npz": lambda: files(test_npz.MEMBERS, test_npz.archive, read_npz),
    "torch": torch_files,
    "pickle": lambda: calls(test_plain_pickle.REFUSED, test_plain_pickle.plain),
    "darknet": lambda: files(test_darknet.MALFORMED, Path.write_text, darknet.load),
    "darknet layers": lambda: files(
        test_darknet_refusals.REFUSED, lambda path, x: path.write_text(test_darknet_refusals.NET + x), darknet.load
    ),
    "darknet boxes": lambda: files(test_darknet_heads.WRONG, Path.write_text, darknet.load_detector),
    "keras layers": lambda: calls(test_keras_layers.REFUSED, lambda file: graph_of(file, {"batch": 1})),
    "keras sequences": lambda: calls(test_keras_refusals.REFUSED, test_keras_refusals.run_with_any_arrays),
    "keras sequences, each condition": lambda: calls(
        test_keras_refusals.MORE_REFUSED, test_keras_refusals.graph_of_rows
    ),
    "keras networks": lambda: calls(test_keras_config.REFUSED, network_of),
    "keras archives": lambda: files(test_keras_archive.CASES, test_keras_archive.archive, load_keras),
    "hdf5": lambda: hdf5_files({fill.__name__: fill for fill in test_keras_h5.NOT_ARRAYS}),
    "hdf5 chunks": lambda: hdf5_files(
        {name: test_keras_h5.written_chunk(*row[:2]) for name, row in test_keras_h5.CHUNKS.items()}
    ),
    "texts of saved functions": lambda: calls(test_texts.DAMAGED, test_texts.read),
    "images of saved functions": lambda: calls(test_parts.OUTSIDE, lambda row: test_parts.image_of(**row)),
}


def answers(table: str, folder: Path) -> str:
    """The lines of a table: the name of each row, and the error that it raises."""
    lines = []
    for name, read in TABLES[table]():
        try:
            read(folder / "file")
            text = "is read"
        except CgraphError as error:
            text = f"{type(error).__name__}: {error}".replace(str(folder), "FOLDER")
        lines.append(f"{name} -- " + OTHERS.sub(r"\1…", text))
    return "\n".join(lines)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        write_sections(RECORD, {table: answers(table, Path(place)) for table in TABLES})
