"""Long lists of attributes: where they are in a file, and their items as arrays.

Protobuf needs 16 bytes for each number of a list and more for a string, and a forest has twelve items for each node. So
the splitter cuts long lists out of a file before protobuf parses the rest, and importers decode them chunk by chunk.

Most writers put a tag before each item; others put one tag and a length before many numbers ("packed"). A list may have
parts of both forms. Consecutive items with tags of their own are one part, and so is each packed field.

Source: protobuf.dev/programming-guides/encoding; field numbers of AttributeProto in onnx.proto.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from cgraph.errors import FormatError, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx.wire import (
    BYTES,
    CHUNK,
    FIXED32,
    LONGEST,
    VARINT,
    Field,
    chunks_of_numbers,
    count_of_numbers,
    encode_varint,
    fields,
    numbers_between,
)
from cgraph.kernels.mapped import release
from cgraph.record import Record

FLOATS, INTS, STRINGS = 7, 8, 9  # field numbers in an AttributeProto
TENSORS = 10  # the list of an AttributeProto that importers do not read; it gains a tensor for each part cut out
WIRE = {FLOATS: FIXED32, INTS: VARINT, STRINGS: BYTES}
TAG = {number: number << 3 | wire for number, wire in WIRE.items()}
"""The tag before each item of a list that is not packed."""
LONG = 1024  # bytes of a list that is cut out
USUAL = 64  # items with equal tags after which the next ones are found by NumPy
FIRST_CHUNK = 1 << 10  # bytes that are searched first, as the list may end there
MOST_PARTS = 64  # of a list; those of more are left to protobuf
FIELD_WORK, BYTE_WORK = 100, 16  # cost of a field, and of a byte that NumPy decodes, in computed elements
NUMBER_OBJECT, STRING_OBJECT = 40, 60  # bytes of an item of a Python list
SHORT, MEDIUM = 1 << 7, 1 << 14  # lengths of strings whose length has one byte, and two bytes


class ListPart(NamedTuple):
    """Consecutive items of a list: their field number, the range of their bytes with all tags, and their count."""

    number: int
    is_packed: bool
    begin: int
    stop: int
    size: int

    @property
    def mark(self) -> bytes:
        """The field of an AttributeProto that stands for the part: a tensor without data, whose segment is the part."""
        segment = b"\x08" + encode_varint(self.begin) + b"\x10" + encode_varint(self.stop)
        tensor = b"\x08" + encode_varint(self.size) + b"\x10" + bytes([self.number])
        tensor += b"\x1a" + bytes([len(segment)]) + segment
        return bytes([TENSORS << 3 | BYTES, len(tensor)]) + tensor

    @classmethod
    def marked(cls, data: memoryview, mark: Any) -> "ListPart":
        """Return the part that a TensorProto stands for."""
        begin, stop = mark.segment.begin, mark.segment.end
        return cls(mark.data_type, data[begin] != TAG[mark.data_type], begin, stop, mark.dims[0])


def long_lists(data: memoryview, start: int, stop: int, allowance: Allowance) -> list[ListPart]:
    """Return the parts of the long lists in a serialised AttributeProto, in the order of the file.

    A list of very many parts, or whose tags are longer than they need to be, is not among them.
    """
    parts: list[ListPart] = []
    unusual: set[int] = set()
    at = start
    while at < stop:
        at = walk(data, at, stop, parts, unusual, allowance)
        if parts and parts[-1].stop == at and not parts[-1].is_packed:
            last = parts[-1]
            end, count = end_of_items(data, at, stop, last.number, allowance)
            parts[-1] = last._replace(stop=end, size=last.size + count)
            at = end
    for number in TAG:
        own = [part for part in parts if part.number == number]
        if len(own) > MOST_PARTS or sum(part.stop - part.begin for part in own) < LONG:
            unusual.add(number)
    return [part for part in parts if part.number not in unusual]


def walk(
    data: memoryview, start: int, stop: int, parts: list[ListPart], unusual: set[int], allowance: Allowance
) -> int:
    """Visit fields one after the other, until the last ones are equal items or the message ends; return where.

    `parts` gains those that were found, and `unusual` the numbers of lists with unusual tags.
    """
    repeats = 0
    for field in fields(data, start, stop):
        allowance.spend("its parsed form", work=FIELD_WORK)
        part = part_of(data, field, allowance)
        repeats += 1
        if part is None or part.number in unusual:
            if field.kind == WIRE.get(field.number):
                unusual.add(field.number)
            repeats = 0
        elif part.is_packed or not parts or not joins(parts[-1], part):
            parts.append(part)
            repeats = 1
            if len(parts) > len(TAG) * MOST_PARTS:
                drop_many(parts, unusual)
        else:
            parts[-1] = parts[-1]._replace(stop=part.stop, size=parts[-1].size + 1)
        if repeats >= USUAL:
            return field.stop
    return stop


def drop_many(parts: list[ListPart], unusual: set[int]) -> None:
    """Remove the lists of very many parts, so that the parts take no memory in proportion to the file."""
    counts = Counter(part.number for part in parts)
    unusual.update(number for number, count in counts.items() if count > MOST_PARTS)
    parts[:] = [part for part in parts if part.number not in unusual]


def joins(before: ListPart, part: ListPart) -> bool:
    """Return True if an item continues a part."""
    return before.number == part.number and before.stop == part.begin and not before.is_packed


def part_of(data: memoryview, field: Field, allowance: Allowance) -> ListPart | None:
    """Return the part that is one field; None for another field, or an unusual tag. FormatError if it is damaged."""
    number, kind, begin, start, stop = field
    if number not in WIRE or kind not in (WIRE[number], BYTES):
        return None
    if kind == WIRE[number]:
        is_usual = data[begin] == TAG[number] and start - begin <= (1 if kind != BYTES else 2 + (stop - start >= SHORT))
        return ListPart(number, False, begin, stop, 1) if is_usual and stop - start < MEDIUM else None
    raw = data[start:stop]
    allowance.spend("its parsed form", work=len(raw))
    if number == FLOATS and len(raw) % 4 or number == INTS and len(raw) and raw[-1] >= 128:
        raise damaged_file(f"the last number of the list at byte {begin} is truncated")
    count = len(raw) // 4 if number == FLOATS else count_of_numbers(raw)
    release(np.frombuffer(raw, np.uint8))
    return ListPart(number, True, begin, stop, count)


def end_of_items(data: memoryview, at: int, stop: int, number: int, allowance: Allowance) -> tuple[int, int]:
    """Return where items with tags of their own end, and their number."""
    count, begin = 0, at
    for _, _, ends in chunks_of_items(data, at, stop, number, allowance, FIRST_CHUNK):
        count += len(ends)
        at += int(ends[-1])
    release(np.frombuffer(data[begin:at], np.uint8))
    return at, count


def chunks_of_items(
    data: memoryview, at: int, stop: int, number: int, allowance: Allowance, size: int = CHUNK
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield chunks of bytes with the range of each item in them, without its tag, until another field begins.

    Parameters
        size: bytes of the first chunk; each further one is twice as large, up to CHUNK
    """
    while at < stop:
        chunk = np.frombuffer(data[at : min(at + size, stop)], np.uint8)
        allowance.spend("its lists", work=BYTE_WORK * len(chunk))
        starts, ends = ITEMS[number](chunk)
        if not len(ends):
            return
        yield chunk, starts, ends
        at, size = at + int(ends[-1]), min(2 * size, CHUNK)


