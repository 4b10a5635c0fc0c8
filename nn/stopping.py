"""Rules for early stopping."""

from collections.abc import Sequence

from cgraph import Record


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
    """Stop when the best loss is `patience` epochs old.

    Fields
        patience: number of epochs without a better loss
        least: minimum decrease of the loss that counts as better
    """

    patience: int = 3
    least: float = 0.0

    def stops(self, losses: Sequence[float]) -> bool:
        best, age = float("inf"), 0
        for loss in losses:
            better = loss < best - self.least
            best, age = (loss, 0) if better else (best, age + 1)
        return age >= self.patience
