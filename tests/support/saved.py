"""Functions to be saved, what they are called with, and a fresh process that loads and calls them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import cgraph as cg
import nn
from cgraph.engine.cpu.engine import CpuEngine

CHILD = """
import json, sys
import numpy as np
from cgraph import CgraphError, load

def called(function, given):
    try:
        found = function(*given)
    except CgraphError as error:
        return [np.array(f"{type(error).__name__}: {error}")]
    return found if isinstance(found, list) else [found]

work = sys.argv[1]
made, plan = {}, json.load(open(f"{work}/plan.json"))
functions = [load(folder, threads=threads) for folder, _, threads, _ in plan]
heavy = [m for m in sys.modules if m in HEAVY]  # before arrays are read from files, which takes some of them
for i, (function, (_, calls, _, assigned)) in enumerate(zip(functions, plan)):
    arrays = np.load(f"{work}/{i}.npz")
    for j, count in enumerate(calls):
        for k in assigned.get(str(j), []):
            function.cells[k].assign(arrays[f"cell {j} {k}"])
        for k, y in enumerate(called(function, [arrays[f"input {j} {k}"] for k in range(count)])):
            made[f"{i} {j} {k}"] = y
    for name, x in function.state.items():
        if x.cell.array is not None:
            made[f"{i} {name}"] = x.value
print(json.dumps(heavy + [m for m in sys.modules if m.startswith("cgraph")]))
np.savez(f"{work}/found.npz", **made)
"""
HEAVY = ("llvmlite", "numba", "onnx", "scipy", "threadpoolctl", "hashlib", "pathlib", "tempfile", "numpy.random")


class Case:
    """A function and its calls. Changes: the function's cells, by each call.

    Fields
        function: what is saved
        calls: per call its inputs
        assigned: per call, what cells are given before it, by their numbers
    """

    def __init__(
        self,
        function: cg.Function,
        calls: Sequence[Sequence[np.ndarray]],
        assigned: dict[int, dict[int, np.ndarray]] | None = None,
    ) -> None:
        self.function, self.calls, self.assigned = function, calls, assigned or {}

    def results(self, i: int) -> dict[str, np.ndarray]:
        """What the calls give here, and what the cells hold then, by the names that the child gives them."""
        made = {}
        for j, given in enumerate(self.calls):
            for k, value in self.assigned.get(j, {}).items():
                self.function.cells[k].assign(value)
            try:
                found = self.function(*given)
            except cg.CgraphError as error:
                found = [np.array(f"{type(error).__name__}: {error}")]
            for k, y in enumerate(found if isinstance(found, list) else [found]):
                made[f"{i} {j} {k}"] = y
        return made | {f"{i} {name}": x.value for name, x in self.function.state.items() if x.is_assigned}


def same_in_a_fresh_process(cases: Sequence[Case], work: Path, threads: int = 0) -> list[str]:
    """Save all, call all in one fresh process, compare every bit; the modules that the process had."""
    plan = []
    for i, case in enumerate(cases):
        case.function.save(work / str(i))
        arrays = {f"input {j} {k}": x for j, given in enumerate(case.calls) for k, x in enumerate(given)}
        arrays |= {f"cell {j} {k}": x for j, given in case.assigned.items() for k, x in given.items()}
        np.savez(work / f"{i}.npz", **arrays)
        assigned = {str(j): list(given) for j, given in case.assigned.items()}
        plan.append([str(work / str(i)), [len(given) for given in case.calls], threads, assigned])
    (work / "plan.json").write_text(json.dumps(plan))
    child = CHILD.replace("HEAVY", repr(HEAVY))
    environment = os.environ | {"XDG_CACHE_HOME": str(work / "cache")}  # where no kernel is
    command = [sys.executable, "-c", child, str(work)]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    want: dict[str, np.ndarray] = {}
    for i, case in enumerate(cases):
        want |= case.results(i)
    with np.load(work / "found.npz") as found:
        assert set(found) == set(want)
        for name, x in want.items():
            assert found[name].dtype == x.dtype and found[name].shape == x.shape, name
            assert found[name].tobytes() == x.tobytes(), name
    return json.loads(run.stdout)


# -- functions ---------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def held(*shape: int, name: str | None = None) -> cg.Var:
    return cg.Var(shape, name=name).assign(normal(*shape))


def script(engine: CpuEngine | None = None) -> Case:
    """Several dtypes, views, a constant, an input that is returned, no elements, positions that are data."""
    x, i = cg.Var((6, 5), name="x"), cg.Var((3,), "int64", name="i")
    y = cg.exp(x) @ normal(5, 7)
    outputs = [y, cg.argmax(y, 1), y.T[::-1], x, x > 0, cg.Const(np.arange(4.0)), y[:0], cg.take(y, i, 0), cg.sum(y)]
    function = cg.compile(outputs, [x, i], engine=engine or "cpu")
    right, wrong = np.array([0, 5, 2]), np.array([0, 6, 2])
    return Case(function, [(normal(6, 5), right), (normal(6, 5), wrong), (normal(6, 5), right)])


def network(name: str = "resnet20", **options: object) -> Case:
    model = getattr(nn.models, name)(0)
    function = nn.compile(model, batch=1, **options).function
    return Case(function, [[normal(*x.shape) for x in function.inputs] for _ in range(2)])


def loop() -> Case:
    """A loop of many rounds, whose state is kept from call to call."""
    h, w, x = held(4, 8, name="h"), held(8, 8), cg.Var((60, 4, 8), name="x")

    def round_of(state: cg.Node, row: cg.Node) -> tuple[cg.Node, cg.Node]:
        made = cg.tanh(state @ w + row)
        return made, made[0]

    after, rows = cg.scan(round_of, h, x)
    return Case(cg.compile(rows, [x], updates={h: after}), [[normal(60, 4, 8)] for _ in range(3)])


def recurrent() -> Case:
    """A step of a recurrent network written out many times: one matrix, many products."""
    u, w = normal(16, 64) / 4, normal(16, 64) / 4
    x, h = cg.Var((40, 8, 16), name="x"), cg.Const(np.zeros((8, 16), "float32"))
    c = h
    for t in range(40):
        gates = x[t] @ w + h @ u
        c = cg.sigmoid(gates[:, :16]) * c + cg.sigmoid(gates[:, 16:32]) * cg.tanh(gates[:, 32:48])
        h = cg.sigmoid(gates[:, 48:]) * cg.tanh(c)
    return Case(cg.compile(h, [x]), [[normal(40, 8, 16)] for _ in range(2)])


def training() -> Case:
    """A step with dropout and momentum: parameters, slots, the random key and the step's number change."""
    layers = (
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm(4),
        nn.Activation("relu"),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(144, 10),
    )
    model = nn.initialise(nn.Sequential(nn.Input((1, 8, 8)), *layers), 0)
    samples = normal(6, 1, 8, 8), RNG.integers(0, 10, 6)
    step = nn.training_step(model, nn.losses.cross_entropy, nn.Optimiser(), samples)
    return Case(step.function, [(normal(6, 1, 8, 8), RNG.integers(0, 10, 6)) for _ in range(4)])


