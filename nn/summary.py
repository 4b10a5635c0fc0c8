"""summary: a table of shapes, parameters and multiply-adds of every layer of a model."""

from collections.abc import Sequence
from html import escape
from math import prod
from typing import Any

from cgraph import Node, Record, Var
from nn.compile import samples_of
from nn.layer import Layer, Sample, check_model
from nn.mode import Mode


class Text(str):
    """A table in a monospaced font, in a notebook too."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


class LayerRow(Record):
    """One use of a layer that has no layers of its own.

    Fields
        path, kind: path in the model, and class
        shapes: shapes of the results
        size: number of trained values
        macs: multiply-adds of convolutions and matrix products
    """

    path: str
    kind: str
    shapes: tuple[tuple[int, ...], ...]
    size: int
    macs: int


class SummaryMode(Mode):
    """A Mode for inference that records every layer. Changes: rows are added."""

    def __init__(self, model: Layer) -> None:
        super().__init__()
        self.paths = {id(layer): path for path, layer in model.layers().items()}
        self.rows: list[LayerRow] = []

    def on_build(self, layer: Any, operands: tuple[Node, ...], results: Any) -> None:
        if len(layer.layers()) > 1:
            return
        outputs = outputs_of(results)
        shapes = tuple(x.shape for x in outputs)
        path = self.paths.get(id(layer), "")
        self.rows.append(LayerRow(path, type(layer).__name__, shapes, layer.size, multiply_adds(outputs, operands)))


def rows_of(model: Layer, samples: Sequence[Sample] | None = None, n: int = 1) -> tuple[list[LayerRow], int]:
    """Return a row for every use of a layer, and the multiply-adds of the whole model for `n` samples."""
    check_model(model)
    samples = samples_of(model, samples)
    mode = SummaryMode(model)
    inputs = [Var((n, *sample.shape), sample.dtype) for sample in samples]
    result = model(*inputs, mode=mode)
    return mode.rows, multiply_adds(outputs_of(result), tuple(inputs))


def summary(model: Layer, samples: Sequence[Sample] | None = None, n: int = 1) -> Text:
    """Return a table of the model's layers and its totals.

    Parameters
        samples: one sample of each input; the model's own by default
        n: number of samples in a batch
    """
    rows, macs = rows_of(model, samples, n)
    head = ("layer", "kind", "result", "parameters", "multiply-adds")
    body = [(r.path, r.kind, ", ".join(text(s) for s in r.shapes), f"{r.size:,}", f"{r.macs:,}") for r in rows]
    untrained = sum(x.size for x in model.variables().values()) - model.size
    total = ("total", "", f"{untrained:,} values are not trained", f"{model.size:,}", f"{macs:,}")
    return Text(table([head, *body, total]))


def table(rows: list[tuple[str, ...]]) -> str:
    """Return rows as a text table; numbers are aligned to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(c.rjust(w) if i > 2 else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths))) for row in rows
    ]
    rule = "-" * len(lines[0])
    return "\n".join([lines[0], rule, *lines[1:-1], rule, lines[-1]])


def text(shape: tuple[int, ...]) -> str:
    """Return a shape as text, such as ``2×3``."""
    return "×".join(map(str, shape)) or "number"


def outputs_of(results: Any) -> tuple[Node, ...]:
    """Return the results of a layer as a tuple: one node, several, or several by name."""
    if isinstance(results, dict):
        return tuple(results.values())
    return results if isinstance(results, tuple) else (results,)


def multiply_adds(results: Sequence[Node], operands: Sequence[Node]) -> int:
    """Return the multiply-adds of all nodes between operands and results."""
    visited = set(operands)
    waiting = list(results)
    total = 0
    while waiting:
        node = waiting.pop()
        if node not in visited:
            visited.add(node)
            waiting.extend(node.operands)
            total += node_macs(node)
    return total


def node_macs(node: Node) -> int:
    """Return the multiply-adds of a convolution, a matrix product or the two of an attention; 0 for other ops."""
    kind = node.op.name
    if kind == "attention":
        (b, heads, queries, d), (keys, e) = node.operands[0].shape, node.operands[2].shape[2:]
        return b * heads * queries * keys * (d + e)
    if kind in ("conv1d", "conv2d", "conv3d"):
        return node.size * prod(node.operands[1].shape[1:])
    if kind == "conv_transpose":
        return node.operands[0].size * prod(node.operands[1].shape[1:])
    return node.size * node.operands[0].shape[-1] if kind == "matmul" else 0