def tagged_floats(chunk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the floats at the beginning of a chunk start and end."""
    tags = chunk[: len(chunk) - 4 : 5] if len(chunk) > 4 else chunk[:0]
    starts = 5 * np.arange(count_first(tags == TAG[FLOATS])) + 1
    return starts, starts + 4


def tagged_ints(chunk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the integers at the beginning of a chunk start and end. A tag is a varint, too."""
    ends = np.flatnonzero(chunk < 128) + 1
    starts, ends = ends[:-1:2], ends[1::2]
    begins = np.concatenate([[0], ends[:-1]])[: len(ends)]
    fits = (chunk[begins] == TAG[INTS]) & (starts - begins == 1) & (ends - starts <= LONGEST)
    count = count_first(fits)
    return starts[:count], ends[:count]


def tagged_strings(chunk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the strings at the beginning of a chunk start and end.

    A byte that equals the tag may be inside of a string. Each string tells where the next one begins, so the strings
    are the candidates that are reached from the first one: by 1 step, 2 steps, 4 steps, and so on.
    """
    begins = np.flatnonzero(chunk[:-1] == TAG[STRINGS])
    low = chunk[begins + 1].astype(np.int64)
    high = chunk[np.minimum(begins + 2, len(chunk) - 1)].astype(np.int64)
    is_short = low < SHORT
    starts = begins + np.where(is_short, 2, 3)
    ends = starts + np.where(is_short, low, low - SHORT + SHORT * high)
    fits = (is_short | (high < SHORT) & (high > 0)) & (ends <= len(chunk))
    begins, starts, ends = begins[fits], starts[fits], ends[fits]
    if not len(begins) or begins[0]:
        return begins[:0], begins[:0]
    count = len(begins)
    if np.array_equal(begins[1:], ends[:-1]):
        return starts, ends
    following = np.minimum(np.searchsorted(begins, ends), count - 1)
    jump = np.append(np.where(begins[following] == ends, following, count), count)
    reached = np.zeros(1, np.int64)
    for _ in range(count.bit_length()):
        further = jump[reached]
        reached, jump = np.concatenate([reached, further[further < count]]), jump[jump]
    return starts[reached], ends[reached]


def count_first(fits: np.ndarray) -> int:
    """Return how many elements before the first False are True."""
    return len(fits) if fits.all() else int(np.argmin(fits))


ITEMS = {FLOATS: tagged_floats, INTS: tagged_ints, STRINGS: tagged_strings}


class LongList(Record, eq=False):
    """A list of an attribute that stays in the file.

    Fields
        data: the bytes of the file
        parts: its parts, in order
        name: of the attribute, for messages
        allowance: the remaining cost of reading the file
    """

    data: memoryview
    parts: Sequence[ListPart]
    name: str
    allowance: Allowance

    @property
    def is_numeric(self) -> bool:
        """Return True for a list of numbers."""
        return self.parts[0].number != STRINGS

    def __len__(self) -> int:
        return sum(part.size for part in self.parts)

    def array(self) -> np.ndarray:
        """Return numbers: float32; int32, or int64 if an integer does not fit. FormatError if they are malformed."""
        self.allowance.spend(f"attribute {self.name:.60}", nbytes=4 * len(self))
        array = np.empty(len(self), np.float32 if self.parts[0].number == FLOATS else np.int32)
        at = 0
        for part in self.parts:
            for numbers in self.numbers(part):
                if numbers.dtype.kind == "i" and array.dtype == np.int32 and not fits_int32(numbers):
                    self.allowance.spend(f"attribute {self.name:.60}", nbytes=8 * len(self))
                    array = array.astype(np.int64)
                array[at : at + len(numbers)] = numbers
                at += len(numbers)
            release(np.frombuffer(self.data[part.begin : part.stop], np.uint8))
        return array

    def numbers(self, part: ListPart) -> Iterator[np.ndarray]:
        """Yield the numbers of a part, chunk by chunk."""
        if part.is_packed:
            field = next(fields(self.data, part.begin, part.stop))
            raw = self.data[field.start : field.stop]
            self.allowance.spend(f"attribute {self.name:.60}", work=BYTE_WORK * len(raw))
            if part.number == FLOATS:
                yield np.frombuffer(raw, "<f4")
            else:
                yield from (numbers.view(np.int64) for numbers in chunks_of_numbers(raw))
            return
        for chunk, starts, ends in self.chunks(part):
            if part.number == FLOATS:
                yield np.ascontiguousarray(chunk[: len(ends) * 5].reshape(-1, 5)[:, 1:]).view("<f4")[:, 0]
            else:
                yield numbers_between(chunk, starts, ends).view(np.int64)

    def chunks(self, part: ListPart) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield chunks of bytes of a part with the range of each item in them."""
        return chunks_of_items(self.data, part.begin, part.stop, part.number, self.allowance)

    def tolist(self) -> list[Any]:
        """Return the items as Python objects: float, int or str."""
        nbytes = len(self) * (NUMBER_OBJECT if self.is_numeric else STRING_OBJECT)
        if self.is_numeric:
            self.allowance.spend(f"attribute {self.name:.60}", nbytes, nbytes)
            return self.array().tolist()
        letters = sum(part.stop - part.begin for part in self.parts)
        self.allowance.spend(f"attribute {self.name:.60}", nbytes + letters, nbytes + letters)
        items: list[str] = []
        for part in self.parts:
            for chunk, starts, ends in self.chunks(part):
                raw = chunk.tobytes()
                items += [raw[i:j].decode("utf-8", "replace") for i, j in zip(starts.tolist(), ends.tolist())]
        return items

    def indices(self, options: Sequence[str]) -> np.ndarray:
        """Return for each string its index in `options`, as uint8. FormatError for a string that is not an option."""
        self.allowance.spend(f"attribute {self.name:.60}", nbytes=len(self))
        unknown = len(options)
        array, at = np.full(len(self), unknown, np.uint8), 0
        for part in self.parts:
            for chunk, starts, ends in self.chunks(part):
                codes = array[at : at + len(ends)]
                for i, option in enumerate(options):
                    codes[equal_strings(chunk, starts, ends, option.encode())] = i
                if (codes == unknown).any():
                    first = int(np.argmax(codes == unknown))
                    text = chunk[starts[first] : ends[first]].tobytes().decode("utf-8", "replace")
                    raise unknown_option(self.name, text, options)
                at += len(ends)
            release(np.frombuffer(self.data[part.begin : part.stop], np.uint8))
        return array


def fits_int32(numbers: np.ndarray) -> bool:
    """Return True if int32 holds all integers."""
    limits = np.iinfo(np.int32)
    return not numbers.size or bool(limits.min <= numbers.min() and numbers.max() <= limits.max)


def equal_strings(chunk: np.ndarray, starts: np.ndarray, ends: np.ndarray, text: bytes) -> np.ndarray:
    """Return the indices of the strings in a chunk of bytes that equal a text."""
    alike = np.flatnonzero(ends - starts == len(text))
    for i in reversed(range(len(text))):  # options often have a common beginning
        alike = alike[chunk[starts[alike] + i] == text[i]]
    return alike


def unknown_option(name: str, text: str, options: Sequence[str]) -> FormatError:
    """Return the error for a string that is none of the options of an attribute."""
    return FormatError(f"{name} lists {text!r:.40}, which is not supported. Use {', '.join(options)}")
