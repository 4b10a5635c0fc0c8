"""Arguments that functions refuse before there is an op: each by itself, just outside of what is allowed."""

import numpy as np
import pytest

import cgraph as cg
from cgraph import DTypeError, GraphError, NoGradientError, PositionError, ShapeError
from cgraph.ir.graph import apply
from cgraph.ops.complex import AsPairs, Complex
from cgraph.ops.fft import fft as fft_of_pairs

X, Y = cg.Var((3, 4), "float64", "x"), cg.Var((4, 3), "float64", "y")
ROW, WHOLE, TRUTH = cg.Var((4,), "float64", "row"), cg.Var((3, 4), "int64", "whole"), cg.Var((3, 4), "bool", "truth")
IMAGES, NUMBER = cg.Var((2, 4, 6, 6), "float64", "images"), cg.Var((), "float64", "number")
PLANE, EMPTY, WIDE = cg.Var((3, 4), "complex128", "plane"), cg.Var((3, 0), "float64"), cg.Var((3, 3, 4), "float64")
FILTERS = cg.Var((2, 4, 3, 3), "float64", "filters")
NODES = [np.array(v) for v in ([0], [0, -1, -1], [0.5, 0.0, 0.0], [1, 0, 0], [2, 0, 0])]


def tree(**changes):
    """A tree of one question, in rows of four columns."""
    names = ("roots", "features", "thresholds", "below", "above")
    given = dict(zip(names, NODES)) | {k: np.array(v) for k, v in changes.items()}
    return cg.tree_leaves(X, *given.values())


