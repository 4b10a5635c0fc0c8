"""Rules of batching: each op's rule beside one example after another, with every choice of shared operands."""

from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.batching.rules import RULES, SAMPLEWISE, expand, joined_rows
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import apply
from cgraph.ir.spec import Bundle
from cgraph.ops.attention import Attention
from cgraph.ops.family import Pointwise
from cgraph.ops.fourier import Fourier, RealFourier
from cgraph.ops.index import OneHot
from cgraph.ops.join import Concat
from cgraph.ops.linear import Matmul
from cgraph.ops.norm import LayerNorm
from cgraph.ops.pad import Pad
from cgraph.ops.reduce import Argmax, Sum
from cgraph.ops.scan import Cumsum
from cgraph.ops.shape import BroadcastTo, Reshape, Transpose, items
from cgraph.ops.slicing import SetSlice, Slice
from cgraph.ops.sliding import Sliding
from cgraph.ops.take import PutAlongAxis, Scatter, Take, TakeAlongAxis
from tests.support.tolerance import assert_close

SIZE = 3
RNG = np.random.default_rng(0)
I = "int64"  # noqa: E741 - positions
ROWS = {
    "reshape": (Reshape((6,)), [(2, 3)]),
    "transpose": (Transpose((2, 0, 1)), [(2, 3, 4)]),
    "broadcast to more axes": (BroadcastTo((5, 2, 3)), [(2, 1)]),
    "broadcast of one number": (BroadcastTo((2, 3)), [()]),
    "slice": (Slice((1, 3), (1, -2), (1, 2)), [(2, 4)]),
    "set slice": (SetSlice((1, 0), (1, 2)), [(2, 4), (1, 2)]),
    "pad": (Pad(((1, 0), (0, 2)), 7.0), [(2, 3)]),
    "layer norm": (LayerNorm(1, 0.1), [(2, 3), (3,), (3,)]),
    "matmul": (Matmul(), [(2, 3), (3, 4)]),
    "matmul of stacks": (Matmul(), [(5, 2, 3), (5, 3, 4)]),
    "matmul over nothing": (Matmul(), [(2, 0), (0, 4)]),
    "attention": (Attention(0.5, True), [(2, 4, 5, 3), (2, 2, 5, 3), (2, 2, 5, 2)]),
    "safe attention": (Attention(0.5, True, safe=True), [(2, 4, 5, 3), (2, 2, 5, 3), (2, 2, 5, 2)]),
    "attention with a start": (
        Attention(0.5, True, has_start=True), [(2, 4, 3, 3), (2, 2, 5, 3), (2, 2, 5, 2), ((2,), I)],
    ),
    "attention with a mask": (Attention(0.5, has_mask=True), [(1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 2), (1, 1, 3, 5)]),
    "attention with a mask of all batch elements": (
        Attention(0.5, has_mask=True),
        [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 2), (1, 1, 3, 5)],
    ),
    "take along the last axis": (Take(1), [(2, 4), ((3, 2), I)]),
    "take along the first axis": (Take(0), [(4, 2), ((3,), I)]),
    "scatter along the last axis": (Scatter(1, "add"), [(2, 4), ((3,), I), (2, 3)]),
    "scatter along the first axis": (Scatter(0, "set"), [(4, 2), ((3, 2), I), (3, 2, 2)]),
    "take along the third axis": (Take(2), [(2, 3, 4), ((3, 2), I)]),
    "scatter along the third axis": (Scatter(2, "set"), [(2, 3, 4), ((5,), I), (2, 3, 5)]),
    "take along third axis": (TakeAlongAxis(2), [(2, 3, 4), ((2, 3, 5), I)]),
    "put along third axis": (PutAlongAxis(2, "add"), [(2, 3, 4), ((2, 3, 5), I), (2, 3, 5)]),
    "concat along the third axis": (Concat(2), [(2, 3, 4), (2, 3, 1)]),
    "cumsum along the third axis": (Cumsum(2), [(2, 3, 4)]),
    "sliding along the third axis": (Sliding(2, 2), [(2, 3, 4)]),
    "one hot on the third axis": (OneHot(4, 2, np.dtype("float64"), 5.0, -1.0), [((2, 3), I)]),
    "take along axis": (TakeAlongAxis(1), [(2, 4), ((2, 3), I)]),
    "put along axis": (PutAlongAxis(0, "max"), [(4, 2), ((3, 2), I), (3, 2)]),
    "concat": (Concat(1), [(2, 3), (2, 1)]),
    "cumsum": (Cumsum(0), [(4, 2)]),
    "sliding": (Sliding(0, 2), [(4, 2)]),
    "one hot": (OneHot(4, 0, np.dtype("float64"), 5.0, -1.0), [((3,), I)]),
    "sum": (Sum((0, 2)), [(2, 3, 4)]),
    "argmax": (Argmax((1,)), [(2, 3)]),
    "fourier": (Fourier((0,), True, "ortho"), [((4, 2), "complex128")]),
    "real fourier": (RealFourier(1, "backward"), [(2, 4)]),
}  # fmt: skip


