"""Inception v3: the windows and branches of each block, and the sizes of the paper's table."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.models import inception_v3
from nn.models.inception_v3 import Forked, InceptionV3, block_8, block_17, block_35, chain, conv, pooling_branch
from tests.nn.support import assert_close, draw, run


def filters(layer):
    """Shapes of all filters, in the order of the branches."""
    return [x.shape for x in layer.variables().values() if x.ndim == 4]


def test_sizes_after_each_block_are_those_of_the_paper():
    """Table 1 of arXiv:1512.00567: 35 x 35 x 192 to 288, 17 x 17 x 768, 8 x 8 x 1280 and 2048."""
    model = inception_v3(None)
    x = model.stem(cg.Var((1, 3, 299, 299)))
    shapes = [x.shape]
    for part in model.parts:
        x = part(x)
        shapes.append(x.shape)
    assert [(c, h) for _, c, h, w in shapes if h == w] == [
        *((192, 35), (256, 35), (288, 35), (288, 35)),
        *((768, 17),) * 5,
        *((1280, 8), (2048, 8), (2048, 8)),
    ]


def test_branches_at_35_pixels():
    assert filters(block_35(192, 32, False)) == [
        (64, 192, 1, 1),
        *((48, 192, 1, 1), (64, 48, 5, 5)),
        *((64, 192, 1, 1), (96, 64, 3, 3), (96, 96, 3, 3)),
        (32, 192, 1, 1),
    ]


def test_branches_at_17_pixels_have_rows_before_columns_and_the_other_way_round():
    assert filters(block_17(128, False)) == [
        (192, 768, 1, 1),
        *((128, 768, 1, 1), (128, 128, 1, 7), (192, 128, 7, 1)),
        *((128, 768, 1, 1), (128, 128, 7, 1), (128, 128, 1, 7), (128, 128, 7, 1), (192, 128, 1, 7)),
        (192, 768, 1, 1),
    ]


def test_branches_at_8_pixels_fork():
    fork = [(384, 384, 1, 3), (384, 384, 3, 1)]
    assert filters(block_8(1280, False)) == [
        (320, 1280, 1, 1),
        *((384, 1280, 1, 1), *fork),
        *((448, 1280, 1, 1), (384, 448, 3, 3), *fork),
        (192, 1280, 1, 1),
    ]


def test_a_fork_reads_its_stem_twice_the_wide_result_first():
    layer, x = Forked(chain(2, (3, 1)), 3, 4), draw(1, 2, 5, 6)
    wide, tall = run(layer, x)
    stem = run(layer.stem, x)
    np.testing.assert_array_equal(wide, run(layer.wide, stem))
    np.testing.assert_array_equal(tall, run(layer.tall, stem))
    assert layer.wide.window == (1, 3) and layer.tall.window == (3, 1) and wide.shape == tall.shape == (1, 4, 5, 6)


def test_a_chain_pads_where_it_has_no_stride():
    parts = chain(3, (4, 5), (6, (1, 7)), (8, 3, 2)).parts
    assert [(x.inputs, x.outputs, x.window, x.stride, x.pad) for x in parts] == [
        (3, 4, 5, 1, "same"),
        (4, 6, (1, 7), 1, "same"),
        (6, 8, 3, 2, "valid"),
    ]


@pytest.mark.parametrize("torch", [False, True])
def test_only_torch_counts_the_zeros_around_a_picture_in_means(torch):
    pool = pooling_branch(1, 1, torch).parts[0]
    got = run(pool, np.full((1, 1, 3, 3), 9, np.float32))[0, 0]
    np.testing.assert_array_equal(got, [[4, 6, 4], [6, 9, 6], [4, 6, 4]] if torch else np.full((3, 3), 9))
    model = InceptionV3(5, torch)
    pools = [x for x in model.layers().values() if isinstance(x, nn.AvgPool2d)]
    assert len(pools) == 9 and {x.count_pad for x in pools} == {torch}


def test_every_norm_has_tensorflows_eps_and_results_are_shares():
    model = inception_v3(None, 5)
    assert {x.eps for x in model.layers().values() if isinstance(x, nn.BatchNorm)} == {1e-3}
    assert conv(3, 8, 3).eps == 1e-3
    node = model(cg.Var((2, 3, 75, 75)))
    assert node.shape == (2, 5) and node.op.name == "softmax"


def test_blocks_concatenate_branches_along_the_channels():
    block, x = nn.initialise(block_35(4, 32, False), 0), draw(1, 4, 5, 5)
    parts = [run(part, x) for part in block.parts]
    assert_close(run(block, x), np.concatenate(parts, 1))
