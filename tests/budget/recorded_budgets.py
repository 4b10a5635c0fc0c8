"""How small networks fit into budgets between their least and their whole plan: regions, bands, patches, reruns.

``python -m tests.budget.recorded_budgets`` writes `recorded_budgets.txt` anew: a line for each network and budget.
``python -m tests.budget.recorded_budgets NAME`` prints all facts of one network.
"""

import hashlib
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import cgraph as cg
from cgraph.budget.bands.fit_bands import fit_row_streams
from cgraph.budget.bands.streamed_rows import by_rows
from cgraph.memory.smallest import Choice
from cgraph.ops.physical.ports import RowPort
from cgraph.ops.physical.stream import Stream
from tests.planning.recorded import facts, without_places
from tests.support.schedules import lowered, planner_of, scheduled

RECORD = Path(__file__).with_suffix(".txt")
MACHINES = ("avx512", "cortex-m7")
SHARES = (0.05, 0.3, 0.5, 0.7, 0.9, 1.0)
OPTIONS: dict[str, dict[str, Any]] = {
    "": {},
    "wide bands": {"bands": 112},
    "recomputed": {"recompute": True},
    "cheap ones recomputed": {"recompute": 0.1},
    "in patches": {"restructure": (0.4, (2, 3))},
    "by size": {"memory": "greedy_by_size"},
}


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("f4") / 10


def chain() -> tuple[cg.Node, cg.Var]:
    """Convolutions of other strides, pads and dilations, one after the other."""
    x = cg.Var((1, 3, 33, 26), name="x")
    y = cg.relu(cg.conv2d(x, weights(16, 3, 3, 3), (1, 2), (2, 0, 1, 1)))
    z = cg.relu(cg.conv2d(y, weights(16, 16, 3, 2), 1, (1, 0, 3, 1), (2, 1)))
    pooled = cg.max_pool2d(z, (3, 2), (2, 1), (1, 0, 0, 1))
    return cg.conv2d(cg.tanh(pooled), weights(5, 16, 2, 3), (1, 2)), x


def joined() -> tuple[cg.Node, cg.Var]:
    """Sums of two branches, the second of them over a resized one."""
    x = cg.Var((1, 8, 32, 24), name="x")
    y = cg.relu(cg.conv2d(x, weights(16, 8, 3, 3), pad=1))
    z = cg.relu(cg.conv2d(cg.relu(cg.conv2d(y, weights(24, 16, 1, 1))), weights(16, 24, 3, 3), pad=1) + y)
    small = cg.conv2d(z, weights(16, 16, 3, 3), 2, 1)
    wide = cg.relu(cg.resize(small, (32, 24)) + z)
    return cg.conv2d(wide, weights(4, 16, 3, 3), pad=1), x


def apart() -> tuple[cg.Node, cg.Var]:
    """Depthwise and pointwise layers with a gate that reads all pixels, and a transposed convolution."""
    x = cg.Var((2, 12, 20, 18), name="x")
    y = cg.relu6(cg.conv2d(cg.conv2d(x, weights(32, 12, 1, 1)), weights(32, 1, 3, 3), (2, 1), 1, groups=32))
    gate = cg.sigmoid(cg.conv2d(cg.global_avg_pool(y), weights(32, 32, 1, 1)))
    z = cg.conv2d(y * gate, weights(12, 32, 1, 1))
    return cg.conv_transpose2d(cg.concat([z, cg.avg_pool2d(z, 3, 1, 1)], 1), weights(24, 6, 3, 2), (2, 1), (1, 0)), x


def odd() -> tuple[cg.Node, cg.Var]:
    """Images of few channels and odd sides, whose bytes are no multiples of a cache line."""
    x = cg.Var((1, 3, 17, 13), name="x")
    y = cg.relu(cg.conv2d(x, weights(5, 3, 3, 3), pad=1))
    z = cg.relu(cg.conv2d(y, weights(7, 5, 3, 3), pad=1)) * cg.sigmoid(cg.conv2d(y, weights(7, 5, 1, 1)))
    return cg.conv2d(cg.max_pool2d(z, 2, 1), weights(3, 7, 3, 3)), x


