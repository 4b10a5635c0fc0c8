"""Tiles that add up all products of two vectors of bytes: missing steps, bytes less their middle, signs."""

import numpy as np
import pytest

from cgraph.kernels.conv8.across_emit import add_across, doubled_product, load_words
from cgraph.kernels.conv8.calls import MIDDLE, ByteShape, Result
from cgraph.kernels.views.window import Window
from tests.kernels.test_conv8 import SAME, check, form
from tests.support.emitted import run_emitted

TARGET = form("across")


@pytest.mark.parametrize("c", [1, 4, 13, 16, 20])
@pytest.mark.parametrize("window", [Window(), SAME], ids=str)
def test_steps_that_do_not_fill_a_vector(c, window):
    shape = ByteShape(c, 5, 6, 7, TARGET, window)
    assert shape.panel_weights % 64 == 0 and shape.panel_weights - 48 <= 16 * len(shape.steps) <= shape.panel_weights
    check((1, c, 5, 6, 7, window, 1), TARGET, Result("i4"))
    check((1, c, 5, 6, 7, window, 1), TARGET, Result("u1", 9, fixed="twice", bounded=True))


def test_images_of_depthwise_layers_keep_their_bytes():
    assert ByteShape(8, 5, 5, 8, TARGET, SAME, 8).middle == 0
    assert ByteShape(8, 5, 5, 8, TARGET, SAME).middle == MIDDLE == 128
    assert ByteShape(8, 5, 5, 8, form("halves"), SAME).middle == 0


def test_products_of_all_bytes_with_signs_words_at_offsets_and_doubled_products():
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-128, 128, 16, "i1") for _ in range(2))
    x[0] = y[0] = -128
    image, offsets = rng.integers(0, 256, 64, "u1"), np.array([8, 0, 60, 33], "i4")
    left, right = (rng.integers(-(2**30), 2**30, 4).astype("i4") for _ in range(2))
    sums, words, products = np.zeros(1, "i4"), np.zeros(4, "i4"), np.zeros(4, "i4")

    def write(k, x, y, image, offsets, left, right, *places):
        values = (
            add_across(k, k.const(7, "i4"), x.load(0, 16), y.load(0, 16)),
            load_words(k, image, offsets.load(0, 4)),
            doubled_product(k, left.load(0, 4), right.load(0, 4)),
        )
        for place, value in zip(places, values):
            place.store(value)

    run_emitted(write, TARGET, x.view("u1"), y.view("u1"), image, offsets, left, right, sums, words, products)
    assert sums[0] == 7 + x.astype(int) @ y.astype(int)
    assert words.tobytes() == b"".join(image[i : i + 4].tobytes() for i in offsets)
    assert products.tolist() == [(int(a) * int(b) + 2**30) >> 31 for a, b in zip(left, right)]
