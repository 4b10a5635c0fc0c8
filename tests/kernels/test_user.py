"""Users' functions as machine code: dtypes, strides, every mathematical function, whole arrays, what is refused."""

import math

import numpy as np
import pytest
from numba import types

from cgraph.errors import NoKernelError
from cgraph.kernels.target import target_named
from cgraph.kernels.user.calls import each_calls, tasks_calls
from cgraph.kernels.user.emit import (
    OF_ONE,
    OF_TWO,
    argument_type,
    number_type,
    own_name,
    strip_target,
    with_calls_of_fmod,
)
from cgraph.kernels.user_function import user_function
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tolerance import assert_near

every_target = pytest.mark.parametrize("target", TARGETS)


def computed(function, *xs, out=None, dtype=None, target="host", order="all", run=run_calls):
    """The function of each number, in an array of other bytes."""
    shape = np.broadcast_shapes(*(x.shape for x in xs))
    out = np.full(shape, 77).astype(dtype or xs[0].dtype) if out is None else out
    calls = each_calls(target_named(target), user_function(function), view_of(out), *map(view_of, xs))
    run(calls, target_named(target), order)
    return out


def draw(*shape, dtype="f4"):
    return np.random.default_rng(0).uniform(-2, 2, shape).astype(dtype)


def weighted(x, y):
    return x - y * 0.5 if x > y else y


def weighted_by_numpy(x, y):
    return np.where(x > y, x - y * 0.5, y)


@every_target
@pytest.mark.parametrize("order", ORDERS)
def test_operands_keep_their_order_in_any_strides(target, order):
    x, y = draw(7, 90), draw(90, dtype="f8")
    for a, b in ((x, y), (x[::-1, ::2], y[:45]), (x.T, y[:, None]), (x, np.broadcast_to(y[:1], 90)), (x[:, :1], y)):
        got = computed(weighted, a, b, dtype="f8", target=target, order=order)
        np.testing.assert_array_equal(got, weighted_by_numpy(a.astype("f8"), b))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_results_are_cast_to_the_dtype_of_the_result(dtype):
    x = np.array([0, 1, 2, 100, 127], dtype)
    np.testing.assert_array_equal(computed(lambda x: x + 1, x[:4]), x[:4] + x.dtype.type(1))
    np.testing.assert_array_equal(computed(lambda x: x > 1, x, dtype="?"), x > 1)
    np.testing.assert_array_equal(computed(lambda x: x * 0.5, x, dtype="f8"), x * 0.5)


def test_truth_values_are_numbers_of_one_byte():
    x, y = np.array([True, False, True, False]), np.array([True, True, False, False])
    np.testing.assert_array_equal(computed(lambda x, y: x and not y, x, y), x & ~y)
    np.testing.assert_array_equal(computed(lambda x, y: x + 2 * y, x, y, dtype="i8"), x + 2 * y)


def test_the_result_may_be_the_operand_and_nothing_beside_it_is_written():
    x = draw(5, 400)
    room, want = x.copy(), weighted_by_numpy(x[:, 1:-1], x[:, 1:-1][:, ::-1])
    room[:, 1:-1] = x[:, 1:-1]
    computed(lambda v: v * 2, room[:, 1:-1], out=room[:, 1:-1])
    np.testing.assert_array_equal(room[:, 1:-1], x[:, 1:-1] * 2)
    np.testing.assert_array_equal(room[:, [0, -1]], x[:, [0, -1]])
    out = np.full((5, 400), 9, "f4")
    computed(weighted, x[:, 1:-1], x[:, 1:-1][:, ::-1], out=out[:, 1:-1])
    np.testing.assert_array_equal(out[:, 1:-1], want)
    assert (out[:, [0, -1]] == 9).all()


