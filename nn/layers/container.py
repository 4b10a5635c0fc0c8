"""Layers that contain layers."""

from typing import Any

from cgraph import Node
from nn.checks import check_kind
from nn.layer import Layer, Sample
from nn.mode import Mode


class Sequential(Layer):
    """Layers applied one after another; several results of one are the operands of the next."""

    parts: tuple[Layer, ...]

    def __init__(self, *parts: Layer) -> None:
        for i, part in enumerate(parts):
            check_kind(f"part {i} of Sequential", part, Layer, 'a Layer, such as nn.Activation("relu")')
        self.hold(parts=parts)

    @property
    def samples(self) -> tuple[Sample, ...] | None:
        return self.parts[0].samples if self.parts else None

    def build(self, *xs: Node, mode: Mode) -> Any:
        values: Any = xs
        for part in self.parts:
            values = part(*(values if isinstance(values, tuple) else (values,)), mode=mode)
        return values[0] if isinstance(values, tuple) and len(values) == 1 else values


class Residual(Layer):
    """``body(x) + shortcut(x)``, or ``body(x) + x`` without a shortcut."""

    body: Layer
    shortcut: Layer | None = None

    def build(self, *xs: Node, mode: Mode) -> Node:
        own = self.body(*xs, mode=mode)
        return own + (xs[0] if self.shortcut is None else self.shortcut(*xs, mode=mode))


class Branches(Layer):
    """Several layers on the same operands: one result each, or all merged by the layer `merge`."""

    parts: tuple[Layer, ...]
    merge: Layer | None = None

    def build(self, *xs: Node, mode: Mode) -> Any:
        results = tuple(part(*xs, mode=mode) for part in self.parts)
        return results if self.merge is None else self.merge(*results, mode=mode)
