"""Large tensors out of a serialised ModelProto, without parsing them: the rest becomes small, they stay where they lie.

Protobuf would copy every weight twice. Here only three levels are walked, model, graph and initialiser, each field by
its tag and length; a large ``raw_data`` (or packed ``float_data``, ``double_data``, which have the same bytes) is left
out of the copy and remembered as a range of the file. Sources: protobuf.dev/programming-guides/encoding; field numbers
of onnx.proto.
"""

from collections.abc import Iterator

from cgraph.errors import FormatError
from cgraph.record import Record

GRAPH, INITIALIZER, NAME = 7, 5, 8
DATA = {4: "float32", 9: None, 10: "float64"}  # a packed field holds one dtype
LARGE = 1024  # bytes
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Field(Record):
    """One field: its number and kind, where it begins, and its content (for BYTES)."""

    number: int
    kind: int
    begin: int
    content: range


class Split(Record):
    """A model without its large tensors' data, and where in the file that lies, by initialiser."""

    small: bytes
    spans: dict[str, range]


def split_model(data: memoryview) -> Split:
    """Take the large tensors out. FormatError when the bytes are no message or two initialisers have one name."""
    spans: dict[str, range] = {}
    small = bytearray()
    for field in fields(data, range(len(data))):
        if field.number == GRAPH and field.kind == BYTES:
            append(small, GRAPH, without_weights(data, field.content, spans))
        else:
            small += data[field.begin : field.content.stop]
    return Split(bytes(small), spans)


def without_weights(data: memoryview, where: range, spans: dict[str, range]) -> bytearray:
    """A GraphProto whose large initialisers have lost their data."""
    small = bytearray()
    for field in fields(data, where):
        if field.number == INITIALIZER and field.kind == BYTES and len(field.content) >= LARGE:
            append(small, INITIALIZER, without_data(data, field.content, spans))
        else:
            small += data[field.begin : field.content.stop]
    return small


def without_data(data: memoryview, where: range, spans: dict[str, range]) -> bytearray:
    """A TensorProto without its data, if that is one large field."""
    found = list(fields(data, where))
    stored = [f for f in found if f.number in DATA and f.kind == BYTES]
    names = [f for f in found if f.number == NAME and f.kind == BYTES]
    if len(stored) != 1 or len(stored[0].content) < LARGE or not names:
        return bytearray(data[where.start : where.stop])
    try:
        name = str(data[names[-1].content.start : names[-1].content.stop], "utf-8")
    except UnicodeDecodeError:
        raise FormatError("an initialiser's name is not UTF-8") from None
    if name in spans:
        raise FormatError(f"two initialisers are called {name!r}")
    spans[name] = stored[0].content
    small = bytearray()
    for f in found:
        if f is not stored[0]:
            small += data[f.begin : f.content.stop]
    return small


def fields(data: memoryview, where: range) -> Iterator[Field]:
    """The fields of the message in a range of bytes, in order."""
    at = where.start
    while at < where.stop:
        begin = at
        tag, at = varint(data, at, where.stop)
        kind = tag & 7
        if kind == VARINT:
            _, end = varint(data, at, where.stop)
        elif kind == BYTES:
            length, at = varint(data, at, where.stop)
            end = at + length
        elif kind in (FIXED64, FIXED32):
            end = at + (8 if kind == FIXED64 else 4)
        else:
            raise FormatError(f"byte {begin} begins a field of the unknown kind {kind}")
        if end > where.stop:
            raise FormatError(f"the field at byte {begin} reaches to {end}, its message ends at {where.stop}")
        yield Field(tag >> 3, kind, begin, range(at, end))
        at = end


def varint(data: memoryview, at: int, stop: int) -> tuple[int, int]:
    """A number of at most 64 bits, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= stop:
            raise FormatError(f"a number is cut off at byte {at}")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise FormatError(f"a number before byte {at} has more than 64 bits")


def append(out: bytearray, number: int, content: bytearray) -> None:
    """Add a field of bytes."""
    out += encoded(number << 3 | BYTES) + encoded(len(content)) + content


def encoded(value: int) -> bytes:
    """A number as a varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
