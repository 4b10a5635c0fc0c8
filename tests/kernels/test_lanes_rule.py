"""The choice of the lanes of a layer's sums."""

from cgraph.kernels.conv.lanes_rule import gains_by_lanes
from cgraph.kernels.conv.transpose_calls import TransposedShape
from cgraph.kernels.target import target_named
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window import Window
from cgraph.record import replace
from tests.support.gpu import GPU

AVX2 = target_named("avx2")


def test_lanes_are_input_channels_where_results_fill_at_most_half_a_block():
    layer = ConvShape(64, 9, 9, 3, AVX2, Window((3, 3), pad=(1, 1, 1, 1)))
    assert gains_by_lanes(layer) and gains_by_lanes(replace(layer, k=1, c=8)) and gains_by_lanes(replace(layer, k=4))
    assert not any(map(gains_by_lanes, (replace(layer, k=5), replace(layer, is_plain=True), replace(layer, c=1))))
    assert not gains_by_lanes(replace(layer, c=63, groups=3))
    assert not gains_by_lanes(replace(layer, target=GPU))


def test_a_transposed_layer_has_the_taps_of_a_phase():
    decoder = TransposedShape(64, 9, 9, 3, AVX2, Window((4, 4), (2, 2), (1, 1, 1, 1)))
    assert gains_by_lanes(decoder)
    assert not gains_by_lanes(replace(decoder, c=8, window=Window((2, 2), (2, 2))))
