"""Monitor: selects the best epoch by one figure of each epoch."""

from collections.abc import Sequence

from cgraph import InputError, Record

MODES = ("min", "max")


class Monitor(Record):
    """A figure by which epochs are compared. InputError when its direction is unknown.

    Fields
        metric: name in ``History.by_epoch()``; None for the validation loss, or without validation the training loss
        mode: "min" when lower is better, "max" when higher is; needed for any figure other than a loss
        least: minimum change that counts as better
    """

    metric: str | None = None
    mode: str | None = None
    least: float = 0.0

    def __post_init__(self) -> None:
        if self.mode is None and not self.is_loss:
            raise InputError(f'mode of {self.metric!r:.60} is unknown. Pass mode="max", or mode="min".')
        if self.mode not in (None, *MODES):
            raise InputError(f'mode is {self.mode!r:.60}. Pass "min" or "max".')

    @property
    def is_loss(self) -> bool:
        """True for a loss, whose mode is "min" by default."""
        return self.metric is None or self.metric.endswith("loss")

    def best(self, figures: Sequence[float]) -> int | None:
        """Return the position of the best figure, counted from 0; None when there is none. NaN is never the best."""
        return max((i for i, is_better in enumerate(self.improvements(figures)) if is_better), default=None)

    def improvements(self, figures: Sequence[float]) -> list[bool]:
        """Return for each figure whether it is better than all before it."""
        improvements, best = [], float("inf")
        for figure in figures:
            loss = -figure if self.mode == "max" else figure
            improvements.append(loss < best - self.least)
            best = loss if improvements[-1] else best
        return improvements
