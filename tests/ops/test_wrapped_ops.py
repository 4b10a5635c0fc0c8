"""Ops around another one have its facets: its name, cost, failures and storage dtypes, and its own operands alone."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.kernels.target import host_target
from cgraph.ops.physical.first_rows import FirstRows
from cgraph.ops.physical.in_place import InPlace
from cgraph.ops.physical.rerun import Rerun

X, W = cg.Var((6, 8), name="x"), cg.Var((8, 5), name="w")
COUNT = cg.Var((), "int64", "n")
NODES = {
    "a product": X @ W,
    "positions": cg.take(X, cg.Var((3,), "int64", "i"), 0),
    "a cast of a storage dtype": cg.Var((6, 8), "bfloat16", "h").astype("float32"),
    "an op over its operand": cg.softmax(X),
    "an op with a workspace": cg.sort(cg.Var((3, 50), name="long"), 0),
}


def specs_of(node):
    return [x.spec for x in node.operands]


@pytest.mark.parametrize("name", NODES)
def test_a_second_computation_has_the_facets_of_the_first(name):
    node = NODES[name]
    op, again, specs = node.op, Rerun(node.op), specs_of(node)
    assert again.name == f"{op.name}_again" and again.can_fail == op.can_fail and again.pure
    assert again.infer(*specs) == node.spec and again.multiply_adds(*specs) == op.multiply_adds(*specs)
    assert not op.can_fail or again.reason(node) == op.reason(node)
    mine, inner = (x.work(host_target(), *specs) for x in (again, op))
    assert (mine.nbytes, mine.overwrites, mine.strided) == (inner.nbytes, inner.overwrites, inner.strided)
    assert apply(again, *node.operands) is not node


@pytest.mark.parametrize("name", NODES)
def test_the_first_rows_have_the_facets_of_all_and_read_a_count_last(name):
    node = NODES[name]
    op, first, specs = node.op, FirstRows(node.op), specs_of(node)
    counted = [*specs, COUNT.spec]
    assert first.name == op.name and first.can_fail == op.can_fail and first.takes_storage == op.takes_storage
    assert first.infer(*counted) == node.spec and first.multiply_adds(*counted) == op.multiply_adds(*specs)
    assert not op.can_fail or first.reason(node) == op.reason(node)
    if op.row_rule(*specs) is not None:
        mine, inner = first.work(host_target(), *counted), op.work(host_target(), *specs)
        assert mine.nbytes >= inner.nbytes and set(mine.overwrites) <= set(inner.overwrites)


def test_an_op_in_place_reads_its_own_operands_and_writes_the_last():
    node = X * 2.0 + cg.Var((6, 8), name="y")
    op = InPlace(node.op, 2, 2)
    later = [*node.operands, X, W]
    values = [np.full((6, 8), n, "f4") for n in (1, 2, 3)]
    assert op.reads(tuple(later)) == node.operands and op.alias("a", "b", "c", "d") == "c"
    assert op.infer(*(x.spec for x in later)) == node.spec and op.name == node.op.name
    np.testing.assert_array_equal(op.meaning(*values, None), values[0] + values[1])
    assert op.work(host_target(), *(x.spec for x in later)).overwrites == (
        *node.op.work(host_target(), *specs_of(node)).overwrites,
        2,
    )
    assert op.writes and not op.pure
