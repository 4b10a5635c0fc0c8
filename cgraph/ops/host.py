"""Ops computed by NumPy: one Python call at each run, with one BLAS thread."""

from typing import Any, ClassVar

import numpy as np

from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.callback import callback_call
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target


class OnHost(Op):
    """Base of ops whose kernel is their meaning, or a faster function that writes the same values."""

    can_fail = True
    takes_complex = True
    uses_blas: ClassVar[bool] = True

    def write(self, outs: tuple[np.ndarray, ...], *xs: np.ndarray) -> None:
        """Fill the results with the values of `meaning`."""
        results = self.meaning(*xs)
        for place, value in zip(outs, results if isinstance(results, tuple) else (results,)):
            place[...] = value

    def work(self, target: Target, *specs: Spec) -> Work:
        single = isinstance(self.infer(*specs), Spec)

        def run(outs: tuple[np.ndarray, ...], values: tuple[np.ndarray, ...]) -> None:
            with np.errstate(all="ignore"):
                self.write(outs, *values)

        def calls(out: Any, *xs: View) -> list[Call]:
            return [callback_call(run, (out,) if single else out, xs, blas=self.uses_blas)]

        return Work(calls, strided=True)
