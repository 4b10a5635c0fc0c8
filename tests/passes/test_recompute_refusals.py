"""What must not be computed again: what is impure, what is shown, what reads a Var that has been written since."""

from collections.abc import Callable

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.ops.physical.rerun import Rerun

DEPTH, WIDTH = 24, 64


class Doubled:
    """Twice an array. Changes: `calls`."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.calls += 1
        return 2 * x


class Network:
    """A deep chain of layers, some of which do something else besides; its loss, gradients and update edges.

    Fields
        x: the input; state: a Var that layers may read and update edges write
        loss, updates, shown: what is compiled
    """

    def __init__(self, layer: Callable[["Network", int, cg.Node], cg.Node]) -> None:
        rng = np.random.default_rng(0)
        self.x = cg.Var((8, WIDTH), "float64", "x")
        self.state = cg.Var((8, WIDTH), "float64", "state").assign(rng.normal(size=(8, WIDTH)))
        self.weights = [cg.Var(WIDTH, "float64", f"w{i}") for i in range(DEPTH)]
        self.updates: dict[cg.Var, cg.Node] = {}
        self.shown: list[cg.Node] = []
        self.calls = Doubled()
        h = self.x
        for i, w in enumerate(self.weights):
            w.assign(rng.normal(1, 0.1, WIDTH))
            h = cg.tanh(layer(self, i, h) * w)
        self.loss = cg.sum(h * h)
        self.gradients = cg.gradient(self.loss, self.weights)
        if layer is reads_what_is_written_behind_the_turn:
            self.updates[self.state] = self.state * 0.5 + self.gradients[-1]

    def compiled(self, recompute: bool) -> cg.Function:
        trained = {w: w - 0.01 * g for w, g in zip(self.weights, self.gradients)}
        outputs = [self.loss, *self.shown]
        engine = CpuEngine(poison=True)
        return cg.compile(outputs, [self.x], self.updates | trained, recompute=recompute, engine=engine)


def plain(network, i, h):
    return h


def calls_python(network, i, h):
    return h + cg.stop_gradient(cg.delay(network.calls, h)) if i == 5 else h


def shows_a_layer(network, i, h):
    if i in (3, 9):
        network.shown.append(h)
    return h


def reads_what_is_written_early(network, i, h):
    """The state's new value is made of an early layer; the old one is read before, and by no gradient."""
    if i == 4:
        network.updates[network.state] = network.state * 0.5 + cg.stop_gradient(h)
    return h + network.state if i in (2, 4) else h


def reads_what_is_written_late(network, i, h):
    """The old state is read by the gradients, too."""
    if i == 4:
        network.updates[network.state] = network.state * 0.5 + cg.stop_gradient(h)
    return h * cg.sin(network.state) if i in (2, 6, 10) else h


def reads_what_is_written_behind_the_turn(network, i, h):
    """The new state is made of the first gradient that there is, before early layers are computed again."""
    return h + network.state if i in (2, 4) else h


LAYERS = (
    plain, calls_python, shows_a_layer, reads_what_is_written_early, reads_what_is_written_late,
    reads_what_is_written_behind_the_turn,
)  # fmt: skip


@pytest.mark.parametrize("layer", LAYERS)
def test_the_same_bits_with_fewer_bytes(layer):
    found, sizes = [], []
    for recompute in (False, True):
        network = Network(layer)
        function = network.compiled(recompute)
        sizes.append(function.nbytes)
        values = np.random.default_rng(1).normal(size=network.x.shape)
        results = [array for _ in range(3) for array in function(values)]
        found.append([*results, network.state.value, *(w.value for w in network.weights)])
        again = [n.op for n in function.compiled.layout.steps if isinstance(n.op, Rerun)]
        assert bool(again) == recompute
        assert network.calls.calls == (3 if layer is calls_python else 0)
    assert sizes[1] < sizes[0]
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)
