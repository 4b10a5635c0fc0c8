"""What readers answer to files that they refuse: the whole texts, for the tables of other tests, which look at a part.

``python -m tests.formats.recorded_refusals`` writes `recorded_refusals.txt` anew. Read its difference: each line that
changed is read by people, or another check refuses that file now.
"""

import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.errors import CgraphError
from cgraph.formats import darknet
from cgraph.formats.keras_config import network_of
from cgraph.formats.keras_graph import graph_of
from cgraph.formats.npz import read_npz
from cgraph.formats.safetensors import read_safetensors
from cgraph.formats.tflite import load
from cgraph.formats.torch_file import read_torch
from tests.formats import (
    test_darknet,
    test_darknet_heads,
    test_darknet_refusals,
    test_keras_config,
    test_keras_layers,
    test_npz,
    test_plain_pickle,
    test_safetensors,
    test_tflite_attacks,
    test_tflite_bytes,
    test_tflite_refusals,
    test_tflite_source,
    test_torch_file,
)
from tests.formats.tflite import test_control, test_operators_shape
from tests.support.recorded_texts import write_sections
from tests.support.tflite_byte_cases import Quantised
from tests.support.tflite_models import Network

RECORD = Path(__file__).with_name("recorded_refusals.txt")
OTHERS = re.compile(r"(is not JSON: |malformed pickle: ).*")
"""Texts of Python, which change with its versions."""

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


TABLES: dict[str, Callable[[], Rows]] = {
    "tflite": lambda: calls(test_tflite_refusals.REFUSED, of_network),
    "tflite attacks": lambda: calls(test_tflite_attacks.REFUSED, load),
    "tflite tensors": lambda: calls(test_tflite_source.REFUSED, lambda act: test_tflite_source.opened(act).tensor(0)),
    "tflite shapes": lambda: calls(test_operators_shape.REFUSED, lambda act: act()),
    "tflite graphs": lambda: calls(test_control.REFUSED, lambda *graphs: load(test_control.loop(*graphs))),
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
    "keras networks": lambda: calls(test_keras_config.REFUSED, network_of),
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
