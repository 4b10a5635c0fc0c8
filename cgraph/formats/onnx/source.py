"""Source: an opened ONNX model, whose tensors are arrays that share the memory-mapped bytes of its file."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.errors import UNFIT, FormatError, InputError, PositionError, UnavailableError, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.formats.mapped import map_external, map_file
from cgraph.formats.onnx.lists import FLOATS, INTS, STRINGS, ListPart, LongList
from cgraph.formats.onnx.onnx_messages import messages
from cgraph.formats.onnx.small import BITS, packed_bytes, unpack
from cgraph.formats.onnx.split import split_model
from cgraph.formats.onnx.tensors import (
    array_of,
    dtype_of_number,
    field_of,
    nbytes_of,
    numbers_of,
    raw_array,
    shape_of_proto,
)
from cgraph.formats.onnx.wire import fields
from cgraph.formats.unspecified import UnknownError
from cgraph.kernels.mapped import release

ENTRIES = {"location", "offset", "length", "checksum"}
_STORED = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")


@dataclass(eq=False)
class Source:
    """An opened model. Changes: it caches the mapped files of external tensors, and the checked functions.

    Fields
        proto: the ModelProto, without the data of large tensors
        data: the file's bytes
        folder: folder of external data, which may be in it or below; None allows none
        name: the file's name, for the origin of nodes
        label: the path as the user gave it, for messages
        files: mapped files of external tensors, by location
        parsed_nbytes: bytes of the parsed proto
        budget: the remaining allowance of building the graph
        functions: the model's functions by domain and name; None until its operators are checked
        few: dtype numbers of the values that no array has, by name; known when the operators are checked
    """

    proto: Any
    data: memoryview
    folder: Path | None
    name: str = "model"
    label: str = "the model"
    files: dict[str, memoryview] = field(default_factory=dict)
    parsed_nbytes: int = 0
    budget: Allowance = field(default_factory=lambda: Allowance(0))
    functions: Mapping[tuple[str, str], Any] | None = None
    few: Mapping[str, int] = field(default_factory=dict)

    def array(self, proto: Any) -> np.ndarray:
        """Return the array of a TensorProto, mapped if large. FormatError if its fields are inconsistent."""
        if proto.data_location == proto.EXTERNAL:
            return self.of_bytes(self.external(proto), proto)
        if proto.HasField("segment"):
            return self.left_out(proto)
        if proto.data_type in BITS:
            return unpack(packed_bytes(proto), proto, self.budget)
        self.budget.spend(f"tensor {proto.name!r:.60}", *nbytes_of(proto))
        return array_of(proto)

    def listed(self, proto: Any) -> LongList | None:
        """Return the list of an AttributeProto that stays in the file; None if it was parsed."""
        number = {proto.FLOATS: FLOATS, proto.INTS: INTS, proto.STRINGS: STRINGS}.get(proto.type)
        marks = [mark for mark in proto.tensors if mark.HasField("segment") and mark.data_type == number]
        parts = [ListPart.marked(self.data, mark) for mark in marks]
        return LongList(self.data, parts, proto.name, self.budget) if parts else None

    def left_out(self, proto: Any) -> np.ndarray:
        """Return a tensor whose data was not parsed: a view of the file, or decoded from its numbers."""
        if proto.HasField("raw_data") or any(len(getattr(proto, f)) for f in _STORED):
            raise damaged_file(f"tensor {proto.name!r:.60} has its data twice")
        stored = next(fields(self.data, proto.segment.begin, proto.segment.end))
        raw = self.data[stored.start : stored.stop]
        if stored.number == type(proto).RAW_DATA_FIELD_NUMBER:
            return self.of_bytes(raw, proto)
        is_few = proto.data_type in BITS
        dtype = np.dtype("uint8") if is_few else dtype_of_number(proto.data_type, f"tensor {proto.name!r:.60}")
        if stored.number != type(proto).DESCRIPTOR.fields_by_name[field_of(dtype)].number:
            raise damaged_file(f"tensor {proto.name!r:.60} of {dtype} holds its values in a field of another dtype")
        if dtype in (np.dtype("float32"), np.dtype("float64")):
            return self.of_bytes(raw, proto)
        numbers = numbers_of(raw, dtype, proto, self.budget)
        return unpack(numbers, proto, self.budget) if is_few else numbers.reshape(shape_of_proto(proto))

    def of_bytes(self, raw: memoryview, proto: Any) -> np.ndarray:
        """Return a tensor that shares its bytes, unless they must be unpacked."""
        if proto.data_type in BITS:
            return unpack(raw, proto, self.budget)
        dtype = dtype_of_number(proto.data_type, f"tensor {proto.name!r}")
        return raw_array(raw, dtype, shape_of_proto(proto), proto.name)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Convert errors within this context to typed errors that name the file; an InputError stays unchanged."""
        try:
            yield
        except UnknownError as error:
            reason = f"{self.label}: {error.reason}"
            raise UnknownError(reason, error.shapes, error.constants, error.maximum) from error
        except (InputError, UnavailableError):
            raise
        except UNFIT as error:
            kind = PositionError if isinstance(error, PositionError) else FormatError
            raise kind(f"{self.label}: {error}") from error

    def allowance(self) -> Allowance:
        """Return a new allowance; the files of external tensors add to it when they are opened."""
        self.budget = Allowance(len(self.data) + sum(map(len, self.files.values())))
        self.budget.spend("its parsed form", nbytes=self.parsed_nbytes)
        return self.budget

    def forget(self) -> None:
        """Release the pages of the files that were read."""
        for data in (self.data, *self.files.values()):
            release(np.frombuffer(data, np.uint8))

    def external(self, proto: Any) -> memoryview:
        """Return the bytes of a tensor in another file, after all of ONNX's checks."""
        entries = {e.key: e.value for e in proto.external_data}
        if len(entries) != len(proto.external_data) or not entries.keys() <= ENTRIES or "location" not in entries:
            raise damaged_file(f"tensor {proto.name!r} has unknown or repeated entries of external data")
        if self.folder is None:
            raise FormatError(
                f"tensor {proto.name!r} lies in another file, but the model was given as bytes. Give its path"
            )
        location = entries["location"]
        if location not in self.files:
            self.files[location] = map_external(self.folder, location)
            self.budget.grow(len(self.files[location]))
        file = self.files[location]
        start = parse_offset(entries.get("offset", "0"), proto.name)
        rest = max(len(file) - start, 0)
        stop = start + parse_offset(entries.get("length", str(rest)), proto.name)
        if stop > len(file):
            raise damaged_file(f"tensor {proto.name!r} ends at {stop}, {location!r} has {len(file)} bytes")
        return file[start:stop]


