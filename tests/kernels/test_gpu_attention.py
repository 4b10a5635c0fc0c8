"""Attention in blocks of threads: what the formula says, for the cases of the processor's kernels."""

from functools import partial

import numpy as np
import pytest

from cgraph.kernels.attention.gpu_signature import DEPTHS
from cgraph.kernels.attention.signature import KEYS
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.store import store
from tests.kernels import test_attention
from tests.kernels.test_attention import assert_agrees, assert_same_and_near, draw, formula, with_rows_without_weights
from tests.support.gpu import BLOCKS, GPU, run_on_gpu
from tests.support.ptxas import usage


def in_blocks(calls, target, order):
    assert [call.kernel.family for call in calls] == ["attention.gpu.band"]
    run_on_gpu(calls)


computed = partial(test_attention.computed, BLOCKS, run=in_blocks, orders=["all"])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1, 1, 1, 1), (2, 4, 2, 5, KEYS - 1, 3, 5), (1, 3, 1, 9, KEYS + 1, 40, 17)])
def test_all_keys(dtype, sizes):
    q, k, v = draw(dtype, *sizes)
    assert_agrees(computed(q, k, v), formula(q, k, v, None, None, False, 0))


@pytest.mark.parametrize("window, starts", [(0, None), (7, (0, 5)), (100, (119, 60))])
def test_keys_up_to_the_own_position(window, starts):
    q, k, v = draw("f4", 2, 4, 2, 10, 130, 8, 5)
    start = None if starts is None else np.array(starts)
    assert_agrees(computed(q, k, v, None, start, True, window), formula(q, k, v, None, start, True, window))


@pytest.mark.parametrize("kind", ["f4", "bool"])
@pytest.mark.parametrize("shape", [(2, 4, 9, 70), (2, 1, 1, 70)])
def test_masks_and_a_cap_for_operands_of_any_strides(kind, shape):
    q, k, v = (np.ascontiguousarray(x.swapaxes(1, 3)).swapaxes(1, 3) for x in draw("f4", 2, 4, 2, 9, 70, 8, 5))
    mask = np.random.default_rng(1).standard_normal(shape).astype("f4")
    mask = mask if kind == "f4" else mask > -0.5
    out = np.empty((2, 9, 4, 10), "f4")[..., ::2].swapaxes(1, 2)
    got = computed(q, k, v[..., ::-1], mask, None, True, out=out, softcap=0.7)
    assert_agrees(got, formula(q, k, v[..., ::-1], mask, None, True, 0, 0.7))


@pytest.mark.parametrize("kind", ["f4", "bool"])
@pytest.mark.parametrize("n", [3, 2 * KEYS + 9])
def test_safe_queries_have_weights_of_zero_where_their_softmax_is_nan(kind, n):
    operands = with_rows_without_weights("f4", 18, n, kind)
    assert_same_and_near(computed(*operands, safe=True), formula(*operands, None, False, 0, safe=True))


def test_more_columns_than_a_block_has_room_for_have_the_other_kernel():
    q, k, v = draw("f4", 1, 1, 1, 2, 3, 4, DEPTHS[-1] + 1)
    got = test_attention.computed(BLOCKS, q, k, v, run=lambda calls, *_: run_on_gpu(calls), orders=["all"])
    assert_agrees(got, formula(q, k, v, None, None, False, 0))


@pytest.mark.parametrize("depth", DEPTHS)
def test_ptxas_finds_no_spill_and_no_float64(depth, tmp_path):
    text = store().ptx(Kernel("attention.gpu.band", ("f4", depth, "added", (True, True, True))), 64, GPU)[1].decode()
    assert text.count(".f64") <= text.count("cvt.rn.f32.f64")
    found = usage(text, GPU.cpu, tmp_path)
    assert found.registers <= (128 if depth < DEPTHS[-1] else 168) and found.stack == found.spills == 0
