"""Importers of random numbers, with the node's seed (default 0): each run gives the same numbers."""

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic_ops.operators import keeping
from cgraph.formats.onnx.tensors import dtype_of_number
from cgraph.ir.graph import Node


def key(c: Context) -> Node:
    return cg.random_key(int(c.attribute("seed", 0)) % 2**64)


@operator("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
@keeping(lambda c: [])
def random_numbers(c: Context) -> Node:
    like = c.kind.endswith("Like")
    shape = c[0].shape if like else tuple(c.required("shape"))
    dtype = dtype_of_number(c.attribute("dtype", 1)) if "dtype" in c.attributes or not like else c[0].dtype
    if "Normal" in c.kind:
        return cg.random_normal(key(c), shape, c.attribute("mean", 0.0), c.attribute("scale", 1.0), dtype)
    return cg.random_uniform(key(c), shape, c.attribute("low", 0.0), c.attribute("high", 1.0), dtype)


@operator("Bernoulli")
@keeping(lambda c: [])
def bernoulli(c: Context) -> Node:
    x = c[0]
    dtype = dtype_of_number(c.attribute("dtype")) if "dtype" in c.attributes else x.dtype
    return cg.astype(cg.less(cg.random_uniform(key(c), x.shape, dtype=x.dtype), x), dtype)


@operator("Multinomial")
def multinomial(c: Context) -> Node:
    """Import Multinomial: classes drawn for each row of logarithms ``[n, classes]``: ``[n, sample_size]``.

    Source: Gumbel 1954; the largest of logarithms plus Gumbel's noise is a draw of their softmax.
    """
    x, count = c[0], c.attribute("sample_size", 1)
    if x.ndim != 2:
        raise FormatError(f"{x.ndim} axes are not supported. Give rows of logarithms [n, classes]")
    c.spend(nbytes=x.nbytes * max(count, 0))
    uniform = cg.random_uniform(key(c), (x.shape[0], count, x.shape[1]), 2.0**-24, 1.0, "float32")
    noisy = cg.expand_dims(x, 1) - cg.log(-cg.log(uniform))
    return cg.astype(cg.argmax(noisy, 2), dtype_of_number(c.attribute("dtype", 6)))
