"""Colours of blocks are told apart, by readers who see red and green alike too, and dark letters are read on them."""

from itertools import combinations

import numpy as np

from cgraph.view.text import COLOURS, colour_of

XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])  # D65
# what deuteranopia makes of linear red, green and blue: Machado, Oliveira and Fernandes 2009, doi 10.1109/TVCG.2009.113
DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)
LETTERS = "#1f2937"


def linear(colour):
    """Red, green and blue of ``#rrggbb`` as shares of light."""
    x = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)


def lab(light):
    """CIE L*a*b*, in which distances are those that people see."""
    x = XYZ @ light / WHITE
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def seen(colour):
    """A colour as most readers see it, and as those do who see red and green alike."""
    light = linear(colour)
    return lab(light), lab(np.clip(DEUTERANOPIA @ light, 0, 1))


def test_any_two_colours_are_told_apart_by_all_readers():
    for one, other in combinations(COLOURS, 2):
        assert min(np.linalg.norm(a - b) for a, b in zip(seen(one), seen(other))) > 10, (one, other)


def test_dark_letters_are_read_on_every_colour():
    """The contrast that WCAG 2.2 asks of small letters (1.4.3)."""
    for colour in COLOURS:
        light, dark = (XYZ[1] @ linear(x) for x in (colour, LETTERS))
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_colours_come_round_again():
    assert [colour_of(i) for i in range(2 * len(COLOURS))] == [*COLOURS, *COLOURS]
