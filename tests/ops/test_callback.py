"""A user's Python functions in a graph: values, exceptions, declared results, cycles."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, GraphError, NoGradientError, ShapeError

ENGINES = ("cpu", "reference")
every_engine = pytest.mark.parametrize("engine", ENGINES)


@every_engine
def test_delay_computes_with_the_operands_of_each_run(engine):
    x = cg.Var((2, 3), name="x")
    f = cg.compile(cg.delay(lambda a: a[::-1] * 2, x + 1) - 1, [x], engine=engine)
    for value in (np.ones((2, 3), "f4"), np.arange(6, dtype="f4").reshape(2, 3)):
        np.testing.assert_array_equal(f(value), (value + 1)[::-1] * 2 - 1)


@every_engine
def test_delay_array_takes_several_operands_of_any_strides(engine):
    x, y = cg.Var((4, 3), "float64", "x"), cg.Var((3,), "int32", "y")
    made = cg.delay_array((3, 2), "float64", lambda a, b: a[:, ::2] * b[:, None], x.T[:, ::-1], y)
    a, b = np.arange(12.0).reshape(4, 3), np.array([1, -2, 3], "i4")
    got = cg.compile(made, [x, y], engine=engine)(a, b)
    np.testing.assert_array_equal(got, a.T[:, ::-1][:, ::2] * b[:, None])


@every_engine
def test_a_function_without_operands_and_a_plain_number(engine):
    calls = iter(range(10))
    f = cg.compile(cg.delay_array((), "int64", lambda: next(calls)) + 0, [], engine=engine)
    assert [int(f()), int(f()), int(f())] == [0, 1, 2]


@every_engine
def test_an_exception_reaches_the_caller_and_the_function_stays_usable(engine):
    x = cg.Var((2,), "float64", "x")

    def refuse_negative(a):
        if (a < 0).any():
            raise LookupError("negative")
        return np.sqrt(a)

    f = cg.compile(cg.delay(refuse_negative, x) + 1, [x], engine=engine)
    for _ in range(2):
        with pytest.raises(LookupError, match="negative") as caught:
            f(np.array([1.0, -1.0]))
        assert any("delay at test_callback.py:" in note for note in caught.value.__notes__)
        np.testing.assert_array_equal(f(np.array([4.0, 9.0])), [3.0, 4.0])


@every_engine
def test_an_interrupt_reaches_the_caller(engine):
    def interrupt(a):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cg.compile(cg.delay(interrupt, cg.Const(1.0)), engine=engine)()


@every_engine
@pytest.mark.parametrize(
    ("returned", "error", "text"),
    [
        (np.zeros(3, "f4"), ShapeError, r"returned float32\[3\], but float32\[2\] is declared"),
        (np.zeros((2, 1), "f4"), ShapeError, r"returned float32\[2,1\], but float32\[2\] is declared"),
        (np.zeros((1, 2), "f4"), ShapeError, r"returned float32\[1,2\], but float32\[2\] is declared"),
        (np.zeros(2), DTypeError, r"returned float64\[2\], but float32\[2\] is declared"),
        (cg.Var((2,)), GraphError, "returned .*; return an array"),
    ],
)
def test_another_result_than_declared_is_refused(engine, returned, error, text):
    made = cg.delay_array((2,), "float32", lambda: returned)
    with pytest.raises(error, match=rf"delay at test_callback.py:\d+: the function {text}"):
        cg.compile(made, engine=engine)()


def test_a_list_takes_the_declared_dtype():
    assert cg.delay_array((2,), "float32", lambda: [1, 2.5]).eval().dtype == np.float32


@every_engine
def test_a_function_that_evaluates_what_depends_on_it_is_refused(engine):
    x = cg.Var((2,), name="x").assign([1, 2])
    later = []
    made = cg.delay(lambda a: later[0](), x)
    later.append(cg.compile(made * 2, engine=engine))
    with pytest.raises(GraphError, match="depends on the delay itself"):
        later[0]()


def test_a_cycle_through_eval_and_an_update_edge_is_refused():
    x = cg.Var((2,), name="x").assign([1, 2])
    later = []
    made = cg.delay(lambda a: later[0](), x)
    later.append(cg.compile(made, updates={x: made}))
    with pytest.raises(GraphError, match="depends on the delay itself"):
        later[0]()
    np.testing.assert_array_equal(x.value, [1, 2])


def test_a_function_may_run_another_graph():
    x = cg.Var((3,), "float64", "x").assign([1, 2, 3])
    inner = cg.sum(x * 10)
    made = cg.delay_array((), "float64", lambda a: inner.eval() + a.sum(), x)
    assert made.eval() == 66


def test_what_the_function_keeps_or_changes_is_its_own():
    kept = []
    x = cg.Var((3,), "float64", "x")

    def keep(a):
        kept.append(a)
        a *= 2
        return a

    y = x + 1
    f = cg.compile([cg.delay(keep, y), y], [x])
    got, same = f(np.zeros(3))
    f(np.ones(3))
    np.testing.assert_array_equal(got, [2, 2, 2])
    np.testing.assert_array_equal(same, [1, 1, 1])
    np.testing.assert_array_equal(kept[0], [2, 2, 2])


def test_two_delays_of_one_function_are_two_nodes_and_run_each_time():
    count = []
    x = cg.Var((1,), name="x").assign([0])
    a, b = (cg.delay(lambda v: count.append(1) or v, x) for _ in range(2))
    f = cg.compile([a, b])
    f(), f()
    assert len(count) == 4


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_callbacks_on_any_number_of_threads(threads):
    x = cg.Var((300, 400), name="x")
    y = x
    for _ in range(5):
        y = cg.delay(lambda a: a + 1, cg.sin(y) * 2)
    f = cg.compile(y, [x], threads=threads)
    value = np.linspace(0, 1, 120000, dtype="f4").reshape(300, 400)
    np.testing.assert_array_equal(f(value), cg.compile(y, [x], threads=1)(value))


@every_engine
def test_lazy_print_writes_the_value_and_passes_it_on(engine, capsys):
    x = cg.Var((30, 2), "float64", "pressure")
    f = cg.compile(cg.lazy_print(x, max_row=2, fmt=lambda v: f"<{v:.1f}>") * 2, [x], engine=engine)
    value = np.arange(60.0).reshape(30, 2)
    np.testing.assert_array_equal(f(value), value * 2)
    text = capsys.readouterr().out
    assert "pressure float64[30,2] at test_callback.py:" in text
    assert "<3.0>" in text and "<4.0>" not in text and "the first 2x2 of (30, 2)" in text


def test_gradients():
    x = cg.Var((2,), "float64", "x").assign([1, 2])
    np.testing.assert_array_equal(cg.gradient(cg.sum(cg.lazy_print(x, header=False) ** 2), x).eval(), [2, 4])
    with pytest.raises(NoGradientError, match="delay has no gradient"):
        cg.gradient(cg.sum(cg.delay(np.sqrt, x)), x)


@every_engine
def test_a_function_may_evaluate_a_node_with_a_function_of_its_own(engine):
    """Two deep; each may run again afterwards, and none inside itself."""
    x = cg.Var((2,), "float64", "x")
    inner = cg.compile(cg.delay(lambda a: a + 1, x) * 2, [x], engine=engine)
    middle = cg.compile(cg.delay(lambda a: inner(a) + 10, x), [x], engine=engine)
    outer = cg.compile(cg.delay(lambda a: middle(a) - inner(a), x), [x], engine=engine)
    for value in (np.zeros(2), np.array([3.0, -4.0])):
        np.testing.assert_array_equal(outer(value), [10, 10])
        np.testing.assert_array_equal(middle(value), (value + 1) * 2 + 10)
    holder = {}
    first = cg.delay(lambda a: holder["second"](a), x)
    second = cg.compile(cg.delay(lambda a: holder["first"](a), x), [x], engine=engine)
    holder.update(first=cg.compile(first, [x], engine=engine), second=second)
    with pytest.raises(GraphError, match="depends on the delay.* itself"):
        holder["first"](np.zeros(2))


PRINTED = [
    ((), "7."), ((3,), "[0. 1.]\nthe first 2 of (3,)"), ((2,), "[0. 1.]"), ((1, 2), "[[0. 1.]]"),
    ((4, 3), "[[0. 1.]\n [3. 4.]\n [6. 7.]]\nthe first 3x2 of (4, 3)"), ((3, 2), "[[0. 1.]\n [2. 3.]\n [4. 5.]]"),
]  # fmt: skip


@pytest.mark.parametrize("shape, text", PRINTED, ids=str)
def test_a_value_of_any_rank_is_printed_up_to_its_limits(shape, text, capsys):
    x = cg.Var(shape, "float64", "x")
    value = np.full((), 7.0) if shape == () else np.arange(float(np.prod(shape))).reshape(shape)
    got = cg.compile(cg.lazy_print(x, max_row=3, max_col=2, header=False), [x])(value)
    np.testing.assert_array_equal(got, value)
    printed = capsys.readouterr()
    assert (printed.out + printed.err).strip() == text
