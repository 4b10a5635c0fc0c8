"""Removes large tensors from a serialised ModelProto before it is parsed; they stay in the mapped file.

Messages that importers do not read (`OMITTED`) are removed, too.

Long lists of attributes are cut out in the same way (`cgraph.formats.onnx.lists`).

Protobuf would copy each weight twice, and needs up to a hundred bytes of memory for each byte of other fields. So the
splitter first walks all messages, field by field, and charges the memory that protobuf will need. It omits the only
large field of a TensorProto and adds a `segment` with its position, a field that no reader of ONNX supports in a file.
Source: field numbers and messages of onnx.proto.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from typing import Any

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx.lists import LONG, ListPart, long_lists
from cgraph.formats.onnx.onnx_messages import messages
from cgraph.formats.onnx.wire import BYTES, Field, count_of_numbers, encode_varint, fields
from cgraph.record import Record

TENSOR, ATTRIBUTE = "onnx.TensorProto", "onnx.AttributeProto"
SEGMENT = 3  # field number in a TensorProto
FLOATS, INT32S, INT64S, RAW, DOUBLES, UINT64S = 4, 5, 7, 9, 10, 11
DATA = (FLOATS, INT32S, INT64S, RAW, DOUBLES, UINT64S)
LARGE = 1024  # bytes
OMITTED = {
    "value_info",
    "metadata_props",
    "training_info",
    "quantization_annotation",
    "configuration",
    "device_configurations",
}
"""Names of the fields that importers do not read."""
DEEPEST = 100  # nesting depth of messages, as in protobuf
# bytes of memory, measured with protobuf 6 (upb), whose arrays have up to as much spare capacity
NUMBER, TEXT, MESSAGE, MEMBER = 16, 32, 48, 12  # of a number; a text; a message; each possible field of a message
CUT = 1000  # bytes of memory of one range that is omitted
WORK = 100  # cost of visiting a field, in computed elements
Piece = memoryview | bytes
Cut = tuple[int, int, list[Piece]]
"""A range of bytes, and what replaces it."""


class Kind(Record, eq=False):
    """A message type.

    Fields
        name: its name in onnx.proto
        nbytes: bytes of memory of one message
        inner: names of inner message types, by field number
        numbers, floats: fields of integers, and of numbers of 4 and 8 bytes; both may be packed
        documentation: fields that are skipped where they are large
        omitted: fields that are skipped
    """

    name: str
    nbytes: int
    inner: Mapping[int, str]
    numbers: frozenset[int]
    floats: frozenset[int]
    documentation: frozenset[int]
    omitted: frozenset[int]


@cache
def kinds() -> dict[str, Kind]:
    """Return the message types inside a ModelProto, by name."""
    model = messages().ModelProto
    from google.protobuf.descriptor import FieldDescriptor as Types

    integers = {Types.CPPTYPE_INT32, Types.CPPTYPE_INT64, Types.CPPTYPE_UINT64, Types.CPPTYPE_ENUM}
    floats = {Types.CPPTYPE_FLOAT, Types.CPPTYPE_DOUBLE}
    kinds_by_name: dict[str, Kind] = {}
    waiting: list[Any] = [model.DESCRIPTOR]
    while waiting:
        message = waiting.pop()
        if message.full_name in kinds_by_name:
            continue
        inner = {f.number: f.message_type for f in message.fields if f.message_type is not None}
        types = {f.number: f.cpp_type for f in message.fields}
        kinds_by_name[message.full_name] = Kind(
            message.full_name,
            MESSAGE + MEMBER * len(message.fields),
            {number: kind.full_name for number, kind in inner.items()},
            frozenset(number for number, kind in types.items() if kind in integers),
            frozenset(number for number, kind in types.items() if kind in floats),
            frozenset(f.number for f in message.fields if f.name == "doc_string"),
            frozenset(f.number for f in message.fields if f.name in OMITTED),
        )
        waiting += inner.values()
    return kinds_by_name


def split_model(data: memoryview, allowance: Allowance) -> bytes:
    """Return the model without large tensors. FormatError if the bytes are not a message or would cost too much."""
    splitter = Splitter(data, allowance, kinds())
    pieces = splitter.pieces(0, len(data), "onnx.ModelProto", 0)
    splitter.charge()
    return b"".join(pieces)


class Splitter:
    """Walks the messages of one model. Changes: it counts the memory that protobuf will need.

    Fields
        data, kinds: the file, and its message types
        nbytes, work: costs since the last charge
    """

    def __init__(self, data: memoryview, allowance: Allowance, kinds: Mapping[str, Kind]) -> None:
        self.data, self.allowance, self.kinds = data, allowance, kinds
        self.nbytes = self.work = 0

    def charge(self) -> None:
        """Charge the counted costs."""
        self.allowance.spend("its parsed form", self.nbytes, self.work)
        self.nbytes = self.work = 0

    def pieces(self, start: int, stop: int, name: str, depth: int) -> list[Piece]:
        """Return the pieces of the message in a range, without omitted data."""
        if depth > DEEPEST:
            raise FormatError(f"messages are nested more than {DEEPEST} deep")
        kind = self.kinds[name]
        is_tensor, inner = name == TENSOR, kind.inner
        is_long_attribute = name == ATTRIBUTE and stop - start >= LONG
        lists = long_lists(self.data, start, stop, self.allowance) if is_long_attribute else []
        cuts = [self.list_cut(part) for part in lists]
        data: Field | None = None  # the last field of a tensor's data: of very many, none is remembered
        repeats = False
        for field in self.fields_without(lists, start, stop):
            number, wire, begin, first, last = field
            self.work += WORK
            if is_tensor and number == SEGMENT:
                raise FormatError("a tensor in segments is not supported. Save it in one piece")
            if wire != BYTES:
                self.nbytes += NUMBER
            elif is_tensor and number in DATA:
                if data is not None:
                    self.count(data, kind)
                data, repeats = field, data is not None
            elif number in kind.omitted or number in kind.documentation and last - first >= LARGE:
                self.omit(begin, last, cuts)
            elif number in inner:
                cuts += self.message(field, inner[number], depth)
            else:
                self.count(field, kind)
            if self.work > WORK << 10:
                self.charge()
        if data is not None:
            cuts += self.large(data, repeats, kind)
        return self.joined(start, stop, sorted(cuts, key=lambda cut: cut[0]) if cuts else cuts)

    def fields_without(self, parts: list[ListPart], start: int, stop: int) -> Iterator[Field]:
        """Return the fields of a message that are not in parts of lists."""
        starts, stops = [start, *(part.stop for part in parts)], [*(part.begin for part in parts), stop]
        return chain.from_iterable(fields(self.data, *between) for between in zip(starts, stops))

    def list_cut(self, part: ListPart) -> Cut:
        """Return the replacement of a part of a list."""
        self.nbytes += CUT
        return part.begin, part.stop, [part.mark]

    def omit(self, start: int, stop: int, cuts: list[Cut]) -> None:
        """Add a range without a replacement to the cuts of a message."""
        if cuts and cuts[-1][1:] == (start, []):
            cuts[-1] = cuts[-1][0], stop, []
        else:
            self.nbytes += CUT
            cuts.append((start, stop, []))

    def message(self, field: Field, name: str, depth: int) -> list[Cut]:
        """Return the replacement of an inner message, if any."""
        self.nbytes += self.kinds[name].nbytes
        pieces = self.pieces(field.start, field.stop, name, depth + 1)
        length = sum(map(len, pieces))
        if length == field.stop - field.start and len(pieces) < 2:
            return []
        return [(field.begin, field.stop, [encode_varint(field.number << 3 | BYTES) + encode_varint(length), *pieces])]

    def large(self, data: Field, repeats: bool, kind: Kind) -> list[Cut]:
        """Omit the data of a tensor if it is large and in one field; count its last field otherwise."""
        if repeats or data.stop - data.start < LARGE:
            self.count(data, kind)
            return []
        begin, end = data.begin, data.stop
        place = b"\x08" + encode_varint(begin) + b"\x10" + encode_varint(end)
        return [(begin, end, [encode_varint(SEGMENT << 3 | BYTES) + encode_varint(len(place)) + place])]

    def count(self, field: Field, kind: Kind) -> None:
        """Add the cost of a field of packed numbers or text."""
        number, _, _, start, stop = field
        length = stop - start
        if number in kind.numbers:
            raw = self.data[start:stop]
            self.nbytes += TEXT + length + NUMBER * count_of_numbers(raw)
        else:
            self.nbytes += TEXT + length * (4 if number in kind.floats else 2)

    def joined(self, start: int, stop: int, cuts: list[Cut]) -> list[Piece]:
        """Return the pieces of a range with some parts replaced."""
        if not cuts:
            return [self.data[start:stop]] if start < stop else []
        chunks: list[Piece] = []
        for begin, end, pieces in cuts:
            chunks += [self.data[start:begin], *pieces] if start < begin else pieces
            start = end
        return [*chunks, self.data[start:stop]] if start < stop else chunks
