"""Cases in which the ancestor returns wrong numbers, crashes or is slow; each must be right here."""

import time

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import CgraphError
from tests.support.tolerance import assert_near


def assign(*shape: int, seed: int = 0, name: str | None = None) -> cg.Var:
    return cg.Var(shape, "float64", name).assign(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.parametrize("changing", [False, True])
def test_a_changed_input_reruns_what_shares_its_bytes(changing):
    u, w = assign(5, seed=1, name="u"), assign(5, seed=2, name="w")
    r = cg.sin(u)
    s = cg.cos(r)
    t = cg.sum(s)
    p = t + r
    q = s * w
    x = p + q
    function = cg.compile(x, changing=[w] if changing else ())
    for seed in (2, 3, 4):
        w.assign(np.random.default_rng(seed).normal(size=5))
        s_now = np.cos(np.sin(u.value))
        want = s_now.sum() + np.sin(u.value) + s_now * w.value
        assert_near(function(), want, "float64 products")


def test_a_node_that_is_no_output_is_computed_anew_when_read():
    a = assign(100)
    y = cg.sin(a)
    z = cg.exp(y)
    assert_near(cg.compile(z)(), np.exp(np.sin(a.value)), "float64 through float32")
    assert_near(y.eval(), np.sin(a.value), "float64 through float32")


def test_a_node_added_after_a_compile_sees_later_changes():
    a = assign(4)
    y = a * 2
    function = cg.compile(y)
    function()
    z = y + 1
    a.assign(np.ones(4))
    np.testing.assert_array_equal(z.eval(), np.full(4, 3.0))
    a.assign(np.zeros(4))
    np.testing.assert_array_equal(z.eval(), np.ones(4))
    np.testing.assert_array_equal(function(), np.zeros(4))


def test_matmul_of_a_shared_transpose_with_itself():
    x = cg.Var((2, 2), "float64").assign([[1.0, 2], [3, 4]])
    t = x.T
    np.testing.assert_array_equal((t @ t).eval(), x.value.T @ x.value.T)


def test_transpose_of_more_axes_before_matmul():
    x = assign(2, 3, 4)
    y = cg.matmul(cg.transpose(x, (0, 1, 2)), cg.transpose(x, (0, 2, 1)))
    assert_near(y.eval(), x.value @ x.value.transpose(0, 2, 1), "float64 through float32")


def test_broadcasting_with_zeros():
    x = assign(1, 3)
    y = cg.sin(x + cg.zeros((2, 3), "float64"))
    assert_near(y.eval(), np.sin(np.broadcast_to(x.value, (2, 3))), "float64 through float32")


def test_an_output_that_is_operand_of_another_output():
    a = assign(6)
    y = cg.sin(a)
    z = cg.exp(y)
    got = cg.compile([y, z])()
    assert_near(got[0], np.sin(a.value), "float64 through float32")
    assert_near(got[1], np.exp(np.sin(a.value)), "float64 through float32")


@pytest.mark.parametrize("view", [lambda x: x[::-1], lambda x: x.T, lambda x: x])
def test_an_update_from_a_view_of_its_own_var(view):
    x = assign(3, 3)
    before = x.value
    cg.compile([], updates={x: view(x)})()
    np.testing.assert_array_equal(x.value, view(before))


def test_updates_exchange_two_vars():
    x, y = assign(3, seed=1), assign(3, seed=2)
    a, b = x.value, y.value
    cg.compile(x + y, updates={x: y, y: x})()
    np.testing.assert_array_equal(x.value, b)
    np.testing.assert_array_equal(y.value, a)


def test_set_slice_has_an_effect_and_leaves_its_operand():
    x = assign(4)
    y = cg.set_slice(x, slice(1, 3), 7.0)
    want = x.value
    want[1:3] = 7
    np.testing.assert_array_equal(y.eval(), want)
    assert (x.value[1:3] != 7).all()


def test_times_zero_keeps_nan():
    x = cg.Var((2,), "float64").assign([np.nan, np.inf])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal((x * 0).eval(), x.value * 0)


def test_assigned_values_are_copies():
    a = np.ones(3)
    x = cg.Var(3, "float64").assign(a)
    a[...] = 5
    np.testing.assert_array_equal(x.value, np.ones(3))


@pytest.mark.slow
def test_a_chain_of_100000_nodes():
    x = cg.Var((), "float64").assign(0.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    assert cg.compile(y, passes=False)() == 100_000
    assert cg.compile(y)() == 100_000


@pytest.mark.slow
def test_building_and_compiling_is_linear_in_users_of_one_node():
    def seconds(n: int) -> float:
        start = time.process_time()
        x = cg.Var((1,), "float64").assign([1.0])
        cg.compile([cg.sin(x) * float(i) for i in range(n)], passes=False)()
        return time.process_time() - start

    seconds(100)
    small, large = seconds(5_000), seconds(40_000)
    assert large < 8 * small * 3, "eight times the users may cost eight times the time, not sixty-four"


def test_a_delay_that_reads_its_own_node_is_refused():
    x = assign(3)
    made = {}

    def function(value):
        return made["node"].eval() + value

    made["node"] = cg.delay(function, x)
    with pytest.raises(CgraphError):
        made["node"].eval()
