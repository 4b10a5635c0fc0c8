"""Complex numbers and their parts: pointwise ops, or views of the bytes.

Gradients follow JAX's convention: for a real f, the gradient with respect to z = x + iy is df/dx - i df/dy. The
gradient of a holomorphic op is therefore ``g * f'(z)``, without conjugates.
"""

from typing import Any

import numpy as np

from cgraph.errors import DTypeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ir.spec import Spec
from cgraph.kernels.expression import part_of
from cgraph.kernels.kernel import View
from cgraph.ops.family import Pointwise, broadcast, common_dtype, float_dtype, real_dtype
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import ViewOp, reshape, zeros_like


class ComplexPart(Pointwise):
    """Base of the real and the imaginary part."""

    takes_complex = True

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        return real_dtype(dtypes[0])


class Real(ComplexPart):
    """The real part."""

    def meaning(self, x):
        return x.real

    def scalar(self, m, x):
        return x.re

    def grad(self, node, g):
        return (apply(Complex(), g, zeros_like(g)),)


class Imag(ComplexPart):
    """The imaginary part."""

    def meaning(self, x):
        return x.imag

    def scalar(self, m, x):
        return x.im

    def grad(self, node, g):
        return (apply(Complex(), zeros_like(g), -g),)


class Conj(Pointwise):
    """The complex conjugate."""

    takes_complex = True

    def meaning(self, x):
        return np.conjugate(x)

    def scalar(self, m, x):
        return m.pair(x.re, -x.im)

    def grad(self, node, g):
        return (conj(g),)


class Complex(Pointwise):
    """x + iy for two floats of one dtype."""

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        if dtypes[0].kind != "f" or dtypes[0] != dtypes[1]:
            raise DTypeError(f"parts are {dtypes[0]} and {dtypes[1]}, but must be floats of one dtype; use astype")
        return np.dtype(f"complex{dtypes[0].itemsize * 16}")

    def meaning(self, x, y):
        z = np.empty(x.shape, self.dtype(x.dtype, y.dtype))
        z.real, z.imag = x, y
        return z

    def scalar(self, m, x, y):
        return m.pair(x, y)

    def grad(self, node, g):
        return real(g), -imag(g)


class AsPairs(ViewOp):
    """Complex numbers ``[...]`` as real and imaginary parts ``[..., 2]``: a view of the same bytes."""

    def infer(self, x: Spec) -> Spec:
        if x.dtype.kind != "c":
            raise DTypeError(f"{x.dtype} is not complex, so it has no parts; convert with astype('complex64')")
        return Spec((*x.shape, 2), real_dtype(x.dtype))

    def meaning(self, x):
        return np.stack([x.real, x.imag], -1)

    def alias(self, x: View) -> View:
        part = part_of(x.dtype)
        return View(x.at, (*x.shape, 2), (*x.strides, int(part[1:])), part)

    def grad(self, node, g):
        return (complex(g[..., 0], -g[..., 1]),)


# -- public functions -------------------------------------------------------------------------------------------------


@public
def real(x: Any) -> Node:
    """Return the real part; a real `x` itself."""
    x = as_node(x)
    if x.dtype.kind != "c":
        return x
    return x.operands[0] if isinstance(x.op, Complex) else apply(Real(), x)


@public
def imag(x: Any) -> Node:
    """Return the imaginary part; zeros for a real `x`."""
    x = as_node(x)
    if x.dtype.kind != "c":
        return zeros_like(x)
    return x.operands[1] if isinstance(x.op, Complex) else apply(Imag(), x)


@public
def conj(x: Any) -> Node:
    """Return the complex conjugate; a real `x` itself."""
    x = as_node(x)
    return apply(Conj(), x) if x.dtype.kind == "c" else x


@public
def complex(real: Any, imag: Any) -> Node:
    """Return ``real + 1j * imag``, without the sum, in which an infinity would make the other part NaN."""
    dtype = float_dtype(common_dtype(real, imag))
    if dtype.kind == "c":
        raise DTypeError(f"the parts promote to {dtype}, but must be real; use np.real or np.imag")
    return apply(Complex(), *broadcast(*(as_node(v, dtype).astype(dtype) for v in (real, imag))))


@public
def as_parts(x: Any) -> Node:
    """Return complex numbers ``[..., n]`` as alternating real and imaginary parts ``[..., 2 * n]``; a scalar as two."""
    x = as_node(x)
    pairs = apply(AsPairs(), x)
    return reshape(pairs, (*x.shape[:-1], -1)) if x.size else reshape(pairs, (*x.shape[:-1], 2 * x.shape[-1]))
