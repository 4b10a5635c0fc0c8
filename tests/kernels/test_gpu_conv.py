"""Convolution and its gradients in blocks of threads are what NumPy computes, for shapes of the CPU's tests."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cuda.engine import SIMULATED, CudaEngine
from cgraph.kernels.activation.calls import NONE, RELU6
from cgraph.kernels.conv import gpu_calls as gpu_conv
from cgraph.kernels.conv.calls import conv_calls, conv_overwrites_residual
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.gemm import gpu_calls as gpu_gemm
from cgraph.kernels.kernel import Kernel, Pointer
from cgraph.kernels.store import store
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window import Window
from cgraph.record import replace
from tests.kernels import test_conv, test_transpose_calls
from tests.support.gpu import BLOCKS, GPU, run_on_gpu, run_on_gpu_as
from tests.support.images import laned, plain
from tests.support.ptxas import largest_loop, usage
from tests.support.tolerance import assert_near

SMALL = (
    "one pixel",
    "point with stride",
    "3x3 with stride and uneven padding",
    "5x3, dilated",
    "groups that straddle blocks",
)
TRANSPOSED = "3x3, stride 2, one row and column more", "1x1, stride 3: phases without taps", "groups"


def in_blocks(calls, target, order="all"):
    """Run calls, the last of which with products are in blocks."""
    assert any(call.kernel.family == "conv.gpu.tile" for call in calls)
    run_on_gpu_as(calls, target, order)


@pytest.mark.parametrize("case", SMALL)
def test_convolution(case):
    test_conv.check(np.random.default_rng(0), test_conv.CASES[case], BLOCKS, run=in_blocks)


def test_convolution_of_plain_images_and_in_float64():
    rng, case = np.random.default_rng(0), test_conv.CASES["3x3 with stride and uneven padding"]
    test_conv.check(rng, case, BLOCKS, is_plain=True, activation=RELU6, run=in_blocks)
    test_conv.check(rng, case, BLOCKS, "f8", activation=NONE, out_halo=(1, 2, 0, 1), wide=1, run=in_blocks)


@pytest.mark.parametrize("case", TRANSPOSED)
def test_transposed_convolution(case):
    test_transpose_calls.transposed(test_transpose_calls.CASES[case], BLOCKS, run=in_blocks)


@pytest.mark.parametrize("lines", [pytest.param(128, marks=pytest.mark.slow), 64])
def test_larger_tiles(monkeypatch, lines):
    monkeypatch.setattr(gpu_gemm, "lines_of", lambda *given: lines)
    rng = np.random.default_rng(0)
    test_conv.check(rng, (1, 2, 7, 12, 70, Window((3, 3), pad=(1, 1, 1, 1)), 1), BLOCKS, run=in_blocks)


def test_a_residual_may_be_the_result():
    rng = np.random.default_rng(0)
    shape = ConvShape(3, 5, 6, 7, BLOCKS)
    x, filters, residual = (rng.standard_normal(s).astype("f4") for s in ((1, 3, 5, 6), (7, 3, 1, 1), (1, 7, 5, 6)))
    out = laned(residual, 1, (0, 0, 0, 0))
    run_on_gpu(conv_calls(shape, out, laned(x, 1, (0, 0, 0, 0)), Pointer(test_conv.pack_conv(shape, filters)),
                          Epilogue(residual=out)).calls)  # fmt: skip
    assert conv_overwrites_residual(shape, False)
    want = residual + test_conv.conv64(x, filters, Window())
    assert_near(plain(out), want, "float32 products")


def test_a_graphs_convolutions_and_gradients_are_computed_in_blocks():
    rng = np.random.default_rng(0)
    x, f = cg.Var((2, 8, 5, 6), name="x"), cg.Var((8, 8, 3, 3), name="f")
    loss = cg.sum(cg.square(cg.conv2d(x, f, pad=(1, 1, 1, 1))))
    step = cg.compile([loss, *cg.gradient(loss, [x, f])], [x, f], engine=CudaEngine(SIMULATED))
    plain_step = cg.compile([loss, *cg.gradient(loss, [x, f])], [x, f])
    families = [k.family for k in step.program.code.compiled_kernels]
    assert "conv.gpu.tile" in families and "filter_grad.gpu.tile" in families
    values = [rng.standard_normal(v.shape, "float32") for v in (x, f)]
    for here, there in zip(step(*values), plain_step(*values)):
        assert_near(here, there, "float32 long products")


# with registers of a thread: for two blocks on a multiprocessor, and for one
TILES = [
    (Kernel("conv.gpu.tile", ("f4", 128, True, True, False)), 128),
    (Kernel("filter_grad.gpu.tile", ("f4", 128)), 255),
]


@pytest.mark.parametrize("kernel, registers", TILES, ids=str)
def test_ptxas_finds_no_spill_and_a_main_loop_that_multiplies(kernel, registers, tmp_path):
    text = store().ptx(kernel, 48, GPU)[1].decode()
    assert ".f64" not in text.replace("cvt.rn.f32.f64", "", 3)  # the activation's arguments
    found = usage(text, GPU.cpu, tmp_path)
    assert found.registers <= registers and found.stack == found.spills == 0
    loop = largest_loop(text, GPU.cpu, tmp_path)
    assert loop.count("FFMA") >= 0.85 * len(loop)


@pytest.mark.parametrize("case", ["groups that straddle blocks", "3x3 with stride and uneven padding"])
def test_long_sums_of_small_convolutions_are_cut_and_joined_in_order(monkeypatch, case):
    monkeypatch.setattr(gpu_gemm, "LEAST_EACH", 8)

    def in_parts(calls, target, order="all"):
        assert [call.kernel.family for call in calls][-2:] == ["conv.gpu.tile", "conv.gpu.join"]
        run_on_gpu(calls)

    rng = np.random.default_rng(0)
    test_conv.check(rng, test_conv.CASES[case], BLOCKS, activation=RELU6, run=in_parts)


def test_taps_and_pixels_beyond_32_bits_have_the_other_kernel(monkeypatch):
    """The farthest tap is three rows of eight pixels and three columns behind its pixel; there are 40 pixels."""
    shape = ConvShape(1, 8, 8, 1, BLOCKS, Window((4, 4)))
    x, out = laned(np.zeros((1, 1, 8, 8), "f4"), 1), laned(np.zeros((1, 1, 5, 5), "f4"), 1)

    def is_block(farthest):
        monkeypatch.setattr(gpu_conv, "FARTHEST", farthest)
        return conv_calls(shape, out, x, Pointer(np.zeros(16, "f4"))).calls[0].kernel.is_block

    assert is_block(27) and not is_block(26)
    point = ConvShape(1, 5, 8, 1, BLOCKS)
    flat = laned(np.zeros((1, 1, 5, 8), "f4"), 1)
    for farthest, in_blocks_of_threads in ((40, True), (39, False)):
        monkeypatch.setattr(gpu_conv, "FARTHEST", farthest)
        [call] = conv_calls(point, flat, flat, Pointer(np.zeros(1, "f4"))).calls
        assert call.kernel.is_block == in_blocks_of_threads


def test_the_bytes_of_parts_of_sums():
    """For each part a number for each result: none for a sum that is whole, or for no images."""
    shape = ConvShape(512, 6, 6, 8, BLOCKS, Window((3, 3), pad=(1, 1, 1, 1)))
    cut = gpu_conv.cut_of(shape, 3 * 36)
    assert cut.parts > 1 and gpu_conv.parts_nbytes(shape, 3) == cut.parts * 8 * 3 * 36 * 4
    assert gpu_conv.parts_nbytes(shape, 0) == 0
    few = ConvShape(2, 6, 6, 8, BLOCKS, Window((3, 3), pad=(1, 1, 1, 1)))
    assert gpu_conv.cut_of(few, 36).parts == 1 and gpu_conv.parts_nbytes(few, 1) == 0
    assert gpu_conv.parts_nbytes(replace(shape, dtype="f8"), 3) % (8 * 3 * 36 * 8) == 0
