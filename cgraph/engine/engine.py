"""What an engine is: it turns placed nodes into something that runs."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from cgraph.ir.graph import Node
from cgraph.kernels.kernel import Pointer, View


class Step:
    """One node with its places: what an engine makes kernel calls from.

    Fields
        node: the op with its operands
        out, xs: views of the result and the operands
        scratch: address of the workspace, or None
        dead: views whose bytes nobody reads after this step; poisoned when asked for
    """

    __slots__ = ("dead", "node", "out", "scratch", "xs")

    def __init__(self, node: Node, out: Any, xs: Sequence[Any], scratch: Pointer | None, dead: Sequence[View] = ()):
        self.node, self.out, self.xs, self.scratch, self.dead = node, out, xs, scratch, dead


class Program(Protocol):
    """Kernel calls with addresses, and the arena they work in. One run at a time."""

    arena: np.ndarray

    def bind(self, addresses: Mapping[int, int]) -> None:
        """Set the addresses of memory outside the arena, by the identity of its key."""

    def run(self, steps: Sequence[int] | None = None) -> None:
        """Run all steps, or some of them in their order."""


class Engine(Protocol):
    """A device: the alignment it wants, and how it makes a program."""

    name: str
    alignment: int

    def program(self, steps: Sequence[Step], nbytes: int) -> Program:
        """A program of these steps over an arena of `nbytes` bytes."""
