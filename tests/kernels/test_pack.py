"""Filters in the order in which kernels read them: each weight at its step, zeros elsewhere, in runs of any size."""

import numpy as np
import pytest

from cgraph.dtypes.storage import BFLOAT16
from cgraph.kernels.isa.x86 import AVX2, AVX512, PORTABLE
from cgraph.kernels.views import pack
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.pack import pack_bias, pack_conv, runs_of
from cgraph.kernels.views.window import Window

SHAPES = {
    "whole blocks": ConvShape(16, 9, 9, 32, AVX2, Window((3, 3))),
    "parts of blocks": ConvShape(13, 9, 9, 21, AVX2, Window((3, 2))),
    "fewer than a block": ConvShape(3, 9, 9, 5, AVX512, Window((1, 2))),
    "a point": ConvShape(20, 9, 9, 40, AVX512),
    "plain": ConvShape(3, 9, 9, 21, AVX2, Window((2, 3)), is_plain=True),
    "float64": ConvShape(5, 9, 9, 6, PORTABLE, Window((2, 3)), dtype="f8"),
    "groups": ConvShape(32, 9, 9, 48, AVX2, Window((3, 2)), groups=4),
    "groups of one block": ConvShape(8, 9, 9, 8, AVX512, Window((2, 1)), groups=2),
}
every_shape = pytest.mark.parametrize("name", SHAPES)


def filters_of(shape):
    window = (shape.k, shape.c // shape.groups, *shape.window.kernel)
    return np.random.default_rng(0).standard_normal(window).astype(shape.dtype)


def packed_by_hand(shape, filters):
    """Weight by weight: what step, channel of the step and filter of the panel stand for."""
    out = np.zeros((shape.panels, len(shape.steps), shape.unroll, shape.panel_channels), filters.dtype)
    per_in, per_out = shape.c // shape.groups, shape.k // shape.groups
    for panel, step, u, j in np.ndindex(*out.shape):
        k, (c, row, column) = panel * shape.panel_channels + j, shape.steps[step]
        c += u + (0 if shape.is_plain else shape.panel_blocks[0][panel] * shape.lanes)
        if k < shape.k and c < shape.c and k // per_out == c // per_in:
            out[panel, step, u, j] = filters[k, c % per_in, row, column]
    return out


@every_shape
def test_each_weight_is_at_its_step(name):
    shape = SHAPES[name]
    filters = filters_of(shape)
    np.testing.assert_array_equal(pack_conv(shape, filters), packed_by_hand(shape, filters))


@pytest.mark.parametrize("k", [37, 54, 100])
def test_wide_panels_come_before_narrow_ones(k):
    shape = ConvShape(12, 5, 7, k, AVX2, Window((3, 2)), is_mixed=True)
    filters, scale = filters_of(shape), np.arange(1, k + 1).astype("f4")
    packed, scaled, at, first = pack_conv(shape, filters), pack_conv(shape, filters, scale), 0, 0
    assert len(shape.parts) == 2
    for part in shape.parts:
        some = slice(first, first + part.k)
        want = packed_by_hand(part, filters[some]).ravel()
        np.testing.assert_array_equal(packed[at : at + want.size], want)
        want = packed_by_hand(part, filters[some] * scale[some, None, None, None]).ravel()
        np.testing.assert_array_equal(scaled[at : at + want.size], want)
        at, first = at + want.size, first + part.k
    assert at == packed.size


@every_shape
def test_each_filter_is_scaled_by_its_own_factor(name):
    shape = SHAPES[name]
    filters, scale = filters_of(shape), np.arange(1, shape.k + 1).astype(shape.dtype)
    want = packed_by_hand(shape, filters * scale[:, None, None, None])
    np.testing.assert_array_equal(pack_conv(shape, filters, scale), want)


@pytest.mark.parametrize("nbytes", [1, 2000, 10**9])
@every_shape
def test_the_size_of_a_run_changes_nothing(name, nbytes, monkeypatch):
    monkeypatch.setattr(pack, "PIECE", nbytes)
    shape = SHAPES[name]
    filters = filters_of(shape)
    np.testing.assert_array_equal(pack_conv(shape, filters), packed_by_hand(shape, filters))


def test_runs_are_whole_panels_of_about_a_piece_and_then_the_rest(monkeypatch):
    filters = np.arange(11 * 2.0).reshape(11, 2, 1, 1)
    monkeypatch.setattr(pack, "PIECE", 2 * filters[:4].nbytes)
    runs = [(first, len(part)) for first, part in runs_of(filters, None, 4, True)]
    assert runs == [(0, 8), (8, 3)]
    assert [(first, len(part)) for first, part in runs_of(filters, None, 4, False)] == [(0, 4), (4, 4), (8, 3)]
    assert list(runs_of(filters[:0], None, 4, True)) == []


def test_filters_of_a_storage_dtype_keep_it_and_others_take_the_images():
    shape = SHAPES["parts of blocks"]
    filters = filters_of(shape)
    assert pack_conv(shape, filters.astype("f8")).dtype == np.float32
    assert pack_conv(shape, filters.astype(BFLOAT16.dtype)).dtype == BFLOAT16.dtype


def test_a_bias_is_padded_with_zeros_to_the_last_panel():
    shape = SHAPES["parts of blocks"]
    bias = np.arange(1.0, 22)
    for x in (bias, bias.reshape(21, 1, 1)):
        got = pack_bias(shape, x)
        assert got.dtype == np.float32 and len(got) == shape.panels * shape.panel_channels == 24
        assert got.tolist() == [*bias, 0, 0, 0]
