"""An opened model: the parsed proto, and its tensors as arrays that share the file's memory-mapped bytes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.errors import UNFIT, FormatError, InputError, PositionError, UnavailableError
from cgraph.formats.allowance import Allowance
from cgraph.formats.mapped import map_external, map_file
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
    """A model and where its tensors lie. Changes: it keeps open the files that external tensors are in.

    Fields
        proto: the ModelProto, without the data of large tensors
        data: the file's bytes
        folder: where external data may lie, in the folder itself or below; None allows none
        name: the file's name, for the places of nodes
        label: what messages call the file: the path as the user has it
        files: those of external tensors, by location
        parsed_nbytes: bytes that the proto takes
        budget: what the graph that is being built may still cost
    """

    proto: Any
    data: memoryview
    folder: Path | None
    name: str = "model"
    label: str = "the model"
    files: dict[str, memoryview] = field(default_factory=dict)
    parsed_nbytes: int = 0
    budget: Allowance = field(default_factory=lambda: Allowance(0))

    def array(self, proto: Any) -> np.ndarray:
        """A TensorProto's array, in the mapped file when it is large. FormatError when anything does not fit."""
        if proto.data_location == proto.EXTERNAL:
            return self.of_bytes(self.external(proto), proto)
        if proto.HasField("segment"):
            return self.left_out(proto)
        if proto.data_type in BITS:
            return unpack(packed_bytes(proto), proto, self.budget)
        self.budget.spend(f"tensor {proto.name!r:.60}", *nbytes_of(proto))
        return array_of(proto)

    def left_out(self, proto: Any) -> np.ndarray:
        """A tensor whose data was not parsed: it shares the file's bytes, or is decoded from its numbers."""
        if proto.HasField("raw_data") or any(len(getattr(proto, f)) for f in _STORED):
            raise FormatError(f"tensor {proto.name!r:.60} has its data twice")
        stored = next(fields(self.data, proto.segment.begin, proto.segment.end))
        raw = self.data[stored.start : stored.stop]
        if stored.number == type(proto).RAW_DATA_FIELD_NUMBER:
            return self.of_bytes(raw, proto)
        is_few = proto.data_type in BITS
        dtype = np.dtype("uint8") if is_few else dtype_of_number(proto.data_type, f"tensor {proto.name!r:.60}")
        if stored.number != type(proto).DESCRIPTOR.fields_by_name[field_of(dtype)].number:
            raise FormatError(f"tensor {proto.name!r:.60} of {dtype} holds its values in a field of another dtype")
        if dtype in (np.dtype("float32"), np.dtype("float64")):
            return self.of_bytes(raw, proto)
        numbers = numbers_of(raw, dtype, proto, self.budget)
        return unpack(numbers, proto, self.budget) if is_few else numbers.reshape(shape_of_proto(proto))

    def of_bytes(self, raw: memoryview, proto: Any) -> np.ndarray:
        """A tensor of its bytes, which it shares unless they have to be unpacked."""
        if proto.data_type in BITS:
            return unpack(raw, proto, self.budget)
        dtype = dtype_of_number(proto.data_type, f"tensor {proto.name!r}")
        return raw_array(raw, dtype, shape_of_proto(proto), proto.name)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Errors of the file within are typed and name it; an InputError is about what the user gave beside it."""
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
        """What building the graph may cost; files of external tensors add to it when they are opened."""
        self.budget = Allowance(len(self.data) + sum(map(len, self.files.values())))
        self.budget.spend("its parsed form", nbytes=self.parsed_nbytes)
        return self.budget

    def forget(self) -> None:
        """Give back what was read of the files meanwhile."""
        for data in (self.data, *self.files.values()):
            release(np.frombuffer(data, np.uint8))

    def external(self, proto: Any) -> memoryview:
        """A tensor's bytes in another file: ONNX's rules for its place, its range checked before anything is mapped."""
        entries = {e.key: e.value for e in proto.external_data}
        if len(entries) != len(proto.external_data) or not entries.keys() <= ENTRIES or "location" not in entries:
            raise FormatError(f"tensor {proto.name!r} has unknown or repeated entries of external data")
        if self.folder is None:
            raise FormatError(f"tensor {proto.name!r} lies in another file, but the model was given as bytes")
        location = entries["location"]
        if location not in self.files:
            self.files[location] = map_external(self.folder, location)
            self.budget.grow(len(self.files[location]))
        file = self.files[location]
        start = parse_offset(entries.get("offset", "0"), proto.name)
        rest = max(len(file) - start, 0)
        stop = start + parse_offset(entries.get("length", str(rest)), proto.name)
        if stop > len(file):
            raise FormatError(f"tensor {proto.name!r} ends at {stop}, {location!r} has {len(file)} bytes")
        return file[start:stop]


def parse_offset(text: str, name: str) -> int:
    """A decimal number of bytes, or FormatError."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise FormatError(f"tensor {name!r} has {text!r:.40} where a number of bytes belongs")
    return int(text)


def open_source(source: str | Path | bytes | memoryview, label: str = "the model") -> Source:
    """Map a file, or take bytes, and parse all but the large tensors.

    Parameters
        label: what messages call bytes
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
    """A ModelProto from bytes, or FormatError."""
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise UnavailableError("ONNX files need the package onnx: pip install 'cgraph[onnx]'") from None
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(small)
    except (DecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"this is no ONNX model: {error}") from None
    if not proto.HasField("graph"):
        raise FormatError("this is no ONNX model: it has no graph")
    return proto
