"""Addresses and views: equal from the same byte alone, pieces of a workspace apart, orders of elements."""

import numpy as np
import pytest

from cgraph.kernels.control import BEGIN, BETWEEN, REPEAT, SKIP
from cgraph.kernels.kernel import Jump, Kernel, Pointer, View, collapse, contiguous, scratch_pointer, split_scratch
from cgraph.record import replace
from cgraph.system.alignment import ALIGNMENT


@pytest.mark.parametrize("sizes", [(1, 1), (3, 0, 5), (64, 1, 65), (0, 7), (100, 100, 100)])
def test_pieces_of_a_workspace_begin_at_cache_lines_and_do_not_meet(sizes):
    memory = contiguous(Pointer("memory", 128), (4096,), "u1")
    found = split_scratch(memory, *sizes)
    assert [view is None for view in found] == [n == 0 for n in sizes]
    places = [(view.at.offset, view.at.offset + view.size) for view in found if view is not None]
    assert all(start % ALIGNMENT == 0 for start, _ in places) and places[0][0] >= 128
    assert all(stop <= start for (_, stop), (start, _) in zip(places, places[1:]))


def test_pointers_are_equal_only_from_the_same_memory_at_the_same_byte():
    base = np.zeros(3)
    assert Pointer(base, 8) == Pointer(base, 8) and hash(Pointer(base, 8)) == hash(Pointer(base, 8))
    assert Pointer(base, 8) != Pointer(base, 16) and Pointer(base, 8) != Pointer(np.zeros(3), 8)


@pytest.mark.parametrize(
    ("shape", "strides", "other", "same"),
    [
        ((2, 3), (12, 4), (12, 4), True),
        ((2, 3), (4, 8), (4, 8), True),
        ((2, 3), (4, 8), (12, 4), False),
        ((2, 3), (24, 8), (12, 4), False),
    ],
)
def test_elements_are_in_one_order_only_if_their_strides_are(shape, strides, other, same):
    first, second = (View(Pointer("a"), shape, s, "f4") for s in (strides, other))
    assert first.in_order_of(second) is same is second.in_order_of(first)


def test_kernels_are_told_by_their_families():
    families = ["gemm.gpu.tile", "gemm.tile", "lapack.solve", "gpu_reduce.lapack.x", "reduce.gpu_like"]
    assert [Kernel(family).is_block for family in families] == [True, False, False, False, False]
    assert [Kernel(family).calls_lapack for family in families] == [False, False, True, False, False]
    assert str(Kernel("gemm.tile", ("f4", 8, True))) == "gemm.tile(f4, 8, True)" and str(Kernel("a.b")) == "a.b()"
    jumps = (BEGIN, "begin the rounds"), (REPEAT, "repeat"), (SKIP, "skip unless"), (BETWEEN, "skip unless between")
    for number, text in jumps:
        assert str(Jump(number)) == text


@pytest.mark.parametrize(
    ("shape", "strides", "dtype", "contiguous_"),
    [
        ((2, 3), (12, 4), "f4", True),
        ((2, 3), (24, 8), "f8", True),
        ((2, 3), (12, 4), "f8", False),
        ((2, 3), (4, 8), "f4", False),
        ((2, 3), (16, 4), "f4", False),
        ((2, 3), (-12, 4), "f4", False),
        ((2, 3), (0, 4), "f4", False),
        ((1, 3), (99, 4), "f4", True),
        ((3, 1), (4, 99), "f4", True),
        ((3, 1, 2), (8, 0, 4), "f4", True),
        ((), (), "f4", True),
        ((1, 1), (5, 7), "u1", True),
    ],
)
def test_elements_are_adjacent_in_c_order_whatever_the_strides_of_single_ones(shape, strides, dtype, contiguous_):
    view = View(Pointer("a"), shape, strides, dtype)
    assert view.is_contiguous is contiguous_
    other = (view.size, 1)
    if not contiguous_:
        with pytest.raises(ValueError, match="cannot be reshaped to .*Copy it first"):
            view.with_shape(*other)
        return
    assert view.with_shape(*other) == contiguous(Pointer("a"), other, dtype)