# Python's math has the others by their names
PYTHON = {"rint": np.rint, "tgamma": math.gamma, "exp2": np.exp2, "fmod": np.fmod}
DOMAIN = {"acosh": (1.1, 3), "atanh": (-0.9, 0.9), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "log1p": (-0.9, 3)}
POSITIVE = {"log", "log2", "log10", "sqrt", "lgamma", "tgamma", "pow"}


@pytest.mark.parametrize("name", sorted({*OF_ONE, *OF_TWO}))
def test_every_mathematical_function_is_the_one_of_its_name(name):
    function = PYTHON.get(name) or getattr(math, name)
    low, high = DOMAIN.get(name, (0.1, 3) if name in POSITIVE else (-3, 3))
    xs = [np.random.default_rng(i).uniform(low, high, 40) for i in range(1 + (name in OF_TWO))]
    if name in OF_TWO:
        got = computed(lambda x, y: function(x, y), *xs)
    else:
        got = computed(lambda x: function(x), *xs)
    assert_near(got, np.array([function(*x) for x in zip(*xs)]), "float64 formulas near zero")


@pytest.mark.parametrize("name", ["exp", "sin", "tanh", "lgamma", "tgamma", "pow", "fmod"])
def test_float32_has_functions_of_its_own(name):
    function = PYTHON.get(name) or getattr(math, name)
    xs = [np.random.default_rng(i).uniform(0.1, 3, 40).astype("f4") for i in range(1 + (name in OF_TWO))]
    got = computed((lambda x, y: function(x, y)) if name in OF_TWO else (lambda x: function(x)), *xs)
    assert_near(got, np.array([function(*x) for x in zip(*(x.astype("f8") for x in xs))]), "float32 formulas near zero")


@every_target
def test_whole_arrays_have_the_functions_of_numbers(target):
    def sums(task, out, x):
        out[task] = math.gamma(x[task]) + math.exp(x[task])

    x, out = np.random.default_rng(0).uniform(0.1, 3, 20), np.zeros(20)
    run_calls(tasks_calls(user_function(sums), 20, view_of(out), view_of(x)), target_named(target))
    assert_near(out, np.array([math.gamma(v) + math.exp(v) for v in x]), "float64 formulas")


def test_signs_of_what_two_operands_give():
    x, y = np.array([3.0, -3.0, 3.0, -3.0, -0.0]), np.array([2.0, 2.0, -2.0, -2.0, 1.0])
    functions = (lambda x, y: math.atan2(x, y), lambda x, y: math.copysign(x, y), lambda x, y: np.fmod(x, y))
    for function, want in zip(functions, (np.arctan2, np.copysign, np.fmod)):
        got = computed(function, x, y)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want(x, y)))
        assert_near(got, want(x, y), "float64 formulas")
    np.testing.assert_array_equal(computed(lambda x, y: x % y, x, y), np.mod(x, y))


def test_division_by_zero_is_numpys():
    with np.errstate(all="ignore"):
        x, y = np.array([1.0, -1.0, 0.0, np.nan]), np.zeros(4)
        np.testing.assert_array_equal(computed(lambda x, y: x / y, x, y), x / y)


def each_row(task, out, x, y, n):
    out[task, 0] = task
    for i in range(x.shape[1]):
        out[task, 1] += x[task, i] * n
    out[task, 2] = y.shape[0] * 10 + y.shape[1] * 100 + y[1, task]


@every_target
@pytest.mark.parametrize("order", ORDERS)
def test_tasks_get_their_number_and_whole_arrays_with_shapes(target, order):
    x, y, n = draw(4, 5, dtype="f8"), np.arange(12).reshape(3, 4), np.array(2.0)
    out = np.zeros((4, 3))
    calls = tasks_calls(user_function(each_row), 4, *map(view_of, (out, x, y, n)))
    run_calls(calls, target_named(target), order)
    want = np.stack([np.arange(4), x.sum(1) * 2, 30 + 400 + y[1]], 1)
    assert_near(out, want, "float64 formulas")
    assert tasks_calls(user_function(each_row), 0, *map(view_of, (out, x, y, n))) == []