def incremental() -> Case:
    """Cells that change one at a time: only what depends on them runs again."""
    x, first, second = cg.Var((30,), name="x"), held(30, name="w"), held(30, name="w")
    y = cg.sort(first * 2 + cg.cumsum(second))
    function = cg.compile([cg.sort(y + x), cg.sum(y)], [x], changing=[second])
    assigned = {1: {1: normal(30)}, 2: {0: normal(30)}, 4: {0: normal(30), 1: normal(30)}}
    return Case(function, [[normal(30)] for _ in range(6)], assigned)


def first_value() -> Case:
    """A cell that holds nothing until the first run."""
    x, y = cg.Var((5,), name="x"), cg.Var((5,), name="kept")
    return Case(cg.compile(cg.sum(x), [x], updates={y: x * 2}), [[normal(5)] for _ in range(2)])


CASES: dict[str, Callable[[], Case]] = {
    make.__name__: make for make in (script, network, loop, recurrent, training, incremental, first_value)
}


def running_sum(scale: float = 1.0) -> cg.Function:
    """A function of three numbers with a cell of weights, and one without a value that counts the calls."""
    x, w, count = cg.Var((3,), name="x"), cg.Var((3,), name="w"), cg.Var((), name="count")
    w.assign(np.arange(3, dtype="f4"))
    return cg.compile(cg.cumsum(w * x, 0) * scale + count, [x], {count: count + 1})
