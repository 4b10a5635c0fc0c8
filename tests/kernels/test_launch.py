"""The native launcher of a GPU's kernels passes each row to the driver as it stands, and ends where one is refused."""

import ctypes

import numpy as np
import pytest

from cgraph.engine.cuda.gpu import launcher
from cgraph.kernels.launch.emit import COLUMNS

DRIVER = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *[ctypes.c_uint32] * 7, *[ctypes.c_void_p] * 3)
STREAM = 0x1234


def launched(rows, codes):
    """Launch rows by a driver that returns these codes; the launches, the number of rows, the last code."""
    launches, answers = [], iter(codes)

    def driver(function, *rest):
        *sizes, stream, parameters, extra = rest
        launches.append((function, sizes, stream, extra, parameters))
        places.append(list((ctypes.c_void_p * 2).from_address(parameters)))
        return next(answers)

    places: list[list[int]] = []
    table, code, own = np.array(rows, np.int64).reshape(-1, COLUMNS), np.array([77], np.int64), DRIVER(driver)
    at = ctypes.cast(own, ctypes.c_void_p).value
    count = launcher()(table.ctypes.data, len(table), STREAM, at, code.ctypes.data)
    return launches, places, table, count, int(code[0])


def test_each_row_is_one_launch_in_order():
    rows = [[100, 7, 32, 4000, 200], [101, 1 << 20, 256, 5000, 1 << 40]]
    launches, places, table, count, code = launched(rows, [0, 0])
    assert (count, code) == (2, 0)
    for (function, blocks, threads, _, _), launch in zip(rows, launches):
        assert launch[:4] == (function, [blocks, 1, 1, threads, 1, 1, 0], STREAM, None)
    for i, (args, tasks) in enumerate(places):
        assert args == rows[i][3] and tasks == table[i:, 4:].ctypes.data


@pytest.mark.parametrize("refused", [0, 1, 2])
def test_the_first_refusal_ends_the_launches_and_its_code_is_told(refused):
    codes = [0] * refused + [700] + [0] * 9
    launches, _, _, count, code = launched([[i + 1, 1, 32, 1, 1] for i in range(3)], codes)
    assert (count, code, len(launches)) == (refused, 700, refused + 1)


def test_a_negative_code_keeps_its_sign():
    assert launched([[1, 1, 32, 1, 1]], [-3])[3:] == (0, -3)


def test_no_rows_are_no_launches():
    assert launched([], [])[0] == []
    assert launched([], [])[3:] == (0, 0)
