"""Fourier transforms of complex numbers, and of real ones by the non-redundant half of their transform.

Kernels compute in the operand's precision. On a GPU, each op is a Python call into NumPy. By the gradient convention
of `cgraph.ops.complex`, the gradient of a transform is the transform itself, not its inverse.
"""

from math import prod, sqrt
from typing import Any, Literal

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, apply
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.fourier.calls import FourierJob, fourier_job, real_job
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.ops.complex import conj, real
from cgraph.ops.family import real_dtype
from cgraph.ops.host import OnHost
from cgraph.ops.pad import pad
from cgraph.ops.shape import axis_of
from cgraph.ops.slicing import getitem
from cgraph.record import replace

Norm = Literal["backward", "ortho", "forward"]
NORMS: tuple[Norm, ...] = ("backward", "ortho", "forward")
REVERSED = dict(zip(NORMS, reversed(NORMS)))  # the norm whose forward scale is this one's inverse scale


def check(x: Spec, kind: str, axes: tuple[int, ...]) -> None:
    """Check the dtype's kind and that no transformed axis is empty. DTypeError or ShapeError otherwise."""
    if x.dtype.kind != kind:
        raise DTypeError(f"{x.dtype} is not {'complex' if kind == 'c' else 'a real float'}; convert with astype first")
    if any(x.shape[a] == 0 for a in axes):
        raise ShapeError(
            f"an axis among {list(axes)} of {list(x.shape)} is empty. Pass at least one element along each"
        )


def with_length(x: Spec, axis: int, n: int, dtype: Any) -> Spec:
    """Return the spec with n elements along an axis, in another dtype."""
    return Spec((*x.shape[:axis], n, *x.shape[axis + 1 :]), np.dtype(dtype))


class Transform(OnHost):
    """Base of the transforms.

    Fields
        norm: placement of the factor 1 / n, as in NumPy: on the ``backward`` or ``forward`` transform, or its root on
            both
    """

    uses_blas = False

    def jobs(self, target: Target, x: Spec) -> list[FourierJob]:
        """Return the transforms along one axis after the other."""
        raise NotImplementedError(f"{self.name} does not define jobs")

    def work(self, target: Target, *specs: Spec) -> Work:
        (x,) = specs
        if target.code == "ptx" or not prod(x.shape):
            return super().work(target, x)
        jobs = self.jobs(target, x)

        def calls(out: View, x: View, workspace: View | None = None) -> list[Call]:
            sources = [x] + [out] * len(jobs)
            return [call for job, source in zip(jobs, sources) for call in job.calls(out, source, workspace)]

        return Work(calls, max(job.nbytes for job in jobs), strided=True)


def scale_of(norm: "Norm", inverse: bool, n: int) -> float:
    """Return the factor of all results of a transform of n points."""
    if norm == "ortho":
        return 1 / sqrt(n)
    return 1 / n if inverse == (norm == "backward") else 1.0


class Fourier(Transform):
    """``y[k] = sum over j of x[j] * exp(-2 pi i j k / n)`` along axes, or its inverse."""

    axes: tuple[int, ...]
    inverse: bool
    norm: Norm

    def infer(self, x: Spec) -> Spec:
        check(x, "c", self.axes)
        return x

    def meaning(self, x):
        return (np.fft.ifftn if self.inverse else np.fft.fftn)(x, axes=self.axes, norm=self.norm)

    def jobs(self, target: Target, x: Spec) -> list[FourierJob]:
        part = code_of(real_dtype(x.dtype))
        scales = [scale_of(self.norm, self.inverse, x.shape[axis]) for axis in self.axes]
        return [fourier_job(target, part, x.shape, axis, self.inverse, scale) for axis, scale in zip(self.axes, scales)]

    def work(self, target: Target, *specs: Spec) -> Work:
        return replace(super().work(target, *specs), overwrites=(0,))

    def grad(self, node, g):
        return (apply(self, g),)