def told(task, out, x, y):
    out[0], out[1], out[2], out[3] = x.strides[0], x.strides[1], x.size, x.itemsize
    out[4], out[5], out[6] = y.strides[0], y.size, x.ndim * 10 + y.ndim


def test_arrays_have_strides_sizes_and_items():
    out = np.zeros(7, "i8")
    run_calls(tasks_calls(user_function(told), 1, *map(view_of, (out, np.zeros((2, 5), "f4"), np.zeros(3)))))
    assert out.tolist() == [20, 4, 10, 4, 8, 3, 21]


def writes_first(task, out, x, y):
    x[task] = y[task]


def writes_second(task, out, x, y):
    y[task] = x[task]


@pytest.mark.parametrize("function", [writes_first, writes_second])
def test_operands_may_not_be_written(function):
    views = [view_of(v) for v in (np.zeros(3), np.zeros(3), np.zeros(3))]
    with pytest.raises(NoKernelError, match="[Cc]annot modify readonly array"):
        run_calls(tasks_calls(user_function(function), 1, *views))


def test_operands_without_axes_are_numbers_and_results_are_arrays():
    assert argument_type("f4", 0, False) == types.float32 and argument_type("b1", 0, False) == types.boolean
    assert argument_type("f4", 0, True) == types.Array(types.float32, 0, "C")
    assert argument_type("i8", 2, False) == types.Array(types.int64, 2, "C", readonly=True)
    assert number_type("u1") == types.uint8


def raises(x):
    if x > 1:
        raise ValueError
    return x


def prints(x):
    print(x)  # noqa: T201
    return x


REFUSED = [
    (lambda x: "text", r"returns Literal\[str\]\(text\), which is not a number"),
    (lambda x: (x, x), "which is not a number. Return an integer, a float or a bool"),
    (raises, "raises exceptions, which kernels cannot. Return NaN instead"),
    (prints, "uses Python objects, as print does"),
    (lambda x: np.zeros(3).sum() + x, "allocates arrays"),
    (lambda x: x.nothing, "is not code that Numba compiles"),
]


@pytest.mark.parametrize("function, text", REFUSED)
def test_what_kernels_cannot_do_is_refused_with_the_functions_name_and_line(function, text):
    with pytest.raises(NoKernelError, match=text) as error:
        computed(function, draw(3))
    assert f"kernel {function.__name__} (test_user.py:{function.__code__.co_firstlineno})" in str(error.value)


def test_a_value_that_changed_since_is_told():
    factor = 2.0

    def scaled(x):
        return x * factor

    known = user_function(scaled)
    factor = 3.0
    x = draw(3)
    with pytest.raises(NoKernelError, match="reads a value that has changed since the graph was built"):
        run_calls(each_calls(target_named("host"), known, view_of(x.copy()), view_of(x)))


def test_text_of_remainders_and_targets():
    text = "%a = frem fast double %x, %y\n%b = frem <4 x float> %v, %w\n"
    assert with_calls_of_fmod(text) == (
        "%a = call double @cg_fmod_f8(double %x, double %y)\n"
        "%b = call <4 x float> @cg_fmod_f4x4(<4 x float> %v, <4 x float> %w)\n"
    )
    assert own_name("exp", "f4", None) == "cg_exp_f4" and own_name("exp", "f8", "2") == "cg_exp_f8x2"
    text = 'target triple = "x"\ndefine void @f() #0 {\n}\nattributes #0 = { "target-cpu"="znver4" noreturn }\n'
    assert strip_target(text) == "\ndefine void @f() #0 {\n}\nattributes #0 = { nounwind }\n"
    assert strip_target("call float @numba_gammaf(float %x)") == "call float @tgammaf(float %x)"


def test_nothing_to_compute_is_no_call():
    x = np.zeros((0, 3), "f4")
    assert each_calls(target_named("host"), user_function(weighted), view_of(x), view_of(x), view_of(x)) == []
