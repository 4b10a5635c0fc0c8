"""`cg.vmap`: the function applied to one example after another is the oracle, for every op of the library."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ArgumentError, ShapeError
from cgraph.ir.traverse import post_order
from cgraph.ops.loop import Loop
from cgraph.transforms.trees import flatten
from cgraph.transforms.vectorise import examples, leaf_axes
from tests.ops.cases import CASES, Case
from tests.support.tolerance import all_near, assert_close

SIZE = 3
ROWS = [case for case in CASES if case.draws]
FEW = [case for case in ROWS if case.op in "take scatter conv2d matmul scan nonzero svd sort where".split()]
X = np.linspace(-1, 1, 30).reshape(5, 2, 3)


def floats_of(case: Case) -> tuple[int, ...]:
    """The positions of the operands that are floats."""
    return tuple(i for i, d in enumerate(case.draws) if np.dtype(d.dtype).kind == "f")


def outputs(case: Case, xs) -> tuple:
    y = case.build(*xs)
    return tuple(y) if isinstance(y, list | tuple) else (y,)


def compared(case: Case, shared: int | None, engine: str) -> None:
    """Compare a row of cases on several examples, one operand perhaps shared by all, with one example at a time."""
    rng = np.random.default_rng(5)
    examples = [[d.array(rng) for _ in range(SIZE)] for d in case.draws]
    axes = [None if i == shared else 0 for i in range(len(case.draws))]
    arrays = [x[0] if axis is None else np.stack(x) for x, axis in zip(examples, axes)]
    xs = [cg.Var(x.shape, x.dtype) for x in arrays]
    got = cg.compile(cg.vmap(lambda *xs: outputs(case, xs), in_axes=tuple(axes))(*xs), xs, engine=engine)(*arrays)
    one = [cg.Var(d.shape, d.dtype) for d in case.draws]
    function = cg.compile(outputs(case, one), one, engine="reference")
    rows = [function(*[x[0 if axis is None else i] for x, axis in zip(examples, axes)]) for i in range(SIZE)]
    for x, y in zip(got, map(np.stack, zip(*rows)), strict=True):
        assert x.dtype == y.dtype
        assert_close(x, y, 4 * case.scale, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("case", ROWS, ids=str)
def test_an_op_on_many_examples_gives_what_it_gives_on_each(case, capsys):
    compared(case, None, "reference")


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in ROWS if len(case.draws) > 1], ids=str)
def test_an_operand_is_shared_by_all_examples(case, capsys):
    for i in range(len(case.draws)):
        compared(case, i, "reference")


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in ROWS if case.smooth and floats_of(case)], ids=str)
def test_gradients_of_batches_and_batches_of_gradients_are_those_of_each_example(case, capsys):
    """Of a function that calls Python or has a gradient of its own, only the batch of gradients."""
    numbers, rng = floats_of(case), np.random.default_rng(5)

    def total(*xs):
        parts = [cg.real(y) * cg.imag(y) if y.dtype.kind == "c" else y for y in outputs(case, xs)]
        return sum(cg.sum(y * y) * (i + 1) for i, y in enumerate(parts) if y.dtype.kind == "f")

    examples = [[d.array(rng) for _ in range(SIZE)] for d in case.draws]
    arrays, slope = [np.stack(x) for x in examples], cg.grad(total, argnums=numbers)
    xs, one = [cg.Var(x.shape, x.dtype) for x in arrays], [cg.Var(d.shape, d.dtype) for d in case.draws]
    function = cg.compile(slope(*one), one, engine="reference")
    want = [np.stack(rows) for rows in zip(*[function(*[x[i] for x in examples]) for i in range(SIZE)])]
    forms = [cg.vmap(slope)]
    if case.op not in ("custom_gradient", "kernel"):
        forms.append(cg.grad(lambda *xs: cg.sum(cg.vmap(total)(*xs)), argnums=numbers))
    for form in forms:
        for x, y in zip(cg.compile(form(*xs), xs, engine="reference")(*arrays), want, strict=True):
            assert_close(x, y, 20 * case.scale, 1000)


@pytest.mark.parametrize("case", FEW, ids=str)
def test_kernels_give_the_same(case):
    compared(case, None, "cpu")


@pytest.mark.parametrize(
    "f, shapes",
    [
        (lambda x, y: np.tanh(x) + y, [(4,), (4,)]),
        (lambda x, w: x @ w, [(2, 3), (3, 4)]),
        (lambda x, i: x[1:, ::2].sum(0) * x.max(), [(4, 4), ()]),
        (lambda x, y: np.concatenate([x, y]).T, [(2, 3), (2, 3)]),
        (lambda x, y: cg.conv2d(x, np.ones((2, 3, 3, 3))) * 2, [(1, 3, 6, 6), ()]),
        (lambda x, y: cg.softmax(np.linalg.inv(x)) * y, [(3, 3), ()]),
        (lambda x, y: cg.grad(lambda a: np.sum(np.tanh(a @ y)))(x), [(2, 3), (3,)]),
        (lambda x, y: x[np.argsort(y)], [(4, 2), (4,)]),
    ],
)
def test_common_operations_are_batched_without_a_loop(f, shapes):
    xs = [cg.Var((7, *shape), "float64") for shape in shapes]
    y = cg.vmap(f)(*xs)
    assert not any(isinstance(node.op, Loop) for node in post_order([y]))
    arrays = [np.random.default_rng(i).normal(size=x.shape) for i, x in enumerate(xs)]
    one = cg.jit(f)
    want = np.stack([one(*[x[i] for x in arrays]) for i in range(7)])
    assert all_near(cg.compile(y, xs)(*arrays), want)


def test_a_graph_with_a_fallback_does_not_grow_with_the_examples():
    sizes = []
    for size in (8, 800):
        x = cg.Var((size, 5), "float64")
        y = cg.vmap(lambda row: np.searchsorted(row, 0.5))(x)
        sizes.append(len(post_order([y])))
    assert sizes[0] == sizes[1]


def test_axes_say_where_the_examples_are():
    f = lambda p, x: (p["w"] @ x + p["b"], x[0])  # noqa: E731
    w, b = np.arange(20.0).reshape(5, 2, 2), np.arange(2.0)
    x = np.arange(10.0).reshape(2, 5)
    got = cg.vmap(f, in_axes=({"w": 0, "b": None}, 1), out_axes=(1, 0))({"w": w, "b": b}, x)
    assert all_near(got[0], np.stack([w[i] @ x[:, i] + b for i in range(5)], 1)) and np.array_equal(got[1], x[0])
    assert all_near(cg.vmap(f, in_axes=(None, -1))({"w": w[0], "b": b}, x)[0], (w[0] @ x).T + b)
    assert cg.vmap(lambda x, *, y: x * y)(np.arange(3.0), y=np.arange(3.0)).tolist() == [0, 1, 4]
    assert cg.vmap(lambda x, y: y, in_axes=(0, None))(np.arange(3.0), 2.0).tolist() == [2, 2, 2]
    rows, columns = np.arange(6.0).reshape(3, 2), np.arange(6.0).reshape(2, 3)
    by_name = cg.vmap(lambda x, *, y: x - y, in_axes=(1,))(columns, y=rows)
    assert by_name.tolist() == (columns.T - rows).tolist()


def test_settings_are_shared_by_all_examples():
    f = cg.jit(lambda x, mode, n: np.pad(x, n, mode=mode), static_argnames="n")
    got = cg.vmap(f, in_axes=(0, 0, None))(X, "edge", 2)
    assert np.array_equal(got, np.stack([np.pad(x, 2, mode="edge") for x in X]))


def test_transformations_compose():
    per_example = cg.jit(cg.vmap(cg.grad(lambda w, x: np.sum(np.tanh(x @ w))), in_axes=(None, 0)))
    w = np.ones(3)
    want = np.stack([cg.grad(lambda w, x: np.sum(np.tanh(x @ w)))(w, x) for x in X])
    assert all_near(per_example(w, X), want)
    outer = cg.vmap(cg.vmap(lambda a, b: a * b, in_axes=(0, None)), in_axes=(None, 0))
    assert np.array_equal(outer(np.arange(3.0), np.arange(2.0)), np.outer(np.arange(2.0), np.arange(3.0)))
    assert all_near(cg.grad(lambda x: cg.vmap(np.sin)(x).sum())(X[0]), np.cos(X[0]))
    assert all_near(cg.vmap(cg.jit(lambda x: x.sum()))(X), X.sum((1, 2)))


def test_assignment_loops_and_branches_are_batched():
    def f(x, i):
        x[i] = 7
        total, rows = cg.scan(lambda c, row: (c + row.sum(), c), 0.0, x)
        return total, rows, cg.cond(x[0] > 0, lambda a: a + 1, lambda a: -a, x)

    x, i = np.random.default_rng(0).normal(size=(6, 9)), np.arange(6) % 4
    got, one = cg.vmap(f)(x, i), cg.jit(f)
    for a, b in zip(got, map(np.stack, zip(*[one(x[k], i[k]) for k in range(6)]))):
        assert all_near(a, b)


def test_each_example_runs_its_own_number_of_rounds():
    def root(a):
        def better(state):
            return (0.5 * (state[0] + a / state[0]), state[1] + 1)

        return cg.while_loop(lambda state: abs(state[0] ** 2 - a) > 1e-9 * a, better, (a * 1.0, 0), maximum=60)

    a = np.array([2.0, 9.0, 1e4])
    roots, rounds = cg.vmap(root)(a)
    assert all_near(roots, np.sqrt(a), "float32 formulas near zero") and rounds.tolist() == [
        root_[1] for root_ in map(cg.jit(root), a)
    ]
    assert all_near(cg.vmap(cg.grad(lambda a: root(a)[0]))(a), 0.5 / np.sqrt(a), "float32 formulas near zero")


def test_a_position_outside_an_example_does_not_reach_the_next_one():
    f = cg.vmap(lambda x, i: x[i])
    with pytest.raises(cg.PositionError):
        f(np.arange(6.0).reshape(2, 3), np.array([3, 0]))


def test_no_examples_give_no_results():
    assert cg.vmap(lambda x: np.sin(x) @ x)(np.zeros((0, 3))).shape == (0,)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: cg.vmap(lambda x, y: x)(np.ones(3), np.ones(4)), ShapeError, "3, 4"),
        (lambda: cg.vmap(lambda x: x, in_axes=None)(np.ones(3)), ArgumentError, "None everywhere"),
        (lambda: cg.vmap(lambda x: x, in_axes=(0, 0))(np.ones(3)), ArgumentError, "2 axes for 1"),
        (lambda: cg.vmap(lambda x: x)(3.0), ShapeError, "axis 0"),
        (lambda: cg.vmap(lambda x: x, in_axes=("a",))(np.ones(3)), ArgumentError, "not an axis"),
        (lambda: cg.vmap(lambda x: x, out_axes=None)(np.ones(3)), ArgumentError, "out_axes"),
        (lambda: cg.vmap(3), ArgumentError, "takes a function"),
    ],
)
def test_axes_that_do_not_fit_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


# -- the parts --------------------------------------------------------------------------------------------------------


def test_an_axis_stands_for_all_leaves_below_it():
    structure = flatten(({"a": X, "b": (X, None)}, [X]), [])
    assert list(leaf_axes(1, structure, "in_axes")) == [1, 1, 1]
    assert list(leaf_axes((None, 2), structure, "in_axes")) == [None, None, 2]
    assert list(leaf_axes(({"a": 0, "b": (1, None)}, [2]), structure, "in_axes")) == [0, 1, 2]
    for prefix in ((0,), ({"a": 0}, 0), (0, (0, 1)), ((0, 1), [(0, 1)])):
        with pytest.raises(ArgumentError, match="in_axes has .* which does not fit the arrays there"):
            list(leaf_axes(prefix, structure, "in_axes"))
    with pytest.raises(ArgumentError, match="1.5 is not an axis; pass an integer, None, or a tree of them"):
        list(leaf_axes(1.5, structure, "in_axes"))


def test_the_number_of_examples_is_one_for_all():
    assert examples([X, X[0], 3.0], [0, None, None]) == 5 == examples([X, np.zeros((2, 5))], [-3, 1])
    with pytest.raises(ShapeError, match=r"arguments have \[2, 5\] examples; pass equally many, or None in in_axes"):
        examples([X, X], [0, 1])
    with pytest.raises(ArgumentError, match="no argument has examples: in_axes is None everywhere"):
        examples([X], [None])
    with pytest.raises(ShapeError, match="axis 3 is outside the 3 axes"):
        examples([X], [3])


def test_constants_among_the_results_and_axes_of_names_are_kept():
    got = cg.vmap(lambda x, *, y: (x + y, 7), out_axes=(1, 0))(X[:, 0], y=X[:, 1])
    assert np.array_equal(got[0], (X[:, 0] + X[:, 1]).T) and got[1] == 7
    assert repr(cg.vmap(np.sin)) == "<vmap of sin>"


def test_axes_tell_functions_apart():
    def f(x):
        return x

    made = [cg.vmap(f), cg.vmap(f, 1), cg.vmap(f, 0, 1), cg.vmap(f, (0,))]
    assert len({m.recipe for m in made}) == 4 and cg.vmap(f).recipe == made[0].recipe
    assert made[1](X).shape == (2, 5, 3) and made[2](X).shape == (2, 5, 3) and made[0](X).shape == X.shape


@pytest.mark.parametrize("keys", [("a", "b"), ("b", "a"), (1, "1"), ((2, "c"), None)])
def test_axes_in_a_dict_are_those_of_their_keys_in_any_order(keys):
    one, other = keys
    a, b = np.arange(6.0).reshape(2, 3), np.arange(8.0).reshape(4, 2) ** 2
    added = cg.vmap(lambda x: x[one].sum() + x[other].sum() * 10, in_axes=({one: 0, other: 1},))
    for argument in ({one: a, other: b}, {other: b, one: a}):
        np.testing.assert_array_equal(added(argument), a.sum(1) + b.sum(0) * 10)
    for axes in ({one: 0, other: 1}, {other: 1, one: 0}):
        both = cg.vmap(lambda x: {one: x, other: x * 2}, out_axes=axes)(a)
        np.testing.assert_array_equal(both[one], a)
        np.testing.assert_array_equal(both[other], a.T * 2)


@pytest.mark.parametrize("axes", [{"a": 0}, {"a": 0, "c": 0}, {"a": 0, "b": 0, "c": 0}, {}])
def test_axes_of_other_keys_are_refused(axes):
    with pytest.raises(ArgumentError, match="in_axes has .* which does not fit the arrays there"):
        cg.vmap(lambda x: x["a"], in_axes=(axes,))({"a": np.ones(3), "b": np.ones(3)})
    with pytest.raises(ArgumentError, match="out_axes has .* which does not fit"):
        cg.vmap(lambda x: {"a": x, "b": x}, out_axes=axes)(np.ones(3))


@pytest.mark.parametrize("out_axis", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("in_axis", [0, 1, 2, -1, -2, -3])
def test_examples_are_read_and_returned_along_any_axis(in_axis, out_axis):
    x = X[:, :, :2]
    got = cg.vmap(lambda row: row * 2, in_axis, out_axis)(x)
    np.testing.assert_array_equal(got, np.moveaxis(x * 2, in_axis, out_axis))
    listed = cg.vmap(lambda row, y: row - y, [in_axis, None], out_axis)(x, 1.0)
    np.testing.assert_array_equal(listed, np.moveaxis(x - 1, in_axis, out_axis))


def test_each_argument_by_name_has_examples_along_its_first_axis():
    a, b, c = np.arange(6.0).reshape(2, 3), np.arange(2.0), np.arange(4.0).reshape(2, 2)
    got = cg.vmap(lambda *, a, b, c: a * b + c["c"][1])(a=a, b=b, c={"c": c})
    np.testing.assert_array_equal(got, a * b[:, None] + c[:, 1:])
    mixed = cg.vmap(lambda x, *, a, b: x * a - b, in_axes=1)(a.T, a=a, b=b)
    np.testing.assert_array_equal(mixed, a * a - b[:, None])
    with pytest.raises(ShapeError, match=r"arguments have \[2, 3\] examples"):
        cg.vmap(lambda *, a, b: a[0] * b)(a=a, b=np.ones(3))
    with pytest.raises(ShapeError, match="axis 0 does not exist"):
        cg.vmap(lambda a, b: a * b)(a, 2.0)
