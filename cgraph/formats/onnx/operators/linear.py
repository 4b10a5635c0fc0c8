"""Importers of matrix products and determinants."""

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic_ops.operators import contracting
from cgraph.ir.graph import Node


def letters_of_matmul(c: Context) -> tuple[list[str], str]:
    """Return the letters of MatMul: rows i and columns k, summed over j, capitals for batch axes."""
    ranks = [c.array(0).ndim, c.array(1).ndim]
    front = "ABCDEFGH"[: max(*ranks, 2) - 2]
    if min(ranks) < 1 or len(front) < max(ranks) - 2:
        raise FormatError(
            f"values of {ranks[0]} and {ranks[1]} axes with dynamic lengths cannot be multiplied. Give shapes= that "
            "fix them"
        )
    x, y = ("ij" if ranks[0] > 1 else "j"), ("jk" if ranks[1] > 1 else "j")
    front_x, front_y = (front[len(front) - max(n - 2, 0) :] for n in ranks)
    return [front_x + x, front_y + y], front + "".join(v for v in x + y if v != "j")


@operator("MatMul")
@contracting(letters_of_matmul)
def matmul(c: Context) -> Node:
    return cg.matmul(c[0], c[1])


def letters_of_gemm(c: Context) -> tuple[list[str], str]:
    added = "ik"[2 - c.array(2).ndim :] if c.value(2) is not None else ""
    x, y = ("ji" if c.attribute("transA", 0) else "ij"), ("kj" if c.attribute("transB", 0) else "jk")
    return [x, y, added], "ik"


@operator("Gemm")
@contracting(letters_of_gemm)
def gemm(c: Context) -> Node:
    """Import Gemm: alpha * A * B + beta * C, with A and B optionally transposed."""
    a, b, added = c[0], c[1], c.get(2)
    alpha, beta = c.attribute("alpha", 1.0), c.attribute("beta", 1.0)
    if c.opset < 7:
        a = cg.reshape(a, (a.shape[0], -1)) if a.ndim > 2 else a
    product = cg.matmul(a.T if c.attribute("transA", 0) else a, b.T if c.attribute("transB", 0) else b)
    product = product if alpha == 1 else cg.astype(product * alpha, product.dtype)
    if added is None:
        return product
    return product + (added if beta == 1 else cg.astype(added * beta, product.dtype))


def letters_of_einsum(c: Context) -> tuple[list[str], str]:
    terms, arrow, result = c.required("equation").replace(" ", "").partition("->")
    if not arrow or "." in terms:
        raise FormatError(
            f"the equation {c.required('equation')!r:.80} has no -> or has ..., which is not supported if lengths are "
            "known only at run time. Write it with -> and without ..."
        )
    return terms.split(","), result


@operator("Einsum")
@contracting(letters_of_einsum)
def einsum(c: Context) -> Node:
    return cg.einsum(c.required("equation"), *c.nodes)


@operator("com.microsoft.Solve")
def solution(c: Context) -> Node:
    """Import Solve, as skl2onnx writes Gaussian processes: the solution x of ``a @ x = b``; `a` may be transposed.

    Source: ``OnnxSolve`` of skl2onnx. The attribute `lower` has no effect on a general matrix.
    """
    a = cg.swapaxes(c[0], -2, -1) if c.attribute("transposed", 0) else c[0]
    return cg.solve(a, c[1])


@operator("com.microsoft.Inverse")
def inverse(c: Context) -> Node:
    return cg.inv(c[0])


@operator("com.microsoft.CDist")
def distances(c: Context) -> Node:
    """Import CDist, as skl2onnx writes nearest neighbours: distances from each row of a matrix to each of another.

    They are computed from matrix products, as in onnxruntime, without an array of all differences.
    """
    metric = c.attribute("metric", "sqeuclidean")
    if metric not in ("sqeuclidean", "euclidean"):
        raise FormatError(f"the metric {metric!r} is not supported. Use sqeuclidean or euclidean")
    a, b = c[0], c[1]
    squares = cg.maximum(cg.sum(a * a, 1, keepdims=True) + cg.sum(b * b, 1) - 2 * cg.matmul(a, b.T), 0)
    return squares if metric == "sqeuclidean" else cg.sqrt(squares)


@operator("Det")
def determinant(c: Context) -> Node:
    return cg.det(c[0])
