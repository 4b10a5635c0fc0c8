"""What is refused for one reason alone: nothing else is wrong, so a check of several conditions needs each of them."""

from collections import namedtuple

import numpy as np
import pytest

import cgraph as cg
from cgraph import DTypeError, GraphError, PositionError, ShapeError
from cgraph.ir.graph import apply
from cgraph.kernels.regions.calls import SampleGrid
from cgraph.ops.attention import Attention
from cgraph.ops.bitcast import Bitcast
from cgraph.ops.boxes import NonMaximumSuppression
from cgraph.ops.conv import ConvFilters, ConvTranspose
from cgraph.ops.linear import Matmul
from cgraph.ops.norm import BatchNorm, GroupNorm, LayerNorm, Lrn, RmsNorm
from cgraph.ops.prefix import Prefix
from cgraph.ops.quantise import Dequantize, Quantize
from cgraph.ops.regions import RoiAlign
from cgraph.ops.resize import WeightedRows
from cgraph.ops.trees import TreeLeaves, TreeSums

Pair = namedtuple("Pair", "first second")


def var(*shape, dtype="float32"):
    return cg.Var(shape, dtype)


def whole(*shape, dtype="int64"):
    return cg.Var(shape, dtype)


def attention(q=(2, 4, 5, 3), k=(2, 2, 6, 3), v=(2, 2, 6, 7), kinds=("float32",) * 3, **fields):
    return apply(Attention(0.5, **fields), *(var(*s, dtype=kind) for s, kind in zip((q, k, v), kinds)))


def boxes(shape=(5, 4), kind="float32", scores=(5,), score_kind="float32", order=(5,), order_kind="int64", groups=()):
    more = [whole(*shape, dtype=dtype) for shape, dtype in groups]
    op = NonMaximumSuppression(3, 0.5, 0.0)
    return apply(op, var(*shape, dtype=kind), var(*scores, dtype=score_kind), whole(*order, dtype=order_kind), *more)


def regions(
    kind="cells", samples=2, scales=(1.0,), level=(2, 4, 6, 6), box=(7, 4), batch=7, of=7, kinds=("float32",) * 2
):
    grid = SampleGrid(kind, samples, scales)
    levels = [var(*level, dtype=kinds[1])] * len(scales)
    return apply(RoiAlign((2, 2), grid), var(*box, dtype=kinds[0]), whole(batch), whole(of), *levels)


def rows(x="float32", first="int64", weights="float32", shapes=((2, 5, 3), (4,), (4, 2))):
    return apply(WeightedRows(), *(var(*s, dtype=kind) for s, kind in zip(shapes, (x, first, weights))))


TREE_KINDS = "float32", "int32", "uint8"


def trees(x=(3, 4), roots=(2,), nodes=(5, 16), kinds=TREE_KINDS):
    return apply(TreeLeaves(0), *(var(*s, dtype=kind) for s, kind in zip((x, roots, nodes), kinds)))


def tree_sums(weights=(5, 3), kind="float32", **others):
    return apply(TreeSums(0), *trees(**others).operands, var(*weights, dtype=kind))


def norm(op, *shapes, kinds=("float32",) * 6):
    return apply(op, *(var(*s, dtype=kind) for s, kind in zip(shapes, kinds)))


