"""Direct convolution with its filters in pieces, so that no more than one of them need be in memory."""

from typing import Any

import numpy as np

from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.calls.conv import conv_calls
from cgraph.kernels.calls.laned_copy import fill_halo_calls
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.ops.physical.conv import LanedConv
from cgraph.record import replace


class SlicedConv(Op):
    """A convolution of images in lanes, some panels of result channels after others: the same sums in the same order.

    Operands
        x: as of `conv`
        filters: for each of `panels`, so many panels of those that `pack_conv` makes
        bias, residual: as of `conv`
    Fields
        conv: the whole; it is direct, and its images lie in lanes
        panels: of each slice
    """

    conv: LanedConv
    panels: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.conv.name

    def infer(self, x: Spec, *rest: Spec) -> Spec:
        filters, beside = self.split(rest)
        return self.conv.infer(x, filters[0], *beside)

    def meaning(self, x, *rest):
        filters, beside = self.split(rest)
        return self.conv.meaning(x, np.concatenate(filters), *beside)

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(self.calls, 0, tuple(i + len(self.panels) - 1 for i in self.conv.overwrites))

    def split(self, rest: tuple) -> tuple[tuple, tuple]:
        """The filters, and bias and residual."""
        return rest[: len(self.panels)], rest[len(self.panels) :]

    def calls(self, out: View, x: View, *rest: View) -> list[Call]:
        """The frame of the result, then its pixels, slice after slice."""
        filters, (bias, *residuals) = self.split(rest)
        conv, to, source = self.conv, self.conv.result.at(out), self.conv.source.at(x)  # type: ignore[union-attr]
        residual: Any = conv.residual.at(residuals[0]) if conv.residual is not None else None
        made, first = [] if residuals and residuals[0] == out else list(fill_halo_calls(to)), 0
        for part, panels in zip(filters, self.panels):
            count = min(panels * conv.shape.panel_channels, conv.shape.k - first)
            shape = replace(conv.shape, k=count, panel=conv.shape.vectors)
            added = None if residual is None else residual.part(first, count)
            at = bias.at + first * to.itemsize
            made += conv_calls(shape, to.part(first, count), source, part.at, at, added, conv.activation).calls
            first += count
        return made
