"""When training stops before its last step."""

from collections.abc import Sequence

from cgraph import Record


class Stopping(Record):
    """Asked after every epoch, with the losses so far: validation losses if there are any, else means of epochs."""

    def stops(self, losses: Sequence[float]) -> bool:
        raise NotImplementedError


class Below(Stopping):
    """Stop when the loss is below `loss`."""

    loss: float

    def stops(self, losses: Sequence[float]) -> bool:
        return bool(losses) and losses[-1] < self.loss


class Early(Stopping):
    """Stop when the best loss is `patience` epochs old.

    Fields
        patience: epochs without a better loss
        least: by how much a loss must be below the best to be better
    """

    patience: int = 3
    least: float = 0.0

    def stops(self, losses: Sequence[float]) -> bool:
        best, age = float("inf"), 0
        for loss in losses:
            better = loss < best - self.least
            best, age = (loss, 0) if better else (best, age + 1)
        return age >= self.patience
