"""Any number of rows goes through a function of a fixed batch, whose last batch is padded and cut again."""

import numpy as np
import pytest

from cgraph.ir.spec import Spec
from cgraph.storage.batches import in_batches, pad_rows


@pytest.mark.parametrize("count", range(8))
def test_every_row_gives_its_own_result(count):
    x, y = np.arange(2.0 * count).reshape(count, 2), np.arange(count, dtype="int64")
    calls = []

    def function(a, b, copy):
        assert copy is False and len(a) == len(b) == 3 and b.dtype == "int64"
        calls.append((a.copy(), b.copy()))
        return [a.sum(1), a.astype("float32") + b[:, None]]

    specs = [Spec((3,), np.dtype("float64")), Spec((3, 2), np.dtype("float32"))]
    sums, both = in_batches(function, [x, y], 3, specs)
    assert len(calls) == -(-count // 3) and sums.dtype == "float64" and both.dtype == "float32"
    np.testing.assert_array_equal(sums, x.sum(1))
    np.testing.assert_array_equal(both, x + y[:, None])
    if count % 3:
        assert not calls[-1][0][count % 3 :].any() and not calls[-1][1][count % 3 :].any()


def test_results_are_read_before_the_next_call_writes_them():
    memory = np.empty(2)

    def function(x, copy):
        memory[:] = x * 2
        return [memory]

    (got,) = in_batches(function, [np.arange(5.0)], 2, [Spec((2,), np.dtype("float64"))])
    assert got.tolist() == [0, 2, 4, 6, 8]


def test_a_whole_batch_is_not_copied():
    x = np.ones((2, 3), "float32")
    assert pad_rows(x, 2) is x
    assert pad_rows(x, 4).tolist() == [[1, 1, 1]] * 2 + [[0, 0, 0]] * 2 and pad_rows(x, 4).dtype == "float32"