def test_views_show_the_same_elements_from_one_address_in_one_dtype():
    view = View(Pointer("a", 8), (2, 1, 3), (12, 99, 4), "f4")
    assert view.shows_same(View(Pointer("a", 8), (2, 1, 3), (12, 0, 4), "f4"))
    for other in (
        replace(view, at=Pointer("a", 12)), replace(view, at=Pointer("b", 8)), replace(view, dtype="i4"),
        replace(view, shape=(2, 1, 2)), replace(view, strides=(12, 99, 8)), replace(view, strides=(24, 99, 4)),
    ):  # fmt: skip
        assert not view.shows_same(other) and not other.shows_same(view)
    assert view.moved(-8) == replace(view, at=Pointer("a", 0)) and view.itemsize == 4 and view.size == 6


def test_a_workspace_is_large_enough_up_to_its_last_byte():
    memory = contiguous(Pointer("memory", 64), (50, 2), "i2")
    assert scratch_pointer(memory, 200) == memory.at
    for workspace, nbytes, size in ((memory, 201, 200), (None, 0, 0), (None, 8, 0)):
        with pytest.raises(ValueError, match=f"has {size} bytes, these calls need {nbytes}"):
            scratch_pointer(workspace, nbytes)
    exact = contiguous(Pointer("memory"), (64 + 3,), "u1")
    first, none, last = split_scratch(exact, 1, 0, 3)
    assert (first.at.offset, first.shape, none, last.at.offset, last.shape) == (0, (1,), None, 64, (3,))
    with pytest.raises(ValueError, match="has 67 bytes, these calls need 68"):
        split_scratch(exact, 1, 4)
    assert split_scratch(None, 0, 0) == [None, None] and split_scratch(exact, 67, 0)[1] is None


@pytest.mark.parametrize(
    ("shape", "strides", "merged"),
    [
        ((2, 3, 4), [(48, 16, 4)], ((24,), [(4,)])),
        ((2, 3, 4), [(48, 16, 4), (12, 4, 0)], ((6, 4), [(16, 4), (4, 0)])),
        ((2, 3, 4), [(48, 16, 4), (96, 16, 4)], ((2, 12), [(48, 4), (96, 4)])),
        ((2, 1, 4), [(16, 99, 4)], ((8,), [(4,)])),
        ((2, 3), [(0, 0)], ((6,), [(0,)])),
        ((3, 2), [(-8, -4)], ((6,), [(-4,)])),
        ((2, 3), [(4, 8)], ((2, 3), [(4, 8)])),
        ((1, 1), [(4, 8), (0, 0)], ((), [(), ()])),
        ((), [()], ((), [()])),
        ((2, 0, 3), [(12, 12, 4)], ((2, 0), [(12, 4)])),
    ],
)
def test_neighbouring_axes_that_are_one_for_every_operand_are_merged(shape, strides, merged):
    assert collapse(shape, *strides) == merged


def test_views_of_other_shapes_are_in_one_order_only_if_both_are_contiguous():
    at = Pointer("a")
    apart, fewer = (View(at, shape, (40, 4), "f4") for shape in ((2, 3), (2, 2)))
    assert apart.in_order_of(apart) and not apart.in_order_of(fewer) and not fewer.in_order_of(apart)
    assert contiguous(at, (2, 3), "f4").in_order_of(contiguous(at, (3, 4), "f8"))
    assert not contiguous(at, (2, 3), "f4").in_order_of(apart)


def test_a_pointer_is_no_number_and_no_text():
    assert Pointer("a", 8) != 8 and Pointer("a") != "a" and Pointer("a") != ("a", 0)
    assert Pointer("a", 3) + 5 == Pointer("a", 8)
