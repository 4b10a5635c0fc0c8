"""Tables of the rows that bands read: integers of 8 bytes, from one row on to the end."""

import numpy as np
import pytest

from cgraph.ir.cut import Cut, index_array, row_by_row


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_each_row_reads_the_same_row(rows):
    first, end = row_by_row(rows)
    assert (list(first), list(end)) == ([*range(rows)], [*range(1, rows + 1)])
    assert (first.typecode, first.itemsize) == ("q", 8)


def test_rows_of_any_dtype_and_order_are_stored_as_they_are():
    for rows in (np.arange(6, dtype="int8")[::-2], np.array([3, -1, 2**40]), np.zeros(0, "int32"), np.arange(4.0)):
        assert list(index_array(rows)) == rows.tolist()


def test_a_band_has_no_halo_and_any_number_of_rows_unless_told():
    cut = Cut((None,), lambda first, stop: (first, stop))
    assert (cut.above, cut.below, cut.step) == (0, 0, 1)