def rows() -> tuple[cg.Node, cg.Var]:
    """Products and reductions whose values are cheap to compute again, or not."""
    x = cg.Var((48, 40), name="x")
    y = cg.tanh(x @ weights(40, 96))
    z = cg.softmax(y @ weights(96, 64)) @ weights(64, 96)
    return cg.sum(cg.exp(x), axis=1) + cg.sum(z * y + cg.sin(y), axis=1), x


def training() -> tuple[list[cg.Node], list[cg.Var]]:
    """A loss and its gradients."""
    x, w = cg.Var((16, 24), name="x"), cg.Var((24, 24), name="w")
    y = x
    for _ in range(5):
        y = cg.tanh(y @ w)
    loss = cg.sum(cg.square(y))
    return [loss, *cg.gradient(loss, [w])], [x, w]


NETWORKS: dict[str, Callable[[], Any]] = {f.__name__: f for f in (chain, joined, apart, odd, rows, training)}
STREAMED = ("chain", "joined")


@cache
def whole_nbytes(name: str, machine: str) -> int:
    """The bytes of the plan without a budget."""
    outputs, inputs = NETWORKS[name]()
    return cg.compile(outputs, inputs, engine=cg.ExportEngine(machine)).nbytes


OF_IMAGES, OF_ROWS = ("", "wide bands", "in patches"), ("", "recomputed", "cheap ones recomputed", "by size")
"""Options of networks of images, and of those of rows."""


def cases(name: str) -> Iterator[tuple[str, float, str]]:
    for share in SHARES:
        for option in OF_ROWS if name in ("rows", "training") else OF_IMAGES:
            yield MACHINES[0], share, option
        yield MACHINES[1], share, ""


def fitted(name: str, machine: str, share: float, option: str) -> str:
    """The facts of a plan within a share of the bytes of the whole one, or the refusal."""
    outputs, inputs = NETWORKS[name]()
    budget = int(whole_nbytes(name, machine) * share)
    try:
        function = cg.compile(outputs, inputs, engine=cg.ExportEngine(machine), budget=budget, **OPTIONS[option])
    except cg.CgraphError as error:
        return without_places(str(error).replace("recorded_budgets.py", "recorded.py"))
    text = facts(function).replace("recorded_budgets.py", "recorded.py")
    return without_places(f"{function.nbytes} {len(function.report().steps)}\n{text}")


def streamed(name: str, machine: str, nbytes: int | None) -> str:
    """The facts of a plan for streamed images."""
    output, x = NETWORKS[name]()
    ports = {0: RowPort("y", output.spec)} if machine == "delivered" else {}
    roots = lowered(*by_rows((output,), ports, [x]))
    planner = planner_of()
    choice: Choice = fit_row_streams(scheduled(planner, *roots), nbytes, planner)
    lines = [f"{choice[0].order} {choice[1].nbytes} {len(choice[0].layout.steps)}"]
    for node in choice[0].layout.steps:
        if isinstance(node.op, Stream):
            lines += [f"{node.op.frame}"]
    return without_places("\n".join(lines))


def sections(name: str) -> Iterator[tuple[str, str]]:
    """Each label of a network's lines, and its facts."""
    for machine, share, option in cases(name):
        yield f"{name}, {machine}, {share:g}{', ' * bool(option)}{option}", fitted(name, machine, share, option)
    for machine in ("read", "delivered") if name in STREAMED else ():
        for nbytes in (None, 1, 12_000, 30_000):
            yield f"{name}, {machine} by rows, {nbytes}", streamed(name, machine, nbytes)


def lines_of(name: str) -> list[str]:
    """The lines of the record of a network."""
    lines = []
    for label, text in sections(name):
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        lines.append(f"{label}: {text.splitlines()[0][:60]}; {digest}")
    return lines


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.stdout.writelines(f"== {label}\n{text}\n" for label, text in sections(sys.argv[1]))
    else:
        RECORD.write_text("".join(f"{x}\n" for name in NETWORKS for x in lines_of(name)))
