"""What ops refuse: each condition by itself, just outside of what is allowed."""

import numpy as np
import pytest

import cgraph as cg
from cgraph import DTypeError, ShapeError
from cgraph.autodiff import hessian_vector_product, jvp
from cgraph.ir.graph import apply
from cgraph.kernels.regions.calls import SampleGrid
from cgraph.ops.arithmetic import Add
from cgraph.ops.compare import Where
from cgraph.ops.fourier import InverseRealFourier as INVERSE
from cgraph.ops.join import Concat
from cgraph.ops.quantise import Dequantize, Quantize
from cgraph.ops.regions import RoiAlign
from cgraph.ops.slicing import SetSlice, Slice
from cgraph.ops.take import TakeAlongAxis

X, Y = cg.Var((3, 4), "float64", "x"), cg.Var((4, 5), "float64", "y")
IMAGES = cg.Var((2, 4, 6, 6), "float64", "images")
TRUTH, WHOLE = cg.Var((3, 4), "bool", "truth"), cg.Var((3, 4), "int64", "whole")
FOUR, BOXES, ZERO = cg.Var((4,), "float64", "four"), cg.Var((7, 4), "float64", "boxes"), np.zeros(7, np.int64)


BYTES, BYTE = cg.Var((3, 4), "int8", "bytes"), np.dtype("int8")
HALF = cg.Var((3,), "complex64", "half")
SEVEN, ZERO_NODE, ROI = cg.Var((7,)), cg.Const(ZERO), RoiAlign((2, 2), SampleGrid("cells", 2, (1.0,)))


def roi_align(boxes, batch, level, samples=2):
    return cg.roi_align_levels([IMAGES], boxes, batch, level, (2, 2), (1.0,), samples)


