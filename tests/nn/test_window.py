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
