"""Rules for early stopping."""

from collections.abc import Sequence

from cgraph import Record
from nn.monitor import Monitor


class Stopping(Record):
    """A rule for early stopping, called after every epoch.

    Its argument is the list of validation losses so far, or without validation the mean training loss of each epoch.
    """

    def stops(self, losses: Sequence[float]) -> bool:
        """Return True to stop."""
        raise NotImplementedError


class Below(Stopping):
    """Stop when the loss is below `loss`."""

    loss: float

    def stops(self, losses: Sequence[float]) -> bool:
        return bool(losses) and losses[-1] < self.loss


class Early(Stopping):
    """Stop when the best loss, or the best figure of another metric, is `patience` epochs old.

    Fields
        patience: number of epochs without a better figure
        least: minimum change of the figure that counts as better
        metric: name in ``History.by_epoch()``, such as "valid accuracy"; by default the validation loss, or without
            validation the training loss
        mode: "min" when lower is better, "max" when higher is; needed for any metric other than a loss
        restore: when training ends, give the model the weights of the best epoch; they take the bytes of a second copy.
            An error or interrupt leaves the weights of the last step

    Example
        nn.Early(patience=5, metric="valid accuracy", mode="max", restore=True)
    """

    patience: int = 3
    least: float = 0.0
    metric: str | None = None
    mode: str | None = None
    restore: bool = False

    def __post_init__(self) -> None:
        self.monitor()

    def monitor(self) -> Monitor:
        """Return the figure by which it compares epochs."""
        return Monitor(self.metric, self.mode, self.least)

    def stops(self, losses: Sequence[float]) -> bool:
        best = self.monitor().best(losses)
        return len(losses) - 1 - (-1 if best is None else best) >= self.patience