REFUSED = {
    "bool: arithmetic": (lambda: TRUTH - TRUTH, DTypeError, "is not defined for bool"),
    "bool: pooling": (lambda: cg.max_pool2d(IMAGES > 0, 2), DTypeError, "pooling of bool"),
    "floats: bits": (lambda: cg.bitwise_and(X, X), DTypeError, "needs integers or bool"),
    "where: choices of two dtypes": (lambda: apply(Where(), TRUTH, X, WHOLE), DTypeError, "x float64 and y int64"),
    "where: a condition of numbers": (lambda: apply(Where(), WHOLE, X, X), DTypeError, "a bool condition"),
    "mean of whole numbers": (lambda: cg.avg_pool2d(IMAGES.astype("int32"), 2), DTypeError, "with astype first"),
    "a window in the padding": (lambda: cg.max_pool2d(IMAGES, 2, 2, 2), ShapeError, "contains only padding"),
    "pooling of rows": (lambda: cg.max_pool2d(X, 2), ShapeError, "has 2 axes; pass one of 4"),
    "einsum: operands": (lambda: cg.einsum("ij,jk", X), ShapeError, "names 2 operands, but there are 1"),
    "einsum: letters": (lambda: cg.einsum("ijk->i", X), ShapeError, "'ijk' does not fit x"),
    "einsum: too few letters": (lambda: cg.einsum("i->i", X), ShapeError, "'i' does not fit x"),
    "einsum: lengths": (lambda: cg.einsum("ij,ij", X, Y), ShapeError, "'i' stands for length 3"),
    "einsum: a new letter": (lambda: cg.einsum("ij->k", X), ShapeError, "repeats a letter or has one"),
    "einsum: a letter twice": (lambda: cg.einsum("ij->ii", X), ShapeError, "repeats a letter or has one"),
    "tensordot": (lambda: cg.tensordot(X, Y, ((0,), (0,))), ShapeError, "differ"),
    "too few for real numbers": (lambda: apply(INVERSE(0, 8, "ortho"), HALF), ShapeError, "need 5 complex ones"),
    "no real number": (lambda: apply(INVERSE(0, 0, "ortho"), HALF[:1]), ShapeError, "0 real numbers"),
    "an index of too many axes": (lambda: X[0, 0, 0], ShapeError, "index of 3 axes"),
    "an index with two ellipses": (lambda: X[..., 0, ...], ShapeError, "index of 1 axes"),
    "arrays of too many axes": (lambda: X[[0], [0], [0]], ShapeError, "index of 3 axes"),
    "arrays with two ellipses": (lambda: X[..., [0], ...], ShapeError, "index of 1 axes"),
    "axes of an order": (lambda: cg.transpose(X, (0, 0)), ShapeError, "axes"),
    "a norm over three axes": (lambda: cg.norm(IMAGES, 2, (1, 2, 3)), ShapeError, "pass one or two axes"),
    "an edge of nothing": (lambda: cg.pad(X[:0], ((1, 0), (0, 0)), "edge"), ShapeError, "axis 0 .* has no edge"),
    "a mirror of nothing": (lambda: cg.pad(X[:0], ((1, 0), (0, 0)), "reflect"), ShapeError, "axis 0 .* nothing to ref"),
    "group norm of one axis": (lambda: cg.group_norm(FOUR, 1.0, 0.0, 2), ShapeError, "2 groups do not divide"),
    "group norm: no group": (lambda: cg.group_norm(X, 1.0, 0.0, 0), ShapeError, "0 groups do not divide"),
    "group norm: groups": (lambda: cg.group_norm(X, 1.0, 0.0, 3), ShapeError, "3 groups do not divide"),
    "quantize: whole numbers": (lambda: apply(Quantize(BYTE), WHOLE, WHOLE, BYTES), DTypeError, "x int64, scale"),
    "quantize: a scale of another dtype": (
        lambda: apply(Quantize(BYTE), X, X.astype("float32"), BYTES), DTypeError, "scale float32",
    ),
    "quantize: a zero point of another dtype": (lambda: apply(Quantize(BYTE), X, X, WHOLE), DTypeError, "point int64"),
    "quantize: to floats": (lambda: apply(Quantize(X.dtype), X, X, X), DTypeError, "cannot become float64"),
    "dequantize: floats": (lambda: apply(Dequantize(), X, X, X), DTypeError, "cannot become a float"),
    "dequantize: 64 bits": (lambda: apply(Dequantize(), WHOLE, X, WHOLE), DTypeError, "cannot become a float"),
    "dequantize: a zero point of another dtype": (
        lambda: apply(Dequantize(), BYTES, X, BYTES.astype("int16")), DTypeError, "zero point int16",
    ),
    "dequantize: a whole scale": (lambda: apply(Dequantize(), BYTES, BYTES, BYTES), DTypeError, "scale int8"),
    "instance norm of rows": (lambda: cg.instance_norm(FOUR, 1.0, 0.0), ShapeError, "has no channels"),
    "layer norm: scale": (lambda: cg.layer_norm(X, np.ones(3), np.zeros(3)), ShapeError, "its last 1 axes"),
    "layer norm: shift": (lambda: cg.layer_norm(X, np.ones(4), np.zeros(3)), ShapeError, "its last 1 axes|differ"),
    "random: float bits": (lambda: cg.random_bits(cg.random_key(0), (2,), "float32"), DTypeError, "for random bits"),
    "random: floats of bits": (lambda: cg.random_uniform(cg.random_key(0), (2,), 0, 1, "int32"), DTypeError, "floats"),
    "random: a probability above 1": (
        lambda: cg.random_bernoulli(cg.random_key(0), (2,), 1.01), ShapeError, r"1.01 is outside \[0, 1\]",
    ),
    "random: a probability below 0": (
        lambda: cg.random_bernoulli(cg.random_key(0), (2,), -0.01), ShapeError, r"-0.01 is outside \[0, 1\]",
    ),
    "random: a seed below 0": (lambda: cg.random_key(-1), ShapeError, "is outside 0 .. 2"),
    "random: a seed of 65 bits": (lambda: cg.random_key(2**64), ShapeError, "is outside 0 .. 2"),
    "dropout of all": (lambda: cg.dropout(X, cg.random_key(0), 1.0), ShapeError, r"1.0 is outside \[0, 1\)"),
    "dropout of less than none": (lambda: cg.dropout(X, cg.random_key(0), -0.1), ShapeError, r"is outside \[0, 1\)"),
    "boxes of three numbers": (lambda: roi_align(BOXES[:, :3], ZERO, ZERO), ShapeError, "boxes .* do not fit"),
    "boxes of too few images": (lambda: roi_align(BOXES, ZERO[1:], ZERO), ShapeError, "boxes .* do not fit"),
    "boxes of too few sizes": (lambda: roi_align(BOXES, ZERO, ZERO[1:]), ShapeError, "boxes .* do not fit"),
    "boxes of images by floats": (lambda: apply(ROI, BOXES, SEVEN, ZERO_NODE, IMAGES), DTypeError, "int64 batch"),
    "boxes of sizes by floats": (lambda: apply(ROI, BOXES, ZERO_NODE, SEVEN, IMAGES), DTypeError, "int64 batch"),
    "no samples": (lambda: roi_align(BOXES, ZERO, ZERO, 0), ShapeError, "use a grid of"),
    "resize: too few axes": (lambda: cg.resize(IMAGES, (3,)), ShapeError, r"shape=\[3\] does not fit"),
    "resize: to nothing": (lambda: cg.resize(IMAGES, (3, 0)), ShapeError, r"shape=\[3, 0\] does not fit"),
    "resize: of nothing": (lambda: cg.resize(IMAGES[:, :, :0], (3, 3)), ShapeError, r"shape=\[3, 3\] does not fit"),
    "resize: mode": (lambda: cg.resize(IMAGES, (3, 3), "cubic"), ShapeError, "mode='cubic'"),
    "resize: coordinates": (lambda: cg.resize(IMAGES, (3, 3), coordinates="odd"), ShapeError, "coordinates='odd'"),
    "searchsorted: a side": (lambda: cg.searchsorted(FOUR, X, "middle"), ShapeError, "'middle'"),
    "positions of floats": (lambda: cg.take(X, cg.Var((2,), "float64"), 0), (DTypeError, ShapeError), "positions|int"),
    "positions of bytes": (lambda: apply(TakeAlongAxis(1), X, WHOLE.astype("int8")), DTypeError, "int32 or int64"),
    "jvp: too few tangents": (lambda: jvp(X, [X], []), ShapeError, "1 nodes and 0 tangents"),
    "jvp: a tangent of another shape": (lambda: jvp(X, [X], [Y]), ShapeError, "tangent .* does not fit x"),
    "a direction of another shape": (
        lambda: hessian_vector_product(cg.sum(X * X), X, Y), ShapeError, "hessian_vector_product .*: direction",
    ),
    "a seed of another shape": (lambda: cg.gradient(X * 2, X, Y), ShapeError, "seed"),
    "a transposed convolution of rows": (lambda: cg.conv_transpose2d(X, IMAGES), ShapeError, "must have 4 axes each"),
    "a transposed convolution by rows": (lambda: cg.conv_transpose2d(IMAGES, X), ShapeError, "must have 4 axes each"),
    "concat of two ranks": (lambda: apply(Concat(0), X, FOUR), ShapeError, "rank or dtype"),
    "concat of two dtypes": (lambda: apply(Concat(0), X, WHOLE), ShapeError, "rank or dtype"),
    "concat of other rows": (lambda: apply(Concat(0), X, Y), ShapeError, "an axis other than 0"),
    "a sum of two shapes": (lambda: apply(Add(), X, Y), ShapeError, "operands differ in shape"),
    "text": (lambda: cg.add(X, np.array(["a"])), DTypeError, r"dtype <U\d+ is not supported"),
    "too few gradients of one's own": (
        lambda: cg.gradient(cg.sum(cg.custom_gradient(X, [X, Y], lambda g: [g])), X), ShapeError, "custom_gradient at",
    ),
    "gradients of one's own of another shape": (
        lambda: cg.gradient(cg.sum(cg.custom_gradient(X, [X], lambda g: [Y])), X), ShapeError, "custom_gradient at",
    ),
    "a slice of another dtype": (lambda: apply(SetSlice((0, 0), (1, 1)), X, WHOLE), DTypeError, "cannot be set to"),
    "a slice that begins before it": (lambda: apply(Slice((-1, 0), (1, 1), (2, 4)), X), ShapeError, "an axis of 3"),
    "a slice that begins behind it": (lambda: apply(Slice((0, 4), (1, 1), (3, 1)), X), ShapeError, "an axis of 4"),
    "a slice that ends behind it": (lambda: apply(Slice((0, 2), (1, 1), (3, 3)), X), ShapeError, "an axis of 4"),
    "a slice that ends before it": (lambda: apply(Slice((1, 0), (-1, 1), (3, 4)), X), ShapeError, "an axis of 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_an_op_cannot_do_is_refused(name):
    act, error, match = REFUSED[name]
    with pytest.raises(error, match=match):
        act()


@pytest.mark.parametrize("start, step, length", [(0, 1, 4), (3, -1, 4), (3, 1, 1), (0, 3, 2), (9, 1, 0)])
def test_a_slice_of_just_what_there_is_is_none_of_them(start, step, length):
    assert apply(Slice((0, start), (1, step), (3, length)), X).shape == (3, length)
