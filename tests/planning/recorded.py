"""What is recorded of graphs that are compiled for machines that nothing runs on: schedule, bytes and kernel calls.

``python -m tests.planning.recorded`` writes `recorded.txt` anew. Read its difference: each line that changed is a graph
whose schedule, plan or kernels are others than before. ``python -m tests.planning.recorded NAME`` prints all that is
recorded of one graph, to be compared with what the same command prints elsewhere; ``--shown`` the lines of all
pictures and texts.
"""

import hashlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cgraph as cg
import nn
from cgraph.record import replace

RECORD = Path(__file__).with_name("recorded.txt")
MACHINES = ("avx512", "avx2", "cortex-m7")
LINE = r" at recorded\.py:\d+"
Graph = tuple[Any, Any, dict[str, Any]]
GRAPHS: dict[str, Callable[[], Graph]] = {}
OPTIONS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "as written": {"passes": False, "memory": "one_each"},
    "breadth first": {"order": "breadth_first", "memory": "greedy_by_size", "winograd": False},
    "least memory": {"order": "least_memory", "weights_dtype": "bfloat16"},
    "in bands": {"bands": 1},
    "in one byte": {"budget": 1, "recompute": True},
    "in patches": {"restructure": (0.4, (2, 3)), "recompute": 0.5},
}
BOTH = ("as it is", "in bands")
"""Options for every machine; the first machine gets all."""


