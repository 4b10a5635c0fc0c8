"""The stamp of a Var's value: whoever has seen it knows where the value lies, whatever exception has come since."""

import numpy as np
import pytest

from cgraph.ir.spec import Spec
from cgraph.storage.cell import Cell, CellValue
from tests.support.injection import Lines

SPEC = Spec((3,), np.dtype("float64"))


class Copy:
    """A device's."""

    def fetched(self) -> np.ndarray:
        return np.arange(3.0)


def cell_of(shared: bool) -> Cell:
    cell = Cell()
    cell.value = CellValue(np.zeros(3), shared)
    cell.value.settle()
    return cell


ACTS = {
    "share": lambda cell: cell.share(),
    "write": lambda cell: cell.value.writable(SPEC, np.zeros(1, np.int64)),
    "share and write": lambda cell: (cell.share(), cell.value.writable(SPEC, np.zeros(1, np.int64))),
    "write on a device": lambda cell: setattr(cell.value, "newer", Copy()),
    "write on a device and fetch": lambda cell: (setattr(cell.value, "newer", Copy()), cell.value.array),
    "settle": lambda cell: cell.value.settle(),
}


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", ACTS)
def test_a_stamp_is_of_bytes_that_lie_where_they_lay_and_are_nobody_elses(name, shared):
    count = Lines()
    count.during(lambda: ACTS[name](cell_of(shared)))
    for at in range(len(count.seen) + 1):
        cell = cell_of(shared)
        value, lay, stamp = cell.value, cell.value.address, cell.value.stamp
        assert (stamp is None) == shared
        Lines(at).during(lambda c=cell: ACTS[name](c))
        seen = value.stamp
        if seen is not None:
            assert not value.shared and value.newer is None
        if seen is not None and seen == stamp:
            assert value.address == lay
        before = value.settle()
        assert before is None or value.settle() == before


def test_a_value_that_moves_gets_another_stamp():
    cell = cell_of(False)
    stamp = cell.value.stamp
    cell.share()
    assert cell.value.stamp is None
    cell.value.writable(SPEC, np.zeros(1, np.int64))
    assert cell.value.settle() not in (None, stamp)
