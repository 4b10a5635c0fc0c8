"""Pairs of workers that reach the client but not one another: one of each pair is left out for some time.

A worker that was stopped or died is missed as well, but once only: it is not ready afterwards, or it answers again.
Only a pair that fails in two rounds counts as unreachable.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from nn.parallel.messages import StepReport

ROUNDS = 2  # rounds in which a pair fails before one of the two is left out
PAUSE = 10  # how many times as long it is left out as a failed round takes


class UnreachablePairs:
    """Pairs of workers that did not reach one another. Mutable: with every round.

    Fields
        seconds: time for which one of a pair is left out
        rounds: number of rounds in which a pair failed since it last succeeded
        until: when a pair is tried again
    """

    def __init__(self, round_seconds: float) -> None:
        self.seconds = PAUSE * round_seconds
        self.rounds = Counter[frozenset[str]]()
        self.until: dict[frozenset[str], float] = {}

    def record(self, members: Sequence[str], reports: dict[str, StepReport], now: float) -> None:
        """Record which workers could not reach which in a failed step."""
        pairs = {frozenset((x, members[report.missing])) for x, report in reports.items() if report.missing >= 0}
        for pair in pairs:
            self.rounds[pair] += 1
            if self.rounds[pair] >= ROUNDS:
                self.until[pair] = now + self.seconds

    def forget(self, members: Iterable[str]) -> None:
        """Record that a round of these members succeeded."""
        everyone = frozenset(members)
        for pair in [x for x in self.rounds if x <= everyone]:
            del self.rounds[pair]
            self.until.pop(pair, None)

    def without(self, workers: Sequence[str], now: float) -> list[str]:
        """Return workers that reach one another: those in most pairs are left out, the last of several."""
        remaining = list(workers)
        while True:
            pairs = [x for x, until in self.until.items() if until > now and x <= {*remaining}]
            if not pairs:
                return remaining
            count = Counter(worker for pair in pairs for worker in pair)
            remaining.remove(max(remaining, key=lambda x: (count[x], x)))
