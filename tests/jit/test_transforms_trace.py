"""Traces: what goes in and out as nodes and tracers, views that share bytes, numbers in place, what a trace refuses."""

from collections import namedtuple

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, GraphError, NoMeaningError
from cgraph.ir.graph import Node
from cgraph.ir.tracing import TRACE
from cgraph.transforms.trace import VIEWS, FunctionTrace, copies, copies_dtype, members_as, nodes_in, suspended
from cgraph.transforms.tracer import Tracer
from tests.support.tolerance import assert_close

Pair = namedtuple("Pair", "left right")


def jit(f, *xs):
    """The result of a compiled function, which that of NumPy must equal."""
    got, want = cg.jit(f)(*map(np.copy, xs)), f(*map(np.copy, xs))
    np.testing.assert_array_equal(got, want)
    return np.asarray(got).tolist()


def test_a_trace_is_open_and_in_progress_while_the_function_runs():
    trace = FunctionTrace()
    assert trace.run(lambda: (TRACE.get() is trace, trace.is_open, suspended(TRACE.get))) == (True, True, None)
    assert not trace.is_open and TRACE.get() is None
    failing = FunctionTrace()
    with pytest.raises(ZeroDivisionError):
        failing.run(lambda: 1 // 0)
    assert not failing.is_open and TRACE.get() is None


def test_tracers_in_containers_become_nodes_in_order_and_results_tracers():
    trace, (x, y) = FunctionTrace(), (cg.Var((2,), name=n) for n in "xy")
    operands = []
    tx, ty = trace.tracer(x), trace.tracer(y)
    got = nodes_in({"a": [ty, 1], "b": Pair(tx, (ty,))}, operands)
    assert got == {"a": [y, 1], "b": Pair(x, (y,))} and operands[0] is ty and operands[1] is tx and len(operands) == 3
    wrapped = trace.wrap(Pair([x], {"k": y, "n": 3}))
    assert type(wrapped) is Pair and isinstance(wrapped.left[0], Tracer) and wrapped.left[0].node is x
    assert wrapped.right["k"].node is y and wrapped.right["n"] == 3
    assert members_as([0], (1, 2)) == [1, 2] and members_as((), iter([1])) == (1,)
    assert members_as(Pair(0, 0), (1, 2)) == Pair(1, 2)


def test_a_view_shares_bytes_and_a_copy_does_not():
    def f(x):
        row, picked, total = x[1], x[[0, 1]], x.T
        row[0] = 50
        total[2, 0] = 70
        picked[...] = -1
        return x

    assert jit(f, np.arange(6.0).reshape(2, 3)) == [[0, 1, 70], [50, 4, 5]]
    assert copies([0, 1], None) and copies((slice(None), np.array([1])), None)
    assert copies(0, cg.Var(())) and not copies(..., cg.Var(())) and not copies((0, ...), cg.Var(()))
    assert not copies(0, cg.Var((3,)))
    assert copies_dtype({}) and copies_dtype({"copy": None}) and not copies_dtype({"copy": False})


def test_conversion_without_a_copy_gives_the_array_itself_and_with_one_another():
    def f(x):
        x.astype("float64", copy=False)[0] = 9
        x.astype("float64")[1] = 9
        x.conj()[2] = 9
        return x

    got = cg.jit(f)(np.zeros(3))
    assert np.asarray(got).tolist() == [9, 0, 9]


def test_augmented_assignment_changes_an_array_and_replaces_a_number():
    def f(x):
        view, number = x[:2], x[2]
        view += 1
        number += 100
        np.add(x, 10, out=x)
        x.fill(x[0]) if x.shape == (9,) else x[::-1].sort()
        return x

    assert jit(f, np.array([3.0, 1.0, 2.0])) == [14, 12, 12]


def test_numbers_of_python_stay_weak_and_true_counts_as_1():
    seen = []

    def f(x, n, flag):
        seen.extend([(x + n).dtype, (n + n).weak, (flag + flag).dtype, (n < 3).weak])
        return x * (flag + n)

    got = cg.jit(f)(np.array([2.0], "f4"), 3, True)
    assert seen == [np.float32, int, np.int64, bool] and got.dtype == np.float32 and np.asarray(got).tolist() == [8]


@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (lambda x: np.add(x, 1.5, out=np.zeros(2)), GraphError, r"zeros_like\(x\)"),
        (lambda x: x.astype("int32").__iadd__(1.5), DTypeError, "does not go into"),
        (lambda x: x.sum().__setitem__((), 3), DTypeError, "is a number"),
    ],
    ids=["out", "dtype", "number"],
)
def test_what_numpy_or_a_graph_does_not_take_is_refused(f, error, words):
    with pytest.raises(error, match=words):
        cg.jit(f)(np.ones(2))


