import numpy as np
import pytest

from cgraph.errors import ShapeError
from nn.layers.window import pads, same_pad, sizes


@pytest.mark.parametrize(
    ("pad", "want"),
    [("valid", (0, 0, 0, 0)), (2, (2, 2, 2, 2)), ((1, 2), (1, 2, 1, 2)), ((1, 2, 3, 4), (1, 2, 3, 4))],
)
def test_padding_is_given_before_and_after_every_axis(pad, want):
    assert pads(pad, (9, 9), (3, 3), (1, 1), (1, 1)) == want


@pytest.mark.parametrize("n", range(1, 12))
@pytest.mark.parametrize(("window", "stride", "dilation"), [(3, 1, 1), (3, 2, 1), (5, 3, 2), (2, 2, 1)])
def test_same_padding_gives_as_many_windows_as_pixels_over_stride(n, window, stride, dilation):
    extent = dilation * (window - 1) + 1
    add = same_pad(n, window, stride, dilation)
    assert (max(n + add, extent) - extent) // stride + 1 == -(-n // stride)


def test_a_wrong_number_of_sizes_and_an_unknown_word_are_refused():
    with pytest.raises(ShapeError, match="3 sizes for 2 axes. Pass one size"):
        sizes((1, 2, 3), 2)
    with pytest.raises(ShapeError, match="pad is 'full'. Use 'same'"):
        pads("full", (9,), (3,), (1,), (1,))


@pytest.mark.parametrize("number", [3, np.int64(3), np.uint8(3)], ids=lambda x: type(x).__name__)
def test_one_integer_of_any_kind_is_the_size_of_each_axis(number):
    assert sizes(number, 2) == (3, 3) and sizes([number, 2], 2) == (3, 2)
    assert pads(number, (9, 9), (3, 3), (1, 1), (1, 1)) == (3, 3, 3, 3)


@pytest.mark.parametrize("wrong", [2.5, None])
def test_other_values_than_sizes_are_named(wrong):
    with pytest.raises(ShapeError, match=f"{wrong} is not a size. Pass an integer, or one per axis"):
        sizes(wrong, 2)


def test_windows_apart_need_no_padding():
    """A negative amount would cut the image."""
    for n in range(1, 9):
        assert same_pad(n, 1, 3, 1) == 0
    assert pads("same", (5, 8), (1, 3), (3, 3), (1, 1)) == (0, 0, 0, 1)


@pytest.mark.parametrize("count", [1, 3, 5, 6])
def test_margins_are_one_or_two_for_each_axis(count):
    with pytest.raises(ShapeError, match=f"are {count} sizes for 2 axes"):
        pads(range(count), (9, 9), (3, 3), (1, 1), (1, 1))
    assert pads(range(4), (9, 9), (3, 3), (1, 1), (1, 1)) == (0, 1, 2, 3)