def parse_offset(text: str, name: str) -> int:
    """Parse a decimal number of bytes. FormatError if it is malformed."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise damaged_file(f"tensor {name!r} has {text!r:.40} where a number of bytes belongs")
    return int(text)


def open_source(source: str | Path | bytes | memoryview, label: str = "the model") -> Source:
    """Map a file, or take bytes, and parse everything except large tensors.

    Parameters
        label: name of bytes in messages
    """
    if isinstance(source, bytes | bytearray | memoryview):
        opened = Source(None, memoryview(source).toreadonly().cast("B"), None, label=label)
    else:
        folder, name = Path(source).resolve().parent, Path(str(source)).name
        opened = Source(None, map_file(source), folder, name, str(source))
    with opened.named():
        allowance = opened.allowance()
        before = allowance.nbytes
        opened.proto = parse(split_model(opened.data, allowance))
        opened.parsed_nbytes = before - allowance.nbytes
    return opened


def parse(small: bytes) -> Any:
    """Parse a ModelProto. FormatError if it is malformed."""
    proto = messages().ModelProto()
    from google.protobuf.message import DecodeError

    try:
        proto.ParseFromString(small)
    except (DecodeError, UnicodeDecodeError) as error:
        raise FormatError(
            f"this is not an ONNX model: {error}. Export the model, or download the file, again"
        ) from None
    if not proto.HasField("graph"):
        raise FormatError("this is not an ONNX model: it has no graph. Export the model, or download the file, again")
    return proto