def test_bodies_of_loops_are_traced_in_a_trace_of_their_own():
    kinds = []

    def step(i, s):
        kinds.append((type(s) is Tracer, TRACE.get()))
        return np.sin(s) + i

    got = cg.jit(lambda x: cg.fori(0, 3, step, x))(np.zeros(2))
    want = np.zeros(2)
    for i in range(3):
        want = np.sin(want) + i
    assert_close(np.asarray(got), want)
    assert kinds and all(is_tracer and isinstance(trace, FunctionTrace) for is_tracer, trace in kinds)
    assert not isinstance(got, Node)


VIEW_CALLS = {
    "T": "x.T", "array_split": "np.array_split(x, 2)[1]", "asanyarray": "ours.asanyarray(x)",
    "asarray": "ours.asarray(x)",
    "ascontiguousarray": "ours.ascontiguousarray(x)", "asfortranarray": "ours.asfortranarray(x[0])",
    "atleast_1d": "np.atleast_1d(x)", "atleast_2d": "np.atleast_2d(x[1])", "atleast_3d": "np.atleast_3d(x)",
    "broadcast_arrays": "np.broadcast_arrays(x[:1], x)[0]", "broadcast_to": "np.broadcast_to(x[0], (2, 4))",
    "diag": "np.diag(x)", "diagonal": "np.diagonal(x)", "dsplit": "np.dsplit(x[..., None], 1)[0]",
    "expand_dims": "np.expand_dims(x, 1)", "flip": "np.flip(x, 1)", "fliplr": "np.fliplr(x)",
    "flipud": "np.flipud(x)", "getitem": "x[1:, ::-2]", "hsplit": "np.hsplit(x, 2)[1]", "imag": "x.imag",
    "matrix_transpose": "np.matrix_transpose(x)", "moveaxis": "np.moveaxis(x, 0, 1)", "mT": "x.mT",
    "permute_dims": "np.permute_dims(x, (1, 0))", "ravel": "np.ravel(x)", "real": "np.real(x)",
    "reshape": "x.reshape(4, 3)", "rollaxis": "np.rollaxis(x, 1)", "rot90": "np.rot90(x)",
    "sliding_window_view": "np.lib.stride_tricks.sliding_window_view(x, 2, 1)", "split": "np.split(x, 3)[2]",
    "squeeze": "np.squeeze(x[:1])", "swapaxes": "x.swapaxes(0, 1)", "transpose": "x.transpose()",
    "unstack": "np.unstack(x)[1]", "view": "x.view()", "vsplit": "np.vsplit(x, 3)[1]",
}  # fmt: skip
REFUSED_VIEWS = {"reshape", "ravel", "diag", "diagonal", "imag", "sliding_window_view", "broadcast_arrays"}
"""NumPy's layout decides, or NumPy warns, or the op is not a view here."""


def assigned(call, x, is_view):
    """The view after an assignment to the array, or the array after one to the view."""
    view = eval(call, {"np": np, "ours": cg.numpy, "x": x})
    if is_view:
        view[...] = 70
        return x
    x[...] = x * 10 + 1
    return view + 0


@pytest.mark.filterwarnings("ignore:Numpy has detected:DeprecationWarning")
@pytest.mark.parametrize("is_view", [False, True], ids=["to the array", "to the view"])
@pytest.mark.parametrize("name", VIEW_CALLS)
def test_an_assignment_is_seen_through_every_view_or_refused(name, is_view):
    x = np.arange(12.0).reshape(3, 4)
    try:
        want = assigned(VIEW_CALLS[name], x.copy(), is_view)
    except ValueError:
        want = None  # the view is read-only
    try:
        got = cg.jit(lambda x: assigned(VIEW_CALLS[name], x, is_view))(x)
    except GraphError as error:
        assert want is None or name in REFUSED_VIEWS, error
    else:
        np.testing.assert_array_equal(got, want)


