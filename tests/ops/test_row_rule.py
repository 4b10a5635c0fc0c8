"""Row rules: the first rows of every op that has one, computed alone from the first rows of its operands."""

import zlib

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import Node
from cgraph.ir.row_rule import rows_of_all
from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.traverse import post_order
from cgraph.kernels.target import target_named
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import lower_graph
from cgraph.ops.conv import Conv2d
from cgraph.ops.leaf import Var
from cgraph.ops.norm import LayerNorm
from cgraph.ops.physical.conv import ConvEpilogue
from cgraph.ops.physical.frames import Depth, FramesConv
from cgraph.ops.physical.matmul import MatmulEpilogue
from cgraph.ops.physical.rotary import Rotary
from cgraph.ops.shape import BroadcastTo, Reshape
from cgraph.ops.softmax import Softmax
from tests.ops.cases import CASES, Case
from tests.support.lowered import LOWERED, lowered
from tests.support.tolerance import assert_close


def check_rules(outputs: list[Node], values: dict[Node, np.ndarray]) -> int:
    """Check all nodes with a rule; return how many there are."""
    count, nodes = 0, [x for x in post_order(outputs) if not isinstance(x.spec, Bundle)]
    known = dict(zip(nodes, evaluate(nodes, values)))
    for node in nodes:
        if any(isinstance(x.spec, Bundle) for x in node.operands):
            continue
        rule = node.op.row_rule(*[x.spec for x in node.operands]) if node.ndim and node.shape[0] else None
        if rule is None:
            continue
        for rows in {1, (node.shape[0] + 1) // 2, node.shape[0]}:
            xs = [known[x][:rows] if i in rule.operands else known[x] for i, x in enumerate(node.operands)]
            op = rule.first(rows)
            spec = op.infer(*[Spec(x.shape, x.dtype) for x in xs])
            assert spec == Spec((rows, *node.shape[1:]), node.dtype), node
            assert_close(op.meaning(*xs), known[node][:rows])
        count += 1
    return count


@pytest.mark.parametrize("case", CASES, ids=str)
def test_first_rows_depend_on_the_first_rows_of_the_operands(case: Case):
    rng = np.random.default_rng(zlib.crc32(str(case).encode()))
    xs = [Var(d.shape, d.dtype, f"x{i}") for i, d in enumerate(case.draws)]
    built = case.build(*xs)
    outputs = [built] if isinstance(built, Node) else list(built)
    check_rules(outputs, {x: d.array(rng) for x, d in zip(xs, case.draws)})


@pytest.mark.parametrize("target", ["host", "portable"])
def test_physical_ops_have_the_rules_of_the_logical_ones(target: str):
    rng = np.random.default_rng(1)
    x, boxes = Var((1, 16, 12, 12), name="x"), Var((6, 4), name="boxes")

    def weights(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype("f4") / 10

    image = cg.relu(cg.conv2d(x, weights(16, 16, 3, 3), pad=1))
    zero = cg.zeros((6,), "int64")
    cells = cg.roi_align_levels([image], boxes, zero, zero, (6, 6), [1.0])
    deep = cg.relu(cg.conv2d(cells, weights(24, 16, 3, 3), pad=1) + weights(24)[:, None, None])
    deep = cg.max_pool2d(deep + cg.conv2d(deep, weights(24, 24, 3, 3), pad=1), 2)
    wide = cg.conv_transpose2d(deep, weights(24, 8, 2, 2), stride=2)
    flat = cg.relu(cg.reshape(deep, (6, -1)) @ weights(24 * 9, 32) + weights(32))
    outputs = (cg.softmax(flat), wide, cg.mean(deep, (2, 3)))
    roots = lower_graph(outputs, target_named(target), LoweringOptions())
    corners = np.sort(rng.random((6, 2, 2)) * 11, 1).reshape(6, 4).astype("f4")
    assert check_rules(list(roots), {x: weights(1, 16, 12, 12), boxes: corners}) > 8


def test_an_op_reads_all_operands_row_by_row_unless_one_has_no_rows():
    rule = rows_of_all("the op", (3, 2), (3,))
    assert rule.operands == (0, 1) and rule.first(2) == "the op"
    assert rows_of_all("the op", (0, 2)).operands == (0,)
    for shapes in ((), ((3,), ()), ((), (3,))):
        assert rows_of_all("the op", *shapes) is None


@pytest.mark.parametrize("name", LOWERED)
def test_ops_on_bytes_volumes_and_rounded_numbers_have_rules_that_hold(name):
    net = lowered(name)
    assert check_rules(list(net.roots), net.values) > 4


F4 = np.dtype("f4")


def of(*shape: int) -> Spec:
    return Spec(shape, F4)


CONV = Conv2d((1, 1), (0, 0, 0, 0), (1, 1), 1)
RULES = {  # an op, the shapes of its operands, and those that it reads row by row; None without a rule
    "product of matrices": (MatmulEpilogue(True), (of(4, 3), of(3, 5), of(4, 5)), (0, 2)),
    "product of matrices and one row": (MatmulEpilogue(False), (of(4, 3), of(3, 5)), (0, 2)),
    "products": (MatmulEpilogue(True), (of(2, 4, 3), of(2, 3, 5), of(2, 4, 5)), (0, 1, 2)),
    "bias": (ConvEpilogue(CONV, False, True, False), (of(2, 3, 5, 5), of(4, 3, 1, 1), of(4)), (0,)),
    "residual": (
        ConvEpilogue(CONV, True, True, True),
        (of(2, 3, 5, 5), of(4, 3, 1, 1), of(4), of(4), of(2, 4, 5, 5)),
        (0, 4),
    ),
    "residual alone": (
        ConvEpilogue(CONV, False, False, True),
        (of(2, 3, 5, 5), of(4, 3, 1, 1), of(2, 4, 5, 5)),
        (0, 2),
    ),
    "frames": (
        ConvEpilogue(FramesConv((1, 1), (0, 0, 0, 0), (1, 1), 1, Depth(1, 2, 1)), False, True, False),
        (of(2, 3, 5, 5), of(4, 3, 2, 1, 1), of(4)),
        None,
    ),
    "norm of the last axis": (LayerNorm(1, 0.1), (of(4, 3), of(3), of(3)), (0,)),
    "norm of all axes": (LayerNorm(2, 0.1), (of(4, 3), of(4, 3), of(4, 3)), None),
    "softmax along rows": (Softmax(0), (of(4, 3),), None),
    "softmax along columns": (Softmax(1), (of(4, 3),), (0,)),
    "rotation of rows": (Rotary(False), (of(4, 6), of(4, 6), of(4, 6)), (0, 1, 2)),
    "rotation of one row": (Rotary(False), (of(6), of(6), of(6)), None),
    "broadcast rows": (BroadcastTo((4, 3)), (of(4, 1),), (0,)),
    "one row broadcast": (BroadcastTo((4, 3)), (of(1, 3),), ()),
    "a vector broadcast": (BroadcastTo((4, 4)), (of(4),), ()),
    "a number": (BroadcastTo(()), (of(),), None),
    "rows of another shape": (Reshape((4, 3, 2)), (of(4, 6),), (0,)),
    "another number of rows": (Reshape((3, 8)), (of(4, 6),), None),
}


@pytest.mark.parametrize("name", RULES)
def test_the_operands_that_an_op_reads_row_by_row(name):
    op, specs, operands = RULES[name]
    rule = op.row_rule(*specs)
    assert (None if rule is None else rule.operands) == operands
    if rule is not None:
        rng = np.random.default_rng(0)
        xs = [rng.normal(size=spec.shape).astype("f4") for spec in specs]
        whole = op.meaning(*xs)
        for rows in range(1, len(whole) + 1):
            some = rule.first(rows).meaning(*(x[:rows] if i in operands else x for i, x in enumerate(xs)))
            assert_close(some, whole[:rows])