class RealFourier(Transform):
    """The first half of the transform of real numbers along an axis: n // 2 + 1 of n complex numbers."""

    axis: int
    norm: Norm

    def infer(self, x: Spec) -> Spec:
        check(x, "f", (self.axis,))
        return with_length(x, self.axis, x.shape[self.axis] // 2 + 1, np.result_type(x.dtype, np.complex64))

    def meaning(self, x):
        return np.fft.rfft(x, axis=self.axis, norm=self.norm)

    def jobs(self, target: Target, x: Spec) -> list[FourierJob]:
        scale = scale_of(self.norm, False, x.shape[self.axis])
        return [real_job(target, code_of(x.dtype), x.shape, self.axis, False, scale)]

    def grad(self, node, g):
        whole = fit_length(g, self.axis, node.operands[0].shape[self.axis])
        return (real(apply(Fourier((self.axis,), False, self.norm), whole)),)


class InverseRealFourier(Transform):
    """The n real numbers along an axis whose transform has the operand as its first half.

    Imaginary parts that such a transform cannot have are ignored.
    """

    axis: int
    n: int
    norm: Norm

    def infer(self, x: Spec) -> Spec:
        check(x, "c", (self.axis,))
        if self.n < 1 or x.shape[self.axis] != self.n // 2 + 1:
            raise ShapeError(
                f"{self.n} real numbers need {self.n // 2 + 1} complex ones, but there are {x.shape[self.axis]}"
            )
        return with_length(x, self.axis, self.n, f"float{x.dtype.itemsize * 4}")

    def meaning(self, x):
        return np.fft.irfft(x, self.n, axis=self.axis, norm=self.norm)

    def jobs(self, target: Target, x: Spec) -> list[FourierJob]:
        y, scale = self.infer(x), scale_of(self.norm, True, self.n)
        return [real_job(target, code_of(y.dtype), y.shape, self.axis, True, scale)]

    def grad(self, node, g):
        half = conj(apply(RealFourier(self.axis, REVERSED[self.norm]), g))
        shares = np.full(half.shape[self.axis], 2.0, g.dtype)  # multiplicity of each element in the full transform
        shares[0] = 1
        shares[self.n // 2] = 1 if self.n % 2 == 0 else shares[self.n // 2]
        return (half * shares.reshape([-1 if a == self.axis else 1 for a in range(half.ndim)]),)


def fit_length(x: Node, axis: int, n: int | None) -> Node:
    """Cut an axis to n elements, or append zeros."""
    have = x.shape[axis]
    if n is None or n == have:
        return x
    if n < 1:
        raise ShapeError(f"n={n} along axis {axis} of {x.name} {x.spec}; pass n >= 1")
    if n < have:
        return getitem(x, (*[slice(None)] * axis, slice(n)))
    return pad(x, [(0, n - have) if a == axis else (0, 0) for a in range(x.ndim)])


def norm_of(norm: str | None) -> Norm:
    """Return NumPy's name of a norm; None is ``backward``."""
    name = next((x for x in NORMS if x == (norm or "backward")), None)
    if name is None:
        raise ShapeError(f"norm={norm!r} is unknown; use {', '.join(map(repr, NORMS))}")
    return name


def transform(x: Node, lengths: list[int | None], axes: list[int], inverse: bool, norm: str | None) -> Node:
    """Return the transform along several axes, each cut or padded to its length first."""
    axes = [axis_of(a, x.ndim) for a in axes]
    x = x.astype(np.result_type(x.dtype if x.dtype.kind in "fc" else np.float64, np.complex64))
    for axis, n in zip(axes, lengths):
        x = fit_length(x, axis, n)
    return apply(Fourier(tuple(axes), inverse, norm_of(norm)), x) if axes else x


def half_spectrum(x: Node, n: int | None, axis: int, norm: str | None) -> Node:
    """Return the first half of the transform of real numbers along an axis."""
    if x.dtype.kind == "c":
        raise DTypeError(f"{x.name} {x.spec} is complex; use np.fft.fft, or take its real part")
    axis = axis_of(axis, x.ndim)
    x = x if x.dtype.kind == "f" else x.astype("float64")
    return apply(RealFourier(axis, norm_of(norm)), fit_length(x, axis, n))


def from_half_spectrum(x: Node, n: int | None, axis: int, norm: str | None) -> Node:
    """Return real numbers from the first half of their transform; ``2 * (m - 1)`` by default for m complex ones."""
    axis = axis_of(axis, x.ndim)
    x = x.astype(np.result_type(x.dtype if x.dtype.kind in "fc" else np.float64, np.complex64))
    n = 2 * (x.shape[axis] - 1) if n is None else int(n)
    if n < 1:
        raise ShapeError(f"n={n} along axis {axis} of {x.name} {x.spec}; pass n >= 1")
    return apply(InverseRealFourier(axis, n, norm_of(norm)), fit_length(x, axis, n // 2 + 1))
