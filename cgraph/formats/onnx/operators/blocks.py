"""Importers of block-quantised weights of 4 or 8 bits, the format of onnxruntime's weight-only quantiser."""

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const
from cgraph.ops.shape import axis_of


@operator("com.microsoft.MatMulNBits")
def matmul_n_bits(c: Context) -> Node:
    """Import MatMulNBits: x @ dequantize(y).T + bias. `accuracy_level` is ignored: x is never quantised."""
    bits, block, n, k = c.attribute("bits", 4), c.required("block_size"), c.required("N"), c.required("K")
    if bits not in (4, 8) or block < 16 or block & (block - 1):
        raise FormatError(
            f"{bits} bits in blocks of {block} are not supported. Use 4 or 8 bits in blocks of a power of 2 >= 16"
        )
    if c.value(4) is not None and c[4].size:
        raise FormatError("an order of the elements (g_idx) is not supported. Quantise without act_order")
    blocks = -(-k // block)
    y, bias = cg.reshape(c[1], (n, blocks, block * bits // 8)), c.get(5)
    scales = cg.astype(cg.reshape(c[2], (n, blocks)), "float32")
    zeros = zeros_of(c, n, blocks, bits)
    x = cg.astype(c[0], "float32")
    product = cg.block_matmul(x, y, scales, zeros) if bits == 4 else product_of_bytes(x, y, scales, zeros)
    return cg.astype(product if bias is None else product + bias, c[0].dtype)


def zeros_of(c: Context, n: int, blocks: int, bits: int) -> Node:
    """Return the zero points ``[n, blocks]``: the middle, or those of the file, with two of 4 bits per byte."""
    if c.value(3) is None:
        return Const(np.full((n, blocks), 1 << (bits - 1), "uint8"))
    zeros = c.constant(3)
    if zeros.dtype != np.uint8:
        raise FormatError(f"zero points of {zeros.dtype} are not supported. Use uint8")
    rows = zeros.reshape(n, -1)
    if bits == 4:
        rows = np.stack([rows & 15, rows >> 4], -1).reshape(n, -1)
    return Const(rows[:, :blocks])


def product_of_bytes(x: Node, y: Node, scales: Node, zeros: Node) -> Node:
    """Return the product for weights of 8 bits, in floats."""
    wide = (cg.expand_dims(v, 2) for v in (scales, zeros))
    floats = cg.reshape(cg.dequantize(y, *wide), (y.shape[0], -1))
    return cg.matmul(x, floats[:, : x.shape[-1]].T)


@operator("com.microsoft.GatherBlockQuantized")
def gather_block_quantized(c: Context) -> Node:
    """Import GatherBlockQuantized: rows of a table of bytes, or of two numbers of 4 bits each, as floats."""
    table, scales, block = c.constant(0), c[2], c.attribute("block_size", 128)
    bits = c.attribute("bits", 4)
    axes = [
        axis_of(c.attribute(name, default), table.ndim) for name, default in (("gather_axis", 0), ("quantize_axis", 1))
    ]
    if table.ndim != 2 or table.dtype != np.uint8 or bits not in (4, 8) or axes != [0, 1] or block < 1:
        raise FormatError(
            f"a table {list(table.shape)} of {table.dtype} with {bits} bits is not supported. Use rows of bytes with "
            "4 or 8 bits, gather_axis 0 and quantize_axis 1"
        )
    index = c.limits.positions(cg.astype(c[1], "int64"), table.shape[0])
    codes = cg.astype(cg.take(Const(table), index, 0), "int32")
    if bits == 4:
        codes = cg.reshape(cg.stack([codes & 15, codes >> 4], -1), (*codes.shape[:-1], 2 * table.shape[1]))
    zeros = cg.astype(zeros_of(c, table.shape[0], scales.shape[1], bits), "int32")
    steps, middles = (cg.repeat(cg.take(v, index, 0), block, -1)[..., : codes.shape[-1]] for v in (scales, zeros))
    return cg.astype(codes - middles, scales.dtype) * steps
