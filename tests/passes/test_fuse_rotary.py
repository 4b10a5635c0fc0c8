"""Rotary positions that are written out become one op: in the forms of exporters, and nowhere else."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.passes import rewrite_graph
from cgraph.passes.fuse_rotary import fuse_rotary
from nn.layers.positions import rotate
from tests.support.rewrites import assert_left, assert_same_values, ops_of

N, H, T, D = 2, 3, 5, 8
HALF = D // 2
PACKED = cg.Var((N, T, H * D), name="packed")
X = cg.transpose(cg.reshape(PACKED, (N, T, H, D)), (0, 2, 1, 3))
COS, SIN = cg.Var((1, 1, T, D), name="cos"), cg.Var((1, 1, T, D), name="sin")
NARROW_COS, NARROW_SIN = cg.Var((T, HALF), name="c"), cg.Var((T, HALF), name="s")
A, B = X[..., :HALF], X[..., HALF:]
WIDE = cg.Var((T, D), "float64", name="wide")
LONG = cg.Var((T, 3 * D), name="long")
ALL_COS, ALL_SIN = cg.Var((T, D), name="all c"), cg.Var((T, D), name="all s")
EVERY_OTHER, EVERY_THIRD = LONG[..., 3 : 3 + 2 * D : 2], LONG[..., 2::3]
VIEWS = {"reshape", "transpose", "slice"}


def halves(x):
    return x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]


def neighbours(x):
    return x[..., 0::2], x[..., 1::2]


def unstacked(x, axis):
    """Elements of pairs as exporters of `unbind` write them."""
    shape = (*x.shape[:-1], x.shape[-1] // 2, 2) if axis == -1 else (*x.shape[:-1], 2, x.shape[-1] // 2)
    y = cg.reshape(x, shape)
    return [cg.reshape(part, (*x.shape[:-1], x.shape[-1] // 2)) for part in cg.split(y, 2, axis)]


def backwards(x):
    """Halves as exporters of `unbind` write them, each from its end to its start."""
    y = cg.reshape(x, (*x.shape[:-1], 2, x.shape[-1] // 2))
    return [cg.reshape(y[..., i : i + 1, ::-1], (*x.shape[:-1], x.shape[-1] // 2)) for i in (0, 1)]


def joined(a, b, axis=None):
    """The rows of two nodes one behind the other, or element by element, or stacked along an axis."""
    return cg.concat([a, b], -1) if axis is None else cg.reshape(cg.stack([a, b], axis), (*a.shape[:-1], -1))


def turned(parts, x=X, axis=None):
    a, b = parts(x)
    return joined(-b, a, axis)


def rotated(a, b, axis=None, c=NARROW_COS, s=NARROW_SIN):
    return joined(a * c - b * s, b * c + a * s, axis)


def pairs_of(y, axis):
    """The first and the second elements of pairs of any array ``[..., d, 2]`` or ``[..., 2, d]``."""
    return [cg.reshape(part, tuple(np.delete(y.shape, axis))) for part in cg.split(y, y.shape[axis], axis)][:2]


BACKWARDS, DOWN, SOME = X[..., ::-1], X[:, :, ::-1], cg.Var((N, H, T + 2, D), name="more")[:, :, 2:]
LONGER = cg.Var((T, HALF, 5), name="longer")
FORMS = {
    "transformers, halves": X * COS + turned(halves) * SIN,
    "the other order": SIN * turned(halves) + COS * X,
    "transformers, neighbours": X * COS + turned(neighbours, axis=-1) * SIN,
    "unbound neighbours": X * COS + turned(lambda x: unstacked(x, -1), axis=-1) * SIN,
    "unbound halves": X * COS + turned(lambda x: unstacked(x, -2)) * SIN,
    "unbound halves, stacked": X * COS + turned(lambda x: unstacked(x, -2), axis=-2) * SIN,
    "times -1": X * COS + joined(halves(X)[1] * np.float32(-1), halves(X)[0]) * SIN,
    "constant tables": X * np.ones((T, D), "f4") + turned(halves) * np.full((T, D), 0.5, "f4"),
    "tables of each row": X * cg.Var(X.shape, name="all cos") + turned(halves) * cg.Var(X.shape, name="all sin"),
    "halves with narrow tables": rotated(*halves(X)),
    "neighbours with narrow tables": rotated(*neighbours(X), -1),
    "unbound neighbours with narrow tables": rotated(*unstacked(X, -1), -1),
    "sums in another order": joined(NARROW_COS * A - B * NARROW_SIN, A * NARROW_SIN + NARROW_COS * B),
    "halves of every other element": EVERY_OTHER * ALL_COS + turned(halves, EVERY_OTHER) * ALL_SIN,
    "neighbours of every third element": EVERY_THIRD * ALL_COS + turned(neighbours, EVERY_THIRD, -1) * ALL_SIN,
    "narrow tables of every other element": rotated(*halves(EVERY_OTHER)),
    "narrow tables of neighbours of every third element": rotated(*neighbours(EVERY_THIRD), -1),
    "rows from their end": BACKWARDS * COS + turned(halves, BACKWARDS) * SIN,
    "rows in falling order": DOWN * COS + turned(halves, DOWN) * SIN,
    "some of the rows": SOME * COS + turned(neighbours, SOME, -1) * SIN,
    "its own tables": X * X + turned(halves) * SIN,
    "pairs that are a part of longer ones": rotated(*pairs_of(LONGER[..., 1:3], -1), -1),
    "double precision": WIDE * cg.Var((T, D), "float64", name="c8") + turned(halves, WIDE) * 0.25,
}


@pytest.mark.parametrize("name", FORMS)
def test_a_written_out_rotation_is_one_op(name):
    node = FORMS[name]
    ops = ops_of(fuse_rotary((node,)))
    assert ops["rotary"] == 1 and set(ops) <= {"rotary", *VIEWS}
    assert_same_values(fuse_rotary, node)
    assert_same_values(rewrite_graph, node)


def test_the_op_has_the_kind_of_pairs_and_reads_tables_as_they_are():
    (node,) = fuse_rotary((FORMS["neighbours with narrow tables"],))
    assert node.op.adjacent and node.operands[1].shape == (N, H, T, HALF)
    (node,) = fuse_rotary((FORMS["transformers, halves"],))
    assert not node.op.adjacent and node.operands[0] is X


def test_a_part_of_each_row_is_rotated_where_the_rest_is_joined():
    part, rest = X[..., :HALF], X[..., HALF:]
    tables = [cg.Var((T, HALF), name=name) for name in ("p", "q")]
    node = cg.concat([part * tables[0] + turned(halves, part) * tables[1], rest], -1)
    assert ops_of(fuse_rotary((node,)))["rotary"] == 1
    assert_same_values(rewrite_graph, node)


def test_layers_rotate_by_the_same_op():
    x = cg.Var((N, H, T, D), name="x")
    node = rotate(x, cg.Var((N,), "int64", name="start"))
    assert ops_of(rewrite_graph((node,)))["rotary"] == 1
    assert_same_values(rewrite_graph, node)


Y = cg.Var(X.shape, name="y")
SIDES = [cg.Var((3, HALF), name=name) for name in ("c3", "s3")]
PAIRS, STACKED = cg.reshape(X, (N, H, T, HALF, 2)), cg.reshape(X, (N, H, T, 2, HALF))
FLAT = (N, H, T, HALF)
LEFT = {
    "halves of rows in falling order, each by one slice": DOWN * COS
    + joined(-X[:, :, ::-1, HALF:], X[:, :, ::-1, :HALF]) * SIN,
    "halves of every second row, each by one slice": rotated(X[:, :, ::2, :HALF], X[:, :, ::2, HALF:], None, *SIDES),
    "the first half of all pairs beside second elements": rotated(
        cg.reshape(PAIRS[..., : HALF // 2, :], FLAT), cg.reshape(PAIRS[..., 1:], FLAT), -1
    ),
    "the first half of both rows beside the second row": rotated(
        cg.reshape(STACKED[..., : HALF // 2], FLAT), cg.reshape(STACKED[..., 1:, :], FLAT)
    ),
    "two of three rows": rotated(*pairs_of(cg.Var((T, 3, HALF), name="three"), -2)),
    "another's halves": Y * COS + turned(halves) * SIN,
    "nothing is negated": X * COS + joined(*halves(X)[::-1]) * SIN,
    "the first half is negated": X * COS + joined(-halves(X)[0], halves(X)[1]) * SIN,
    "a negated half in front": X * COS + joined(halves(X)[1], -halves(X)[0]) * SIN,
    "neighbours one behind the other": X * COS + turned(neighbours) * SIN,
    "halves element by element": X * COS + turned(halves, axis=-1) * SIN,
    "halves from the end": X * COS + turned(backwards) * SIN,
    "halves from the end with narrow tables": rotated(*backwards(X)),
    "unequal parts": X * COS + cg.concat([-X[..., 3:], X[..., :3]], -1) * SIN,
    "another axis": X * cg.Var((T, D)) + cg.concat([-X[:, 1:], X[:, :1]], 1) * SIN,
    "a difference": X * COS - turned(halves) * SIN,
    "the other direction": joined(A * NARROW_COS + B * NARROW_SIN, B * NARROW_COS - A * NARROW_SIN),
    "other tables of second elements": joined(A * NARROW_COS - B * NARROW_SIN, B * NARROW_SIN + A * NARROW_SIN),
    "every third element and the one behind it": rotated(LONG[..., ::3], LONG[..., 1::3], -1, ALL_COS, ALL_SIN),
    "every third element and the one before it": rotated(LONG[..., 1::3], LONG[..., ::3], -1, ALL_COS, ALL_SIN),
    "integers": (lambda x: x * 2 + turned(halves, x) * 3)(cg.Var((T, D), "int64")),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_no_rotation_is_left(name):
    assert_left(fuse_rotary, LEFT[name])
    if LEFT[name].dtype.kind == "f":
        assert_same_values(rewrite_graph, LEFT[name])


def test_parts_that_others_read_are_left_unless_they_are_views():
    other = turned(halves)
    assert_left(fuse_rotary, X * COS + other * SIN, other)
    ops = ops_of(fuse_rotary((X * COS + turned(halves) * SIN, cg.exp(halves(X)[1]))))
    assert ops["rotary"] == 1


def test_the_values_in_between_need_no_bytes():
    x = cg.Var((64, 64), name="x")
    tables = [cg.Var((64, 64), name=name) for name in ("c", "s")]
    y = cg.exp(x)
    node = cg.sum(y * tables[0] + turned(halves, y) * tables[1], 0)
    whole, fused = (cg.compile([node], [x, *tables], passes=passes) for passes in (False, True))
    assert fused.nbytes <= whole.nbytes - x.nbytes
