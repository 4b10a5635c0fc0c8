"""Tables of FlatBuffers: fields of each kind, those that are absent, and positions up to the last byte of the file."""

import struct

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.tflite.wire import Table, numbers, unpack
from tests.support.tflite_models import Table as Written
from tests.support.tflite_models import ints, written

FIELDS = Written({
    0: ("i", -5), 2: ints(1, 2, 3), 3: "é", 4: Written({0: ("b", 7)}),
    5: [Written({0: ("H", n)}) for n in (1, 2)], 6: ("d", 0.5),
})  # fmt: skip
ABSENT = (1, 7, 100)  # between others, behind the last, far behind


@pytest.fixture
def table():
    data = memoryview(written(FIELDS))
    return Table(data, unpack(data, 0, "I"))


def test_fields_of_each_kind_are_read_at_their_places(table):
    assert (table.number(0, "i"), table.number(6, "d"), table.text(3)) == (-5, 0.5, "é")
    assert table.vector(2, "int32").tolist() == [1, 2, 3] and table.vector(2, "int32").dtype == np.int32
    assert table.table(4).number(0, "b") == 7 and (table.count(2), table.count(5)) == (3, 2)
    assert [Table(table.data, int(at)).number(0, "H") for at in table.places(5)] == [1, 2]
    assert unpack(table.data, table.place(0), "i") == -5


@pytest.mark.parametrize("field", ABSENT)
def test_absent_fields_have_their_default(table, field):
    assert (table.place(field), table.vector(field, "int32"), table.table(field)) == (None, None, None)
    assert (table.number(field, "i"), table.number(field, "i", 9), table.text(field)) == (0, 9, "")
    assert table.count(field) == 0 and table.places(field).size == 0


def test_numbers_reach_the_last_byte_of_the_file_and_no_further():
    data = memoryview(bytes(range(12)))
    assert unpack(data, 8, "I") == 0x0B0A0908 and unpack(data, 11, "b") == 11
    for at, kind in ((9, "I"), (12, "b"), (-1, "b"), (5, "Q")):
        with pytest.raises(FormatError, match=f"an offset points to byte {at} of 12"):
            unpack(data, at, kind)
    assert (
        numbers(data, 4, 2, "uint32").tolist() == [0x07060504, 0x0B0A0908] and numbers(data, 12, 0, "int64").size == 0
    )
    for at, count, dtype in ((5, 2, "uint32"), (4, 3, "uint32"), (-1, 1, "uint8"), (0, 13, "uint8"), (13, 0, "uint8")):
        with pytest.raises(FormatError, match=f"{count} numbers at byte {at} exceed the 12 bytes of the file"):
            numbers(data, at, count, dtype)


@pytest.mark.parametrize(
    ("nbytes", "fits"),
    [(0, False), (2, False), (3, False), (4, True), (5, False), (6, True), (7, False), (44, True), (46, False)],
)
def test_a_vtable_has_whole_entries_behind_its_head_and_ends_in_the_file(nbytes, fits):
    """It lies behind its table here, 44 bytes before the end."""
    data = memoryview(struct.pack("<I4siHH", 8, b"TFL3", -4, nbytes, 4) + bytes(40))
    if fits:
        assert Table(data, 8).nbytes == nbytes and Table(data, 8).place(0) is None
        return
    with pytest.raises(FormatError, match=f"the table at byte 8 has a vtable of {nbytes} bytes at 12"):
        Table(data, 8)


@pytest.mark.parametrize("size", [8, 9, 10, 12])
def test_a_field_behind_the_end_of_a_vtable_is_absent(size):
    """Of a vtable of `size` bytes, which may end within an entry of another table."""
    vtable = struct.pack("<6H", size - size % 2, 8, 4, 6, 5, 7)
    data = memoryview(vtable + struct.pack("<i", 12) + struct.pack("<4B", 11, 12, 13, 14))
    table = Table(data, 12)
    fields = [table.number(i, "B", 99) for i in range(5)]
    count = (size - size % 2 - 4) // 2
    assert fields == [11, 13, 12, 14][:count] + [99] * (5 - count)
