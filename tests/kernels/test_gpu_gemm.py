"""Products of matrices in blocks of threads: any size, strides and number, in parts, and what their machine code is."""

import re

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cuda.engine import SIMULATED, CudaEngine
from cgraph.kernels.activation.calls import NONE, RELU6, leaky
from cgraph.kernels.gemm.gpu_calls import LEAST_EACH, Blocks, blocks_of, lines_of, product_call, product_calls
from cgraph.kernels.gemm.matmul_calls import all_products, matmul_calls, matmul_nbytes
from cgraph.kernels.store import store
from tests.support.gpu import BLOCKS, GPU, run_on_gpu
from tests.support.kernels import view_of
from tests.support.ptxas import largest_loop, usage
from tests.support.tolerance import assert_close

FORMS = [("k", "k"), ("k", "lines"), ("lines", "k"), ("lines", "lines")]
RESIDENT = 128  # registers of a thread with which two blocks of 256 find room on a multiprocessor
every_float = pytest.mark.parametrize("dtype", ["f4", "f8"])
every_form = pytest.mark.parametrize("forms", FORMS, ids="-".join)


def draw(*shape, dtype="f4", seed=0, order="C"):
    x = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    return x if order == "C" else np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)


def sides(m, n, k, forms=("k", "lines"), batch=(), dtype="f4"):
    """Both operands, each with its elements side by side along k or along its lines."""
    a = draw(*batch, m, k, dtype=dtype, order="C" if forms[0] == "k" else "F")
    return a, draw(*batch, k, n, dtype=dtype, seed=1, order="F" if forms[1] == "k" else "C")


def multiplied(a, b, bias=None, activation=NONE, out=None, adds=False):
    """The product, and the kernels that made it."""
    unset = np.nan if a.dtype.kind == "f" else 77
    out = np.full((*a.shape[:-1], b.shape[-1]), unset, a.dtype) if out is None else out
    views = [view_of(x) for x in (out, a, b)]
    beside = view_of(bias) if bias is not None else None
    room = np.zeros(max(1, matmul_nbytes(BLOCKS, *views, beside, adds)), "u1")
    calls = matmul_calls(BLOCKS, *views, beside, activation, view_of(room), adds)
    run_on_gpu(calls)
    return out, [call.kernel for call in calls]


def exact(a, b):
    return a.astype("f8") @ b.astype("f8")


@every_float
@every_form
@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (5, 7, 9), (32, 32, 16), (33, 65, 17), (2, 40, 48)])
def test_any_size_and_order_of_elements(m, n, k, forms, dtype):
    a, b = sides(m, n, k, forms, dtype=dtype)
    got, kernels = multiplied(a, b)
    assert all(kernel.is_block for kernel in kernels)
    assert_close(got, exact(a, b).astype(dtype))


@pytest.mark.parametrize("lines, dtype", [(128, "f4"), (64, "f4"), (64, "f8")])
def test_larger_tiles_with_edges(lines, dtype):
    a, b = sides(lines + 3, lines - 5, 21, dtype=dtype)
    out = np.full((lines + 3, lines - 5), np.nan, dtype)
    (x,) = all_products(*map(view_of, (out, a, b)), None)
    run_on_gpu([product_call(x, Blocks(lines, 2, 1, 1, 32), x.out, 0, None, NONE)])
    assert_close(out, exact(a, b).astype(dtype))


def test_batches_of_which_one_side_is_the_same():
    a, b = sides(5, 6, 7, batch=(2, 3))
    b = np.broadcast_to(b[:, :1], b.shape)
    assert_close(multiplied(a, b)[0], exact(a, b).astype("f4"))


@pytest.mark.parametrize("k", [20, 2 * LEAST_EACH + 3])
@pytest.mark.parametrize("activation", [NONE, RELU6, leaky(0.1)])
def test_bias_and_activation(k, activation):
    a, b = sides(34, 36, k)
    bias = np.broadcast_to(draw(36, seed=2), (34, 36))
    want = exact(a, b) + bias
    want = np.clip(np.where(want > 0, want, want * activation.slope), activation.low, activation.high)
    assert_close(multiplied(a, b, bias, activation)[0], want.astype("f4"), 4)


