"""Convolutions and products whose constant comes in slices, so that only one slice has to be in memory.

A slice computes some of the results. Every sum stays whole and in order, so the bits do not change.
"""

from typing import Any

import numpy as np

from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.blocked_copy.calls import fill_halo_calls
from cgraph.kernels.conv.calls import conv_calls
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.gemm.portions import join_panels
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.kernels.winograd.calls import Winograd, winograd_calls
from cgraph.ops.physical.conv import BlockedConv, panel_of
from cgraph.ops.physical.matmul import PackedMatmul
from cgraph.record import replace


class SlicedConv(Op):
    """A convolution of channel-blocked images, by slices of panels of result channels.

    Operands
        x: as for `conv`
        filters: for each of `panels`, that many panels of those that `pack_filters` returns
        bias, residual: as for `conv`
    Fields
        conv: the whole convolution, direct or by Winograd, of channel-blocked images
        panels: number of panels of each slice
    """

    conv: BlockedConv
    panels: tuple[int, ...]
    takes_storage = True

    @property
    def name(self) -> str:
        return self.conv.name

    def infer(self, x: Spec, *rest: Spec) -> Spec:
        filters, beside = self.split(rest)
        return self.conv.infer(x, filters[0], *beside)

    def meaning(self, x, *rest):
        filters, beside = self.split(rest)
        return self.conv.meaning(x, np.concatenate(filters, panel_axis(self.conv)), *beside)  # of one axis if mixed

    def multiply_adds(self, *specs: Spec) -> int:
        return self.conv.multiply_adds(*specs)

    def work(self, target: Target, *specs: Spec) -> Work:
        nbytes = max((part.nbytes for part in self.winograds), default=0)
        return Work(self.calls, nbytes, tuple(i + len(self.panels) - 1 for i in self.conv.overwrites))

    def split(self, rest: tuple) -> tuple[tuple, tuple]:
        """Split operands into filters, and bias and residual."""
        return rest[: len(self.panels)], rest[len(self.panels) :]

    @property
    def shapes(self) -> list[Any]:
        """The convolution of each slice."""
        whole, panel = self.conv.shape, panel_of(self.conv.shape, self.conv.n, self.conv.tile)
        width, left, shapes = panel * whole.lanes, whole.k, []
        for panels in self.panels:
            shapes.append(replace(whole, k=min(panels * width, left), panel=panel))
            left -= panels * width
        return shapes

    @property
    def winograds(self) -> list[Winograd]:
        """The Winograd convolution of each slice; empty if it is direct."""
        return [Winograd(shape, self.conv.n, self.conv.tile) for shape in self.shapes] if self.conv.tile else []

    def calls(self, out: View, x: View, *rest: View, workspace: View | None = None) -> list[Call]:
        """Fill the halo of the result, then its pixels, slice by slice.

        By Winograd, the images are transformed once if all tiles are one block, otherwise for each slice.
        """
        filters, (bias, *residuals) = self.split(rest)
        conv, to, source = self.conv, self.conv.result.at(out), self.conv.source.at(x)  # type: ignore[union-attr]
        residual: Any = conv.residual.at(residuals[0]) if conv.residual is not None else None
        calls, first = [] if residuals and residuals[0] == out else list(fill_halo_calls(to)), 0
        is_one_block = all(part.block == part.tiles for part in self.winograds)
        for i, (part, shape) in enumerate(zip(filters, self.shapes)):
            added = None if residual is None else residual.part(first, shape.k)
            epilogue = Epilogue(bias.at + first * to.itemsize, added, conv.activation, conv.program)
            places = to.part(first, shape.k), source, part.at, epilogue
            if conv.tile:
                plan, is_there = self.winograds[i], i > 0 and is_one_block
                calls += winograd_calls(plan, *places, workspace, is_there).calls
            else:
                calls += conv_calls(shape, *places, weights_dtype=part.dtype).calls
            first += shape.k
        return calls


def panel_axis(conv: BlockedConv) -> int:
    """Return the axis of panels in packed filters; Winograd filters have their points first."""
    return 1 if conv.tile else 0


def slice_filters(conv: BlockedConv, filters: np.ndarray, most: int) -> tuple[list[np.ndarray], tuple[int, ...]]:
    """Return even slices of packed filters of at most `most` bytes, or of one panel, with their numbers of panels.

    Narrow panels stay together in the last slice.
    """
    axis, narrow = panel_axis(conv), 0 if conv.tile else conv.shape.narrow
    count = conv.shape.panels if narrow else filters.shape[axis]
    units = count - max(narrow - 1, 0)
    pieces = -(-units // max(most // (filters.nbytes // count), 1))
    if not narrow:
        parts = np.array_split(filters, pieces, axis)
        return parts, tuple(part.shape[axis] for part in parts)
    panels = [len(part) for part in np.array_split(np.arange(units), pieces)]
    parts = np.split(filters, np.cumsum(panels)[:-1] * conv.shape.panel_weights)
    return parts, (*panels[:-1], panels[-1] + narrow - 1)


class SlicedMatmul(Op):
    """A product with a constant in panels, by slices of columns.

    Operands
        x: as for `matmul`
        panels: for each of `columns`, the panels of that many columns, as `pack_b` returns them
        addend: as for `matmul`
    Fields
        matmul: the whole product
        columns: of each slice: whole panels, except for the last
    """

    matmul: PackedMatmul
    columns: tuple[int, ...]
    name = "matmul"
    takes_storage = True

    def infer(self, x: Spec, *rest: Spec) -> Spec:
        return self.matmul.infer(x, rest[0])

    def meaning(self, x, *rest):
        panels, addend = self.split(rest)
        return self.matmul.meaning(x, join_panels(panels, self.matmul.k, self.matmul.tile), *addend)

    def split(self, rest: tuple) -> tuple[tuple, tuple]:
        """Split operands into panels and addend."""
        return rest[: len(self.columns)], rest[len(self.columns) :]

    def multiply_adds(self, x: Spec, *rest: Spec) -> int:
        return self.matmul.multiply_adds(x, *rest)

    def work(self, target: Target, x: Spec, *rest: Spec) -> Work:
        panels, addend = self.split(rest)
        parts = [replace(self.matmul, n=n).work(target, x, p, *addend) for n, p in zip(self.columns, panels)]

        def places(out: View, *rest: View) -> list[tuple[Work, tuple[View, ...]]]:
            panels, addend = self.split(rest)
            pairs, first = [], 0
            for n, part, panel in zip(self.columns, parts, panels):
                beside = (columns_of(v, first, n) for v in addend)
                pairs.append((part, (columns_of(out, first, n), panel, *beside)))
                first += n
            return pairs

        def calls(out: View, x: View, *rest: View, workspace: View | None = None) -> list[Call]:
            product_calls: list[Call] = []
            for part, (to, panel, *beside) in places(out, *rest):
                product_calls += part.calls(to, x, panel, *beside, workspace=workspace)
            return product_calls

        def exact(out: View, x: View, *rest: View) -> int:
            return max(part.needs(to, (x, *others)) for part, (to, *others) in places(out, *rest))

        return Work(calls, max(part.nbytes for part in parts), strided=True, exact=exact)


def columns_of(view: View, first: int, count: int) -> View:
    """Return the view of some columns."""
    at = view.at + first * view.strides[-1]
    return View(at, (*view.shape[:-1], count), view.strides, view.dtype)