def recorded(build: Callable[[], Graph]) -> Callable[[], Graph]:
    GRAPHS[build.__name__] = build
    return build


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def conv(x: cg.Node, filters: int, kernel: int = 3, stride: int = 1, pad: int = 1, groups: int = 1) -> cg.Node:
    f = weights(filters, x.shape[1] // groups, kernel, kernel, seed=filters)
    return cg.conv2d(x, f, stride=stride, pad=pad, groups=groups) + weights(filters, 1, 1, seed=1)


@recorded
def pointwise_chain() -> Graph:
    x, y = cg.Var((37, 19), name="x"), cg.Var((19,), name="y")
    a = cg.exp(-cg.square(x - y))
    return [cg.sum(a * 0.5 + cg.tanh(x), axis=0), cg.transpose(a)[3:17, ::2]], [x, y], {}


@recorded
def normalised_rows() -> Graph:
    x = cg.Var((24, 48), name="x")
    centred = x - cg.mean(x, axis=-1, keepdims=True)
    y = centred / cg.sqrt(cg.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) * weights(48) + weights(48, seed=1)
    gelu = 0.5 * y * (1 + cg.erf(y / np.float32(np.sqrt(2))))
    return cg.softmax(gelu @ weights(48, 40)), x, {}


@recorded
def residual_network() -> Graph:
    x = cg.Var((1, 3, 40, 36), name="image")
    y = cg.relu(conv(x, 16, stride=2))
    z = cg.relu(conv(cg.relu(conv(y, 24)), 16) + y)
    pooled = cg.max_pool2d(z, 3, stride=2, pad=1)
    return cg.global_avg_pool(cg.relu(conv(pooled, 32))), x, {}


@recorded
def separable_with_gates() -> Graph:
    x = cg.Var((2, 16, 28, 20), name="image")
    y = cg.relu6(conv(x, 16, groups=16, stride=2))
    gate = cg.sigmoid(conv(cg.relu(conv(cg.global_avg_pool(y), 4, 1, pad=0)), 16, 1, pad=0))
    z = conv(y * gate, 24, 1, pad=0)
    return cg.concat([z, cg.avg_pool2d(z, 3, stride=1, pad=1)], axis=1), x, {}


@recorded
def pyramid() -> Graph:
    x = cg.Var((1, 8, 32, 32), name="image")
    c1 = cg.relu(conv(x, 16))
    c2 = cg.relu(conv(c1, 24, stride=2))
    c3 = cg.relu(conv(c2, 32, stride=2))
    top = conv(c3, 16, 1, pad=0)
    middle = conv(c2, 16, 1, pad=0) + cg.resize(top, (16, 16))
    low = conv(c1, 16, 1, pad=0) + cg.resize(middle, (32, 32), mode="linear")
    return {"top": top, "middle": conv(middle, 8), "low": conv(low, 8)}, x, {}


@recorded
def inception_block() -> Graph:
    x = cg.Var((1, 12, 30, 26), name="image")
    parts = [
        conv(x, 8, 1, pad=0),
        conv(conv(x, 6, 1, pad=0), 10, 3),
        conv(cg.max_pool2d(x, 3, stride=1, pad=1), 5, 1, pad=0),
    ]
    joined = cg.relu(cg.concat(parts, axis=1))
    return cg.conv_transpose2d(joined, weights(23, 4, 2, 2), stride=2), x, {}


@recorded
def attention_block() -> Graph:
    x, mask = cg.Var((2, 20, 32), name="x"), cg.Var((20, 20), "bool", "mask")
    heads = [cg.transpose(cg.reshape(x @ weights(32, 32, seed=i), (2, 20, 4, 8)), (0, 2, 1, 3)) for i in range(3)]
    scores = heads[0] @ cg.swapaxes(heads[1], -1, -2) * np.float32(8**-0.5)
    mixed = cg.softmax(cg.where(mask, scores, np.float32(-1e9))) @ heads[2]
    y = x + cg.reshape(cg.transpose(mixed, (0, 2, 1, 3)), (2, 20, 32)) @ weights(32, 32, seed=3)
    return y + cg.relu(y @ weights(32, 64)) @ weights(64, 32), [x, mask], {}


@recorded
def loops() -> Graph:
    xs, n = cg.Var((9, 6), name="xs"), cg.Var((), "int64", "n")
    last, rows = cg.scan(lambda s, x: (cg.tanh(s @ weights(6, 6) + x), s * x), cg.zeros((6,)), xs)
    doubled = cg.fori(0, n, lambda i, s: s * 2 + cg.sin(s), last)
    return [cg.cond(n > 3, lambda a: cg.cumsum(a), lambda a: a[::-1] * 3, doubled), rows], [xs, n], {}


@recorded
def places() -> Graph:
    x, i = cg.Var((30, 8), name="x"), cg.Var((5,), "int32", "i")
    y = cg.scatter_add(x, i, cg.take(x, i + 3, axis=0) * 2)
    values, at = cg.top_k(cg.sum(y, axis=1), 4)
    return [cg.sort(y, axis=0)[:7], values, cg.take(y, at, axis=0), cg.one_hot(i, 11)], [x, i], {}


@recorded
def matrices() -> Graph:
    a, b = cg.Var((4, 12, 12), name="a"), cg.Var((4, 12, 3), name="b")
    spd = a @ cg.swapaxes(a, -1, -2) + np.eye(12, dtype="float32") * 12
    return [cg.solve(spd, b), cg.logsumexp(cg.cholesky(spd), axis=-1), cg.einsum("nij,nik->jk", a, b)], [a, b], {}


@recorded
def stencils() -> Graph:
    u, v = cg.Var((40, 50), name="u"), cg.Var((40, 50), name="v")
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    speed = v[1:-1, 1:-1] + np.float32(0.1) * around
    moved = cg.pad(u[1:-1, 1:-1] + np.float32(0.1) * speed, 1)
    return cg.max(moved), [], {"updates": {u: moved, v: cg.pad(speed, 1)}}


@recorded
def training() -> Graph:
    x, t = cg.Var((16, 1, 12, 12), name="x"), cg.Var((16,), "int32", "t")
    f, w = cg.Var((6, 1, 3, 3), name="f"), cg.Var((216, 10), name="w")
    y = cg.max_pool2d(cg.relu(cg.conv2d(x, f, pad=1)), 2)
    scores = cg.reshape(y, (16, 216)) @ w
    loss = -cg.mean(cg.sum(cg.log_softmax(scores) * cg.one_hot(t, 10), axis=-1))
    df, dw = cg.gradient(loss, [f, w])
    return loss, [x, t], {"updates": {f: f - 0.1 * df, w: w - 0.1 * dw}}


@recorded
def training_of_layers() -> Graph:
    model = nn.initialise(nn.Sequential(nn.Input((10,)), nn.Linear(10, 24), nn.BatchNorm(24), nn.Linear(24, 3)), 0)
    x, t, mode = cg.Var((8, 10), name="x"), cg.Var((8, 3), name="t"), nn.Mode(training=True)
    loss = nn.losses.quadratic(model(x, mode=mode), t)
    trained = [w for w in model.variables().values() if w.trained]
    moved = {w: w - 0.1 * g / (cg.sqrt(g * g) + 1e-3) for w, g in zip(trained, cg.gradient(loss, trained))}
    return loss, [x, t], {"updates": moved | dict(mode.updates)}


@recorded
def bytes_network() -> Graph:
    x = cg.Var((1, 8, 20, 18), "uint8", "image")
    y = cg.dequantize(x, np.float32(0.02), np.uint8(120))
    rng = np.random.default_rng(0)
    for filters in (16, 12):
        f = rng.integers(-100, 100, (filters, y.shape[1], 3, 3)).astype("int8")
        z = cg.conv2d(y, cg.dequantize(f, np.float32(0.01)), pad=1) + weights(filters, 1, 1)
        y = cg.dequantize(cg.quantize(cg.relu(z), np.float32(0.05), np.uint8(0)), np.float32(0.05), np.uint8(0))
    return cg.quantize(cg.max_pool2d(y, 2), np.float32(0.05), np.uint8(0)), x, {}


@recorded
def sequences() -> Graph:
    x, h, c = cg.Var((3, 5, 8), name="x"), cg.Var((3, 6), name="h"), cg.Var((3, 6), name="c")
    w, u, b = weights(8, 24), weights(6, 24), weights(24)
    after, cell = cg.lstm_cell(x[:, 0], h, c, w, u, b)
    for t in range(1, 5):
        after, cell = cg.lstm_cell(x[:, t], after, cell, w, u, b)
    key = cg.Const(np.array([3, 4], "uint32"))
    return [after, cell, cg.dropout(after, key, 0.25)], [x, h, c], {}


@recorded
def signals() -> Graph:
    x = cg.Var((6, 64), name="x")
    spectrum = cg.rfft(x, axis=-1)
    power = cg.sum(spectrum * spectrum, axis=-1)
    return [cg.log(power + 1), cg.sliding(x, 5)[..., ::2] @ weights(3), cg.roll(x, 3, axis=1) * x[:, ::-1]], x, {}


@recorded
def volumes() -> Graph:
    x = cg.Var((1, 3, 8, 10, 12), name="x")
    y = cg.relu(cg.conv3d(x, weights(6, 3, 3, 3, 3), pad=1, stride=(1, 2, 2)))
    line = cg.conv1d(cg.reshape(y, (1, 6, 240)), weights(4, 6, 5), stride=3, dilation=2)
    return [cg.max_pool3d(y, 2), cg.group_norm(line, weights(4), weights(4), 2)], x, {}


@recorded
def changing_parts() -> Graph:
    x, w = cg.Var((32, 16), name="x"), cg.Var((16, 16), name="w")
    return x @ cg.tanh(w @ w + 1) + cg.sum(cg.exp(w), axis=0), x, {"changing": [x]}


def compiled(name: str, machine: str, option: str) -> cg.Function:
    outputs, inputs, more = GRAPHS[name]()
    return cg.compile(outputs, inputs, engine=cg.ExportEngine(machine), **(OPTIONS[option] | more))


def cases() -> Iterator[tuple[str, str, str]]:
    """Each graph with machines and options."""
    for name in GRAPHS:
        for machine in MACHINES:
            for option in OPTIONS if machine == MACHINES[0] else BOTH:
                yield name, machine, option


def without_places(text: str) -> str:
    """The text without lines of this file, addresses, and numbers of Vars without a name."""
    return re.sub(r"recorded\.py:\d+|\bvar\d+|0x[0-9a-f]+", "", text)


def facts(function: cg.Function) -> str:
    """The plan step by step, and the kernel calls, without lines of sources."""
    found, plan = function.report(), function.plan
    assert function.compiled is not None
    lines = [f"order {found.order}, strategy {found.strategy}, proved {found.proved}, peak {found.peak}"]
    lines += [f"{x.step} {x.op} {x.spec} {x.nbytes} {x.in_use}" for x in found.steps]
    operands = function.compiled.usage.problem.operands
    lines += [f"{x.nbytes} {x.interval.first}..{x.interval.last} at {at}" for x, at in zip(operands, plan.offsets)]
    lines += [f"region {x.step} {x.nbytes} {x.bands} {x.slides} {x.slid_nbytes} {x.rings}" for x in found.regions]
    return without_places("\n".join([*lines, str(function.program.code)]))


def line(name: str, machine: str, option: str) -> str:
    """A line of the record: totals, and a digest of all facts."""
    try:
        function = compiled(name, machine, option)
    except cg.CgraphError as error:
        return f"{name}, {machine}, {option}: {re.sub(LINE, '', str(error))}"
    found = function.report()
    totals = f"{len(found.steps)} steps, {found.nbytes} B, bound {found.lower_bound}, unshared {found.unshared_nbytes}"
    return f"{name}, {machine}, {option}: {totals}; {hashlib.sha256(facts(function).encode()).hexdigest()[:12]}"


SHOWN: dict[str, Callable[[cg.Function], Any]] = {
    "report": lambda f: replace(f.report(), kernels=None).text(None),
    "report as a page": lambda f: replace(f.report(), kernels=None).html(),
    "memory": cg.function_svg,
    "plan": cg.function_dot,
    "graph": lambda f: cg.graph_dot(f.outputs),
    "text": lambda f: cg.text(f.outputs),
    "page": lambda f: re.findall(r"application/json[^<]*", str(cg.page_html(f))),
}
"""Pictures and texts of a Function; what a process loaded so far is left out."""


def shown(name: str) -> dict[str, str]:
    """What pictures and texts of a graph in bands have, without lines of sources."""
    function = compiled(name, MACHINES[0], "in bands")
    return {kind: without_places(str(show(function))) for kind, show in SHOWN.items()}


def shown_line(name: str) -> str:
    texts = shown(name).items()
    return f"{name}, shown: " + "; ".join(f"{kind} {hashlib.sha256(x.encode()).hexdigest()[:8]}" for kind, x in texts)


def lines() -> Iterator[str]:
    """All lines of the record."""
    yield from (line(*case) for case in cases())
    yield from (shown_line(name) for name in GRAPHS)


if __name__ == "__main__":
    if sys.argv[1:] == ["--shown"]:
        sys.stdout.writelines(f"{shown_line(name)}\n" for name in GRAPHS)
    elif len(sys.argv) > 1:
        for case in cases():
            if case[0] == sys.argv[1] and case[2] != "in one byte":
                sys.stdout.write(f"{case}\n{facts(compiled(*case))}\n")
        sys.stdout.writelines(f"{kind}\n{text}\n" for kind, text in shown(sys.argv[1]).items())
    else:
        RECORD.write_text("".join(f"{x}\n" for x in lines()))
