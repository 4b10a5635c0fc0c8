"""Large tensors out of a serialised ModelProto, without parsing them: the rest becomes small, they stay where they lie.

Protobuf would copy every weight twice, and makes up to a hundred bytes of each byte of other fields. So all messages
are walked first, each field by its tag and length: what protobuf will make of it is charged before it is parsed, and
the only large field of a TensorProto is left out of the copy. In its place the tensor has a `segment`, which no
reader of ONNX supports in a file, that says where the field lies. Source: field numbers and messages of onnx.proto.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from cgraph.errors import FormatError, UnavailableError
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx.wire import BYTES, Field, count_of_numbers, encode_varint, fields
from cgraph.record import Record

TENSOR = "onnx.TensorProto"
SEGMENT = 3  # its number among a tensor's fields
FLOATS, INT32S, INT64S, RAW, DOUBLES, UINT64S = 4, 5, 7, 9, 10, 11
DATA = (FLOATS, INT32S, INT64S, RAW, DOUBLES, UINT64S)
LARGE = 1024  # bytes
DEEPEST = 100  # messages within one another, as protobuf has it
# bytes in memory, measured with protobuf 6 (upb), whose arrays have up to as much room again
NUMBER, TEXT, MESSAGE, MEMBER = 16, 32, 48, 12  # a number; a text; a message, and for each field that it may have
WORK = 500  # elements that could be computed while a field is looked at
Piece = memoryview | bytes


class Kind(Record, eq=False):
    """A kind of message.

    Fields
        name: in onnx.proto
        nbytes: what one takes in memory
        inner: the names of the messages in it, by the field's number
        numbers, floats: fields that hold whole numbers, or numbers of 4 and 8 bytes; both may be packed
        unread: texts for people
    """

    name: str
    nbytes: int
    inner: Mapping[int, str]
    numbers: frozenset[int]
    floats: frozenset[int]
    unread: frozenset[int]


@cache
def kinds() -> dict[str, Kind]:
    """The messages that a ModelProto may have in it, by name."""
    try:
        from google.protobuf.descriptor import FieldDescriptor as Types
        from onnx import ModelProto
    except ImportError:
        raise UnavailableError("ONNX files need the package onnx: pip install 'cgraph[onnx]'") from None
    integers = {Types.CPPTYPE_INT32, Types.CPPTYPE_INT64, Types.CPPTYPE_UINT64, Types.CPPTYPE_ENUM}
    floats = {Types.CPPTYPE_FLOAT, Types.CPPTYPE_DOUBLE}
    kinds_by_name: dict[str, Kind] = {}
    waiting: list[Any] = [ModelProto.DESCRIPTOR]
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
        )
        waiting += inner.values()
    return kinds_by_name


def split_model(data: memoryview, allowance: Allowance) -> bytes:
    """The model without its tensors' large data. FormatError when the bytes are no message, or would take too much."""
    splitter = Splitter(data, allowance, kinds())
    pieces = splitter.pieces(0, len(data), "onnx.ModelProto", 0)
    splitter.charge()
    return b"".join(pieces)


class Splitter:
    """Walks the messages of one model. Changes: it counts what protobuf will make of the fields.

    Fields
        data, kinds: the file, and the kinds of messages in it
        nbytes, work: what was counted since the last charge
    """

    def __init__(self, data: memoryview, allowance: Allowance, kinds: Mapping[str, Kind]) -> None:
        self.data, self.allowance, self.kinds = data, allowance, kinds
        self.nbytes = self.work = 0

    def charge(self) -> None:
        """Spend what was counted."""
        self.allowance.spend("its parsed form", self.nbytes, self.work)
        self.nbytes = self.work = 0

    def pieces(self, start: int, stop: int, name: str, depth: int) -> list[Piece]:
        """The message in a range, without what is left out."""
        if depth > DEEPEST:
            raise FormatError(f"messages lie more than {DEEPEST} deep in one another")
        kind = self.kinds[name]
        cuts: list[tuple[int, int, list[Piece]]] = []  # from where to where, and what is there in its place
        stored: list[Field] = []
        for field in fields(self.data, start, stop):
            self.work += WORK
            if name == TENSOR and field.number == SEGMENT:
                raise FormatError("a tensor in segments is not supported")
            if name == TENSOR and field.number in DATA and field.kind == BYTES:
                stored.append(field)
            elif field.kind == BYTES and field.number in kind.inner:
                cuts += self.message(field, kind.inner[field.number], depth)
            elif field.kind == BYTES and field.number in kind.unread and field.stop - field.start >= LARGE:
                cuts.append((field.begin, field.stop, []))
            else:
                self.count(field, kind)
            if self.work > WORK << 10:
                self.charge()
        cuts += self.large(stored, kind)
        return self.joined(start, stop, sorted(cuts, key=lambda cut: cut[0]))

    def message(self, field: Field, name: str, depth: int) -> list[tuple[int, int, list[Piece]]]:
        """What takes the place of a message within another, if anything does."""
        self.nbytes += self.kinds[name].nbytes
        pieces = self.pieces(field.start, field.stop, name, depth + 1)
        length = sum(map(len, pieces))
        if length == field.stop - field.start and len(pieces) < 2:
            return []
        return [(field.begin, field.stop, [encode_varint(field.number << 3 | BYTES) + encode_varint(length), *pieces])]

    def large(self, stored: list[Field], kind: Kind) -> list[tuple[int, int, list[Piece]]]:
        """The only data of a tensor, if it is large, is left out; any other is counted."""
        if len(stored) != 1 or stored[0].stop - stored[0].start < LARGE:
            for field in stored:
                self.count(field, kind)
            return []
        begin, end = stored[0].begin, stored[0].stop
        place = b"\x08" + encode_varint(begin) + b"\x10" + encode_varint(end)
        return [(begin, end, [encode_varint(SEGMENT << 3 | BYTES) + encode_varint(len(place)) + place])]

    def count(self, field: Field, kind: Kind) -> None:
        """Add what a field of numbers or text takes."""
        length = field.stop - field.start
        if field.kind != BYTES:
            self.nbytes += NUMBER
        elif field.number in kind.numbers:
            raw = self.data[field.start : field.stop]
            self.nbytes += TEXT + length + NUMBER * count_of_numbers(raw)
        else:
            self.nbytes += TEXT + length * (4 if field.number in kind.floats else 2)

    def joined(self, start: int, stop: int, cuts: list[tuple[int, int, list[Piece]]]) -> list[Piece]:
        """A range in which some parts have others in their place."""
        if not cuts:
            return [self.data[start:stop]] if start < stop else []
        chunks: list[Piece] = []
        for begin, end, pieces in cuts:
            chunks += [self.data[start:begin], *pieces] if start < begin else pieces
            start = end
        return [*chunks, self.data[start:stop]] if start < stop else chunks
