"""Transposed convolutions of few results are products on plain images; all others stay in blocks."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.ir.traverse import post_order
from cgraph.kernels.isa.ptx import gpu_target
from cgraph.kernels.isa.thumb import CORTEX_M7
from cgraph.kernels.isa.thumb_mve import CORTEX_M55
from cgraph.kernels.target import host_target
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import to_physical
from cgraph.ops.physical.conv_transpose import BlockedConvTranspose
from cgraph.ops.physical.lanes import ToBlocked
from cgraph.ops.physical.pixel_transpose import PixelTranspose
from cgraph.passes import rewrite_graph
from tests.support.kernels import TARGETS
from tests.support.tolerance import assert_close

RNG = np.random.default_rng(2)


def layer(c, k, size, window, stride, pad=0, groups=1, x=None):
    x = cg.Var((2, c, size, size), name="x") if x is None else x
    filters = RNG.normal(size=(c, k // groups, window, window)).astype("float32")
    return x, cg.conv_transpose2d(x, filters, stride, pad, groups=groups)


def kinds(node, target=None):
    roots = to_physical(rewrite_graph((node,)), target or host_target(), LoweringOptions())
    return [type(n.op) for n in post_order(roots)]


FEW = {
    "windows side by side": (64, 1, 9, 2, 2),
    "of eight channels": (16, 8, 20, 2, 2),
    "overlapping": (32, 3, 40, 4, 2, 1),
    "three channels to three": (3, 3, 9, 2, 2),
    "one channel to one, small": (1, 1, 9, 3, 2, 1),
    "groups": (4, 4, 60, 4, 2, 1, 4),
}
MANY = {
    "of nine channels": (16, 9, 20, 2, 2),
    "many products for a pixel": (32, 8, 40, 4, 2, 1),
    "stride of one": (32, 2, 40, 3, 1, 1),
    "few overlapping pixels": (16, 3, 9, 4, 2, 1),
}


@pytest.mark.parametrize("case", FEW.values(), ids=FEW.keys())
def test_few_results_are_a_product_without_blocks(case):
    _, node = layer(*case)
    assert PixelTranspose in kinds(node) and ToBlocked not in kinds(node)


@pytest.mark.parametrize("case", MANY.values(), ids=MANY.keys())
def test_many_results_stay_in_blocks(case):
    assert BlockedConvTranspose in kinds(layer(*case)[1])


def test_targets_with_little_memory_or_one_lane_add_no_products():
    _, node = layer(*FEW["windows side by side"])
    for target in (CORTEX_M7, CORTEX_M55, gpu_target(9, 0)):
        assert PixelTranspose not in kinds(node, target), target.name


def test_filters_that_are_not_constant_add_no_products():
    x, f = cg.Var((1, 16, 9, 9), name="x"), cg.Var((16, 1, 2, 2), name="f")
    assert PixelTranspose not in kinds(cg.conv_transpose2d(x, f, 2))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", [*FEW.values(), *MANY.values()], ids=[*FEW, *MANY])
def test_a_network_has_the_values_of_the_reference_on_any_number_of_threads(case, target):
    """After a convolution in blocks, with a norm and an activation."""
    x = cg.Var((2, 5, case[2], case[2]), name="x")
    y = cg.relu(cg.conv2d(x, RNG.normal(size=(case[0], 5, 3, 3)).astype("float32"), 1, 1))
    _, z = layer(*case, x=y)
    scale = RNG.normal(size=(z.shape[1], 1, 1)).astype("float32")
    z = cg.relu(z * scale + scale)
    value = RNG.normal(size=x.shape).astype("float32")
    runs = [cg.compile([z], [x], engine=CpuEngine(target, threads=n, poison=True))(value)[0] for n in (1, 3)]
    np.testing.assert_array_equal(*runs)
    assert_close(runs[0], cg.compile([z], [x], engine="reference")(value)[0], 20)
