"""Mode: whether a model is built for inference or for training, and what the build leaves to do after each run."""

from typing import Any

import cgraph as cg
from cgraph import Node, Var
from nn.cache import Cache


class Mode:
    """How layers build their part of the graph. Changes: a training build collects update edges in it.

    Fields
        training: dropout and noise are on, normalisation uses the statistics of the batch
        updates: update edges so far: what each Var will hold after a run
        key: the Var of the random key; None for inference, which draws nothing
        cache: what attention layers keep of earlier tokens, when a decoder is built to go on behind them
    """

    def __init__(self, training: bool = False, seed: int = 0, cache: Cache | None = None) -> None:
        self.training, self.cache = training, cache
        self.updates: dict[Var, Node] = {}
        self.key: Var | None = Var((2,), "uint32", "random_key").assign(cg.random_key(seed)) if training else None

    def latest(self, x: Var) -> Node:
        """What `x` will hold after the updates collected so far: a layer that is used twice updates twice."""
        return self.updates.get(x, x)

    def update(self, x: Var, node: Node) -> None:
        """After a run `x` holds the value of `node`."""
        self.updates[x] = node

    def next_key(self) -> Node:
        """A random key that nobody else has; the next run gets another one."""
        if self.key is None:
            raise ValueError("inference draws no random numbers; build with Mode(training=True)")
        own, following = cg.split_key(self.latest(self.key))
        self.updates[self.key] = following
        return own

    def on_build(self, layer: Any, operands: tuple[Node, ...], results: Any) -> None:
        """Told after every layer's build; a summary listens."""
