"""What is recorded of code that engines make: rows, arguments, addresses, results, pieces of weights, segments.

``python -m tests.engine.recorded`` writes `recorded.txt` anew; ``python -m tests.engine.recorded NAME`` prints all that
is recorded of one graph, to be compared with what the same command prints elsewhere. Nothing runs here.
"""

import hashlib
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cgraph as cg
from cgraph.engine.cpu.code import Code
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.cpu.ring import with_control_rows
from cgraph.engine.cuda.engine import SIMULATED, CudaEngine
from cgraph.engine.cuda.segments import segments
from cgraph.engine.export import ExportedProgram, ExportEngine
from cgraph.errors import CgraphError
from cgraph.kernels.isa import x86
from cgraph.kernels.isa.records import Target
from cgraph.storage.weight_file import StreamedWeights
from tests.planning.recorded import GRAPHS, OPTIONS, conv, weights, without_places

RECORD = Path(__file__).with_name("recorded.txt")
Make = Callable[[], tuple[Any, Any, dict[str, Any]]]
MORE: dict[str, Make] = {}
MIB = 1 << 20


class Elsewhere(CpuEngine):
    """The engine of another processor, whose code does not run here."""

    elsewhere: Target = x86.AVX2

    @property
    def kernel_target(self) -> Target:
        return self.elsewhere

    def program(self, code: Code) -> Any:
        return ExportedProgram(code, ExportEngine("avx2"))


class OnNoDevice(CudaEngine):
    """The engine of the simulated device, whose kernels are not loaded."""

    def program(self, code: Code) -> Any:
        return ExportedProgram(code, ExportEngine("avx2"))


ENGINES: dict[str, Any] = {
    "avx2": Elsewhere(),
    "poison": Elsewhere(poison=True),
    "gpu": OnNoDevice(SIMULATED),
    "gpu poison": OnNoDevice(SIMULATED, poison=True),
}


def graph(make: Make) -> Make:
    MORE[make.__name__] = make
    return make


@graph
def large_results() -> Any:
    """Outputs that may lie outside of the arena, and others that may not."""
    x, w = cg.Var((300, 200), name="x"), cg.Var((200, 100), name="w")
    y = cg.tanh(x @ w)
    joined = cg.concat([cg.exp(x), x * 2], 0)
    parts = cg.split(cg.sort(x, 1), 2, 0)
    return [y, cg.transpose(y), joined, joined[:300], cg.sum(x, 0), x, x[::2], *parts, y], [x, w], {}


@graph
def large_updates() -> Any:
    x, a, b = (cg.Var((200, 150), name=n) for n in "xab")
    return [a + x, b], [x], {"updates": {a: a * 2 + x, b: a}}


@graph
def on_the_host() -> Any:
    x = cg.Var((20, 20), name="x")
    y = cg.delay(np.sin, cg.transpose(x) + 1)
    return [cg.exp(y), np.linalg.inv(x), cg.sum(y), cg.lazy_print(y)[0]], [x], {}


@graph
def nested_rounds() -> Any:
    xs, n = cg.Var((4, 5, 6), name="xs"), cg.Var((), "int64", "n")

    def outer(s: Any, rows: Any) -> Any:
        last, ys = cg.scan(lambda t, row: (t * row + 1, cg.sum(t)), s, rows)
        return cg.while_loop(lambda t: cg.sum(t * t) > 1, lambda t: t / 2, last, 5), ys

    last, ys = cg.scan(outer, cg.zeros((6,)), xs)
    return [last, ys, cg.fori(0, n, lambda i, s: cg.cond(i > 1, cg.sin, cg.cos, s), last)], [xs, n], {}


def chain(layers: int = 5, width: int = 64) -> tuple[Any, Any]:
    x = y = cg.Var((1, width, 16, 16), name="x")
    for i in range(layers):
        filters = width + 8 * (i % 2)
        f = weights(filters, y.shape[1], 3, 3, seed=100 + i)  # each once: equal constants may be one
        y = cg.conv2d(cg.relu(y), f, pad=1) + weights(filters, 1, 1, seed=200 + i)
    return cg.sum(y, (2, 3)) @ weights(y.shape[1], 700), x


