"""Reader of Keras networks in HDF5 files: description and weights. No code of a file is run.

HDF5 can refer to other files: soft and external links, external storage, virtual datasets. The reader refuses these,
and each dataset that declares more than the file can hold. Needs h5py (extra `h5`).

Source: the layout of Keras' ``model.save``; CVE-2026-1669 for links and declared sizes, CVE-2025-9905 for Lambda.
"""

import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.errors import FormatError, bytes_text, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.formats.hdf5_chunks import read_chunks
from cgraph.formats.hdf5_heaps import check_heaps
from cgraph.formats.json_text import parse_json
from cgraph.formats.mapped import map_file
from cgraph.kernels.mapped import aligned
from cgraph.record import Record
from cgraph.system.extras import missing_package

__all__ = ["KerasFile", "read_keras"]

MOST_DEPTH = 32
MOST_OBJECTS = 20_000  # groups and arrays
MOST_RATIO = 1000  # times as many bytes declared as stored
WORD = 8  # bytes of offsets and lengths
OBJECT = 4096  # bytes of memory of a group or array in HDF5 and Python

UNREADABLE = (OSError, KeyError, ValueError, RuntimeError, TypeError, AttributeError, OverflowError)
"""Errors that h5py raises for damaged files."""


class KerasFile(Record):
    """The contents of a Keras file.

    Fields
        config: the description of the network by Keras; empty if the file holds only weights
        weights: arrays by layer and name: ``weights["conv2d"]["kernel"]``
        nbytes: size of the file
        numbered: if arrays are named as in an archive: ``weights["layers/conv2d"]["0"]``

    Example
        >>> import h5py
        >>> with h5py.File("named.h5", "w") as file:
        ...     file["dense/dense/kernel:0"] = np.ones((3, 2), np.float32)
        ...     file.attrs["layer_names"] = [b"dense"]
        ...     file["dense"].attrs["weight_names"] = [b"dense/kernel:0"]
        >>> keras = cg.formats.keras_h5.read_keras("named.h5")
        >>> keras.config, list(keras.weights["dense"])
        ({}, ['kernel'])
    """

    config: dict[str, Any]
    weights: dict[str, dict[str, np.ndarray]]
    nbytes: int = 0
    numbered: bool = False


class StoredArray(Record):
    """An array that is stored in the file without compression.

    Fields
        offset: position of its first byte
        dtype: in NumPy's notation, ``<f4``
    """

    offset: int
    dtype: str
    shape: tuple[int, ...]

    def array(self, data: memoryview) -> np.ndarray:
        """Return the array in the mapped file. FormatError if the file ends before it."""
        dtype, count = np.dtype(self.dtype), math.prod(self.shape)
        stop = self.offset + count * dtype.itemsize
        if not 0 <= self.offset <= stop <= len(data):
            raise damaged_file(f"an array of {count} × {dtype} at byte {self.offset} lies outside the file")
        array = aligned(np.frombuffer(data[self.offset : stop], dtype))
        return array.astype(dtype.newbyteorder("="), copy=False).reshape(self.shape)


class Contents(Record):
    """The contents of a file whose arrays are not read yet.

    Fields
        config: as in `KerasFile`
        arrays: by layer and name; compressed and chunked ones have been read
        numbered: as in `KerasFile`
    """

    config: dict[str, Any]
    arrays: dict[tuple[str, str], StoredArray | np.ndarray]
    numbered: bool = False

    def file(self, data: memoryview) -> KerasFile:
        weights: dict[str, dict[str, np.ndarray]] = {}
        for (layer, name), x in self.arrays.items():
            weights.setdefault(layer, {})[name] = x.array(data) if isinstance(x, StoredArray) else x
        return KerasFile(self.config, weights, len(data), self.numbered)


def read_keras(path: str | Path) -> KerasFile:
    """Read the description and weights of a Keras ``.h5`` file. Arrays are read-only and mapped where possible.

    Raises
        FormatError: it is not an HDF5 file, links to another file, or declares more bytes than its size allows
        UnavailableError: h5py is not installed

    Example
        >>> import h5py
        >>> with h5py.File("weights.h5", "w") as file:
        ...     file["dense/dense/kernel:0"] = np.ones((3, 2), np.float32)
        ...     file.attrs["layer_names"] = [b"dense"]
        ...     file["dense"].attrs["weight_names"] = [b"dense/kernel:0"]
        >>> cg.formats.keras_h5.read_keras("weights.h5").weights["dense"]["kernel"].shape
        (3, 2)
    """
    try:
        return read_contents(path).file(map_file(path))
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None


def read_contents(path: str | Path) -> Contents:
    """Return the contents of a file. FormatError as in `read_keras`, without the path."""
    h5py = import_h5py()
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise FormatError("it is not a regular file")
        allowance = Allowance(status.st_size)
        with h5py.File(path, "r") as file:
            text = description(file, status.st_size)
            root = file["model_weights"] if kind_of(file, "model_weights", h5py) else file
            arrays = arrays_of(root, file.userblock_size, allowance, h5py)
        return Contents({} if text is None else parse_json(text, allowance, "its text"), arrays)
    except FormatError:
        raise
    except UNREADABLE as error:
        raise FormatError(f"no readable Keras file: {error}") from error


def import_h5py() -> Any:
    """Return the package h5py. UnavailableError if it is not installed."""
    try:
        import h5py
    except ImportError:
        raise missing_package("h5py", "Keras files") from None
    return h5py


