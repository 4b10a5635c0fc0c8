"""Keras networks in HDF5 files: their description and weights, without running anything that is in them.

HDF5 can point elsewhere: soft and external links, datasets kept in other files, virtual datasets. All of that is
refused, and so is a dataset that declares more than the file could hold. Needs h5py (extra `h5`).

Source: the layout of Keras' ``model.save``; CVE-2026-1669 for links and declared sizes, CVE-2025-9905 for Lambda.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.errors import FormatError, bytes_text
from cgraph.record import Record

MOST_NBYTES = 4 << 30
MOST_RATIO = 1000
MOST_DEPTH = 32
MOST_OBJECTS = 100_000


class KerasFile(Record):
    """What a file holds.

    Fields
        config: the network's description, as Keras wrote it; empty when there are only weights
        weights: of each layer, arrays by their names: ``weights["conv2d"]["kernel"]``
    """

    config: dict[str, Any]
    weights: dict[str, dict[str, np.ndarray]]


def read_keras(path: str | Path) -> KerasFile:
    """Description and weights of a Keras ``.h5`` file.

    Raises
        FormatError: no HDF5 file, or it links elsewhere, or declares more bytes than it could hold
        ImportError: h5py is not installed
    """
    import h5py

    path = Path(path)
    try:
        size = path.stat().st_size
        with h5py.File(path, "r") as file:
            config = described(file)
            root = file["model_weights"] if kind_of(file, "model_weights", h5py) else file
            return KerasFile(config, layers_of(root, size, h5py))
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
    except (OSError, KeyError, ValueError, RuntimeError, TypeError) as error:
        raise FormatError(f"{path}: no readable Keras file: {error}") from error


def described(file: Any) -> dict[str, Any]:
    """The JSON text of the attribute ``model_config``."""
    text = file.attrs.get("model_config")
    if text is None:
        return {}
    found = json.loads(text if isinstance(text, str) else bytes(text).decode())
    if not isinstance(found, dict):
        raise FormatError("model_config is no JSON object")
    return found


def kind_of(group: Any, name: str, h5py: Any) -> Any:
    """The class of what a hard link leads to, None when there is none. FormatError for any other link."""
    link = group.get(name, getlink=True)
    if link is None:
        return None
    if not isinstance(link, h5py.HardLink):
        raise FormatError(f"{name!r} is a {type(link).__name__}, which may lead anywhere; only plain contents are read")
    return group.get(name, getclass=True)


def layers_of(root: Any, size: int, h5py: Any) -> dict[str, dict[str, np.ndarray]]:
    """Arrays of every layer by their last name, without Keras' ``:0``."""
    found: dict[str, dict[str, np.ndarray]] = {}
    total = 0
    for path, dataset in datasets(root, h5py):
        total += checked_nbytes(path, dataset, size)
        if total > MOST_NBYTES:
            raise FormatError(f"its weights take more than {bytes_text(MOST_NBYTES)}")
        layer, _, name = path.partition("/")
        short = name.rpartition("/")[2].partition(":")[0]
        if short in found.setdefault(layer, {}):
            short = name.partition(":")[0]
        found[layer][short] = dataset[()]
    return found


def datasets(root: Any, h5py: Any) -> Iterator[tuple[str, Any]]:
    """Every dataset below a group with its path; each group is entered once."""
    waiting = [("", root, 0)]
    entered = set()
    count = 0
    while waiting:
        path, group, depth = waiting.pop()
        address = h5py.h5o.get_info(group.id).addr
        if address in entered or depth > MOST_DEPTH:
            raise FormatError(f"group {path!r} contains itself, or lies too deep")
        entered.add(address)
        for name in group:
            count += 1
            if count > MOST_OBJECTS:
                raise FormatError(f"it has more than {MOST_OBJECTS} objects")
            kind = kind_of(group, name, h5py)
            if kind is h5py.Dataset:
                yield path + name, group[name]
            elif kind is h5py.Group:
                waiting.append((f"{path}{name}/", group[name], depth + 1))


def checked_nbytes(path: str, dataset: Any, size: int) -> int:
    """Bytes of a dataset whose contents may be read. FormatError when they may not."""
    if dataset.is_virtual or dataset.external:
        raise FormatError(f"{path} keeps its contents in other files")
    if dataset.dtype.kind not in "fiub" or dataset.shape is None:
        raise FormatError(f"{path} holds {dataset.dtype}, no numbers")
    nbytes, stored = dataset.size * dataset.dtype.itemsize, dataset.id.get_storage_size()
    if nbytes > MOST_NBYTES or nbytes > MOST_RATIO * max(stored, 1) or stored > size:
        raise FormatError(f"{path} declares {bytes_text(nbytes)} and stores {bytes_text(stored)}")
    if dataset.chunks is None and nbytes != stored:
        raise FormatError(f"{path} declares {bytes_text(nbytes)} and stores {bytes_text(stored)}")
    return nbytes