REFUSED = {
    "attention: no floats": (lambda: attention(kinds=("int32",) * 3), DTypeError),
    "attention: keys of another dtype": (lambda: attention(kinds=("float32", "float64", "float32")), DTypeError),
    "attention: values of another dtype": (lambda: attention(kinds=("float32", "float32", "float64")), DTypeError),
    "attention: no heads of keys": (lambda: attention(k=(2, 0, 6, 3), v=(2, 0, 6, 7)), ShapeError),
    "attention: no keys": (lambda: attention(k=(2, 2, 0, 3), v=(2, 2, 0, 7)), ShapeError),
    "attention: heads that do not divide": (lambda: attention(k=(2, 3, 6, 3), v=(2, 3, 6, 7)), ShapeError),
    "attention: keys of another batch": (lambda: attention(k=(1, 2, 6, 3)), ShapeError),
    "attention: keys of another depth": (lambda: attention(k=(2, 2, 6, 4)), ShapeError),
    "attention: values of another batch": (lambda: attention(v=(1, 2, 6, 7)), ShapeError),
    "attention: values of other heads": (lambda: attention(v=(2, 4, 6, 7)), ShapeError),
    "attention: other values than keys": (lambda: attention(v=(2, 2, 5, 7)), ShapeError),
    "attention: a negative window": (lambda: attention(causal=True, window=-1), ShapeError),
    "attention: a window of all": (lambda: attention(window=2), ShapeError),
    "attention: a negative cap": (lambda: attention(softcap=-1.0), ShapeError),
    "attention: an endless cap": (lambda: attention(softcap=float("inf")), ShapeError),
    "queries are one row": (lambda: cg.scaled_dot_product_attention(var(3), var(2, 3), var(2, 5)), ShapeError),
    "other values": (lambda: cg.scaled_dot_product_attention(var(4, 3), var(2, 3), var(5, 6)), ShapeError),
    "other depths": (lambda: cg.scaled_dot_product_attention(var(4, 3), var(2, 4), var(2, 6)), ShapeError),
    "heads of nothing": (
        lambda: cg.scaled_dot_product_attention(var(4, 5, 3), var(0, 6, 3), var(0, 6, 3)), ShapeError,
    ),
    "bits as truth": (lambda: apply(Bitcast(np.dtype(bool)), whole(3, dtype="int8")), DTypeError),
    "bits of another size": (lambda: apply(Bitcast(np.dtype("int16")), whole(3, dtype="int8")), DTypeError),
    "boxes of integers": (lambda: boxes(kind="int32", score_kind="int32"), DTypeError),
    "scores of another dtype": (lambda: boxes(score_kind="float64"), DTypeError),
    "an order of int32": (lambda: boxes(order_kind="int32"), DTypeError),
    "groups of int32": (lambda: boxes(groups=[((5,), "int32")]), DTypeError),
    "other boxes than scores": (lambda: boxes(shape=(6, 4)), ShapeError),
    "boxes of three numbers": (lambda: boxes(shape=(5, 3)), ShapeError),
    "one score": (lambda: boxes((4,), scores=(), order=()), ShapeError),
    "another order": (lambda: boxes(order=(4,)), ShapeError),
    "other groups": (lambda: boxes(groups=[((4,), "int64")]), ShapeError),
    "scan of a number": (lambda: cg.scan(lambda s, x: (s, x), var(2), var()), ShapeError),
    "scan of two lengths": (lambda: cg.scan(lambda s, x: (s, x[0]), var(2), (var(5, 2), var(6, 2))), ShapeError),
    "scan of another length": (lambda: cg.scan(lambda s, x: (s, x), var(2), var(5, 2), 6), ShapeError),
    "a round of three": (lambda: cg.scan(lambda s, x: (s, x, x), var(2), var(9, 2)), GraphError),
    "a round of one": (lambda: cg.scan(lambda s, x: (s,), var(2), var(9, 2)), GraphError),
    "a round of a list": (lambda: cg.scan(lambda s, x: [s, x], var(2), var(9, 2)), GraphError),
    "choices of other names": (
        lambda: cg.cond(True, lambda x: {"a": x}, lambda x: {"b": x}, var(2)), ShapeError,
    ),
    "choices of other nesting": (lambda: cg.cond(True, lambda x: (x, (x,)), lambda x: (x, x), var(2)), ShapeError),
    "choices of other dtypes": (lambda: cg.cond(True, lambda x: x, lambda x: x.astype("f8"), var(2)), ShapeError),
    "a state of other nesting": (
        lambda: cg.while_loop(lambda s: s[0][0] > 0, lambda s: ((s[0], s[1]),), (var(2), var(2))), ShapeError,
    ),
    "groups of a transposed convolution": (
        lambda: apply(ConvTranspose((1,), (0, 0), (1,), 2, (4,)), var(1, 3, 3), var(3, 2, 2)), ShapeError,
    ),
    "other images of a transposed convolution": (
        lambda: apply(ConvTranspose((1,), (0, 0), (1,), 1, (4,)), var(1, 4, 3), var(3, 2, 2)), ShapeError,
    ),
    "groups of images": (
        lambda: apply(ConvFilters((1,), (0, 0), (1,), 2, (2,)), var(1, 3, 4), var(1, 4, 3)), ShapeError,
    ),
    "groups of results": (
        lambda: apply(ConvFilters((1,), (0, 0), (1,), 2, (2,)), var(1, 4, 4), var(1, 3, 3)), ShapeError,
    ),
    "another number of results": (
        lambda: apply(ConvFilters((1,), (0, 0), (1,), 1, (2,)), var(1, 4, 4), var(2, 4, 3)), ShapeError,
    ),
    "convolution of truth": (lambda: cg.conv1d(var(1, 1, 3, dtype="bool"), var(1, 1, 2, dtype="bool")), DTypeError),
    "convolution of other filters": (lambda: apply(cg.conv1d(var(1, 1, 3), var(1, 1, 2)).op, var(1, 1, 3),
                                                   var(1, 1, 2, dtype="float64")), DTypeError),
    "einsum: more letters than axes": (lambda: cg.einsum("ijk...->i", var(3, 4)), ShapeError),
    "einsum: fewer letters than axes": (lambda: cg.einsum("i->i", var(3, 4)), ShapeError),
    "positions: too many axes in all": (lambda: cg.gather_nd(var(2, 3), whole(2, 5, 2), 1), ShapeError),
    "positions: all axes shared": (lambda: cg.gather_nd(var(5, 1), whole(5), 1), ShapeError),
    "positions: other shared axes": (lambda: cg.gather_nd(var(2, 3), whole(4, 1), 1), ShapeError),
    "product of two rows": (lambda: apply(Matmul(), var(3), var(3)), ShapeError),
    "product of other axes": (lambda: apply(Matmul(), var(1, 2, 3), var(3, 4)), ShapeError),
    "product of other batches": (lambda: apply(Matmul(), var(1, 2, 3), var(2, 3, 4)), ShapeError),
    "batch norm of a row": (lambda: norm(BatchNorm(1e-5), (3,), *[(3,)] * 4), ShapeError),
    **{
        f"batch norm of other parameter {i}": (
            lambda i=i: norm(BatchNorm(1e-5), (2, 3, 4), *[(4,) if j == i else (3,) for j in range(4)]), ShapeError,
        )
        for i in range(4)
    },
    **{
        f"batch norm of parameter {i} of another dtype": (
            lambda i=i: norm(BatchNorm(1e-5), (2, 3, 4), *[(3,)] * 4, kinds=["float32"] + ["float64" if j == i
                             else "float32" for j in range(4)]), DTypeError,
        )
        for i in range(4)
    },
    "layer norm over no axes": (lambda: norm(LayerNorm(0, 1e-5), (2, 3), (), ()), ShapeError),
    "layer norm over too many axes": (lambda: norm(LayerNorm(3, 1e-5), (2, 3), (3,), (3,)), ShapeError),
    "layer norm of another scale": (lambda: norm(LayerNorm(1, 1e-5), (2, 3), (2,), (3,)), ShapeError),
    "layer norm of another shift": (lambda: norm(LayerNorm(1, 1e-5), (2, 3), (3,), (2,)), ShapeError),
    "rms norm over no axes": (lambda: norm(RmsNorm(0, 1e-5), (2, 3), ()), ShapeError),
    "rms norm over too many axes": (lambda: norm(RmsNorm(3, 1e-5), (2, 3), (3,)), ShapeError),
    "rms norm of another scale": (lambda: norm(RmsNorm(1, 1e-5), (2, 3), (2,)), ShapeError),
    "group norm of a row": (lambda: norm(GroupNorm(1, 1e-5), (4,), (4,), (4,)), ShapeError),
    "group norm of no groups": (lambda: norm(GroupNorm(0, 1e-5), (2, 4), (4,), (4,)), ShapeError),
    "group norm of groups that do not divide": (lambda: norm(GroupNorm(3, 1e-5), (2, 4), (4,), (4,)), ShapeError),
    "group norm of another scale": (lambda: norm(GroupNorm(2, 1e-5), (2, 4), (2,), (4,)), ShapeError),
    "group norm of another shift": (lambda: norm(GroupNorm(2, 1e-5), (2, 4), (4,), (2,)), ShapeError),
    "neighbours of a row": (lambda: norm(Lrn(3, 1.0, 0.75, 1.0), (4,)), ShapeError),
    "no neighbours": (lambda: norm(Lrn(0, 1.0, 0.75, 1.0), (2, 4)), ShapeError),
    "regions of nothing": (lambda: regions(level=(2, 4, 0, 6)), ShapeError),
    "regions of three axes": (lambda: regions(level=(2, 4, 6)), ShapeError),
    "another grid": (lambda: regions("edges"), ShapeError),
    "corners of two samples": (lambda: regions("corners"), ShapeError),
    "no samples": (lambda: regions(samples=0), ShapeError),
    "boxes of one axis": (lambda: regions(box=(7,)), ShapeError),
    "boxes of five numbers": (lambda: regions(box=(7, 5)), ShapeError),
    "other images of boxes": (lambda: regions(batch=6), ShapeError),
    "other levels of boxes": (lambda: regions(of=6), ShapeError),
    "levels of another dtype": (lambda: regions(kinds=("float32", "float64")), DTypeError),
    "boxes of whole numbers": (lambda: regions(kinds=("int32", "int32")), DTypeError),
    "weighted rows of integers": (lambda: rows("int32", "int64", "int32"), DTypeError),
    "weighted rows at int32": (lambda: rows(first="int32"), DTypeError),
    "weights of another dtype": (lambda: rows(weights="float64"), DTypeError),
    **{
        f"weighted rows of other shape {i}": (lambda s=s: rows(shapes=s), ShapeError)
        for i, s in enumerate([((2, 5), (4,), (4, 2)), ((2, 5, 3), (4, 1), (4, 2)), ((2, 5, 3), (4,), (4,)),
                               ((2, 5, 3), (4,), (5, 2))])
    },
    **{
        f"trees: operand {i} of {kind}": (
            lambda i=i, kind=kind: trees(kinds=[kind if j == i else k for j, k in enumerate(TREE_KINDS)]), DTypeError,
        )
        for i, kind in ((0, "int32"), (1, "int64"), (2, "int8"))
    },
    "trees of a row": (lambda: trees(x=(4,)), ShapeError),
    "trees of roots of two axes": (lambda: trees(roots=(2, 1)), ShapeError),
    "trees of nodes of another dtype": (lambda: trees(nodes=(5, 24)), ShapeError),
    "trees of nodes of one axis": (lambda: trees(nodes=(16,)), ShapeError),
    "sums of leaves: whole weights": (lambda: tree_sums(kind="int32"), ShapeError),
    "sums of leaves: one axis of weights": (lambda: tree_sums(weights=(5,)), ShapeError),
    "sums of leaves: other nodes": (lambda: tree_sums(weights=(6, 3)), ShapeError),
    "sums of leaves of a row": (lambda: tree_sums(x=(4,)), ShapeError),
    "quantised integers": (
        lambda: apply(Quantize(np.dtype("int8")), whole(3), whole(3), whole(3, dtype="int8")), DTypeError,
    ),
    "another scale": (
        lambda: apply(Quantize(np.dtype("int8")), var(3), var(3, dtype="float64"), whole(3, dtype="int8")), DTypeError,
    ),
    "another zero": (lambda: apply(Quantize(np.dtype("int8")), var(3), var(3), whole(3, dtype="uint8")), DTypeError),
    "quantised to floats": (lambda: apply(Quantize(np.dtype("float32")), var(3), var(3), var(3)), DTypeError),
    "dequantised floats": (lambda: apply(Dequantize(), var(3), var(3), var(3)), DTypeError),
    "dequantised int64": (lambda: apply(Dequantize(), whole(3), var(3), whole(3)), DTypeError),
    "dequantised by integers": (
        lambda: apply(Dequantize(), whole(3, dtype="int8"), whole(3), whole(3, dtype="int8")), DTypeError,
    ),
    "a prefix of a number": (lambda: apply(Prefix(), var(), whole()), ShapeError),
    "a prefix of int32": (lambda: apply(Prefix(), var(3), whole(dtype="int32")), DTypeError),
    "a prefix of a row of lengths": (lambda: apply(Prefix(), var(3), whole(1)), DTypeError),
    "positions along nothing": (lambda: cg.take_along_axis(var(3, 0), whole(3, 2), 1), PositionError),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_one_reason_is_enough(name):
    call, error = REFUSED[name]
    with pytest.raises(error):
        call()


ACCEPTED = {
    "attention": attention, "attention with a window": lambda: attention(causal=True, window=1), "boxes": boxes,
    "boxes in groups": lambda: boxes(groups=[((5,), "int64")]), "regions": regions,
    "regions at corners": lambda: regions("corners", 1), "weighted rows": rows, "trees": trees,
    "sums of leaves": tree_sums,
    "positions of no element": lambda: cg.take_along_axis(var(3, 0), whole(3, 0), 1),
    "truth of bytes": lambda: cg.bitcast(whole(3, dtype="int8"), bool),
    "choices of a tuple and a list": lambda: cg.cond(True, lambda x: (x, x), lambda x: [x, x], var(2))[0],
    "bounds of which one is a node": lambda: cg.fori(0, whole(), lambda i, s: s + 1, var(2)),
    "bounds of which the other is a node": lambda: cg.fori(whole(), 5, lambda i, s: s + 1, var(2)),
}  # fmt: skip
"""The same calls with nothing wrong: each refusal above differs from them in one argument."""


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_the_refused_calls_start_from_is_accepted(name):
    assert isinstance(ACCEPTED[name](), cg.Node)
