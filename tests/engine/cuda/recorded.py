"""What is recorded of Functions on a GPU: each call of the driver, with its arguments, while a script runs.

``python -m tests.engine.cuda.recorded`` writes `recorded_driver.txt` anew; ``python -m tests.engine.cuda.recorded
SCRIPT`` prints the calls of one script, to be compared with what the same command prints elsewhere.
"""

import hashlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cuda import pinned
from cgraph.engine.cuda.engine import CudaEngine
from cgraph.engine.cuda.simulator.memory import DEVICE
from cgraph.errors import CgraphError
from tests.engine.cuda.conftest import driver_of
from tests.support.libcuda import StandIn

RECORD = Path(__file__).with_name("recorded_driver.txt")
SMALL = 1 << 20
LEFT_OUT = ("cuMemFree_v2", "cuGraphExecDestroy", "cuGraphDestroy", "cuGetErrorName")  # when memory goes is Python's
SCRIPTS: dict[str, Callable[[CudaEngine], None]] = {}
ENGINES = {
    "plain": CudaEngine(0),
    "poison": CudaEngine(0, poison=True),
    "check": CudaEngine(0, check=True),
    "without graphs": CudaEngine(0, graphs=False),
    "without blocks": CudaEngine(0, blocks=False),
}


class Recording(StandIn):
    """A driver that keeps its calls. Changes: as `StandIn`, and `said`."""

    def __init__(self) -> None:
        self.said: list[str] = []
        super().__init__()
        self.handles = 100

    def _entry(self, name: str) -> Any:
        entry = super()._entry(name)

        def said(*args: Any) -> int:
            if name not in LEFT_OUT:
                self.said.append(f"{name} {' '.join(map(word, args))}")
            return entry(*args)

        return said

    def _cuStreamCreate(self, found: Any, flags: int) -> None:
        self.handles += 1
        found[0] = self.handles


def word(value: Any) -> str:
    """An argument: a small number, a place on the device, or that it is somewhere else."""
    if isinstance(value, bytes):
        return "text" if b"\n" in value else re.sub(r"_[0-9a-f]{24}_\d+$", "", value.decode())
    if not isinstance(value, int):
        return "found" if value is not None else "0"
    if value >= DEVICE and value < 2 * DEVICE:
        return f"device+{value - DEVICE}"
    return str(value) if value < SMALL else "host"


def script(run: Callable[[CudaEngine], None]) -> Callable[[CudaEngine], None]:
    SCRIPTS[run.__name__] = run
    return run


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


@script
def formulas(engine: CudaEngine) -> None:
    """The third run with the same addresses is a graph; a chosen output runs fewer steps."""
    x, y, w = cg.Var((37, 19), name="x"), cg.Var((19,), name="y"), cg.Var((19,), name="w").assign(values(19))
    function = cg.compile([cg.sum(cg.exp(x - y) * w, 0), cg.transpose(x)[::2] + 1, x, w], [x, y], engine=engine)
    for i in range(5):
        function(values(37, 19, seed=i), values(19, seed=i))
    w.assign(values(19, seed=9))
    function(values(37, 19), values(19))
    for _ in range(2):
        found = function(values(37, 19), values(19), copy=False)
    np.asarray(found[0])
    function(x=found[2], y=found[0])


@script
def large(engine: CudaEngine) -> None:
    """Arrays that go through pinned memory, in one piece and in several."""
    for size in ((1 << 14) - 1, 1 << 14, (5 << 13) + 3):
        x = cg.Var((size,), name="x")
        cg.compile(x * 2, x, engine=engine)(values(size))


@script
def training(engine: CudaEngine) -> None:
    x, w, n = cg.Var((16, 7), name="x"), cg.Var((7, 3), name="w"), cg.Var((), "int64", name="n")
    w.assign(values(7, 3))
    n.assign(np.int64(0))
    loss = cg.mean(cg.square(cg.tanh(x @ w)))
    step = cg.compile(loss, [x], updates={w: w - 0.1 * cg.gradient(loss, w), n: n + 1}, engine=engine)
    read = cg.compile([w * n, loss], [x], engine=engine)
    for i in range(4):
        step(values(16, 7, seed=i))
    read(values(16, 7))
    w.value  # noqa: B018 the host asks for it
    w.assign(values(7, 3, seed=3))
    step(values(16, 7))
    step.plan  # noqa: B018
    read(values(16, 7))


