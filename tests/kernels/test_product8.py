"""Products of two computed matrices of bytes against int64: exact, on every form of every target."""

import numpy as np
import pytest

from cgraph.kernels.conv8.calls import ByteShape, Result
from cgraph.kernels.product8.calls import NEAR, ProductBatch, product8_calls, product8_nbytes
from cgraph.kernels.views.matrices import each_matrices
from tests.kernels.test_conv8 import FORMS, form, meaning
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of

pytestmark = pytest.mark.usefixtures("cuts")

LAYOUTS = ("rows", "columns", "apart", "heads", "one for all")
# batch, m, k, n
CASES = {
    "one number": ((), 1, 1, 1),
    "one row": ((2,), 1, 37, 40),
    "k mod 4, n mod lanes": ((3,), 5, 13, 19),
    "whole blocks": ((2, 2), 16, 64, 32),
    "many rows": ((), 131, 50, 65),
    "few columns": ((2,), 40, 130, 3),
}
RESULTS = {
    "bytes": Result("u1", 120),
    "bounded": Result("u1", 20, 20, 90),
    "floats": Result("f4"),
    "sums": Result("i4"),
}


def laid(x, layout):
    """The same numbers, with rows or columns side by side, neither, or matrices inside one another's rows."""
    if layout == "columns":
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout == "apart":
        return np.repeat(x, 3, axis=-1)[..., ::3]
    if layout == "heads" and x.ndim > 2:
        return np.ascontiguousarray(x.swapaxes(0, -2)).swapaxes(0, -2)
    if layout == "one for all" and x.ndim > 2:
        return np.broadcast_to(x.reshape(-1, *x.shape[-2:])[0], x.shape)
    return np.ascontiguousarray(x)


def check(
    case, target, layouts=("rows", "rows"), zeros=(131, 128), result=RESULTS["floats"], order="all", extreme=False
):
    batch, m, k, n = case
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (*batch, m, k)).astype("u1"), rng.integers(0, 256, (*batch, k, n)).astype("u1")
    if extreme:
        x[:], y[:] = 255, 0
    x, y = laid(x, layouts[0]), laid(y, layouts[1])
    sums = (x.astype("i8") - zeros[0]) @ (y.astype("i8") - zeros[1])
    scale = np.float32(1 / (70 * np.sqrt(k)))
    out = np.full(sums.shape, 99, result.dtype)
    views = [view_of(v) for v in (out, x, y)]
    room = np.full(product8_nbytes(target, *views, zeros) + 64, 0xAB, "u1")  # what was there before is not read
    room = room[-room.ctypes.data % 64 :][: len(room) - 64]
    run_calls(product8_calls(target, *views, zeros, float(scale), result, view_of(room)), target, order)
    flat = sums.reshape(1, -1, 1, sums.shape[-1])
    want = meaning(flat, np.full(flat.shape[1], scale), result).reshape(sums.shape)
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_sums_are_those_of_int64(case, name):
    check(case, form(name), zeros=(3, 250))


@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
def test_sides_lie_in_any_way(left, right):
    for case in CASES.values():
        check(case, form("host"), (left, right), (100, 7))


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("right", LAYOUTS)
def test_right_sides_are_packed_alike_on_every_target(right, name):
    check(CASES["k mod 4, n mod lanes"], form(name), ("rows", right))


@pytest.mark.parametrize("zeros", [(0, 128), (255, 128), (0, 0), (255, 255), (128, 1)])
@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS.keys())
def test_results_and_zero_points(result, zeros):
    check(CASES["many rows"], form("host"), zeros=zeros, result=result)


@pytest.mark.parametrize("order", ORDERS)
def test_tasks_in_any_order(order):
    check(CASES["whole blocks"], form("host"), ("heads", "columns"), (9, 200), order=order)


def test_the_largest_sums_do_not_saturate():
    for name in TARGETS:
        check(((), 3, 1 << 15, 4), form(name), zeros=(0, 255), result=RESULTS["sums"], extreme=True)


def test_many_matrices_are_packed_some_at_a_time():
    case = (9,), 128, 512, 128
    check(case, form("host"), zeros=(7, 5))
    x, y, out = (np.zeros((9, *sizes), "u1") for sizes in ((128, 512), (512, 128), (128, 128)))
    assert product8_nbytes(form("host"), *(view_of(v) for v in (out, x, y)), (0, 0)) < 1.2 * NEAR


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("zeros", [(7, 5), (7, 128)])
@pytest.mark.parametrize("near", [1, 40_000])
def test_some_matrices_after_the_other_share_the_room(near, zeros, order, monkeypatch):
    """One at a time, or several with fewer in the last group; with the terms of a zero point, and without."""
    monkeypatch.setattr("cgraph.kernels.product8.calls.NEAR", near)
    for layouts in (("rows", "rows"), ("one for all", "columns"), ("apart", "one for all")):
        check(((7,), 20, 70, 33), form("host"), layouts, zeros, order=order)


def test_as_many_products_are_packed_at_once_as_fit_and_one_at_least(monkeypatch):
    def count(matrices, near):
        monkeypatch.setattr("cgraph.kernels.product8.calls.NEAR", near)
        x, y, out = (view_of(np.zeros((matrices, *sizes), "u1")) for sizes in ((20, 70), (70, 33), (20, 33)))
        [some] = each_matrices(out, x, y, None)
        return ProductBatch.of(some, form("host"), (0, 5)).count

    one = ProductBatch(1, ByteShape(70, 1, 20, 33, form("host")), True).nbytes
    assert [count(9, near) for near in (0, one - 1, one, 2 * one - 1, 2 * one, 9 * one, 99 * one)] == [
        1,
        1,
        1,
        1,
        2,
        9,
        9,
    ]


def test_terms_need_room_only_beside_another_zero_point_than_the_middle():
    shape = ByteShape(70, 1, 20, 33, form("host"))
    without, with_terms = (ProductBatch(3, shape, has_terms) for has_terms in (False, True))
    assert with_terms.parts == (*without.parts[:4], 4 * 3 * 20) and without.parts[4] == 0
    left, right, starts, scales = without.parts[:4]
    columns = shape.panels * shape.panel_channels
    assert (right, starts, scales) == (3 * shape.weights_nbytes, 3 * 4 * columns, 4 * columns)
    assert left == without.rows.nbytes and without.rows.plane % 1024 == 64
