"""Report of a quantised network: loss of accuracy, in total and by layer, and bytes saved."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from cgraph.errors import bytes_text
from cgraph.record import Record
from cgraph.terminal import visible

MOST_DECIBELS = 200.0  # decibels reported for equal outputs


class Likeness(Record):
    """Similarity of answers to those of the float network.

    Fields
        decibels: power of the outputs over that of the difference
        agreement: share of samples whose largest score has the same index
        right: share of samples whose largest score has the index of the label; None without labels
    """

    decibels: float
    agreement: float
    right: float | None = None


class Sensitivity(Record):
    """The cost of quantising only one layer.

    Fields
        layer: its name
        likeness: of the network's outputs
        skipped: True if it stays float in the end
    """

    layer: str
    likeness: Likeness
    skipped: bool = False


class Report(Record):
    """Fields
    float_right: `Likeness.right` of the float network
    likeness: of the quantised network, over all samples
    weights, plan: bytes of the weights and of the arena, as float and quantised
    layers: number of quantised layers
    skipped: names of the layers that stay float
    table: each layer quantised separately, the worst first; empty unless requested
    """

    float_right: float | None
    likeness: Likeness
    weights: tuple[int, int]
    plan: tuple[int, int]
    layers: int
    skipped: tuple[str, ...] = ()
    table: tuple[Sensitivity, ...] = ()

    def __str__(self) -> str:
        return visible("\n".join([*self.table_lines(), *self.lines()]))

    def facts(self) -> dict[str, Any]:
        """Return the fields as numbers and texts."""

        def plain(x: Any) -> Any:
            if isinstance(x, Record):
                return {name: plain(getattr(x, name)) for name in x._fields}
            return [plain(y) for y in x] if isinstance(x, tuple) else x

        return plain(self)

    def lines(self) -> list[str]:
        like = self.likeness
        left = f"; floats: {', '.join(self.skipped)}" if self.skipped else ""
        lines = [f"{self.layers} layers quantised{left}"]
        lines.append(f"outputs {like.decibels:.1f} dB, same answer for {like.agreement:.1%} of the samples")
        if like.right is not None:
            lines.append(f"right answers: floats {self.float_right:.1%}, quantised {like.right:.1%}")
        for name, (before, after) in (("weights", self.weights), ("plan", self.plan)):
            lines.append(f"{name}: {bytes_text(before)} -> {bytes_text(after)} ({after / max(before, 1):.3f})")
        return lines

    def table_lines(self) -> list[str]:
        if not self.table:
            return []
        left = {True: "  (stays float)", False: ""}
        rows = [(x.likeness, x.layer + left[x.skipped]) for x in self.table]
        lines = [f"{like.decibels:>7.1f}  {like.agreement:>7.1%}  {name}" for like, name in rows]
        return ["     dB     same  layer, quantised alone", *lines]


class Answers(Record, eq=False):
    """Outputs of the float network for some samples, as a reference.

    Fields
        outputs: outputs of each run
        labels: the index of each sample's right score; None without labels
    """

    outputs: tuple[list[np.ndarray], ...]
    labels: np.ndarray | None = None

    @property
    def right(self) -> float | None:
        """Share of correct answers of the float network."""
        return None if self.labels is None else float((places(self.outputs) == self.labels).mean())

    def like(self, run: Callable[..., list[np.ndarray]], samples: Iterable[tuple[np.ndarray, ...]]) -> Likeness:
        """Compare the answers of another function with these."""
        got = tuple(run(*arrays) for arrays in samples)
        pairs = [(a, b) for run, other in zip(self.outputs, got) for a, b in zip(run, other) if a.dtype.kind == "f"]
        power = sum(float(np.square(a, dtype=np.float64).sum()) for a, _ in pairs)
        noise = sum(float(np.square(a.astype(np.float64) - b).sum()) for a, b in pairs)
        decibels = 10 * np.log10(power / noise) if noise and power else MOST_DECIBELS
        answers = places(got)
        right = None if self.labels is None else float((answers == self.labels).mean())
        return Likeness(float(decibels), float((answers == places(self.outputs)).mean()), right)


def places(outputs: Sequence[list[np.ndarray]]) -> np.ndarray:
    """Return the index of the largest number of each sample's first output."""
    return np.concatenate([run[0].reshape(len(run[0]) if run[0].ndim else 1, -1).argmax(1) for run in outputs])
