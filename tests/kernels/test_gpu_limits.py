"""Calls in blocks of threads count positions in 32 bits and walk few axes: with more there are none.

Nothing runs; views of one element that repeats have any size.
"""

import numpy as np
import pytest

from cgraph.kernels.expression import Trace
from cgraph.kernels.index import gpu_calls as index
from cgraph.kernels.index.signature import IndexedAxis
from cgraph.kernels.kernel import Call, Kernel, Pointer, View
from cgraph.kernels.move.gpu_calls import copy_calls
from cgraph.kernels.normalise.gpu_calls import channels_call, normalised_calls
from cgraph.kernels.pointwise.gpu_calls import pointwise_calls
from cgraph.kernels.reduce.gpu_calls import reduced_calls
from cgraph.kernels.regions import gpu_calls as regions
from cgraph.kernels.rows.gpu_calls import rows_calls
from cgraph.kernels.scan.gpu_calls import scan_calls
from cgraph.kernels.softmax.gpu_calls import softmax_calls
from cgraph.kernels.sort import gpu_calls as sort
from cgraph.kernels.team.gpu_calls import MOST_ELEMENTS, MOST_RANK
from cgraph.kernels.views.image_views import Planes
from cgraph.kernels.views.window import Window
from cgraph.kernels.window import gpu_calls as window

ARRAY = np.zeros(64, "f4")
AXIS = IndexedAxis(3, 4, None)
ROWS = {"start": Pointer(ARRAY), "start_step": 8, "blocks": 1, "n": 3, "m": 1}
TABLES = [np.zeros(1, "i4")] * 2


def view(*shape: int, step: int = 0) -> View:
    return View(Pointer(ARRAY), shape, (step,) * len(shape), "f4")


def planes(count: int) -> Planes:
    return Planes(1, 1, 1, count, Pointer(ARRAY), 0, 0, 0, 1)


def program():
    m = Trace()
    x = m.load(0, "f4")
    return m.program(x * x)


BY_VIEW = {
    "copy": lambda v: copy_calls(v, v),
    "gather": lambda v: index.gather_calls(v, v, v, AXIS),
    "scatter": lambda v: index.scatter_calls((v, v, v), 2, (4, 4), AXIS, "f4", "add", None),
    "triangle": lambda v: index.triangle_calls(v, v, 0, True),
    "search": lambda v: sort.search_calls(v, v, view(3), "f4", False),
    "sort": lambda v: sort.sort_calls((v, v, v), [4, 4, 4], 1, 1, ("f4", "i8", False, True), None),
    "scan": lambda v: scan_calls(v, v, (4, 4), 2, "add"),
    "softmax": lambda v: softmax_calls("softmax", (v, v), (4, 4), 2),
    "reduce": lambda v: reduced_calls("sum", program(), (0,), (v, v), (view(2),), 2),
}
BY_COUNT = {
    "rows": lambda n: rows_calls(True, view(3, 4), view(n), 4, ROWS),
    "row of a norm": lambda n: normalised_calls(view(1, n), view(1, n), None, None, "", 1, (1, 1, n), 1e-5),
    "segments of a norm": lambda n: normalised_calls(view(1, n), view(1, n), None, None, "", 1, (1, n, 1), 1e-5),
    "channels": lambda n: channels_call(Call(Kernel("one"), (), 1), n),
    "boxes": lambda n: regions.align_calls(Call(Kernel("one"), (), 1), n, 1),
    "pixels of boxes": lambda n: regions.spread_calls(Call(Kernel("one"), (), 1), 1, n, 1),
    "pool": lambda n: window.pool_calls("f4", planes(n), planes(1), Window((1, 1)), "max", TABLES),
    "places": lambda n: window.place_calls("f4", planes(n), planes(1), Window((1, 1)), TABLES),
    "spread": lambda n: window.spread_calls("f4", planes(n), planes(1), planes(1), Window((1, 1))),
    "resize": lambda n: window.resize_calls("f4", planes(n), planes(1), TABLES, ()),
}  # fmt: skip


@pytest.mark.parametrize("name", [*BY_VIEW, *BY_COUNT])
def test_there_are_calls_for_as_many_elements_as_32_bits_count(name):
    make = BY_COUNT.get(name) or (lambda n: BY_VIEW[name](view(1, n)))
    assert make(MOST_ELEMENTS - 1) is not None
    assert make(MOST_ELEMENTS) is None and make(MOST_ELEMENTS + 1) is None


@pytest.mark.parametrize("name", BY_VIEW)
def test_there_are_calls_for_as_many_axes_as_a_walk_has(name):
    """Axes of one element in front do not count, others do."""
    for shape in [(2,) * MOST_RANK, (1, 1, *(2,) * MOST_RANK), (2, *(1,) * (MOST_RANK - 1))]:
        assert BY_VIEW[name](view(*shape)) is not None, shape
    for shape in [(2,) * (MOST_RANK + 1), (2, *(1,) * MOST_RANK)]:
        assert BY_VIEW[name](view(*shape)) is None, shape


@pytest.mark.parametrize("n", [2, 4096, 5000])
def test_items_of_all_rows_count_where_rows_are_sorted(n):
    def sorted_rows(rows: int):
        v, room = view(1, rows), View(Pointer(ARRAY), (1 << 40,), (1,), "u1")
        return sort.sort_calls((v, v, v), [4, 4, 4], n, n, ("f4", "i8", False, True), room)

    assert sorted_rows((MOST_ELEMENTS - 1) // n) is not None and sorted_rows(-(-MOST_ELEMENTS // n)) is None


def test_a_pointwise_walk_counts_its_axes_after_they_are_merged():
    dense = View(Pointer(ARRAY), (2,) * 6, tuple(4 << i for i in range(5, -1, -1)), "f4")
    apart = View(Pointer(ARRAY), (2,) * 6, tuple(12 * 3**i for i in range(5, -1, -1)), "f4")
    assert pointwise_calls(program(), (1,), (dense,), (dense,)) is not None
    assert pointwise_calls(program(), (1,), (apart,), (apart,)) is None


@pytest.mark.parametrize("planes_of_boxes", [1, 2, 5])
def test_threads_of_boxes_are_counted_with_their_groups_of_planes(planes_of_boxes):
    call, groups = Call(Kernel("one", ("f4",)), (7,), 1), -(-planes_of_boxes // regions.EACH)
    (aligned,) = regions.align_calls(call, 1000, planes_of_boxes)
    (spread,) = regions.spread_calls(call, 3, 500, planes_of_boxes)
    assert (aligned.tasks, aligned.args) == (-(-1000 * groups // regions.ELEMENTS), (7,))
    assert (spread.tasks, spread.args) == (-(-1500 * groups // regions.ELEMENTS), (3, 7))
    assert {aligned.kernel.family, spread.kernel.family} == {"regions.gpu.align", "regions.gpu.spread"}
