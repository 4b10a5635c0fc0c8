"""An opened model: the parsed proto, and its tensors as arrays that share the file's memory-mapped bytes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.errors import FormatError, UnavailableError
from cgraph.formats.allowance import Allowance
from cgraph.formats.mapped import beside, map_file
from cgraph.formats.onnx.small import BITS, packed_bytes, unpacked
from cgraph.formats.onnx.tensors import array_of, dtype_of_number, raw_array, shape_of_proto
from cgraph.formats.onnx.wire import split_model
from cgraph.kernels.mapped import forget

ENTRIES = {"location", "offset", "length", "checksum"}
_STORED = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")


@dataclass(eq=False)
class Source:
    """A model and where its tensors lie. Changes: it keeps open the files that external tensors are in.

    Fields
        proto: the ModelProto, without the data of large initialisers
        data: the file's bytes
        spans: where in `data` the large initialisers lie
        folder: where external data may lie, in the folder itself or below; None allows none
        name: the file's name, for messages
        files: those of external tensors, by location
        budget: what the graph that is being built may still cost
    """

    proto: Any
    data: memoryview
    spans: dict[str, range]
    folder: Path | None
    name: str = "model"
    files: dict[str, memoryview] = field(default_factory=dict)
    budget: Allowance = field(default_factory=lambda: Allowance(0))

    def array(self, proto: Any) -> np.ndarray:
        """A TensorProto's array, in the mapped file when it is large. FormatError when anything does not fit."""
        if proto.data_location == proto.EXTERNAL:
            return self.of_bytes(self.external(proto), proto)
        span = self.spans.get(proto.name)
        if span is None or proto.HasField("raw_data") or any(len(getattr(proto, f)) for f in _STORED):
            return unpacked(packed_bytes(proto), proto, self.budget) if proto.data_type in BITS else array_of(proto)
        return self.of_bytes(self.data[span.start : span.stop], proto)

    def of_bytes(self, raw: memoryview, proto: Any) -> np.ndarray:
        """A tensor of its bytes, which it shares unless they have to be unpacked."""
        if proto.data_type in BITS:
            return unpacked(raw, proto, self.budget)
        dtype = dtype_of_number(proto.data_type, f"tensor {proto.name!r}")
        return raw_array(raw, dtype, shape_of_proto(proto), proto.name)

    def allowance(self) -> Allowance:
        """What building the graph may cost; files of external tensors add to it when they are opened."""
        self.budget = Allowance(len(self.data) + sum(map(len, self.files.values())))
        return self.budget

    def forget(self) -> None:
        """Give back what was read of the files meanwhile."""
        for data in (self.data, *self.files.values()):
            forget(np.frombuffer(data, np.uint8))

    def external(self, proto: Any) -> memoryview:
        """A tensor's bytes in another file: ONNX's rules for its place, its range checked before anything is mapped."""
        entries = {e.key: e.value for e in proto.external_data}
        if len(entries) != len(proto.external_data) or not entries.keys() <= ENTRIES or "location" not in entries:
            raise FormatError(f"tensor {proto.name!r} has unknown or repeated entries of external data")
        if self.folder is None:
            raise FormatError(f"tensor {proto.name!r} lies in another file, but the model was given as bytes")
        location = entries["location"]
        if location not in self.files:
            self.files[location] = beside(self.folder, location)
            self.budget.grow(len(self.files[location]))
        file = self.files[location]
        start = whole_number(entries.get("offset", "0"), proto.name)
        rest = max(len(file) - start, 0)
        stop = start + whole_number(entries.get("length", str(rest)), proto.name)
        if stop > len(file):
            raise FormatError(f"tensor {proto.name!r} ends at {stop}, {location!r} has {len(file)} bytes")
        return file[start:stop]


def whole_number(text: str, name: str) -> int:
    """A decimal number of bytes, or FormatError."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise FormatError(f"tensor {name!r} has {text!r:.40} where a number of bytes belongs")
    return int(text)


def open_source(source: str | Path | bytes | memoryview) -> Source:
    """Map a file, or take bytes, and parse all but the large tensors."""
    if isinstance(source, bytes | bytearray | memoryview):
        data, folder = memoryview(source).toreadonly().cast("B"), None
    else:
        data, folder = map_file(source), Path(source).resolve().parent
    try:
        split = split_model(data)
        name = "model" if folder is None else Path(str(source)).name
        return Source(parsed(split.small), data, split.spans, folder, name)
    except FormatError as error:
        where = "the model" if folder is None else str(source)
        raise FormatError(f"{where}: {error}") from None


def parsed(small: bytes) -> Any:
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
