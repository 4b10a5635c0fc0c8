"""Blocked images below lowering: conversions, pooling, concat of odd channels, and clearing the frame."""

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.calls.blocked_copy import concat_calls, to_blocked_calls, to_plain_calls, zero_halo_calls
from cgraph.kernels.calls.move import copy_calls
from cgraph.kernels.calls.pool import pool_calls
from cgraph.kernels.calls.pool_places import place_calls, spread_calls
from cgraph.kernels.calls.window import Window
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.ops.physical.form import Form


def require(spec: Spec, form: Form) -> None:
    """ShapeError when a value is not of this form."""
    if spec != form.spec:
        raise ShapeError(f"a value {spec} is not of the form {form}")


class ToBlocked(Op):
    """Plain images ``[n, c, h, w]`` into blocks, with a frame of zeros."""

    form: Form

    def infer(self, x: Spec) -> Spec:
        if x.shape != self.form.logical:
            raise ShapeError(f"images {x} are not those of {self.form}")
        return self.form.spec

    def meaning(self, x):
        return self.form.block(x)

    def work(self, target: Target, x: Spec) -> Work:
        def calls(out: View, x: View) -> list[Call]:
            blocked = self.form.at(out.at)
            return [*zero_halo_calls(blocked), *to_blocked_calls(blocked, x)]

        return Work(calls)


class ToPlain(Op):
    """Blocked images as ``[n, c, h, w]``."""

    form: Form

    def infer(self, x: Spec) -> Spec:
        require(x, self.form)
        return Spec(self.form.logical, x.dtype)

    def meaning(self, x):
        return self.form.unblock(x)

    def work(self, target: Target, x: Spec) -> Work:
        return Work(lambda out, x: to_plain_calls(out, self.form.at(x.at)))


class ClearFrame(Op):
    """The same images with zeros in the frame, after an op that does not keep them."""

    form: Form

    def infer(self, x: Spec) -> Spec:
        require(x, self.form)
        return x

    def meaning(self, x):
        return self.form.block(self.form.unblock(x))

    def work(self, target: Target, x: Spec) -> Work:
        def calls(out: View, x: View) -> list[Call]:
            first = [] if x == out else copy_calls(target, out, x)
            return [*first, *zero_halo_calls(self.form.at(out.at))]

        return Work(calls, overwrites=(0,))


class BlockedPool(Op):
    """Pooling of blocked images; ``kind`` is ``max`` or ``mean``."""

    kind: str
    window: Window
    include_pad: bool
    source: Form
    result: Form

    def infer(self, x: Spec) -> Spec:
        require(x, self.source)
        return self.result.spec

    def work(self, target: Target, x: Spec) -> Work:
        def calls(out: View, x: View) -> list[Call]:
            to, source = self.result.at(out.at), self.source.at(x.at)
            return [*zero_halo_calls(to), *pool_calls(to, source, self.window, self.kind, self.include_pad).calls]

        return Work(calls)


class BlockedPlaces(Op):
    """The position of the largest element in each window of blocked images: int32, in blocks of as many channels."""

    window: Window
    source: Form
    result: Form

    @property
    def name(self) -> str:
        return "max_pool_places"

    def infer(self, x: Spec) -> Spec:
        require(x, self.source)
        return self.result.spec

    def work(self, target: Target, x: Spec) -> Work:
        return Work(lambda out, x: list(place_calls(self.result.at(out.at), self.source.at(x.at), self.window).calls))


class BlockedSpread(Op):
    """Elements of blocked images added up at their places: the gradient of max pooling."""

    window: Window
    places: Form
    given: Form
    result: Form

    @property
    def name(self) -> str:
        return "spread_to_places"

    def infer(self, places: Spec, g: Spec) -> Spec:
        require(places, self.places)
        require(g, self.given)
        return self.result.spec

    def work(self, target: Target, *specs: Spec) -> Work:
        def calls(out: View, places: View, g: View) -> list[Call]:
            to = self.result.at(out.at)
            made = spread_calls(to, self.places.at(places.at), self.given.at(g.at), self.window)
            return [*zero_halo_calls(to), *made.calls]

        return Work(calls)


class BlockedConcat(Op):
    """Channels one after the other, when they do not all start a block."""

    sources: tuple[Form, ...]
    result: Form

    def infer(self, *xs: Spec) -> Spec:
        for x, form in zip(xs, self.sources, strict=True):
            require(x, form)
        return self.result.spec

    def meaning(self, *xs):
        plain = [form.unblock(x) for form, x in zip(self.sources, xs)]
        return self.result.block(np.concatenate(plain, axis=1))

    def work(self, target: Target, *specs: Spec) -> Work:
        def calls(out: View, *xs: View) -> list[Call]:
            to = self.result.at(out.at)
            parts = [form.at(x.at) for form, x in zip(self.sources, xs)]
            return [*zero_halo_calls(to), *concat_calls(to, parts)]

        return Work(calls)
