"""Matrix products against NumPy in float64: any size, strides and way; what is refused; what a tile prefetches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.activation.calls import NONE, RELU, RELU6
from cgraph.kernels.gemm import matmul_calls as matmul
from cgraph.kernels.gemm import signature
from cgraph.kernels.gemm.matmul_calls import LINE, lines_of, matmul_calls, matmul_nbytes, share_of, takes_bias
from cgraph.kernels.gemm.portions import PackedB, pack_b
from cgraph.kernels.gemm.signature import unroll
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.views.gemm_tile import gemm_tile
from cgraph.kernels.views.matrices import Operand
from tests.support.images import activated, workspace
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of

pytestmark = pytest.mark.usefixtures("cuts")

SIZES = [
    (1, 1, 1), (1, 40, 33), (1, 200, 300), (33, 1, 50), (3, 5, 7), (4, 64, 64), (14, 32, 20), (15, 33, 21),
    (29, 95, 64), (70, 3, 40), (100, 130, 1), (5, 17, 0), (200, 150, 90), (1, 5003, 20),
]  # fmt: skip
LAYOUTS = ["rows", "columns", "spread"]


def matrix(rng, layout, shape, dtype):
    """Random values in one of three layouts: C order, transposed, or every second column of a wider array."""
    if layout == "columns":
        return np.swapaxes(values(rng, (*shape[:-2], shape[-1], shape[-2]), dtype), -1, -2)
    if layout == "spread":
        return values(rng, (*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]
    return values(rng, shape, dtype)


def values(rng, shape, dtype):
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype)


def product(a, b, out, bias=None, activation=NONE, target="host", order="all"):
    target = target_named(target)
    views = [view_of(v) for v in (out, a, b)]
    spread = view_of(np.broadcast_to(bias, out.shape)) if bias is not None else None
    room = workspace(matmul_nbytes(target, *views, spread))
    # NaN in the workspace: what is read must have been written
    run_calls(matmul_calls(target, *views, spread, activation, room), target, order)
    return out


def assert_product(got, a, b, bias=0.0, activation=NONE):
    unit = {"f4": 1.2e-7, "f8": 2.3e-16}[f"f{got.dtype.itemsize}"]
    bound = np.abs(a).astype("f8") @ np.abs(b).astype("f8") + np.abs(bias)
    want = activated(a.astype("f8") @ b.astype("f8") + bias, activation)
    assert (np.abs(got - want) <= unit * (a.shape[-1] + 2) * bound + 1e-30).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_product_of_any_size(size, dtype, target):
    rng, (m, n, k) = np.random.default_rng(1), size
    a, b, bias = values(rng, (m, k), dtype), values(rng, (k, n), dtype), values(rng, (n,), dtype)
    got = product(a, b, np.full((m, n), np.nan, dtype), bias, RELU, target)
    assert_product(got, a, b, bias, RELU)


@pytest.mark.parametrize("layouts", [(x, y, z) for x in LAYOUTS for y in LAYOUTS for z in LAYOUTS], ids=str)
@pytest.mark.parametrize("size", [(17, 40, 30), (1, 40, 30), (40, 1, 30), (3, 9, 5)], ids=str)
def test_product_of_any_strides(size, layouts):
    rng, (m, n, k) = np.random.default_rng(2), size
    a, b = matrix(rng, layouts[0], (m, k), "f4"), matrix(rng, layouts[1], (k, n), "f4")
    out = matrix(rng, layouts[2], (m, n), "f4")
    out[...] = np.nan
    assert_product(product(a, b, out), a, b)


@settings(max_examples=40)
@given(
    size=st.tuples(*[st.integers(1, 70)] * 3),
    count=st.integers(1, 5),
    layouts=st.tuples(st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS)),
    target=st.sampled_from(TARGETS),
)
def test_products_of_many_matrices(size, count, layouts, target):
    rng, (m, n, k), (left, right) = np.random.default_rng(3), size, layouts
    a, b = matrix(rng, left, (2, count, m, k), "f4"), matrix(rng, right, (2, 1, k, n), "f4")
    b = np.broadcast_to(b, (2, count, k, n))
    out = product(a, b, np.full((2, count, m, n), np.nan, "f4"), target=target)
    assert_product(out, a, b)


def test_matrices_whose_batch_axes_do_not_merge():
    rng = np.random.default_rng(4)
    a = np.broadcast_to(values(rng, (3, 1, 20, 30), "f4"), (3, 4, 20, 30))
    b = np.broadcast_to(values(rng, (1, 4, 30, 25), "f4"), (3, 4, 30, 25))
    assert_product(product(a, b, np.full((3, 4, 20, 25), np.nan, "f4")), a, b)


def test_product_in_blocks_of_every_axis():
    rng = np.random.default_rng(5)
    a, b, bias = values(rng, (1100, 2500), "f4"), values(rng, (2500, 1300), "f4"), values(rng, (1300,), "f4")
    got = product(a, b, np.full((1100, 1300), np.nan, "f4"), bias, RELU)
    assert_product(got, a, b, bias, RELU)


@pytest.mark.parametrize("dtype", ["i4", "i8", "u1", "i2"])
def test_product_of_integers(dtype):
    rng = np.random.default_rng(6)
    a, b = values(rng, (2, 7, 11), dtype), values(rng, (2, 11, 5), dtype)
    np.testing.assert_array_equal(product(a, b, np.empty((2, 7, 5), dtype)), a @ b)


def test_product_of_booleans_is_or_of_and():
    rng = np.random.default_rng(7)
    a, b = rng.random((6, 9)) < 0.2, rng.random((9, 8)) < 0.2
    np.testing.assert_array_equal(product(a, b, np.empty((6, 8), bool)), a @ b)


@pytest.mark.parametrize("m", [1, 3, 9, 40])
@pytest.mark.parametrize("target", TARGETS)
def test_product_with_a_constant_in_panels(m, target):
    rng, target = np.random.default_rng(8), target_named(target)
    a, b, bias = values(rng, (m, 1500), "f4"), values(rng, (1500, 301), "f4"), values(rng, (301,), "f4")
    array, tile = pack_b(target, b, m)
    packed = PackedB(Pointer(array), 1500, 301, tile)
    assert packed.nbytes == array.nbytes
    out = np.full((m, 301), np.nan, "f4")
    views = view_of(out), view_of(a), packed, view_of(np.broadcast_to(bias, out.shape))
    room = workspace(matmul_nbytes(target, *views))
    run_calls(matmul_calls(target, *views, RELU, room), target)
    assert_product(out, a, b, bias, RELU)


@pytest.mark.parametrize("size", [(512, 512), (2048, 512), (512, 4096)], ids=str)
@pytest.mark.parametrize("held", ["f4", "V2"])
def test_the_weights_of_one_row_are_shared_out_among_threads(size, held):
    target, (k, n) = host_target(), size
    a, out = np.zeros((1, k), "f4"), np.zeros((1, n), "f4")
    packed = PackedB(Pointer(None), k, n, gemm_tile(1, n, k, "f4", target), held)
    for call in matmul_calls(target, view_of(out), view_of(a), packed):
        shares = -(-call.tasks // call.chunk)
        assert shares >= 4 and shares % 2 == 0 and call.tasks % call.chunk == 0


def test_product_of_columns_with_a_constant_column():
    rng = np.random.default_rng(11)
    a, b, out = values(rng, (20, 30), "f4").T, values(rng, (20, 1), "f4"), np.full((30, 1), np.nan, "f4")
    array, tile = pack_b(host_target(), b, 30)
    views = view_of(out), view_of(a), PackedB(Pointer(array), 20, 1, tile)
    run_calls(matmul_calls(host_target(), *views, workspace=workspace(matmul_nbytes(host_target(), *views))))
    assert_product(out, a, b)


def test_rows_in_a_batch_are_one_matrix():
    rng = np.random.default_rng(12)
    a, b = values(rng, (9, 2, 20), "f4")[:, :1], np.broadcast_to(values(rng, (20, 33), "f4"), (9, 20, 33))
    out = np.full((9, 1, 33), np.nan, "f4")
    assert len(matmul_calls(host_target(), view_of(out), view_of(a), view_of(b))) == 1
    assert_product(product(a, b, out), a, b)


@pytest.mark.parametrize("size", [(40, 50, 30), (3, 100, 30), (9, 1, 30), (1, 1, 1)], ids=str)
def test_product_added_to_what_is_there(size):
    rng, (m, n, k) = np.random.default_rng(13), size
    a, b, before = values(rng, (m, k), "f4"), values(rng, (k, n), "f4"), values(rng, (m, n), "f4")
    out = before.copy()
    views = view_of(out), view_of(a), view_of(b)
    room = workspace(matmul_nbytes(host_target(), *views, adds=True))
    run_calls(matmul_calls(host_target(), *views, workspace=room, adds=True))
    assert_product(out, a, b, before)


@pytest.mark.parametrize("size", [(100, 70, 300), (3, 200, 90), (50, 1, 77)], ids=str)
def test_product_does_not_depend_on_the_order_of_tasks(size):
    rng, (m, n, k) = np.random.default_rng(9), size
    a, b = values(rng, (m, k), "f4"), values(rng, (k, n), "f4")
    first, *others = (product(a, b, np.full((m, n), np.nan, "f4"), order=order) for order in ORDERS)
    for other in others:
        np.testing.assert_array_equal(first, other)


def test_product_adds_a_whole_matrix():
    rng = np.random.default_rng(10)
    a, b, bias = values(rng, (30, 20), "f4"), values(rng, (20, 50), "f4"), values(rng, (30, 50), "f4")
    assert_product(product(a, b, np.full((30, 50), np.nan, "f4"), bias), a, b, bias)


def test_product_refuses_shapes_that_disagree():
    a, b = np.zeros((3, 4)), np.zeros((5, 6))
    with pytest.raises(ValueError, match="does not give out"):
        matmul_calls(host_target(), view_of(np.zeros((3, 6))), view_of(a), view_of(b))


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(("m", "n"), [(1, 700), (1, 5000), (700, 1)])
def test_every_block_of_a_vectors_product_adds_its_own_part_of_the_bias(m, n, count):
    """One row or one column, in more elements than a task has, for each matrix of several another bias."""
    rng = np.random.default_rng(0)
    a, b, bias = (values(rng, (count, *shape), "f4") for shape in ((m, 24), (24, n), (m, n)))
    got = product(a, b, np.full((count, m, n), np.nan, "f4"), bias)
    assert_product(got, a, b, bias)


@pytest.mark.parametrize("name", TARGETS)
@given(m=st.integers(1, 500), n=st.integers(1, 300), k=st.integers(1, 2000), is_packed=st.booleans())
def test_all_rows_together_ask_for_all_of_the_next_panel(m, n, k, is_packed, name):
    tile = gemm_tile(m, n, k, "f4", target_named(name))
    row_panels, panel = -(-m // tile.rows), tile.width * k
    share = share_of(tile, k, row_panels, is_packed)
    asked = share * (k // unroll(is_packed)) * row_panels
    if row_panels == 1:
        assert share == tile.width * unroll(is_packed)
    elif k < unroll(is_packed):
        assert share == 0
    else:
        assert panel <= asked < panel + (k // unroll(is_packed)) * row_panels


@given(st.integers(0, 10**5), st.sampled_from(["f2", "f4", "f8"]))
def test_lines_hold_what_a_round_asks_for(elements, dtype):
    x = Operand(Pointer(None), 0, 0, 0, dtype)
    lines = lines_of(elements, x)
    nbytes = elements * x.itemsize
    assert lines == 0 if elements == 0 else nbytes <= lines * LINE < 2 * (nbytes + LINE)


def families(a, b, out, **more):
    views = [view_of(x) for x in (out, a, b)]
    nbytes = matmul_nbytes(host_target(), *views, more.get("bias"), more.get("adds", False))
    return [call.kernel.family for call in matmul_calls(host_target(), *views, workspace=workspace(nbytes), **more)]


def test_the_way_is_that_of_shape_and_strides():
    one, wide = np.zeros((30, 30), "f4"), np.zeros((30, 60), "f4")[:, ::2]
    turned, out = np.asfortranarray(one), np.zeros((30, 30), "f4")
    assert families(one, turned[:, :1], out[:, :1]) == ["gemm.gemv.dot"]
    assert families(one, one[:, :1], out[:, :1])[-1] == families(wide, turned[:, :1], out[:, :1])[-1] == "gemm.tile"
    assert families(one[:1], one, out[:1]) == ["gemm.gemv.row"]
    assert families(one[:1], turned, out[:1]) == ["gemm.gemv.dot"]  # of the columns, which lie along k
    assert families(one, one, wide) == ["gemm.simple"]
    assert families(one.astype("i4"), one.astype("i4"), out.astype("i4")) == ["gemm.simple"]
    assert families(one, one, out)[-1] == "gemm.tile" and families(one, wide, out)[-2:] == [
        "gemm.pack.any_stride",
        "gemm.tile",
    ]
    assert (
        families(one, turned[:, :1], out[:, :1], adds=True)[-1]
        == families(one[:1], one, out[:1], adds=True)[-1]
        == "gemm.tile"
    )
    assert families(one[:0], one, out[:0]) == []


def test_only_floats_with_contiguous_rows_take_a_bias():
    x, out = np.zeros((6, 6), "f4"), np.zeros((6, 6), "f4")
    views = [view_of(v) for v in (out, x, x)]
    assert takes_bias(*views, view_of(np.broadcast_to(np.zeros(6, "f4"), (6, 6))))
    assert not takes_bias(*views, view_of(np.zeros((6, 12), "f4")[:, ::2]))
    assert not takes_bias(*views, view_of(np.asfortranarray(x)))
    whole = [view_of(v.astype("i4")) for v in (out, x, x, x)]
    assert not takes_bias(*whole)


def refusals():
    x, y = np.zeros((6, 6), "f4"), np.zeros((6, 6), "i4")
    wide, bias = np.zeros((6, 12), "f4")[:, ::2], np.zeros((6, 5), "f4")
    packed = PackedB(Pointer("b"), 6, 6, gemm_tile(6, 6, 6, "f4", host_target()))
    yield "bias has shape", (x, x, x), {"bias": view_of(bias)}
    yield "need floats", (y, y, y), {"bias": view_of(y)}
    yield "need floats", (y, y, y), {"activation": RELU}
    yield "need floats", (y, y, y), {"adds": True}
    yield "need floats", (wide, x, x), {"activation": RELU6}
    yield "batch shapes differ", (np.zeros((2, 6, 6), "f4"), np.zeros((3, 6, 6), "f4"), np.zeros((2, 6, 6), "f4")), {}
    yield "a packed constant needs a float result", (wide, x, packed), {}
    yield "the workspace has 8 bytes", (x, x, x.T.copy().T), {"workspace": workspace(8)}


@pytest.mark.parametrize("message, values, more", list(refusals()), ids=lambda x: x if isinstance(x, str) else "")
def test_what_is_refused(message, values, more):
    views = [x if isinstance(x, PackedB) else view_of(x) for x in values]
    with pytest.raises(ValueError, match=message):
        matmul_calls(host_target(), *views, **more)


def test_a_product_with_a_packed_constant_of_another_depth_is_refused():
    packed = PackedB(Pointer("b"), 7, 6, gemm_tile(6, 6, 7, "f4", host_target()))
    with pytest.raises(ValueError, match="does not give out"):
        matmul_calls(host_target(), view_of(np.zeros((6, 6), "f4")), view_of(np.zeros((6, 6), "f4")), packed)


@pytest.mark.parametrize("activation", [NONE, RELU6], ids=str)
@pytest.mark.parametrize("count, m, n", [(1, 1, 5), (2, 1, 3), (1, 5, 1), (1, 7, 2), (2, 7, 9), (1, 9, 70)])
@pytest.mark.parametrize("target", TARGETS)
def test_a_product_of_no_terms_is_the_bias(count, m, n, activation, target):
    """And nothing is written beside the result, whose rows are narrower than a tile."""
    bias = np.random.default_rng(0).standard_normal((count, m, n)).astype("f4") * 9
    room = np.full((count, m + 2, n + 4), 77, "f4")
    a, b, out = np.zeros((count, m, 0), "f4"), np.zeros((count, 0, n), "f4"), room[:, 1:-1, 2:-2]
    product(a, b, out, bias[0], activation, target)
    np.testing.assert_array_equal(out, np.broadcast_to(np.clip(bias[0], activation.low, activation.high), out.shape))
    out[...] = 77
    assert (room == 77).all()


def argument_of(call, name):
    return call.args[list(signature.TILE.args).index(name)]


@pytest.mark.parametrize("near", [0, 799, 800, 1199, 1200, 5000])
@pytest.mark.parametrize("is_packed", [False, True])
def test_the_side_that_stays_in_cache_is_passed_over_again_and_again(is_packed, near, monkeypatch):
    """A constant is read from memory, once if the other side stays in cache."""
    a, b, out = np.zeros((30, 10), "f4"), np.zeros((10, 20), "f4"), np.zeros((30, 20), "f4")  # 1200 and 800 bytes
    monkeypatch.setattr(matmul, "NEAR", near)
    array, tile = pack_b(host_target(), b, 30)
    views = view_of(out), view_of(a), PackedB(Pointer(array), 10, 20, tile) if is_packed else view_of(b)
    call = matmul_calls(host_target(), *views, workspace=workspace(matmul_nbytes(host_target(), *views)))[-1]
    by_row = near >= 800 and not (is_packed and near >= 1200)
    rows, columns = -(-30 // tile.rows), -(-20 // tile.width)
    assert argument_of(call, "by_row") == by_row
    inner, outer = argument_of(call, "inner"), argument_of(call, "outer")
    assert (outer, inner) == ((rows, columns) if by_row else (columns, rows)) and call.tasks == rows * columns


@pytest.mark.parametrize("rows, is_near", [(128, True), (129, False)])
def test_panels_of_a_constant_are_asked_for_where_rows_stay_in_place(rows, is_near, monkeypatch):
    """2 MiB of rows of 4096 numbers are read in place; with more rows in panels no panel is prefetched."""
    monkeypatch.setattr(matmul, "NEAR", 0)
    a, out = np.zeros((rows, 4096), "f4"), np.zeros((rows, 64), "f4")
    packed = PackedB(Pointer(None), 4096, 64, gemm_tile(rows, 64, 4096, "f4", host_target()))
    views = view_of(out), view_of(a), packed
    made = matmul_calls(host_target(), *views, workspace=workspace(matmul_nbytes(host_target(), *views)))
    tiles = [call for call in made if call.kernel.family == "gemm.tile"]
    near = [argument_of(call, "m") * argument_of(call, "k") * 4 <= 2 << 20 for call in tiles]
    assert [argument_of(call, "share") > 0 for call in tiles] == near and len(tiles) == 4


def test_only_the_first_portion_of_a_sum_has_the_bias_and_only_the_last_the_activation():
    a, b, bias = np.zeros((200, 3000), "f4"), np.zeros((3000, 40), "f4"), np.zeros((200, 40), "f4")
    views = view_of(bias.copy()), view_of(a), view_of(b), view_of(bias)
    room = workspace(matmul_nbytes(host_target(), *views))
    made = matmul_calls(host_target(), *views, activation=RELU6, workspace=room)
    tiles = [call for call in made if call.kernel.family == "gemm.tile"]
    assert [argument_of(call, "add") for call in tiles] == [0, 1, 1]
    assert [isinstance(argument_of(call, "bias"), Pointer) for call in tiles] == [True, False, False]
    assert [argument_of(call, "high") for call in tiles] == [np.inf, np.inf, 6.0]
    assert sum(argument_of(call, "k") for call in tiles) == 3000


def test_equal_matrices_are_packed_once():
    a = np.zeros((5, 30, 200), "f4").swapaxes(1, 2)  # its rows are not those of one matrix
    b = np.broadcast_to(np.zeros((30, 40), "f4"), (5, 30, 40))
    views = view_of(np.zeros((5, 200, 40), "f4")), view_of(a), view_of(b)
    made = matmul_calls(host_target(), *views, workspace=workspace(matmul_nbytes(host_target(), *views)))
    tile = gemm_tile(200, 40, 30, "f4", host_target())
    assert [call.kernel.family for call in made] == ["gemm.pack.along_lines"] * 2 + ["gemm.tile"]
    right, left, _ = (call.tasks for call in made)
    assert (right, left) == (-(-40 // tile.width), 5 * -(-200 // tile.rows))


def test_matrices_whose_three_batch_axes_do_not_merge():
    rng = np.random.default_rng(4)
    a = np.broadcast_to(values(rng, (2, 1, 4, 7, 9), "f4"), (2, 3, 4, 7, 9))
    b = np.broadcast_to(values(rng, (1, 3, 1, 9, 5), "f4"), (2, 3, 4, 9, 5))
    bias = np.broadcast_to(values(rng, (2, 3, 1, 1, 5), "f4"), (2, 3, 4, 7, 5))
    got = product(a, b, np.full((2, 3, 4, 7, 5), np.nan, "f4"), bias)
    assert_product(got, a, b, bias)
