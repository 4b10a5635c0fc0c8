"""Mode: inference or training, and the update edges that a training build collects."""

from typing import Any

import cgraph as cg
from cgraph import Node, Var
from nn.cache import Cache


class Mode:
    """Settings with which layers build their part of the graph. Changes: a training build collects update edges in
    it.

    Fields
        training: dropout and noise are on, normalisation uses the statistics of the batch
        updates: update edges so far: the node of each Var's value after a run
        key: Var of the random key; None for inference, which draws no random numbers
        cache: cached keys and values of earlier tokens; None for whole sequences
    """

    def __init__(self, training: bool = False, seed: int = 0, cache: Cache | None = None) -> None:
        self.training, self.cache = training, cache
        self.updates: dict[Var, Node] = {}
        self.key: Var | None = Var((2,), "uint32", "random_key").assign(cg.random_key(seed)) if training else None

    def latest(self, x: Var) -> Node:
        """Return the value of `x` after the updates so far: a layer that is used twice updates twice."""
        return self.updates.get(x, x)

    def update(self, x: Var, node: Node) -> None:
        """Add an update edge: after a run the value of `x` is that of `node`."""
        self.updates[x] = node

    def next_key(self) -> Node:
        """Return a new random key, different in every run."""
        if self.key is None:
            raise ValueError("a Mode for inference has no random key. Build with Mode(training=True).")
        own, following = cg.split_key(self.latest(self.key))
        self.updates[self.key] = following
        return own

    def on_build(self, layer: Any, operands: tuple[Node, ...], results: Any) -> None:
        """Called after every layer's build; `nn.summary` overrides it."""
