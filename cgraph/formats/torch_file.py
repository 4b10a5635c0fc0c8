"""Reader of weights in PyTorch files, legacy and zipped. No code of a file is run.

Such a file contains a pickle, which is a program. The reader interprets its instructions: numbers, text, containers and
calls of four named functions that describe tensors. It refuses any other instruction or name. Sizes are checked against
the file before an array is created; tensors stay in the mapped file.

Source: the layout of torch.save, from its documentation and from files; CVE-2025-32434 for why not to unpickle.
"""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.errors import FormatError, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.formats.mapped import map_file
from cgraph.formats.plain_pickle import ByteStream, Global, PersistentId, PickledCall, describe, read_pickle
from cgraph.formats.zip_archive import STORED, members_of
from cgraph.ir.spec import LARGEST
from cgraph.kernels.mapped import aligned
from cgraph.record import Record

__all__ = ["read_torch"]

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
ZIP = b"PK\x03\x04"
MOST_AXES = 16
PATH = 100  # bytes of memory of a tensor's path, beside its characters
ALLOWED = frozenset((DICT, *TENSORS, PARAMETER, *(Global("torch", name) for name in DTYPES)))


Storages = dict[str, tuple[np.dtype, int]]
"""Dtype and length of storages, by key."""


class Place(Record):
    """The position of a storage in the file."""

    offset: int
    count: int
    dtype: np.dtype

    def array(self, data: memoryview) -> np.ndarray:
        """Return the elements in the mapped file, or a copy if they are unaligned."""
        return aligned(np.frombuffer(data[self.offset :], self.dtype, self.count))


def read_torch(path: str | Path) -> dict[str, np.ndarray]:
    """Read the tensors of a file by ``torch.save``, by path: the keys of nested dictionaries joined with dots.

    They are read-only and mapped, and may share bytes. An unaligned storage is copied once.

    Raises
        FormatError: the file has neither layout, or contains other functions or types, tensors that exceed their
            storage, or storages that exceed the file
    """
    data = map_file(path)
    allowance = Allowance(len(data))
    try:
        tensors, places = (read_zipped if data[: len(ZIP)] == ZIP else read_legacy)(data, allowance)
        storages = {key: place.array(data) for key, place in places.items()}
        return {name: tensor(call, storages) for name, call in tensors.items()}
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None


def read_legacy(data: memoryview, allowance: Allowance) -> tuple[dict[str, PickledCall], dict[str, Place]]:
    """Read five pickles (magic number, protocol, machine, tree, keys), then the storages."""
    stream = ByteStream(data)

    def plain() -> Any:
        return read_pickle(stream, frozenset(), allowance)

    if plain() != MAGIC:
        raise FormatError("it does not begin like a torch file. Save it with torch.save")
    protocol, machine = plain(), plain()
    if protocol != PROTOCOL or not isinstance(machine, dict) or machine.get("little_endian") is not True:
        raise FormatError(
            f"protocol {describe(protocol)} or byte order is not supported. Save it with torch.save on a "
            "little-endian machine"
        )
    tensors = tensors_of(read_pickle(stream, ALLOWED, allowance), allowance)
    keys = plain()
    declared = storages_of(tensors)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys) or sorted(keys) != sorted(declared):
        raise FormatError(
            f"the list of storages differs from the {len(declared)} that the tensors name. Save it with torch.save"
        )
    places = {}
    for key in keys:
        dtype, count = declared[key]
        if int.from_bytes(stream.read(8), "little") != count:
            raise damaged_file(f"storage {key!r:.40} has another length than its tensors say")
        places[key] = check_place(key, stream.at, count, dtype, len(data))
        stream.at += count * dtype.itemsize
    return tensors, places


def read_zipped(data: memoryview, allowance: Allowance) -> tuple[dict[str, PickledCall], dict[str, Place]]:
    """Read a zip archive: one folder with ``data.pkl`` and an uncompressed member for each storage."""
    members = members_of(data, allowance)
    inner = {name.partition("/")[2]: member for name, member in members.items()}
    if len(inner) != len(members) or "data.pkl" not in inner:
        raise FormatError("it has no data.pkl, or two members of one name. Save it with torch.save")
    for name, each in members.items():
        if each.method != STORED:
            raise FormatError(f"member {name!r} is compressed; torch stores them uncompressed. Save it with torch.save")

    def body(name: str) -> memoryview:
        return data[inner[name].place.start : inner[name].place.stop]

    if "byteorder" in inner and body("byteorder") != b"little":
        raise FormatError(
            f"its byte order {bytes(body('byteorder'))!r:.20} is not supported. Save it on a little-endian machine"
        )
    tensors = tensors_of(read_pickle(ByteStream(body("data.pkl")), ALLOWED, allowance), allowance)
    places = {}
    for key, (dtype, count) in storages_of(tensors).items():
        member = inner.get(f"data/{key}")
        if member is None or member.nbytes != count * dtype.itemsize:
            raise damaged_file(f"storage {key!r:.40} is missing or has another length than its tensors say")
        places[key] = check_place(key, member.place.start, count, dtype, len(data))
    return tensors, places


