"""Products of matrices and what is made of them."""

from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.ir.graph import Node


@operator("MatMul")
def matmul(c: Context) -> Node:
    return cg.matmul(c[0], c[1])


@operator("Gemm")
def gemm(c: Context) -> Node:
    """alpha * A * B + beta * C, with A and B transposed on demand."""
    a, b, added = c[0], c[1], c.get(2)
    alpha, beta = c.attribute("alpha", 1.0), c.attribute("beta", 1.0)
    if c.opset < 7:
        a = cg.reshape(a, (a.shape[0], -1)) if a.ndim > 2 else a
    found = cg.matmul(a.T if c.attribute("transA", 0) else a, b.T if c.attribute("transB", 0) else b)
    found = found if alpha == 1 else cg.astype(found * alpha, found.dtype)
    if added is None:
        return found
    return found + (added if beta == 1 else cg.astype(added * beta, found.dtype))


@operator("Einsum")
def einsum(c: Context) -> Node:
    return cg.einsum(c.required("equation"), *c.nodes)


@operator("Det")
def determinant(c: Context) -> Node:
    return cg.det(c[0])
