"""Decision trees by hand: each side of a threshold, equality, missing numbers, several trees, walks that do not end."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, PositionError, ShapeError
from cgraph.ir.spec import Spec
from cgraph.ops.trees import EQUAL, MISSING, TreeLeaves, TreeSums

# 0: column 1 <= 2 ? 1 : 2;  2: column 0 <= -1 ? 3 : 4;  5: column 0 <= 7 ? 6 : 7
FEATURES, BELOW, ABOVE = [1, -1, 0, -1, -1, 0, -1, -1], [1, 0, 3, 0, 0, 6, 0, 0], [2, 0, 4, 0, 0, 7, 0, 0]
LIMITS = [2.0, 0, -1, 0, 0, 7, 0, 0]
X = np.array([[0, 2], [-1, 2.5], [-0.5, 3], [8, np.nan], [np.nan, -np.inf], [7, np.inf]], "f4")


def leaves(x=X, roots=(0, 5), **flags):
    """The leaves by meaning, which the kernels must equal."""
    v = cg.Var(x.shape, x.dtype)
    node = cg.tree_leaves(v, roots, FEATURES, LIMITS, BELOW, ABOVE, **flags)
    (got,) = cg.compile([node], [v])(x)
    np.testing.assert_array_equal(got, node.op.meaning(x, *(c.op.array for c in node.operands[1:])))
    assert got.dtype == np.int32
    return got.T.tolist()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_at_most_the_threshold_goes_below_and_nan_above(dtype):
    assert leaves(X.astype(dtype)) == [[1, 3, 4, 4, 1, 4], [6, 6, 6, 7, 7, 6]]


def test_a_missing_number_goes_below_where_asked():
    missing = [True, *[False] * 4, True, False, False]
    assert leaves(missing=missing) == [[1, 3, 4, 1, 1, 4], [6, 6, 6, 7, 6, 6]]


def test_a_node_may_test_equality():
    equal = [True, False, False, False, False, True, False, False]
    assert leaves(equal=equal) == [[1, 3, 4, 4, 4, 4], [7, 7, 7, 7, 7, 6]]
    both = leaves(equal=equal, missing=equal)
    assert both == [[1, 3, 4, 1, 4, 4], [7, 7, 7, 7, 6, 6]]


def test_a_root_may_be_a_leaf_and_there_may_be_no_trees_or_rows():
    assert leaves(roots=[7, 2]) == [[7] * 6, [4, 3, 4, 4, 4, 4]]
    assert leaves(roots=[]) == [] and leaves(X[:0]) == [[], []]


def test_walks_that_leave_the_tables_or_do_not_end_are_refused():
    def build(roots=(0,), features=(0, -1, -1), below=(1, 0, 0), above=(2, 0, 0)):
        return cg.tree_leaves(X, roots, features, [0.0] * 3, below, above)

    assert build().shape == (6, 1)
    for words, change in (
        ("reads column 2, but rows have 2", {"features": (2, -1, -1)}),
        ("roots 0 to 3 are outside the 3 nodes", {"roots": (0, 3)}),
        ("roots -1 to 0", {"roots": (-1, 0)}),
        ("order nodes from root to leaves", {"below": (0, 0, 0)}),
        ("order nodes from root to leaves", {"above": (3, 0, 0)}),
    ):
        with pytest.raises(PositionError, match=words):
            build(**change)


def test_rows_without_columns_reach_their_roots():
    x = cg.Var((3, 0))
    node = cg.tree_leaves(x, [1, 0], [-1, -1], [0.0, 0.0], [0, 0], [0, 0])
    for engine in ("cpu", "reference"):
        np.testing.assert_array_equal(cg.compile(node, x, engine=engine)(np.zeros((3, 0), "f4")), [[1, 0]] * 3)


def test_operands_of_other_dtypes_and_shapes_are_refused():
    f4, i4, u1 = np.dtype("f4"), np.dtype("i4"), np.dtype("u1")
    operands = Spec((6, 2), f4), Spec((2,), i4), Spec((8, 16), u1)
    op = TreeLeaves(0)
    assert op.infer(*operands) == Spec((6, 2), i4)
    for at, dtype in ((0, i4), (1, np.dtype("i8")), (2, np.dtype("i1"))):
        with pytest.raises(DTypeError, match="use astype"):
            op.infer(*operands[:at], Spec(operands[at].shape, dtype), *operands[at + 1 :])
    for at, spec in (
        (0, Spec((6,), f4)),
        (0, Spec((6, 2), np.dtype("f8"))),
        (1, Spec((2, 1), i4)),
        (2, Spec((8,), u1)),
    ):
        with pytest.raises(ShapeError, match="call tree_leaves"):
            op.infer(*operands[:at], spec, *operands[at + 1 :])


def test_sums_of_leaves_for_no_target_have_no_columns():
    for count in (0, 1, 3):
        weights = np.arange(8.0 * count).reshape(8, count)
        op, x = TreeSums(0), X
        constants = cg.tree_leaves(cg.Var(X.shape), (0, 5), FEATURES, LIMITS, BELOW, ABOVE).operands[1:]
        got = op.meaning(x, *(c.op.array for c in constants), weights)
        want = weights[np.array(leaves()).T].sum(1)
        assert got.shape == (6, count)
        np.testing.assert_array_equal(got, want)


def test_an_op_has_the_flags_of_its_nodes_alone():
    no, some = [False] * 8, [True, *[False] * 7]
    for equal, missing, flags in ((None, None, 0), (no, no, 0), (some, None, EQUAL), (no, some, MISSING),
                                  (some, some, EQUAL | MISSING)):  # fmt: skip
        node = cg.tree_leaves(cg.Var(X.shape), (0, 5), FEATURES, LIMITS, BELOW, ABOVE, equal=equal, missing=missing)
        assert node.op == TreeLeaves(flags)