def test_every_function_that_gives_views_has_a_call_here():
    assert set(VIEW_CALLS) == VIEWS


def test_functions_of_loops_get_traced_arrays_by_position_and_by_name():
    """Which they may assign, unlike nodes."""
    x = np.array([3.0, 5.0])

    def below(s):
        s[1] = 0
        return s[0] < 100

    def twice(s):
        s[...] = s * 2
        return s

    def plus(i, s):
        s[...] = s + i
        return s

    def total(s, row):
        s[...] = s + (x if row is None else row)
        return s, None

    for f, want in (
        (lambda x: cg.while_loop(below, twice, x, 3), x * 8),
        (lambda x: cg.while_loop(condition=below, body=twice, state=x, maximum=3), x * 8),
        (lambda x: cg.fori(1, 4, plus, x, 9), x + 6),
        (lambda x: cg.fori(lower=1, upper=4, body=plus, state=x, maximum=9), x + 6),
        (lambda x: cg.scan(total, x, None, 4)[0], x * 5),
        (lambda x: cg.scan(f=total, init=x, xs=np.ones((3, 2)))[0], x + 3),
        (lambda x: cg.scan(total, init=x, xs=None, length=4)[0], x * 5),
    ):
        np.testing.assert_array_equal(cg.jit(f)(x), want)


def test_a_gradient_of_the_users_own_gets_traced_arrays_by_position_and_by_name():
    def backward(g):
        g[...] = g * 3
        return [g]

    for f in (
        lambda x: cg.custom_gradient(x * 2, [x], backward).sum(),
        lambda x: cg.custom_gradient(y=x * 2, xs=[x], backward=backward).sum(),
    ):
        assert cg.grad(f)(np.ones(2)).tolist() == [3, 3] and cg.jit(f)(np.ones(2)) == 4


def test_a_ufunc_of_two_results_does_not_write_them():
    for out in (lambda x: (x, x + 0), lambda x: (x + 0, None)):
        with pytest.raises(GraphError, match=r"np\.modf writes a traced value into an array of NumPy"):
            cg.jit(lambda x, out=out: np.modf(x, out=out(x)))(np.ones(2))


@pytest.mark.parametrize("answer", [lambda s, x: [s, x], lambda s, x: (s, x, x), lambda s, x: s, lambda s, x: (s,)])
def test_a_round_of_scan_returns_a_pair(answer):
    for f in (lambda xs: cg.scan(answer, 0.0, xs), cg.jit(lambda xs: cg.scan(answer, 0.0, xs))):
        with pytest.raises(GraphError, match=r"scan: the function returned .*; return a pair"):
            f(np.ones(3))


def test_a_result_of_fewer_axes_fills_the_array_that_it_is_written_to():
    def f(x):
        np.add(x[0], 1, out=x)
        np.multiply(x, x[:, :1], out=x)
        return x

    assert jit(f, np.arange(6.0).reshape(2, 3)) == [[1, 2, 3], [1, 2, 3]]


@pytest.mark.parametrize("index", [[[0, 1], [1, 0]], [[1]], ([0, 1], [1, 2]), ([[0], [1]], [[2, 0]])], ids=str)
def test_lists_of_lists_are_an_index_with_and_without_traced_numbers(index):
    x = np.arange(6.0).reshape(2, 3)

    def traced(i, one):
        return one + (i - 1) if isinstance(i, int) else type(i)(traced(j, one) for j in i)

    np.testing.assert_array_equal(cg.jit(lambda x: x[index])(x), x[index])
    np.testing.assert_array_equal(cg.jit(lambda x, one: x[traced(index, one)])(x, np.int64(1)), x[index])


def test_a_method_that_changes_an_array_of_numpy_is_refused():
    def f(x):
        total = np.zeros(3)
        np.add.at(total, [0, 1], x)
        return total

    with pytest.raises(NoMeaningError, match="at changes its operand"):
        cg.jit(f)(np.ones(2))
