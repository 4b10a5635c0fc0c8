"""Emitters of ONNX nodes for windows of a signal, and for Fourier transforms of pairs.

ONNX's DFT takes and returns pairs ``[..., 2]``. A complex number that the graph reads in another way has no operator.
"""

import numpy as np

from cgraph.formats.onnx.emit import Emitted, emitter, ints, node
from cgraph.ir.graph import Node
from cgraph.ops.complex import AsPairs, Complex
from cgraph.ops.fourier import Fourier, InverseRealFourier, RealFourier
from cgraph.ops.slicing import Slice
from cgraph.ops.sliding import Sliding


@emitter("sliding")
def windows(x: Node) -> Emitted:
    return windows_at(x, np.arange(x.shape[x.op.axis]))  # type: ignore[attr-defined]


def windows_at(x: Node, starts: np.ndarray) -> Emitted:
    """Emit the windows of a `Sliding` that begin at some elements of its axis."""
    op: Sliding = x.op  # type: ignore[assignment]
    windows_beside = node("Gather", x.operands[0], starts[:, None] + np.arange(op.length), axis=op.axis)
    order = [i for i in range(x.ndim) if i != op.axis + 1] + [op.axis + 1]
    return windows_beside if order == sorted(order) else node("Transpose", windows_beside, perm=order)


def strided_windows(x: Node) -> Emitted | None:
    """Match windows of which each n-th is taken."""
    op = x.op
    if not isinstance(op, Slice) or not isinstance(x.operands[0].op, Sliding):
        return None
    axis = x.operands[0].op.axis
    if any((op.starts[i], op.lengths[i]) != (0, n) for i, n in enumerate(x.operands[0].shape) if i != axis):
        return None
    return windows_at(x.operands[0], op.starts[axis] + op.steps[axis] * np.arange(op.lengths[axis]))


def spectrum(x: Node) -> Emitted | None:
    """Match pairs of a transform, and real numbers whose transform is given by pairs."""
    if isinstance(x.op, AsPairs):
        return pairs_of(x.operands[0])
    if not isinstance(x.op, InverseRealFourier) or x.op.norm != "backward":
        return None
    half = pairs_of(x.operands[0])
    if half is None:
        return None
    whole = node("DFT", half, np.int64(x.op.n), axis=x.op.axis, inverse=1, onesided=1)
    return node("Squeeze", whole, ints([-1]))


def pairs_of(x: Node) -> Emitted | None:
    """Return the pairs of complex numbers: two parts, or a transform of such."""
    op = x.op
    if isinstance(op, Complex):
        return node("Concat", *(node("Unsqueeze", part, ints([-1])) for part in x.operands), axis=-1)
    if isinstance(op, RealFourier) and op.norm == "backward":
        return node("DFT", node("Unsqueeze", x.operands[0], ints([-1])), axis=op.axis, onesided=1)
    if not isinstance(op, Fourier) or op.norm != "backward":
        return None
    pairs = pairs_of(x.operands[0])
    for axis in op.axes if pairs is not None else ():
        pairs = node("DFT", pairs, axis=axis, inverse=int(op.inverse))
    return pairs
