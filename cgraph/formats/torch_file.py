"""Weights from PyTorch files, old and zipped, without running anything that is in them.

Such a file is a pickle, which is a program. Here its instructions are read one by one: numbers, text, containers and
calls of four named functions, which only describe tensors, are understood; any other instruction or name is refused.
Sizes are checked against the file before memory is taken for them.

Source: the layout of torch.save, from its documentation and from files; CVE-2025-32434 for why not to unpickle.
"""

import zipfile
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.plain_pickle import Call, Global, Stored, read_pickle
from cgraph.record import Record

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
DTYPES = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "|i1",
    "ByteStorage": "|u1",
    "BoolStorage": "|b1",
}
DICT = Global("collections", "OrderedDict")
TENSORS = (Global("torch._utils", "_rebuild_tensor"), Global("torch._utils", "_rebuild_tensor_v2"))
PARAMETER = Global("torch._utils", "_rebuild_parameter")
UNREADABLE = (OSError, EOFError, ValueError, OverflowError, NotImplementedError, RuntimeError, zipfile.BadZipFile)
"""What NumPy and zipfile raise over damaged files."""
ALLOWED = frozenset((DICT, *TENSORS, PARAMETER, *(Global("torch", name) for name in DTYPES)))


class Place(Record):
    """Where a storage's bytes lie in the file."""

    offset: int
    count: int
    dtype: np.dtype


def read_torch(path: str | Path) -> dict[str, np.ndarray]:
    """Every tensor of a file written by ``torch.save``, by its path: keys of nested dictionaries joined with dots.

    Raises
        FormatError: no such file of either layout, or it holds what is not allowed: other functions, other types,
            tensors that reach beyond their storage, storages that reach beyond the file
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            if zipfile.is_zipfile(file):
                tree, places = zipped(file, size)
            else:
                file.seek(0)
                tree, places = legacy(file, size)
            return {name: tensor(call, places, file) for name, call in tensors_of(tree).items()}
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
    except UNREADABLE as error:
        raise FormatError(f"{path}: no readable torch file: {error}") from error


def legacy(file: IO[bytes], size: int) -> tuple[Any, dict[str, Place]]:
    """Five pickles one after another – magic, protocol, machine, tree, keys – and then the storages."""
    if read_pickle(file, frozenset()) != MAGIC:
        raise FormatError("it does not begin like a torch file")
    protocol, machine = read_pickle(file, frozenset()), read_pickle(file, frozenset())
    if protocol != PROTOCOL or not isinstance(machine, dict) or machine.get("little_endian") is not True:
        raise FormatError(f"protocol {protocol!r:.40} or byte order is not supported")
    tree = read_pickle(file, ALLOWED)
    keys = read_pickle(file, frozenset())
    declared = storages_of(tree)
    if not isinstance(keys, list) or sorted(map(str, keys)) != sorted(declared):
        raise FormatError("the list of storages does not agree with the tensors")
    places = {}
    for key in map(str, keys):
        dtype, count = declared[key]
        if int.from_bytes(file.read(8), "little") != count:
            raise FormatError(f"storage {key} has another length than its tensors say")
        places[key] = checked_place(key, file.tell(), count, dtype, size)
        file.seek(count * dtype.itemsize, 1)
    return tree, places


def zipped(file: IO[bytes], size: int) -> tuple[Any, dict[str, Place]]:
    """A zip archive of ``data.pkl`` and a stored, uncompressed entry for each storage."""
    with zipfile.ZipFile(file) as archive:
        entries = {info.filename.partition("/")[2]: info for info in archive.infolist()}
        if len(entries) != len(archive.infolist()) or "data.pkl" not in entries:
            raise FormatError("it has no data.pkl, or two entries of one name")
        if sum(info.file_size for info in entries.values()) > size:
            raise FormatError(f"its entries claim more than the {size} bytes of the file")
        if any(info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 for info in entries.values()):
            raise FormatError("an entry is compressed or encrypted; torch stores them plain")
        if "byteorder" in entries and archive.read(entries["byteorder"]) != b"little":
            raise FormatError("its byte order is not supported")
        with archive.open(entries["data.pkl"]) as pickle_file:
            tree = read_pickle(pickle_file, ALLOWED)
        places = {}
        for key, (dtype, count) in storages_of(tree).items():
            info = entries.get(f"data/{key}")
            if info is None or info.file_size != count * dtype.itemsize:
                raise FormatError(f"storage {key} is missing or has another length than its tensors say")
            with archive.open(info):  # checks the entry's own header
                places[key] = checked_place(key, first_byte(file, info), count, dtype, size)
    return tree, places


def first_byte(file: IO[bytes], info: zipfile.ZipInfo) -> int:
    """Where an entry's bytes begin: behind its local header, whose name and extra field have lengths of their own."""
    file.seek(info.header_offset + 26)
    lengths = file.read(4)
    return info.header_offset + 30 + int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")


