"""Transposed operands are copied to the result before it is computed in place: the same values, and nothing is lost."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.kernels.isa.ptx import gpu_target
from cgraph.kernels.kernel import ARENA, Pointer, View, contiguous
from cgraph.kernels.machines import machine_named
from cgraph.kernels.move.order import LEAST_NBYTES, begins_in, in_order, is_transposed, operands_in_order
from cgraph.kernels.target import host_target
from tests.support.tolerance import assert_near

TARGET = host_target()


def at(offset, base=ARENA):
    return Pointer(base, offset)


def view(shape, axes=None, offset=0, dtype="f4", base=ARENA):
    """A view in C order, with its axes in another order."""
    whole = contiguous(at(offset, base), shape, dtype)
    axes = range(len(shape)) if axes is None else axes
    return View(whole.at, tuple(shape[i] for i in axes), tuple(whole.strides[i] for i in axes), dtype)


@pytest.mark.parametrize(
    ("shape", "axes", "transposed"),
    [
        ((3, 4), (0, 1), False),
        ((3, 4), (1, 0), True),
        ((3, 4, 5), (1, 0, 2), False),
        ((3, 4, 5), (0, 2, 1), True),
        ((3, 4, 5), (2, 0, 1), True),
        ((3, 1, 5), (0, 2, 1), False),  # axes of one element do not count
        ((3, 5, 1), (1, 0, 2), True),
        ((1, 1), (1, 0), False),
    ],
)
def test_an_operand_is_transposed_if_neighbours_of_the_result_are_apart(shape, axes, transposed):
    x = view(shape, axes)
    assert is_transposed(view(x.shape), x) is transposed
    back = View(x.at, x.shape, tuple(-step for step in x.strides), x.dtype)
    assert is_transposed(view(x.shape), back) is transposed
    assert not is_transposed(x, x)  # in the order of a result that is transposed, too


def test_operands_that_repeat_elements_or_have_another_shape_are_not_transposed():
    out, x = view((4, 3)), view((3, 4), (1, 0))
    assert is_transposed(out, x)
    assert not is_transposed(out, View(x.at, x.shape, (0, x.strides[1]), x.dtype))
    assert not is_transposed(out, view((3, 1), (1, 0)))


@pytest.mark.parametrize(("distance", "inside"), [(-4, False), (0, True), (44, True), (48, False)])
def test_a_view_begins_in_the_bytes_of_a_result(distance, inside):
    out = view((4, 3), offset=100)
    assert begins_in(out, view((2,), offset=100 + distance)) is inside
    assert not begins_in(out, view((2,), offset=100 + distance, base=np.zeros(4)))


LARGE = view((128, 128), (1, 0), offset=1 << 20)


def test_the_result_takes_the_place_of_a_large_transposed_operand():
    out = view((128, 128))
    calls, x = in_order(TARGET, out, LARGE)
    assert calls and x == out
    calls, x = in_order(TARGET, out, view((128, 128), (1, 0), offset=1 << 20, dtype="i4"))
    assert calls and (x.dtype, x.at, x.strides) == ("i4", out.at, out.strides)


def test_other_operands_are_read_as_they_are():
    out = view((128, 128))
    least = LEAST_NBYTES // 4
    for x, result in (
        (out, out),
        (view((128, 128), (1, 0), offset=1 << 20, dtype="f8"), out),  # items of another size
        (view((127, 129), (1, 0), offset=1 << 20), view((129, 127))),  # a little less than `least`
    ):
        assert in_order(TARGET, result, x) == ([], x)
    assert in_order(TARGET, view((129, 127)), view((127, 129), (1, 0), offset=1 << 20), least=least)[0]
    for target in (gpu_target(8, 0), machine_named("cortex-m7").target):
        assert in_order(target, out, LARGE) == ([], LARGE)


def test_nothing_is_copied_over_another_operand():
    out, beside = view((128, 128)), view((128, 128), offset=1 << 22)
    assert in_order(TARGET, out, LARGE, (beside,))[0]
    assert in_order(TARGET, out, LARGE, (beside, out)) == ([], LARGE)


def test_the_first_large_transposed_operand_is_copied():
    out, plain = view((128, 128)), view((128, 128), offset=1 << 22)
    second = view((128, 128), (1, 0), offset=1 << 23)
    calls, xs = operands_in_order(TARGET, out, (plain, LARGE, second))
    assert calls and xs == (plain, out, second)
    assert operands_in_order(TARGET, out, (plain, plain)) == ([], (plain, plain))
    assert operands_in_order(TARGET, out, (out, LARGE)) == ([], (out, LARGE))


OPS = {
    "exp": lambda x, y: cg.exp(x),
    "the second operand": lambda x, y: y - x,
    "twice": lambda x, y: x * x + x,
    "both": lambda x, y: cg.where(x > 0, x, cg.transpose(y[::-1].T)),
    "to doubles": lambda x, y: x.astype("float64") + 1,
    "to integers": lambda x, y: cg.floor(x).astype("int32"),
    "cumsum": lambda x, y: cg.cumsum(x, 0),
    "cumprod": lambda x, y: cg.cumprod(x, -1),
    "upper triangle": lambda x, y: cg.triu(x, 1),
    "lower triangle": lambda x, y: cg.tril(x, -2),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(200, 300), (40, 3, 60, 4), (2, 20000), (20000, 2)])
@pytest.mark.parametrize("name", OPS)
def test_values_are_those_of_an_operand_in_order(name, shape, threads):
    """The same bits, of an input and of a value that other steps computed."""
    build, rng = OPS[name], np.random.default_rng(0)
    x, y, plain = cg.Var(shape, name="x"), cg.Var(shape[::-1], name="y"), cg.Var(shape[::-1], name="plain")
    a, b = rng.uniform(-1, 1, shape).astype("f4"), rng.uniform(-1, 1, shape[::-1]).astype("f4")
    in_order = cg.compile(build(plain, y), [plain, y], threads=threads)
    of_input = cg.compile(build(cg.transpose(x), y), [x, y], threads=threads)(a, b)
    np.testing.assert_array_equal(of_input, in_order(a.T, b))
    assert_near(of_input, cg.compile(build(plain, y), [plain, y], engine="reference")(a.T, b), "float32 sums near zero")
    inner = cg.exp(cg.sin(x))
    of_value = cg.compile(build(cg.transpose(inner), y), [x, y], threads=threads)(a, b)
    np.testing.assert_array_equal(of_value, in_order(cg.compile(inner, [x])(a).T, b))


@pytest.mark.parametrize("kind", ["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize("shape", [(7, 5), (200, 300), (40, 3, 60, 4), (2, 20000), (20000, 2)])
def test_softmax_of_transposed_values_is_that_of_values_in_order(kind, shape):
    x, function = cg.Var(shape, name="x"), getattr(cg, kind)
    a = np.random.default_rng(0).standard_normal(shape, "f4")
    reference = cg.compile([function(cg.transpose(x), i) for i in range(len(shape))], [x], engine="reference")(a)
    for axis, want in enumerate(reference):
        assert_near(cg.compile(function(cg.transpose(x), axis), [x])(a), want, "float32 sums near zero")


def test_a_view_begins_in_a_result_of_no_elements_only_at_its_own_address():
    none = view((0, 3), offset=100)
    assert begins_in(none, view((2,), offset=100)) and not begins_in(none, view((2,), offset=101))
    assert not begins_in(none, view((2,), offset=99))
