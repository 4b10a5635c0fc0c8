"""Rotary positions as one op: every layout of operands, target, and number of tasks."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.ops.physical.rotary import Rotary, rotary_calls
from tests.support.gpu import GPU, run_on_gpu
from tests.support.kernels import TARGETS, view_of
from tests.support.tolerance import assert_close

RNG = np.random.default_rng(0)
N, H, T = 2, 3, 5
KINDS = pytest.mark.parametrize("adjacent", [False, True])
TABLES = pytest.mark.parametrize("shares", [False, True])


def draw(*shape, dtype="float32"):
    return cg.Var(RNG.normal(size=shape).astype(dtype))


def rotation(x, adjacent, shares, lead=(1, 1)):
    d = x.shape[-1] // 2 if shares else x.shape[-1]
    tables = [cg.broadcast_to(draw(*lead, x.shape[-2], d, dtype=x.dtype), (*x.shape[:-1], d)) for _ in range(2)]
    return apply(Rotary(adjacent), x, *tables)


def reference(node):
    return cg.compile(node, engine="reference")()


def layouts(d, dtype):
    """Operands as they lie in networks: whole, heads within rows, parts of rows, and elements that are not adjacent."""
    yield draw(N, H, T, d, dtype=dtype)
    yield cg.transpose(draw(N, T, H, d, dtype=dtype), (0, 2, 1, 3))
    yield draw(N, H, T, d + 3, dtype=dtype)[..., 3:]
    yield cg.swapaxes(draw(N, H, d, T, dtype=dtype), -1, -2)
    yield cg.flip(draw(N, H, T, d, dtype=dtype), -1)


@KINDS
@TABLES
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 10, 64])
def test_kernels_compute_the_meaning_in_every_layout(adjacent, shares, dtype, d):
    for x in layouts(d, dtype):
        node = rotation(x, adjacent, shares)
        want = reference(node)
        for target in TARGETS:
            (got,) = cg.compile([node], [], engine=CpuEngine(target=target))()
            assert_close(got, want)


@KINDS
@TABLES
def test_the_result_may_lie_over_x_and_any_number_of_threads_gives_the_same_bits(adjacent, shares):
    x = draw(4, 64, 64)
    node = rotation(cg.exp(x), adjacent, shares, (1,))
    function = cg.compile([cg.sum(node, 0)], [x], threads=1)
    assert function.nbytes <= x.nbytes + 64 * 64 * 4
    three, one = (cg.compile(node, [x], threads=threads)(x.value) for threads in (3, 1))
    np.testing.assert_array_equal(three, one)
    assert_close(function(x.value)[0], reference(cg.sum(node, 0)))


@KINDS
@TABLES
def test_a_simulated_gpu_computes_the_same(adjacent, shares):
    op = Rotary(adjacent)
    x, c, s = (RNG.normal(size=(6, d)).astype("f4") for d in (8, *[4 if shares else 8] * 2))
    out = np.full_like(x, np.nan)
    run_on_gpu(rotary_calls(GPU, adjacent, *(view_of(v) for v in (out, x, c, s))))
    assert_close(out, op.meaning(x, c, s))


@pytest.mark.parametrize("shapes", [((4, 5), (4, 5), (4, 5)), ((4, 6), (4, 6), (4, 3)), ((4, 6), (1, 6), (1, 6))])
def test_odd_rows_and_tables_that_do_not_fit_are_refused(shapes):
    with pytest.raises(ShapeError, match=r"rotary: tables .* do not fit rows"):
        apply(Rotary(False), *(cg.Var(shape) for shape in shapes))