STREAMED: dict[str, tuple[StreamedWeights, dict[str, Any]]] = {
    "as it is": (StreamedWeights("w"), {}),
    "a ring": (StreamedWeights("w", ring=3 * MIB), {"winograd": False}),
    "slices": (StreamedWeights("w", slice=MIB // 4), {"recompute": 0.5}),
    "a budget": (StreamedWeights("w"), {"budget": 3 * MIB}),
    "a smaller budget": (StreamedWeights("w", slice=MIB // 8), {"budget": MIB}),
    "a ring in a budget": (StreamedWeights("w", ring=MIB), {"budget": 2 * MIB}),
    "a ring that is too small": (StreamedWeights("w", ring=4096), {}),
    "a budget that is too small": (StreamedWeights("w"), {"budget": 100_000}),
}


def numbers(x: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()[:8] + f" {np.shape(x)}"


def facts(function: cg.Function) -> list[str]:
    code: Code = function.program.code
    number_of = {id(x): i for i, x in enumerate(code.views)}
    lines = [f"{code.nbytes} B, steps {code.first_row.tolist()} write from {code.first_write}", code.text()]
    lines += [f"table {code.table[:, 1:].tolist()}", f"args {numbers(code.args)}", f"again {code.again}"]
    lines += [f"{r.symbol}: {r.positions.tolist()} {r.offsets.tolist()}" for r in code.relocations]
    lines += [f"variables {[x.name for x in code.variables]} targets {[x.name for x in code.targets]}"]
    lines += [f"updated {[x.name for x in code.updated]} written {sorted(x.name for x in code.written)}"]
    lines += [f"constant {numbers(x)}" for x in code.constants if isinstance(x, np.ndarray)]
    lines += [f"output {v.shape} {v.strides} {v.dtype} {base(v.at.base)}+{v.at.offset}" for v in code.views.values()]
    for x, r in code.results.items():
        lines.append(f"result {number_of[id(x)]}: {r.positions.tolist()} {r.offsets.tolist()}")
    lines.append(f"complete {[(number_of[id(x)], row) for x, row in code.complete.items()]}")
    if code.ring is not None:
        lines += [f"ring {code.ring.nbytes} {code.ring.pieces} {sorted(code.ring.sums)}"]
        chosen = (np.arange(len(code.table)), np.arange(len(code.table))[::2])
        for rows in (with_control_rows(code.table, x, code.ring.pieces, 1 << 40, 1 << 41) for x in chosen):
            lines += [str(x.tolist()) for x in (rows.table, rows.numbers, rows.orders)]
    return re.sub(r"\w+\.py:\d+", "", without_places("\n".join(lines))).splitlines()


def base(x: Any) -> str:
    return x if isinstance(x, str) else numbers(x) if isinstance(x, np.ndarray) else x.name


def segment_facts(function: cg.Function) -> list[str]:
    code, found = function.program.code, []
    rows = np.arange(5 * len(code.table)).reshape(-1, 5)
    last = len(code.first_row) - 1
    for steps in (range(last), range(0, last, 2)):
        for most in (1, 3, len(rows)):
            for x in segments(code, rows, steps, most):
                found.append(f"{x.table.tolist()} {x.host is None} {x.words} {x.rows} {x.jump} {x.target} {x.repeats}")
    return found


def made(name: str, engine: str) -> cg.Function:
    outputs, inputs, more = {**GRAPHS, **MORE}[name]()
    return cg.compile(outputs, inputs, engine=ENGINES[engine], **more)


def graph_facts(name: str, engine: str) -> list[str]:
    function = made(name, engine)
    return facts(function) + (segment_facts(function) if engine.startswith("gpu") else [])


def streamed_facts(how: str) -> list[str]:
    options, more = STREAMED[how]
    with tempfile.TemporaryDirectory() as folder:
        outputs, x = chain()
        placed = options.__class__(f"{folder}/w", options.ring, options.slice)
        try:
            return facts(cg.compile(outputs, x, engine=Elsewhere(), weights=placed, **more))
        except CgraphError as error:
            return [str(error)]


def by_rows_facts() -> list[str]:
    found: list[str] = []
    for size, options in ((64, {}), (97, {}), (128, OPTIONS["in bands"])):
        x = cg.Var((1, 4, size, 40), name="x")
        y = cg.max_pool2d(conv(cg.relu(conv(x, 8)), 6, stride=2), 2)
        try:
            found += facts(cg.compile(y, x, engine=Elsewhere(), rows=[x, y], **options))
        except CgraphError as error:
            found.append(str(error))
    return found


def digest(lines: list[str]) -> str:
    return f"{len(lines)} {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:8]}"


CASES: dict[str, Callable[[], Iterator[tuple[str, list[str]]]]] = {
    **{name: lambda name=name: ((x, graph_facts(name, x)) for x in ENGINES) for name in (*GRAPHS, *MORE)},
    "streamed weights": lambda: ((how, streamed_facts(how)) for how in STREAMED),
    "by rows": lambda: iter([("rows", by_rows_facts())]),
}


def line(name: str) -> str:
    return f"{name}: {', '.join(f'{kind} {digest(found)}' for kind, found in CASES[name]())}"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for kind, found in CASES[name]():
            sys.stdout.writelines(f"{kind} {x}\n" for x in found)
    if not sys.argv[1:]:
        RECORD.write_text("".join(f"{line(x)}\n" for x in CASES))
