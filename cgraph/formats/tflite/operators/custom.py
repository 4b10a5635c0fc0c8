"""Importers of the custom operators of MediaPipe's networks. Their options are a struct of int32.

Source: mediapipe/util/tflite/operations (transpose_conv_bias.cc, max_pool_argmax.cc and max_unpooling.cc).
"""

from itertools import product

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import TfliteContext, operator
from cgraph.formats.tflite.context import images as to_images
from cgraph.formats.tflite.operators.conv import SAME, VALID, add_bias, image, pads_of
from cgraph.formats.tflite.value import TfliteValue
from cgraph.ir.graph import Node

LOWEST = np.finfo(np.float32).min
INSIDE = np.float32(0.1)  # added to an index, so that rounding does not change it
NODES_PER_TAP = 8


def padding_kind(c: TfliteContext) -> int:
    """Return the padding as in tables: in structs, 1 is SAME and 2 is VALID."""
    kind = c.option("padding")
    if kind not in (SAME + 1, VALID + 1):
        raise FormatError(f"the padding {kind} is not supported. Use 1 (SAME) or 2 (VALID)")
    return kind - 1


@operator("CUSTOM 'Convolution2DTransposeBias'")
def conv_transpose(c: TfliteContext) -> TfliteValue:
    """Import Convolution2DTransposeBias; operands: images, filters ``[k, r, s, c]``, a bias."""
    x, f, stride = image(c, 0), c.filters(1, (3, 0, 1, 2)), c.sizes("stride")  # [k, r, s, c] -> [c, k, r, s]
    if f.shape[0] != x.shape[1] or c[2].shape != (f.shape[1],):
        raise FormatError(f"filters {f.spec} and a bias {list(c[2].shape)} do not fit {x.spec}")
    cut = [0, 0]
    if padding_kind(c) == SAME:
        cut = [max(w - (n - 1) % s - 1, 0) for n, w, s in zip(x.shape[2:], f.shape[2:], stride)]
    before = [n // 2 for n in cut]
    pad = (*before, *(n - b for n, b in zip(cut, before)))
    return to_images(add_bias(c, 2, cg.conv_transpose2d(x, f, stride=stride, pad=pad)))


@operator("CUSTOM 'MaxPoolingWithArgmax2D'")
def pool_with_indices(c: TfliteContext) -> list[TfliteValue]:
    """Import MaxPoolingWithArgmax2D: maxima of windows, and the index of the first one in its window plus 0.1."""
    x, window, stride = image(c, 0), c.sizes("window"), c.sizes("stride")
    c.allowance.spend("its windows", nodes=NODES_PER_TAP * window[0] * window[1])
    top, left, bottom, right = pads_of(padding_kind(c), x.shape[2:], window, stride)
    wide = cg.pad(x, [(0, 0), (0, 0), (top, bottom), (left, right)], constant_values=LOWEST)
    counts = [(n - w) // s + 1 for n, w, s in zip(wide.shape[2:], window, stride)]
    if min(counts) < 1:
        raise FormatError(f"a window of {window} does not fit an image of {x.shape[2:]} pixels")
    most: Node = cg.full((*x.shape[:2], *counts), LOWEST, "float32")
    index: Node = cg.full(most.shape, INSIDE, "float32")
    for i, taps in enumerate(product(*map(range, window))):
        rows, columns = (slice(k, k + (n - 1) * s + 1, s) for k, n, s in zip(taps, counts, stride))
        part = wide[:, :, rows, columns]
        is_more = cg.greater(part, most)
        most, index = cg.where(is_more, part, most), cg.where(is_more, np.float32(i) + INSIDE, index)
    return [to_images(c.activated(most)), to_images(index)]


@operator("CUSTOM 'MaxUnpooling2D'")
def unpool(c: TfliteContext) -> TfliteValue:
    """Import MaxUnpooling2D: each element at the index in its window, zeros elsewhere; windows do not overlap."""
    x, index, window = image(c, 0), image(c, 1), c.sizes("window")
    if window != c.sizes("stride") or x.shape != index.shape:
        raise FormatError(
            f"windows of {window} every {c.sizes('stride')} pixels, or indices {index.spec} for {x.spec}, are not "
            "supported. Use windows side by side, with one index for each element"
        )
    rows, columns = window
    c.allowance.spend("its windows", nodes=NODES_PER_TAP * rows * columns)
    number = cg.trunc(index)
    parts = [cg.where(cg.equal(number, np.float32(i)), x, np.float32(0)) for i in range(rows * columns)]
    n, channels, h, w = x.shape
    spread = cg.stack(parts, axis=-1).reshape((n, channels, h, w, rows, columns)).transpose((0, 1, 2, 4, 3, 5))
    return to_images(spread.reshape((n, channels, h * rows, w * columns)))