def test_a_nan_stays_one_through_an_activation():
    a, b = sides(4, 4, 4)
    a[0, 0] = np.nan
    got, _ = multiplied(a, b, activation=RELU6)
    assert np.isnan(got[0]).all() and not np.isnan(got[1:]).any()


def test_adding_to_what_is_there_and_results_of_odd_strides():
    a, b = sides(6, 9, 11)
    room = draw(6, 18, seed=3)
    want = room[:, ::2] + exact(a, b)
    got, _ = multiplied(a, b, out=room[:, ::2], adds=True)
    assert_close(got, want.astype("f4"))
    np.testing.assert_array_equal(room[:, 1::2], draw(6, 18, seed=3)[:, 1::2])


@every_float
def test_long_sums_are_added_up_in_parts_of_a_fixed_order(dtype):
    a, b = sides(3, 5, 3 * LEAST_EACH + 1, dtype=dtype)
    got, kernels = multiplied(a, b)
    assert [kernel.family for kernel in kernels] == ["gemm.gpu.product", "gemm.gpu.join"]
    assert got.tobytes() == multiplied(a, b)[0].tobytes()
    assert_close(got, exact(a, b).astype(dtype), 4)


@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (64, 64, 4096), (4096, 4096, 4096), (32, 1000, 2048), (300, 7, 515)])
def test_parts_hold_every_product_once(m, n, k):
    for dtype in ("f4", "f8"):
        cut = blocks_of(dtype, 1, m, n, k)
        assert cut.rows * cut.lines >= m and cut.columns * cut.lines >= n
        assert (cut.parts - 1) * cut.each < k <= cut.parts * cut.each


def test_a_graphs_products_are_computed_in_blocks():
    x, w, b = (cg.Var(shape, name=n) for shape, n in (((9, 20), "x"), ((20, 33), "w"), ((33,), "b")))
    values = [draw(*v.shape, seed=i) for i, v in enumerate((x, w, b))]
    f = cg.compile(cg.relu(x @ w + b), [x, w, b], engine=CudaEngine(SIMULATED))
    families = [k.family for k in f.program.code.compiled_kernels]
    assert [family for family in families if family.startswith("gemm.gpu.")] == ["gemm.gpu.product"]
    assert_close(f(*values), np.maximum(exact(*values[:2]) + values[2], 0).astype("f4"))