REFUSED = {
    "an axis beyond the last": (lambda: cg.sum(X, 2), ShapeError, "axis 2 is outside the 2 axes"),
    "an axis before the first": (lambda: cg.sum(X, -3), ShapeError, "axis -3 is outside the 2 axes"),
    "an axis of a number": (lambda: cg.sum(NUMBER, 0), ShapeError, "axis 0 does not exist: the operand has no axes"),
    "an axis of a number's extreme": (lambda: cg.argmax(NUMBER, 1), ShapeError, "axis 1 is outside the 1 axes"),
    "half an axis": (lambda: cg.sum(X, 0.5), ShapeError, "axis=0.5 is not an integer"),
    "one axis twice": (lambda: cg.sum(X, (0, -2)), ShapeError, "name one axis twice"),
    "two unknown axes": (lambda: cg.reshape(X, (-1, -1)), ShapeError, "more than one -1"),
    "a negative axis": (lambda: cg.reshape(X, (-2, 6)), ShapeError, "more than one -1 or another negative"),
    "an unknown axis that does not fit": (lambda: cg.reshape(X, (5, -1)), ShapeError, "not a multiple of 5"),
    "an unknown axis of nothing": (lambda: cg.reshape(EMPTY, (0, -1)), ShapeError, "not a multiple of 0"),
    "another size": (lambda: cg.reshape(X, (3, 5)), ShapeError, "12 elements do not make"),
    "squeeze": (lambda: cg.squeeze(X, 0), ShapeError, "has more than one element"),
    "broadcast: fewer axes": (lambda: cg.broadcast_to(X, (4,)), ShapeError, "does not broadcast"),
    "broadcast: lengths": (lambda: cg.broadcast_to(X, (3, 5)), ShapeError, "does not broadcast"),
    "broadcast of two": (lambda: X + cg.Var((2, 4), "float64"), ShapeError, "shapes do not broadcast together"),
    "split: parts": (lambda: cg.split(X, 2), ShapeError, "does not divide into 2"),
    "split: into none": (lambda: cg.split(X, 0), ShapeError, "does not divide into 0"),
    "index: text": (lambda: X["a"], ShapeError, "'a' does not index"),
    "index: true": (lambda: X[True], ShapeError, "True does not index .*; use x.None. for True"),
    "index: false of NumPy": (lambda: X[0, np.False_], ShapeError, "False_ does not index .*; use x.None. for True"),
    "index: one bool": (lambda: X[np.array(True)], ShapeError, r"array.True. does not index .*; use x.None. for True"),
    "index: true beside an array": (lambda: X[np.zeros(2, int), True], ShapeError, "True does not index"),
    "index: one bool beside an array": (lambda: X[np.zeros(2, int), np.False_], ShapeError, "False_ does not index"),
    "index: half": (lambda: X[0.5], ShapeError, "0.5 does not index"),
    "index: behind": (lambda: X[3], ShapeError, "index 3 is outside an axis of 3"),
    "index: before": (lambda: X[-4], ShapeError, "index -4 is outside an axis of 3"),
    "index: arrays": (lambda: X[np.zeros(2, int), np.zeros(3, int)], ShapeError, "do not broadcast together"),
    "index: array outside": (lambda: X[np.array([3]), np.array([0])], PositionError, "outside an axis of 3"),
    "index: array before": (lambda: X[np.array([-4]), np.array([0])], PositionError, "outside an axis of 3"),
    "index: open truth": (lambda: X[TRUTH], DTypeError, "without a value yet"),
    "concat of nothing": (lambda: cg.concat([]), ShapeError, "got no operands"),
    "sliding: too long": (lambda: cg.sliding(X, 5), ShapeError, "windows of 5 do not fit an axis of 4"),
    "sliding: of nothing": (lambda: cg.sliding(X, 0), ShapeError, "windows of 0 do not fit an axis of 4"),
    "diagonal: of a row": (lambda: cg.diagonal(ROW), ShapeError, "must differ. Pass two different axes"),
    "diagonal: one axis twice": (lambda: cg.diagonal(X, 0, 1, -1), ShapeError, "axes 1 and -1"),
    "diag of images": (lambda: cg.diag(IMAGES), ShapeError, "4 axes; pass a vector or a matrix"),
    "diag of a number": (lambda: cg.diag(NUMBER), ShapeError, "0 axes; pass a vector or a matrix"),
    "a triangle of a row": (lambda: cg.triu(ROW), ShapeError, "needs at least two"),
    "pad: a mode": (lambda: cg.pad(X, 1, "wrap"), ShapeError, "mode='wrap' is unknown"),
    "pad: widths": (lambda: cg.pad(X, ((1, 1), (1, 1), (1, 1))), ShapeError, "does not fit x"),
    "pad: half a width": (lambda: cg.pad(X, 0.5), ShapeError, "pass integers >= 0"),
    "pad: less": (lambda: cg.pad(X, ((0, 0), (0, -1))), ShapeError, "pass integers >= 0"),
    "matmul: a number": (lambda: cg.matmul(X, NUMBER), ShapeError, "multiply by a number"),
    "matmul: of a number": (lambda: cg.matmul(NUMBER, X), ShapeError, "multiply by a number"),
    "matmul: lengths": (lambda: cg.matmul(X, X), ShapeError, "x has 4 columns, y has 3 rows"),
    "matmul: leading axes": (
        lambda: cg.matmul(WIDE, cg.Var((2, 4, 5), "float64")), ShapeError, "leading axes of .* do not broadcast",
    ),
    "norm: an order": (lambda: cg.norm(X, 3, (0, 1)), ShapeError, "matrix norm of order 3 is unknown"),
    "norm: no order of matrices": (lambda: cg.norm(X, "nuclear"), ShapeError, "order 'nuclear' is unknown"),
    "inv of no square": (lambda: cg.inv(X), ShapeError, r"\[\.\.\., n, n\]"),
    "a gradient of complete factors": (
        lambda: cg.gradient(cg.sum(cg.qr(Y, complete=True)[0]), Y), NoGradientError, "pass complete=False",
    ),
    "fft of complex numbers": (lambda: fft_of_pairs(PLANE), DTypeError, r"pass pairs \[\.\.\., 2\] of floats"),
    "fft of no pairs": (lambda: cg.fft(X), ShapeError, r"pass pairs \[\.\.\., n, 2\]"),
    "fft of one pair": (lambda: cg.fft(ROW[:2]), ShapeError, r"pass pairs \[\.\.\., n, 2\]"),
    "fft of nothing": (lambda: cg.rfft(X, 0), ShapeError, "n=0 along axis 1"),
    "fft of an empty axis": (lambda: cg.rfft(EMPTY), ShapeError, "is empty"),
    "irfft of nothing": (lambda: np.fft.irfft(PLANE, 0), ShapeError, "n=0 along axis 1"),
    "rfft of complex numbers": (lambda: np.fft.rfft(PLANE), DTypeError, "is complex; use np.fft.fft"),
    "a norm of transforms": (lambda: np.fft.fft(PLANE, norm="most"), ShapeError, "norm='most' is unknown"),
    "parts of one number: two dtypes": (
        lambda: apply(Complex(), X, X.astype("float32")), DTypeError, "float64 and float32, but must be",
    ),
    "parts of one number: whole": (lambda: apply(Complex(), WHOLE, WHOLE), DTypeError, "floats of one dtype"),
    "parts of real numbers": (lambda: apply(AsPairs(), X), DTypeError, "float64 is not complex"),
    "a real function of complex numbers": (lambda: cg.relu6(PLANE), DTypeError, "use np.real"),
    "quantize again": (lambda: cg.quantize(WHOLE, 0.5), DTypeError, "is not a float"),
    "quantize: a wide scale": (lambda: cg.quantize(X, np.ones((2, 3, 4))), ShapeError, "do not broadcast to"),
    "dequantize: a wide zero point": (
        lambda: cg.dequantize(WHOLE.astype("int8"), 0.5, np.ones((2, 3, 4), "int8")), ShapeError, "do not broadcast to",
    ),
    "scatter: a way": (lambda: cg.scatter(X, [0], 1.0, "divide"), ShapeError, "how='divide' is unknown"),
    "scatter: truth": (lambda: cg.scatter(TRUTH, [0], True, "add"), DTypeError, "numbers unless how='set'"),
    "put: rank": (lambda: cg.put_along_axis(X, [0], 1.0), ShapeError, "differ in rank"),
    "take: rank": (lambda: cg.take_along_axis(X, [0]), ShapeError, "differ in rank"),
    "take: lengths": (lambda: cg.take_along_axis(X, np.zeros((2, 2), int)), ShapeError, "do not fit"),
    "take: of nothing": (lambda: cg.take(EMPTY, [0], 1).eval(), PositionError, "has no element|outside"),
    "gather: too many positions": (lambda: cg.gather_nd(X, [[0, 0, 0]]), ShapeError, "do not fit x"),
    "gather: another batch": (lambda: cg.gather_nd(X, [[[0]]], 1), ShapeError, "do not fit x"),
    "searchsorted: rows": (lambda: cg.searchsorted(X, X), ShapeError, "one axis and the dtype"),
    "top_k: too many": (lambda: cg.top_k(X, 5), ShapeError, "k=5 of 4 elements"),
    "top_k: fewer than none": (lambda: cg.top_k(X, -1), ShapeError, "k=-1 of 4 elements"),
    "bits of another size": (lambda: cg.bitcast(X, "int32"), DTypeError, "float64 has 8 bytes, int32 has 4"),
    "bits of numbers as truth": (lambda: cg.bitcast(X, "bool"), DTypeError, "float64 has 8 bytes, bool has 1"),
    "boxes of rows": (lambda: cg.roi_align(IMAGES, ROW, [0], (2, 2)), ShapeError, r"boxes \[k, 4\]"),
    "boxes of three numbers": (lambda: cg.roi_align(IMAGES, X[:, :3], [0] * 3, (2, 2)), ShapeError, r"\[k, 4\]"),
    "boxes of no images": (lambda: cg.roi_align(WIDE, X, [0] * 3, (2, 2)), ShapeError, r"pass images \[n, c, h, w\]"),
    "strides": (lambda: cg.conv2d(IMAGES, FILTERS, (1, 1, 1)), ShapeError, "stride .* for 2 axes"),
    "a stride of 0": (lambda: cg.conv2d(IMAGES, FILTERS, 0), ShapeError, "stride .* for 2 axes"),
    "a dilation of 0": (lambda: cg.conv2d(IMAGES, FILTERS, 1, 0, 0), ShapeError, "dilation .* for 2 axes"),
    "no groups": (lambda: cg.conv2d(IMAGES, FILTERS, 1, 0, 1, 0), ShapeError, "groups .* for 1 axes"),
    "no groups, transposed": (lambda: cg.conv_transpose2d(IMAGES, FILTERS, 1, 0, 1, 0), ShapeError, "groups"),
    "less padding": (lambda: cg.conv2d(IMAGES, FILTERS, 1, -1), ShapeError, "pad .* for 2 axes"),
    "three paddings": (lambda: cg.conv2d(IMAGES, FILTERS, 1, (1, 1, 1)), ShapeError, "pad .* for 2 axes"),
    "a window that is too large": (lambda: cg.max_pool2d(IMAGES, 7), ShapeError, "a window of 7 does not fit"),
    "groups that do not divide": (lambda: cg.conv2d(IMAGES, FILTERS, 1, 0, 1, 2), ShapeError, "4 channels"),
    "a Const of a node": (lambda: cg.Const(X), GraphError, "is a node already"),
    "half a whole number": (lambda: cg.set_slice(WHOLE, 0, 0.5), DTypeError, "int64 cannot hold 0.5"),
    "a number that is too large": (lambda: cg.set_slice(WHOLE, 0, 2**70), DTypeError, "int64 cannot hold"),
    "a loop over nothing": (lambda: cg.scan(lambda h, x: (h, None), None), GraphError, "length="),
    "a loop of nothing": (
        lambda: cg.scan(lambda h, x: (None, None), None, np.zeros((50, 2))), GraphError, "neither a state nor a result",
    ),
    "loops of two lengths": (
        lambda: cg.scan(lambda h, x: (h, None), NUMBER, (X, Y)), ShapeError, "length",
    ),
    "gcd of floats": (lambda: cg.gcd(X, X), DTypeError, "gcd needs integers"),
    "a tree that looks beside the row": (lambda: tree(features=[4, -1, -1]), PositionError, "a node reads column 4"),
    "a tree of no root": (lambda: tree(roots=[3]), PositionError, "outside the 3 nodes"),
    "a tree before its root": (lambda: tree(roots=[-1]), PositionError, "outside the 3 nodes"),
    "a tree that leads back": (lambda: tree(below=[0, 0, 0]), PositionError, "leads to one before it"),
    "a tree that leads out": (lambda: tree(above=[3, 0, 0]), PositionError, "beyond the 3 nodes"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_argument_that_does_not_fit_is_refused(name):
    act, error, match = REFUSED[name]
    with pytest.raises(error, match=match):
        act()


ALLOWED = {  # what just keeps to them
    "sliding over all": (lambda: cg.sliding(X, 4), (3, 1, 4)),
    "top_k of all": (lambda: cg.top_k(X, 4)[0], (3, 4)),
    "the last axis": (lambda: cg.sum(X, -2), (4,)),
    "the first index": (lambda: X[-3], (4,)),
    "a window as large as the image": (lambda: cg.max_pool2d(IMAGES, 6), (2, 4, 1, 1)),
    "one number": (lambda: np.fft.irfft(PLANE, 1), (3, 1)),
    "one pair": (lambda: cg.fft(X[:, :2]), (3, 2)),
    "an unknown axis of no elements": (lambda: cg.reshape(EMPTY, (3, -1)), (3, 0)),
    "as many parts as elements": (lambda: cg.split(X, 3)[2], (1, 4)),
    "a tree": (tree, (3, 1)),
    "all positions": (lambda: cg.gather_nd(X, [[0, 0]]), (1,)),
    "a scale for each element": (lambda: cg.quantize(X, np.ones((3, 4))), (3, 4)),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_keeps_to_a_bound_is_allowed(name):
    act, shape = ALLOWED[name]
    assert act().shape == shape
