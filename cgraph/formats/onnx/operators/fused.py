"""Importers of the operators that onnxruntime's optimiser writes in place of several: products, convolutions, gelu."""

from collections.abc import Mapping
from math import inf

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic_ops.operators import contracting, elementwise, samples
from cgraph.formats.onnx.operators.conv import conv
from cgraph.formats.onnx.operators.linear import gemm, letters_of_gemm, letters_of_matmul
from cgraph.ir.graph import Node

ACTIVATIONS: dict[str, tuple[str, dict[str, float]]] = {
    "Clip": ("clip", {"min": -inf, "max": inf}),
    "Elu": ("elu", {"alpha": 1.0}),
    "HardSigmoid": ("hard_sigmoid", {"alpha": 0.2, "beta": 0.5}),
    "HardSwish": ("hard_swish", {}),
    "LeakyRelu": ("leaky_relu", {"alpha": 0.01}),
    "Relu": ("relu", {}),
    "Selu": ("selu", {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}),
    "Sigmoid": ("sigmoid", {}),
    "Softplus": ("softplus", {}),
    "Softsign": ("softsign", {}),
    "Tanh": ("tanh", {}),
    "ThresholdedRelu": ("thresholded_relu", {"alpha": 1.0}),
}
"""By operator: the function, and its parameters with their defaults."""


def activate(c: Context, x: Node, numbers: Mapping[str, float]) -> Node:
    """Apply the function that the attribute `activation` names, with the file's parameters or their defaults."""
    kind = c.attribute("activation", "")
    if not kind:
        return x
    function, parameters = ACTIVATIONS.get(kind, ("", {}))
    if not function or not numbers.keys() <= parameters.keys():
        names = f" with {', '.join(numbers)}" if numbers else ""
        raise FormatError(
            f"the activation {kind!r}{names} is not supported. Save the model without onnxruntime's optimisations"
        )
    return getattr(cg, function)(x, *{**parameters, **numbers}.values())


@operator("com.microsoft.FusedConv")
@samples(0, 3)
def fused_conv(c: Context) -> Node:
    """Import FusedConv: the activation of a convolution plus operand 3."""
    y = conv(c)
    y = y if c.value(3) is None else y + c[3]
    _, parameters = ACTIVATIONS.get(c.attribute("activation", ""), ("", {}))
    numbers = c.attribute("activation_params") or []
    names = [*parameters, *(f"parameter {i}" for i in range(len(parameters), len(numbers)))]
    return activate(c, y, dict(zip(names, numbers)))


@operator("com.microsoft.FusedGemm")
@contracting(letters_of_gemm)
def fused_gemm(c: Context) -> Node:
    numbers = {name: c.attribute(f"activation_{name}") for name in ("alpha", "beta", "gamma")}
    return activate(c, gemm(c), {name: x for name, x in numbers.items() if x is not None})


def letters_of_fused_matmul(c: Context) -> tuple[list[str], str]:
    """Return the letters of MatMul, with the last two of an operand exchanged that is transposed."""
    letters, out = letters_of_matmul(c)
    if c.attribute("transBatchA", 0) or c.attribute("transBatchB", 0):
        raise FormatError(
            "transBatchA and transBatchB are not supported with dynamic lengths. Give shapes= that fix them"
        )
    for i, side in enumerate("AB"):
        if c.attribute(f"trans{side}", 0) and c.array(i).ndim > 1:
            letters[i] = letters[i][:-2] + letters[i][:-3:-1]
    return letters, out


@operator("com.microsoft.FusedMatMul", "com.microsoft.TransposeMatMul")
@contracting(letters_of_fused_matmul)
def fused_matmul(c: Context) -> Node:
    """Import FusedMatMul: alpha * A @ B, with axes of A and B exchanged first."""
    product = cg.matmul(factor_of(c, 0, "A"), factor_of(c, 1, "B"))
    alpha = c.attribute("alpha", 1.0)
    return product if alpha == 1 else cg.astype(product * alpha, product.dtype)


def factor_of(c: Context, i: int, side: str) -> Node:
    """Return operand i with its first axis before the last one, then the last two axes exchanged, each if asked."""
    x = c[i]
    if c.attribute(f"transBatch{side}", 0) and x.ndim > 2:
        x = cg.transpose(x, (*range(1, x.ndim - 1), 0, x.ndim - 1))
    return cg.swapaxes(x, -1, -2) if c.attribute(f"trans{side}", 0) and x.ndim > 1 else x


@operator("com.microsoft.Gelu", "com.microsoft.BiasGelu", "com.microsoft.FastGelu")
@elementwise
def gelu(c: Context) -> Node:
    """Import gelu of a sum: FastGelu is the approximation by tanh."""
    x = c[0] if c.value(1) is None else c[0] + c[1]
    return cg.gelu(x, c.kind == "FastGelu")


@operator("com.microsoft.QuickGelu")
@elementwise
def quick_gelu(c: Context) -> Node:
    """Import QuickGelu: ``x * sigmoid(alpha * x)``."""
    alpha = c.attribute("alpha", 1.702)
    return cg.swish(c[0]) if alpha == 1 else c[0] * cg.sigmoid(c[0] * alpha)
