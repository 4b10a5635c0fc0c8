"""Products of two computed byte matrices, which the pass `integers` creates."""

import numpy as np

from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.conv8.calls import Result
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.product8.calls import product8_calls, product8_nbytes
from cgraph.kernels.target import Target
from cgraph.ops.linear import Matmul, laid_out, runs
from cgraph.ops.physical.integer import requantise


class ByteMatmul(Op):
    """A `Result` of ``(x - zeros[0]) @ (y - zeros[1])``, both computed at the run, in integers.

    Operands
        x, y: bytes ``[..., m, k]`` and ``[..., k, n]`` with the same leading axes
    Fields
        zeros: zero points of `x` and `y`
        scale: of the sums, a float32
        result: conversion of the sums
    """

    zeros: tuple[int, int]
    scale: float
    result: Result

    @property
    def name(self) -> str:
        return "matmul8"

    def infer(self, x: Spec, y: Spec) -> Spec:
        return Spec(Matmul().infer(x, y).shape, np.dtype(self.result.dtype))

    def meaning(self, x, y):
        sums = (x.astype("i8") - self.zeros[0]) @ (y.astype("i8") - self.zeros[1])
        return requantise(sums, np.full(1, self.scale, "f4"), self.result)

    def multiply_adds(self, x: Spec, y: Spec) -> int:
        return Matmul().multiply_adds(x, y)

    def work(self, target: Target, x: Spec, y: Spec) -> Work:
        m, (k, n), most = x.shape[-2], y.shape[-2:], 0
        for count in runs(x.shape[:-2]):
            for tall in (1, count):  # matrices with one right side are joined
                sizes = (count // tall, tall * m, n), (count // tall, tall * m, k), (count // tall, k, n)
                to, left, right = (laid_out(shape, "rows", "u1", False) for shape in sizes)
                most = max(most, product8_nbytes(target, to, left, right, self.zeros))

        def calls(out: View, x: View, y: View, workspace: View | None = None) -> list[Call]:
            assert workspace is not None
            return product8_calls(target, out, x, y, self.zeros, self.scale, self.result, workspace)

        def exact(out: View, x: View, y: View) -> int:
            return product8_nbytes(target, out, x, y, self.zeros)

        return Work(calls, most, strided=True, exact=exact)
