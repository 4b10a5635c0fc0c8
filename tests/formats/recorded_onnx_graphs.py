"""What reading an ONNX operator costs, which ops its graphs have, and what the reader answers if it refuses one.

Operators are drawn as for `test_onnx_drawn.py`, then with an axis or a size that is known only at run time. Others are
those of the onnx package's own tests, of the version that is recorded. The last part is of files that are written.

``python -m tests.formats.recorded_onnx_graphs`` writes `recorded_onnx_graphs.txt` anew. Read its difference: a changed
cost is charged elsewhere, another op is chosen for an operator, or a text is read by people.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import cgraph as cg
from cgraph.errors import CgraphError, FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx import load, serialised
from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order
from tests.formats.test_onnx_drawn_open import opset_of, with_open_axis
from tests.ops.cases import CASES
from tests.support.onnx_cases import cases
from tests.support.onnx_draws.draws import DRAWN, drawn_model
from tests.support.recorded_texts import write_sections

RECORD = Path(__file__).with_name("recorded_onnx_graphs.txt")
SEEDS = range(8)
PACKAGE, WRITTEN = "the package's cases", "written"
OLDEST = 9  # of opsets with Compress
spend = Allowance.spend


class Total:
    """Sums over models. Changes: each model that is read adds to them."""

    def __init__(self) -> None:
        self.models, self.elements = 0, 0
        self.costs: Counter[str] = Counter()
        self.ops: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()

    def add(self, raw: bytes) -> None:
        def charged(allowance: Allowance, what: str, nbytes: float = 0, work: float = 0, nodes: float = 0) -> None:
            if what != "its parsed form":
                self.costs.update(bytes=int(nbytes), work=int(work), nodes=int(nodes))
            spend(allowance, what, nbytes, work, nodes)

        self.models += 1
        try:
            with patch.object(Allowance, "spend", charged):
                found = load(raw)
        except CgraphError as error:
            self.refusals[f"{type(error).__name__}: {error}"] += 1
            return
        order = post_order(found.nodes)
        self.elements += sum(getattr(x, "size", 0) for x in order)  # of several results, their items
        self.ops.update(x.op.name for x in order)
        self.ops["checks"] += len(found.checks)

    def lines(self, name: str) -> Iterator[str]:
        costs = ", ".join(f"{count} {unit}" for unit, count in self.costs.items())
        ops = " ".join(f"{op}={count}" for op, count in sorted(self.ops.items()) if count)
        yield f"{name}: {self.models} models, {costs}, {self.elements} elements: {ops}"
        for text, count in sorted(self.refusals.items()):
            yield f"{name}, {count} times: {text}"


def with_open_operands(kind: str, seed: int) -> Iterator[bytes]:
    """The model with an axis of dynamic length, for each operand."""
    model = drawn_model(kind, seed)
    proto, rng = onnx.load_from_string(model.raw), np.random.default_rng(seed)
    for name, x in model.given.items():
        if x.ndim and opset_of(proto) >= OLDEST:
            yield with_open_axis(proto, name, x, rng, int(rng.integers(x.ndim)))[0]


def with_open_sizes(kind: str, seed: int) -> bytes:
    """The model with its short constants of integers as inputs."""
    proto = onnx.load_from_string(drawn_model(kind, seed).raw)
    for t in [t for t in proto.graph.initializer if t.data_type in (TensorProto.INT64, TensorProto.INT32)]:
        if len(t.dims) <= 1 and numpy_helper.to_array(t).size:
            proto.graph.initializer.remove(t)
            proto.graph.input.append(helper.make_tensor_value_info(t.name, t.data_type, t.dims))
    return proto.SerializeToString()


def package_facts() -> str:
    """The lines of the cases of the package, by the operator of their last node, after a line with its version."""
    totals: dict[str, Total] = {}
    for case in sorted(cases("node"), key=lambda case: case.name):
        proto = case.model()
        totals.setdefault(proto.graph.node[-1].op_type, Total()).add(proto.SerializeToString())
    lines = [line for name in sorted(totals) for line in totals[name].lines(name)]
    return "\n".join([onnx.__version__, *lines])


def written_facts() -> str:
    """For each op of the ops' cases: the kinds of the nodes that are written, their attributes, and what is stored."""
    totals: dict[str, Counter[str]] = {}
    for row in CASES:
        values = [draw.array(np.random.default_rng(0)) for draw in row.in_float32().draws]
        inputs = [cg.Var(x.shape, x.dtype, f"x{i}") for i, x in enumerate(values)]
        built = row.in_float32().build(*inputs)
        counts = totals.setdefault(row.op, Counter())
        try:
            graph = onnx.load_from_string(serialised(built if isinstance(built, Node) else list(built), inputs)).graph
        except FormatError:
            counts["refused"] += 1
            continue
        counts.update(node.op_type for node in graph.node)
        counts.update(f"{node.op_type}.{a.name}" for node in graph.node for a in node.attribute)
        counts.update(values=len(graph.initializer), elements=sum(int(np.prod(t.dims)) for t in graph.initializer))
    return "\n".join(f"{op}: " + " ".join(f"{k}={n}" for k, n in sorted(totals[op].items())) for op in sorted(totals))


def facts(kind: str) -> str:
    """The lines of one operator."""
    plain, axes, sizes = Total(), Total(), Total()
    for seed in SEEDS:
        plain.add(drawn_model(kind, seed).raw)
        for raw in with_open_operands(kind, seed):
            axes.add(raw)
        sizes.add(with_open_sizes(kind, seed))
    parts = {"fixed": plain, "an open axis": axes, "open integers": sizes}
    return "\n".join(line for name, total in parts.items() for line in total.lines(name))


if __name__ == "__main__":
    write_sections(
        RECORD, {kind: facts(kind) for kind in sorted(DRAWN)} | {PACKAGE: package_facts(), WRITTEN: written_facts()}
    )