@script
def first_values(engine: CudaEngine) -> None:
    """Vars that a run writes before they have a value."""
    x, a, b = cg.Var((5,), name="x"), cg.Var((5,), name="a"), cg.Var((5,), name="b").assign(values(5))
    step = cg.compile(cg.sum(x), x, updates={a: x * 2, b: b + x}, engine=engine)
    for _ in range(3):
        step(values(5))


@script
def rounds(engine: CudaEngine) -> None:
    xs, n = cg.Var((9, 6), name="xs"), cg.Var((), "int64", "n")
    last, rows = cg.scan(lambda s, x: (cg.tanh(s + x), s * x), cg.zeros((6,)), xs)
    doubled = cg.fori(0, n, lambda i, s: s * 2 + cg.sin(s), last)
    halved = cg.while_loop(lambda s: cg.sum(s * s) > 1, lambda s: s / 2, doubled, 9)
    chosen = cg.cond(n > 3, lambda a: cg.cumsum(a), lambda a: a[::-1] * 3, halved)
    function = cg.compile([chosen, rows], [xs, n], engine=engine)
    for times in (0, 1, 5):
        function(values(9, 6), np.int64(times))


@script
def on_the_host(engine: CudaEngine) -> None:
    x = cg.Var((9, 9), name="x")
    y = cg.delay(np.sin, cg.transpose(x)[2:] + 1) * 2
    function = cg.compile([cg.exp(y), np.linalg.inv(x + 9 * cg.eye(9)), cg.sum(y)], x, engine=engine)
    for i in range(3):
        function(values(9, 9, seed=i))


@script
def outside(engine: CudaEngine) -> None:
    """A position outside its axis, then one inside."""
    x, at = cg.Var((5,), name="x"), cg.Var((2,), "int64", name="at")
    w = cg.Var((2,), name="w").assign(np.ones(2, "f4"))
    taken = cg.take(cg.exp(x), at) * 2
    step = cg.compile([taken, cg.take(x, at + 1)], [x, at], updates={w: w + taken}, engine=engine)
    for places in ([0, 3], [1, 7], [2, 3], [4, 0], [1, 1]):
        with suppress(CgraphError):
            step(values(5), np.array(places))


@script
def layers(engine: CudaEngine) -> None:
    """Constants, products, convolutions and pools."""
    x = cg.Var((2, 3, 16, 12), name="x")
    y = cg.relu(cg.conv2d(x, values(16, 3, 3, 3), pad=1) + values(16, 1, 1))
    z = cg.max_pool2d(cg.conv2d(y, values(8, 16, 3, 3), stride=2), 2)
    scores = cg.softmax(cg.reshape(z, (2, -1)) @ values(8 * 3 * 2, 10))
    function = cg.compile([scores, cg.argmax(scores, 1)], x, engine=engine)
    for _ in range(3):
        function(values(2, 3, 16, 12))


def calls(name: str, kind: str) -> list[str]:
    with pytest.MonkeyPatch.context() as patch, driver_of(Recording(), patch) as library:
        patch.setattr(pinned, "PIECE", pinned.LEAST_PINNED)
        SCRIPTS[name](ENGINES[kind])
        return library.said


def line(name: str) -> str:
    found = []
    for kind in ENGINES:
        said = calls(name, kind)
        found.append(f"{kind} {len(said)} {hashlib.sha256(chr(10).join(said).encode()).hexdigest()[:8]}")
    return f"{name}: {', '.join(found)}"


def lines() -> Iterator[str]:
    yield from map(line, SCRIPTS)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for kind in ENGINES:
            sys.stdout.writelines(f"{kind} {x}\n" for x in calls(name, kind))
    if not sys.argv[1:]:
        RECORD.write_text("".join(f"{x}\n" for x in lines()))