def checked_place(key: str, offset: int, count: int, dtype: np.dtype, size: int) -> Place:
    if offset + count * dtype.itemsize > size:
        raise FormatError(f"storage {key} of {count} × {dtype} reaches beyond the {size} bytes of the file")
    return Place(offset, count, dtype)


def storages_of(tree: Any) -> dict[str, tuple[np.dtype, int]]:
    """Dtype and length of every storage that a tensor names, by key."""
    found: dict[str, tuple[np.dtype, int]] = {}
    for call in tensors_of(tree).values():
        key, dtype, count = storage(call.args[0] if call.args else None)
        if found.setdefault(key, (dtype, count)) != (dtype, count):
            raise FormatError(f"storage {key} is described in two ways")
    return found


def storage(given: Any) -> tuple[str, np.dtype, int]:
    """Key, dtype and elements of ``("storage", type, key, device, elements)``."""
    record = given.record if isinstance(given, Stored) else None
    if not isinstance(record, tuple) or len(record) not in (5, 6) or record[0] != "storage":
        raise FormatError(f"{given!r:.60} is no storage")
    kind, key, count = record[1], record[2], record[4]
    if not isinstance(kind, Global) or kind.name not in DTYPES or not isinstance(key, str) or not natural(count):
        raise FormatError(f"{record!r:.80} is no storage")
    if len(record) == 6 and record[5] is not None:
        raise FormatError(f"storage {key} is a view of another one, which is not supported")
    return key, np.dtype(DTYPES[kind.name]), count


def natural(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and 0 <= x < 2**48


def tensors_of(tree: Any) -> dict[str, Call]:
    """Calls that describe tensors, by path; each dictionary is entered once."""
    found: dict[str, Call] = {}
    waiting: list[tuple[str, Any]] = [("", tree)]
    entered: set[int] = set()
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Call) and value.function == PARAMETER and value.args:
            value = value.args[0]
        if isinstance(value, Call) and value.function in TENSORS:
            found[path or "tensor"] = value
        elif isinstance(value, Mapping) and id(value) not in entered:
            entered.add(id(value))
            items = [(f"{path}.{key}" if path else str(key), x) for key, x in value.items()]
            waiting.extend(reversed(items))
    return found


def tensor(call: Call, places: Mapping[str, Place], file: IO[bytes]) -> np.ndarray:
    """The array of ``_rebuild_tensor(storage, offset, size, stride, …)``."""
    if len(call.args) < 4:
        raise FormatError("a tensor lacks its size or strides")
    key, dtype, count = storage(call.args[0])
    offset, shape, strides = call.args[1:4]
    numbers = (*shape, *strides) if isinstance(shape, tuple) and isinstance(strides, tuple) else (-1,)
    if not natural(offset) or not all(map(natural, numbers)) or len(shape) != len(strides) or len(shape) > 16:
        raise FormatError(f"tensor of storage {key} has an impossible size {shape!r:.40} or strides {strides!r:.40}")
    last = offset + sum((n - 1) * step for n, step in zip(shape, strides))
    if prod(shape) > count or (prod(shape) and last >= count):
        raise FormatError(f"tensor {list(shape)} reaches beyond the {count} elements of storage {key}")
    file.seek(places[key].offset)
    flat = np.frombuffer(file.read(count * dtype.itemsize), dtype)
    if flat.size != count:
        raise FormatError(f"storage {key} ends early")
    steps = tuple(step * dtype.itemsize for step in strides)
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(flat[offset:], shape, steps)).reshape(shape)