def text_of_tile(forms, lines=128, dtype="f4"):
    a, b = sides(lines, lines, 64, forms, dtype=dtype)
    (x,) = all_products(*map(view_of, (np.zeros((lines, lines), dtype), a, b)), None)
    call = product_call(x, Blocks(lines, 1, 1, 1, 64), x.out, 0, x.out, NONE)
    return store().ptx(call.kernel, -(-len(call.args) // 8) * 8, GPU)[1].decode()


@every_form
def test_the_text_has_no_float64_and_no_stack(forms):
    text = text_of_tile(forms).replace("cvt.rn.f32.f64", "", 3)  # the activation's arguments
    assert not re.search(r"\.f64|\.local|\bcall|\.extern|\bld\.f32|\bst\.f32", text)


@every_form
@pytest.mark.parametrize("lines, dtype", [(128, "f4"), (64, "f4"), (64, "f8")])
def test_ptxas_finds_no_spill_and_room_for_two_blocks(forms, lines, dtype, tmp_path):
    found = usage(text_of_tile(forms, lines, dtype), GPU.cpu, tmp_path)
    assert found.registers <= RESIDENT and found.stack == found.spills == 0


@every_form
def test_the_main_loop_multiplies_and_adds(forms, tmp_path):
    loop = largest_loop(text_of_tile(forms), GPU.cpu, tmp_path)
    assert loop.count("FFMA") >= 0.85 * len(loop)


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8"])
@pytest.mark.parametrize("m, n, k", [(5, 7, 9), (33, 40, 2 * LEAST_EACH)])
def test_whole_numbers(m, n, k, dtype):
    a, b = (np.random.default_rng(0).integers(0, 200, shape).astype(dtype) for shape in ((m, k), (k, n)))
    got, kernels = multiplied(a, b[:, ::-1])
    assert all(kernel.is_block for kernel in kernels) and len(kernels) == (1 if k < LEAST_EACH else 2)
    np.testing.assert_array_equal(got, a @ b[:, ::-1])
    with pytest.raises(ValueError, match="need floats"):
        multiplied(a, b, adds=True, out=got)


def test_several_matrices_whose_sums_are_cut():
    a, b = sides(5, 6, 3 * LEAST_EACH + 1, batch=(3,))
    bias = np.broadcast_to(draw(3, 1, 6, seed=2), (3, 5, 6))
    got, kernels = multiplied(a, b, bias)
    assert [kernel.family for kernel in kernels] == ["gemm.gpu.product", "gemm.gpu.join"]
    assert_close(got, (exact(a, b) + bias).astype("f4"), 4)


@pytest.mark.parametrize(
    ("dtype", "count", "m", "n", "lines"),
    [
        ("f4", 128, 65, 65, 128), ("f4", 127, 65, 65, 64), ("f4", 128, 64, 900, 64), ("f4", 1, 8 * 128, 16 * 128, 128),
        ("f4", 1, 8 * 128, 15 * 128, 64), ("f4", 127, 33, 33, 32), ("f4", 128, 33, 33, 64), ("f4", 128, 32, 900, 32),
        ("f8", 128, 65, 65, 64), ("f8", 127, 33, 33, 32), ("f8", 128, 33, 33, 64), ("i8", 1, 9, 9, 32),
        ("i4", 128, 65, 65, 128),
    ],
)  # fmt: skip
def test_the_largest_tile_that_keeps_all_busy_and_is_more_than_half_full(dtype, count, m, n, lines):
    assert blocks_of(dtype, count, m, n, 5).lines == lines_of(dtype, count, m, n) == lines


@pytest.mark.parametrize(
    ("count", "k", "parts", "each"),
    [(1, 511, 1, 512), (1, 512, 2, 256), (1, 10**6, 128, 7824), (64, 10**6, 2, 500000), (65, 10**6, 1, 10**6),
     (40, 1000, 3, 336), (1, 5, 1, 16)],
)  # fmt: skip
def test_few_tiles_share_the_terms_of_long_sums(count, k, parts, each):
    cut = blocks_of("f4", count, 32, 32, k)
    assert (cut.lines, cut.rows, cut.columns, cut.parts, cut.each) == (32, 1, 1, parts, each)


def test_whole_numbers_have_no_activation_and_no_bias_in_blocks():
    shapes = (5, 6), (5, 7), (7, 6)
    out, a, b = (view_of(np.zeros(s, "i4")) for s in shapes)
    (x,), (biased,) = all_products(out, a, b, None), all_products(out, a, b, out)
    assert product_calls(x, RELU6) is None and product_calls(biased) is None and product_calls(x, adds=True) is None
    assert len(product_calls(x)) == 1


def test_the_bytes_of_parts_of_sums():
    for count, m, n, k, parts, dtype in (
        (3, 5, 7, 2 * LEAST_EACH, 2, "f4"), (1, 5, 7, 3 * LEAST_EACH, 3, "f8"), (3, 5, 7, LEAST_EACH, 1, "f8")
    ):  # fmt: skip
        views = [view_of(np.zeros(s, dtype)) for s in ((count, m, n), (count, m, k), (count, k, n))]
        nbytes = parts * count * m * n * int(dtype[1:]) if parts > 1 else 0
        assert matmul_nbytes(BLOCKS, *views) == -(-nbytes // 64) * 64