def description(file: Any, size: int) -> bytes | None:
    """Return the JSON text of the attribute ``model_config``, or None if it is absent."""
    if "model_config" not in file.attrs:
        return None
    attribute = file.attrs.get_id("model_config")
    if attribute.shape != () or attribute.dtype.kind not in "OS" or attribute.dtype.itemsize > size:
        raise FormatError(f"model_config is {attribute.dtype} {attribute.shape}, not a text. Save the model again")
    if attribute.dtype.kind == "O":  # it is stored in a heap
        check_lengths(file)
        check_heaps(file.id.get_vfd_handle(), size)
    return text_of(file.attrs["model_config"])


def text_of(value: Any) -> bytes:
    """Return the bytes of an attribute that is a text."""
    if not isinstance(value, str | bytes):
        raise FormatError(f"model_config is of type {type(value).__name__}, not a text. Save the model again")
    return value.encode("utf-8", "replace") if isinstance(value, str) else bytes(value)


def check_lengths(file: Any) -> None:
    """Raise FormatError unless offsets and lengths have 8 bytes, as Keras writes them."""
    if file.id.get_create_plist().get_sizes() != (WORD, WORD):
        raise FormatError(f"its offsets and lengths do not have {WORD} bytes. Save the file with Keras or h5py")


def kind_of(group: Any, name: str, h5py: Any) -> Any:
    """Return the class of the target of a hard link, None if it is absent. FormatError for any other link."""
    link = group.get(name, getlink=True)
    if link is None:
        return None
    if not isinstance(link, h5py.HardLink):
        raise FormatError(f"{name!r:.80} is a {type(link).__name__}, which may refer to any file. Use hard links only")
    return group.get(name, getclass=True)


def arrays_of(
    root: Any, userblock: int, allowance: Allowance, h5py: Any
) -> dict[tuple[str, str], "StoredArray | np.ndarray"]:
    """Return arrays by layer and last name, without Keras' ``:0``.

    If a layer's arrays are in several groups, as in a nested network, the key is the path in the layer.
    """
    paths = dict(datasets(root, allowance, h5py))
    keys = {path: path.partition(":")[0].partition("/")[::2] for path in paths}
    groups: dict[str, set[str]] = {}
    for layer, name in keys.values():
        groups.setdefault(layer, set()).add(name.rpartition("/")[0])
    arrays: dict[tuple[str, str], StoredArray | np.ndarray] = {}
    for path, dataset in paths.items():
        layer, name = keys[path]
        key = (layer, name.rpartition("/")[2] if len(groups[layer]) == 1 else name)
        arrays[key] = stored_or_read(path, dataset, None if userblock else 0, allowance, h5py)
    return arrays


def stored_or_read(
    path: str, dataset: Any, start: int | None, allowance: Allowance, h5py: Any
) -> "StoredArray | np.ndarray":
    """Return the position of a dataset's array, or the array where it is not stored in one piece.

    Parameters
        start: position of the HDF5 file in the mapped file; None if arrays cannot be mapped
    """
    check_stored(path, dataset, h5py)
    offset = None if start is None or dataset.chunks else dataset.id.get_offset()
    if start is None or offset is None:
        return read_dataset(path, dataset, allowance)
    return StoredArray(start + offset, dataset.dtype.str, dataset.shape)


def datasets(root: Any, allowance: Allowance, h5py: Any) -> Iterator[tuple[str, Any]]:
    """Yield the datasets below a group with their paths; each group is visited once."""
    waiting = [("", root, 0)]
    entered, count = set(), 0
    while waiting:
        path, group, depth = waiting.pop()
        address = h5py.h5o.get_info(group.id).addr
        if address in entered or depth > MOST_DEPTH:
            raise damaged_file(f"group {path!r:.80} contains itself or is nested too deep")
        entered.add(address)
        for name in group:
            allowance.spend("its table of contents", nbytes=OBJECT + len(path) + len(name))
            if (count := count + 1) > MOST_OBJECTS:
                raise FormatError(f"it has more than {MOST_OBJECTS:,} groups and arrays")
            kind = kind_of(group, name, h5py)
            if kind is h5py.Dataset:
                yield path + name, group[name]
            elif kind is h5py.Group:
                waiting.append((f"{path}{name}/", group[name], depth + 1))


def check_stored(path: str, dataset: Any, h5py: Any) -> None:
    """Raise FormatError unless a dataset stores as many numbers as it declares, in this file."""
    if dataset.is_virtual or dataset.external:
        raise FormatError(f"{path:.80} stores its contents in other files. Save them in one file")
    if dataset.dtype.kind not in "fiub" or dataset.shape is None:
        raise FormatError(f"{path:.80} holds {dataset.dtype!s:.80}; only numbers are read")
    if not dataset.id.get_type().equal(h5py.h5t.py_create(dataset.dtype, logical=True)):
        raise FormatError(f"{path:.80} holds numbers in a bit layout other than {dataset.dtype}")
    if dataset.chunks is not None:  # their stored bytes are added up when the chunks are read
        return
    nbytes, stored = dataset.size * dataset.dtype.itemsize, dataset.id.get_storage_size()
    if nbytes != stored:
        raise damaged_file(f"{path:.80} declares {bytes_text(nbytes)} and stores {bytes_text(stored)}")


def read_dataset(path: str, dataset: Any, allowance: Allowance) -> np.ndarray:
    """Read a dataset that is chunked, perhaps compressed, or in a file with a user block."""
    if dataset.chunks is not None:
        array = read_chunks(path, dataset, MOST_RATIO, allowance)
    else:
        allowance.spend(f"{path:.80}", nbytes=dataset.size * dataset.dtype.itemsize)
        array = dataset[()]
    return np.asarray(array, array.dtype.newbyteorder("="))


def __dir__() -> list[str]:
    return __all__