def check_place(key: str, offset: int, count: int, dtype: np.dtype, size: int) -> Place:
    if offset + count * dtype.itemsize > size:
        raise damaged_file(f"storage {key!r:.40} of {count} × {dtype} reaches beyond the {size} bytes of the file")
    return Place(offset, count, dtype)


def storages_of(tensors: Mapping[str, PickledCall]) -> Storages:
    """Return the storages that tensors name."""
    storages: Storages = {}
    for call in tensors.values():
        key, dtype, count = storage(call.args[0] if call.args else None)
        if storages.setdefault(key, (dtype, count)) != (dtype, count):
            raise damaged_file(f"storage {key!r:.40} is described in two ways")
    return storages


def storage(value: Any) -> tuple[str, np.dtype, int]:
    """Return key, dtype and length of ``("storage", type, key, device, elements)``."""
    record = value.record if isinstance(value, PersistentId) else None
    if not isinstance(record, tuple) or len(record) not in (5, 6) or not is_text(record[0], "storage"):
        raise FormatError(f"{describe(value)} is not a storage. Save tensors only (a state_dict)")
    kind, key, count = record[1], record[2], record[4]
    if not isinstance(kind, Global) or kind.name not in DTYPES or not isinstance(key, str) or not natural(count):
        raise FormatError(f"{', '.join(map(describe, record))} is not a storage. Save tensors only (a state_dict)")
    if len(record) == 6 and record[5] is not None:
        raise FormatError(
            f"storage {key!r:.40} is a view of another one, which is not supported. Save tensors after clone()"
        )
    return key, np.dtype(DTYPES[kind.name]), count


def is_text(x: Any, text: str) -> bool:
    return isinstance(x, str) and x == text


def natural(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and 0 <= x < 2**48


def tensors_of(tree: Any, allowance: Allowance) -> dict[str, PickledCall]:
    """Return the calls that describe tensors, by path; each dictionary is visited once."""
    tensors: dict[str, PickledCall] = {}
    waiting: list[tuple[str, Any]] = [("", tree)]
    entered: set[int] = set()
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, PickledCall) and value.function == PARAMETER and value.args:
            value = value.args[0]
        if isinstance(value, PickledCall) and value.function in TENSORS:
            tensors[path or "tensor"] = value
        elif isinstance(value, Mapping) and id(value) not in entered:
            entered.add(id(value))
            for key in reversed(value):
                width = 1 if path.isascii() and key.isascii() else 4
                allowance.spend("the paths of its tensors", nbytes=PATH + width * (len(path) + len(key)))
                waiting.append((f"{path}.{key}" if path else key, value[key]))
    return tensors


def tensor(call: PickledCall, storages: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the array of ``_rebuild_tensor(storage, offset, size, stride, …)``: a view of its storage."""
    if len(call.args) < 4:
        raise damaged_file(f"a tensor lacks its size or strides: it has {len(call.args)} arguments of at least 4")
    key, dtype, count = storage(call.args[0])
    offset, shape, strides = call.args[1:4]
    if not natural(offset) or not is_size(shape) or not is_size(strides) or len(shape) != len(strides):
        raise damaged_file(f"tensor of storage {key!r:.40} has an impossible offset, size or strides")
    last = offset + sum((n - 1) * step for n, step in zip(shape, strides))
    if prod(n for n in shape if n) * dtype.itemsize > LARGEST:
        raise damaged_file(f"tensor of storage {key!r:.40} has the impossible size {list(shape)}")
    if prod(shape) > count or (prod(shape) and last >= count):
        raise damaged_file(f"tensor {list(shape)} reaches beyond the {count} elements of storage {key!r:.40}")
    if not prod(shape):
        return np.empty(shape, dtype)
    steps = tuple(step * dtype.itemsize for step in strides)
    array: np.ndarray = np.ndarray(shape, dtype, storages[key], offset * dtype.itemsize, steps)
    array.flags.writeable = False
    return array


def is_size(x: Any) -> bool:
    return isinstance(x, tuple) and len(x) <= MOST_AXES and all(map(natural, x))


def __dir__() -> list[str]:
    return __all__
