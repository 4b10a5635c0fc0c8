"""Weights of 4 or 8 bits with a scale for each block, as onnxruntime's weight-only quantiser writes them."""

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const


@operator("com.microsoft.MatMulNBits")
def matmul_n_bits(c: Context) -> Node:
    """x @ dequantized(y).T + bias. What `accuracy_level` allows, an x of bytes, is not done."""
    bits, block, n, k = c.attribute("bits", 4), c.required("block_size"), c.required("N"), c.required("K")
    if bits not in (4, 8) or block < 16 or block & (block - 1):
        raise FormatError(f"{bits} bits in blocks of {block} are not supported; 4 and 8 in powers of 2 from 16 on are")
    if c.value(4) is not None and c[4].size:
        raise FormatError("an order of the elements (g_idx) is not supported")
    blocks = -(-k // block)
    y, bias = cg.reshape(c[1], (n, blocks, block * bits // 8)), c.get(5)
    scales = cg.astype(cg.reshape(c[2], (n, blocks)), "float32")
    zeros = zeros_of(c, n, blocks, bits)
    x = cg.astype(c[0], "float32")
    product = cg.block_matmul(x, y, scales, zeros) if bits == 4 else product_of_bytes(x, y, scales, zeros)
    return cg.astype(product if bias is None else product + bias, c[0].dtype)


def zeros_of(c: Context, n: int, blocks: int, bits: int) -> Node:
    """A zero point for each block ``[n, blocks]``: the middle, or those of the file, of 4 bits two in a byte."""
    if c.value(3) is None:
        return Const(np.full((n, blocks), 1 << (bits - 1), "uint8"))
    zeros = c.constant(3)
    if zeros.dtype != np.uint8:
        raise FormatError(f"zero points of {zeros.dtype} are not supported")
    rows = zeros.reshape(n, -1)
    if bits == 4:
        rows = np.stack([rows & 15, rows >> 4], -1).reshape(n, -1)
    return Const(rows[:, :blocks])


def product_of_bytes(x: Node, y: Node, scales: Node, zeros: Node) -> Node:
    """The same of 8 bits, as floats."""
    wide = (cg.expand_dims(v, 2) for v in (scales, zeros))
    floats = cg.reshape(cg.dequantize(y, *wide), (y.shape[0], -1))
    return cg.matmul(x, floats[:, : x.shape[-1]].T)
