"""The walk that batches a graph: what is shared stays one node, what has no rule loops, results have their axis."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.batching.batch import batch, batched_node, one_by_one, samplewise
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import apply
from cgraph.ir.origin import ORIGIN
from cgraph.ir.traverse import post_order
from cgraph.ops.control import UNROLLED
from cgraph.ops.conv import Conv2d
from cgraph.ops.loop import Body, Loop
from cgraph.ops.shape import items
from tests.support.tolerance import assert_close

SIZE = UNROLLED + 1  # fewer examples are computed one after another
RNG = np.random.default_rng(0)
X, Y, W = cg.Var((2, 3), "float64", "x"), cg.Var((3,), "float64", "y"), cg.Var((3,), "float64", "w")
ROWS = {x: cg.Var(RNG.normal(size=(SIZE, *x.shape))) for x in (X, Y)}
SHARED = cg.Var(RNG.normal(size=(3,)))


def each(outputs):
    """The outputs of one example after another."""
    shared = {W: SHARED.value}
    parts = [evaluate(outputs, shared | {x: v.value[i] for x, v in ROWS.items()}) for i in range(SIZE)]
    return [np.stack(part) for part in zip(*parts)]


def check(*outputs):
    got = batch(outputs, {W: SHARED}, ROWS, SIZE)
    for a, b in zip(evaluate(got), each(outputs), strict=True):
        assert_close(a, b)
    return got


def loops(roots):
    return [n for n in post_order(roots) if isinstance(n.op, Loop)]


def test_pointwise_ops_reductions_and_products():
    assert not loops(check(cg.exp(X) * W + Y, cg.sum(X, 0), X @ Y, cg.max(X, 1, keepdims=True), X))


def test_what_does_not_depend_on_the_examples_is_computed_once_and_repeated():
    constant = cg.exp(W) + 1
    (repeated, used) = check(constant, X * constant)
    alone = [n for n in post_order([repeated, used]) if n.op.name == "exp"]
    assert len(alone) == 1 and alone[0].shape == (3,) and repeated.shape == (SIZE, 3)


def test_a_graph_without_examples_keeps_its_nodes():
    untouched = cg.exp(cg.Var((2,), "float64"))
    (got,) = batch([untouched], {}, {}, SIZE)
    assert untouched in set(post_order([got])) and got.shape == (SIZE, 2)
    assert batch([X], {}, ROWS, SIZE) == [ROWS[X]]


def test_an_op_without_a_rule_is_a_loop_over_examples():
    (got,) = check(cg.searchsorted(W, Y))
    (loop,) = loops([got])
    assert loop.op.length == SIZE


def test_several_results_keep_their_order():
    values, places = cg.top_k(X, 2, 1)
    check(places, values)
    q, r = cg.qr(cg.transpose(X))
    check(r, cg.abs(q))
    one = one_by_one(values.operands[0], [ROWS[X]], [True], SIZE)
    for a, b in zip(evaluate(one), each([values, places])):
        assert_close(a, b)


def test_images_of_all_examples_are_one_batch_unless_the_filters_differ():
    image, filters = cg.Var((2, 3, 5, 5), "float64"), cg.Var((4, 3, 3, 3), "float64")
    xs, fs = cg.Var(RNG.normal(size=(SIZE, 2, 3, 5, 5))), cg.Var(RNG.normal(size=(SIZE, 4, 3, 3, 3)))
    node = cg.conv2d(image, filters, 1, 1)
    joined = batched_node(node, [xs, fs[0]], [True, False], SIZE)
    assert not loops([joined]) and joined.shape == (SIZE, 2, 4, 5, 5)
    assert samplewise(node, [xs, fs[0]]) is joined
    apart = batched_node(node, [xs, fs], [True, True], SIZE)
    assert loops([apart])
    shared = batched_node(node, [xs[0], fs], [False, True], SIZE)
    want = [[Conv2d.meaning(node.op, xs.value[i], fs.value[j]) for j in range(SIZE)] for i in range(SIZE)]
    for got, rows in ((joined, [w[0] for w in want]), (apart, [want[i][i] for i in range(SIZE)]), (shared, want[0])):
        assert_close(evaluate([got])[0], np.stack(rows))


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(
    "flags", [(True, True, True), (False, True, False), (True, False, False), (False, False, True)]
)
def test_a_loop_has_the_state_of_all_examples(flags, backward):
    s, row, w = (cg.Var((), "float64", name) for name in "srw")
    loop = Loop(Body((s,), (row,), (w,), (s * w + row,), (s - row,)), 5, backward, states=True)
    shapes = ((), (5,), ())
    arrays = [RNG.normal(size=(SIZE, *shape) if flag else shape) for shape, flag in zip(shapes, flags)]
    inputs = [cg.Var(shape, "float64") for shape in shapes]
    outputs = items(apply(loop, *inputs))
    batched = {x: cg.Var(a) for x, a, flag in zip(inputs, arrays, flags) if flag}
    alike = {x: cg.Var(a) for x, a, flag in zip(inputs, arrays, flags) if not flag}
    got = batch(outputs, alike, batched, SIZE)
    assert len(loops(got)) == 1 and loops(got)[0].op.backward == backward
    rows = [loop.meaning(*(a[i] if flag else a for a, flag in zip(arrays, flags))) for i in range(SIZE)]
    for a, b in zip(evaluate(got), map(np.stack, zip(*rows)), strict=True):
        assert_close(a, b)


@pytest.mark.parametrize("differs", [0, 1])
def test_each_sequence_of_a_loop_is_that_of_all_examples_or_of_each(differs):
    """A row of a sequence is as long as the loop: turned, it would fit as well."""
    s, *rows = (cg.Var((4,), "float64", name) for name in "sab")
    loop = Loop(Body((s,), tuple(rows), (), (s * rows[0] + rows[1],), ()), 4)
    inputs = [cg.Var(shape, "float64") for shape in ((4,), (4, 4), (4, 4))]
    arrays = [RNG.normal(size=(SIZE, *x.shape) if i == differs + 1 else x.shape) for i, x in enumerate(inputs)]
    values = dict(zip(inputs, map(cg.Var, arrays)))
    batched = {inputs[differs + 1]: values.pop(inputs[differs + 1])}
    (got,) = evaluate(batch(items(apply(loop, *inputs)), values, batched, SIZE))
    for i, a in enumerate(got):
        (want,) = loop.meaning(*(x[i] if j == differs + 1 else x for j, x in enumerate(arrays)))
        assert_close(a, want)


def test_no_examples_give_empty_results():
    empty = {X: cg.Var(np.zeros((0, 2, 3)))}
    got = batch([cg.sum(X), cg.searchsorted(W, X[0])], {W: SHARED}, empty, 0)
    assert [x.shape for x in evaluate(got)] == [(0,), (0, 3)]


@pytest.mark.parametrize("shapes", [(0, 2, 3), (2, 0, 3), (2, 2, 0)], ids=["examples", "queries", "width of values"])
def test_attention_of_nothing_is_empty(shapes):
    size, queries, width = shapes
    q, k, v = (cg.Var(np.zeros((size, 4, *x), "f4")) for x in ((queries, 5), (3, 5), (3, width)))
    result = cg.vmap(cg.scaled_dot_product_attention)(q, k, v)
    assert np.shape(result.eval() if isinstance(result, cg.Node) else result) == (size, 4, queries, width)


@pytest.mark.parametrize("inner", [W, Y, cg.exp(W), cg.exp(Y)], ids=["shared", "row", "of shared", "of row"])
@pytest.mark.parametrize("is_batched", [False, True])
def test_a_value_that_is_given_stands_for_its_node_whatever_the_node_depends_on(inner, is_batched):
    given = RNG.normal(size=(SIZE, 3) if is_batched else 3)
    new, rows = ({x: y for x, y in table.items() if x is not inner} for table in ({W: SHARED}, ROWS))
    (rows if is_batched else new)[inner] = cg.Var(given)
    alike = np.broadcast_to(given, (SIZE, 3))
    got = evaluate(batch([inner, inner * 2, inner - X[0]], new, rows, SIZE))
    for a, b in zip(got, (alike, alike * 2, alike - ROWS[X].value[:, 0])):
        assert_close(a, b)


def test_batched_nodes_have_the_lines_of_the_nodes_that_they_replace():
    first = cg.exp(X)
    second = cg.sum(first, 0)
    loop = cg.searchsorted(W, second)
    got, looped = batch([second, loop], {W: SHARED}, ROWS, SIZE)
    assert len({node.origin for node in (first, second, loop)}) == 3
    assert (got.origin, got.operands[0].origin, looped.origin) == (second.origin, first.origin, loop.origin)
    assert ORIGIN.get() is None