def drawn(draw, batched):
    shape, dtype = draw if draw and isinstance(draw[-1], str) else (draw, "float64")
    shape = (SIZE, *shape) if batched else shape
    x = RNG.normal(size=shape)
    return RNG.integers(-2, 2, shape) if dtype == I else (x + 1j * x[..., ::-1]).astype(dtype) if dtype[0] == "c" else x


@pytest.mark.parametrize("name", ROWS)
def test_a_rule_gives_what_the_op_gives_on_each_example(name):
    op, draws = ROWS[name]
    for flags in product((True, False), repeat=len(draws)):
        if not any(flags):
            continue
        arrays = [drawn(draw, flag) for draw, flag in zip(draws, flags)]
        nodes = [cg.Var(a.shape, a.dtype) for a in arrays]
        result = RULES[type(op)](op, nodes, list(flags), SIZE)
        if result is None:
            assert (name, flags[1:]) != ("layer norm", (False, False))
            assert name.startswith(("layer norm", "attention with a mask"))
            continue
        (got,) = evaluate([result], dict(zip(nodes, arrays)))
        want = np.stack([op.meaning(*(a[i] if f else a for a, f in zip(arrays, flags))) for i in range(SIZE)])
        assert_close(got, want, 20)


def test_rules_of_ops_with_several_results_return_bundles():
    x = cg.Var(RNG.normal(size=(SIZE, 4, 2)))
    for node in (cg.qr(cg.Var((4, 2), "float64"))[0], cg.top_k(cg.Var((4, 2), "float64"), 2, 0)[0]):
        op = node.operands[0].op
        result = RULES[type(op)](op, [x], [True], SIZE)
        assert isinstance(result.spec, Bundle)
        got = evaluate(items(result))
        for i in range(SIZE):
            for a, b in zip(got, op.meaning(x.value[i])):
                assert_close(a[i], b)


def test_a_shared_matrix_multiplies_the_rows_of_all_examples_at_once():
    x, shared = cg.Var((SIZE, 2, 3)), cg.Var((3, 4))
    result = RULES[Matmul](Matmul(), [x, shared], [True, False], SIZE)
    assert result.operands[0].operands[0].shape == (6, 3) and result.shape == (SIZE, 2, 4)


def test_positions_of_one_example_stay_out_of_the_next():
    x, at = cg.Var(np.arange(6.0).reshape(3, 2)), cg.Var(np.array([[0, -1], [1, 0], [-2, 1]]))
    rows, flat = joined_rows(x, at, 3)
    assert rows.shape == (6,)
    assert evaluate([flat])[0].ravel().tolist() == [0, 1, 3, 2, 4, 5]
    for bad in (2, -3):
        _, flat = joined_rows(x, cg.Var(np.array([[0], [0], [bad]])), 3)
        with pytest.raises(cg.PositionError):
            evaluate([apply(Take(0), rows, flat)])


def test_a_shared_value_is_repeated_along_a_new_first_axis():
    x = cg.Var(np.array([1.0, 2.0]))
    assert evaluate([expand(x, 3)])[0].tolist() == [[1, 2]] * 3 and expand(x, 0).shape == (0, 2)
    assert expand(cg.Var(()), 2).shape == (2,)


def test_no_op_has_two_ways():
    assert not set(RULES) & set(SAMPLEWISE) and not any(issubclass(op, Pointwise) for op in (*RULES, *SAMPLEWISE))
