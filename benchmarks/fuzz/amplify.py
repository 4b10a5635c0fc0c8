"""Amplification: the cost of reading per byte of a file, as one construct of its format is repeated more and more
often.

Each construct of `benchmarks.fuzz.all_constructs` is written with more and more repetitions until the file has
`LARGEST` bytes. A child with limits reads each file; time and memory of larger files are compared with those of smaller
ones.
"""

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.fuzz.child import Child, Outcome
from cgraph.record import Record

LARGEST = 2 << 20  # bytes of a file
LAST, STEP = 4, 64  # times as many repetitions in the last file, and at most in one before
FIRST = 16  # repetitions of the first file
SHORTEST, NOTICEABLE = 0.1, 0.3  # seconds of the smaller and of the larger file; what takes less says nothing of growth
STEEP = 1.4  # order of growth from which a construct is flagged
GROWN = 2  # times as long a file must be for its order of growth: a number's last digit makes no file longer
BEYOND = 2  # times as many repetitions as the most that are read
HEAD = """| reader | construct | bytes | answer | seconds | MiB | µs/byte | bytes/byte | order of growth | |
|---|---|---:|---|---:|---:|---:|---:|---:|---|"""


class Construct(Record):
    """A construct that a format may repeat.

    Fields
        name: name of the construct
        write: returns a file with so many repetitions
        most: maximum number of repetitions, if it is limited
        is_refused_beyond: True if `most` repetitions are the most that are read: there time cannot grow further, and
            the file of `most` shows all of it. More are measured too, and must be refused
    """

    name: str
    write: Callable[[int], bytes]
    most: int = 1 << 40
    is_refused_beyond: bool = False


class Measurement(Record):
    """The cost of one file."""

    file_nbytes: int
    outcome: Outcome


class Row(Record):
    """The cost of a construct.

    Fields
        measurements: those of larger and larger files
        is_refused_beyond: the last file has more repetitions than are read
    """

    reader: str
    construct: str
    measurements: tuple[Measurement, ...]
    is_refused_beyond: bool = False

    @property
    def costliest(self) -> Measurement:
        """The file that took the most time."""
        return max(self.measurements, key=lambda m: (m.outcome.is_trouble, round(m.outcome.seconds, 1), m.file_nbytes))

    @property
    def nbytes(self) -> int:
        """The most memory that a file took."""
        return max(m.outcome.nbytes for m in self.measurements)

    @property
    def order(self) -> float | None:
        """The largest exponent of seconds over bytes between two files; None if all are too fast."""
        pairs = zip(self.measurements, self.measurements[1:])
        orders = [
            math.log(b.outcome.seconds / max(a.outcome.seconds, SHORTEST)) / math.log(b.file_nbytes / a.file_nbytes)
            for a, b in pairs
            if b.outcome.seconds > NOTICEABLE and b.file_nbytes >= GROWN * a.file_nbytes
        ]
        return max(orders, default=None)

    @property
    def flag(self) -> str:
        """The reason for a flag; empty if there is none."""
        if self.costliest.outcome.is_trouble:
            return f"{self.costliest.outcome.kind}: {self.costliest.outcome.text}"
        if self.is_refused_beyond:
            return "" if self.measurements[-1].outcome.kind == "refused" else "not refused"
        return "steep" if self.order is not None and self.order > STEEP else ""

    def text(self) -> str:
        """One row of the table."""
        m, order = self.costliest, self.order
        growth = "" if order is None else f"{order:.1f}"
        time = 1e6 * m.outcome.seconds / m.file_nbytes
        most = max(self.measurements, key=lambda m: m.outcome.nbytes)
        memory = most.outcome.nbytes / most.file_nbytes
        return (
            f"| {self.reader} | {self.construct} | {m.file_nbytes:,} | {m.outcome.kind} | {m.outcome.seconds:.1f} | "
            f"{self.nbytes / 2**20:.0f} | {time:,.2f} | {memory:,.0f} | {growth} | {self.flag} |"
        )


def measure_constructs(reader: str, constructs: Sequence[Construct], largest: int = LARGEST) -> Iterator[Row]:
    """Yield a row for each construct of a reader."""
    with tempfile.TemporaryDirectory() as folder, Child(reader) as child:
        path = Path(folder) / "input"
        for construct in constructs:
            rows = []
            for contents in growing_files(construct, largest):
                path.write_bytes(contents)
                if not rows:
                    child.outcome(path)  # imports at the first read do not count
                rows.append(Measurement(len(contents), child.outcome(path)))
                if rows[-1].outcome.is_trouble:
                    break
            yield Row(reader, construct.name, tuple(rows), construct.is_refused_beyond)


def growing_files(construct: Construct, largest: int) -> Iterator[bytes]:
    """Yield files with more and more repetitions, up to the first one with so many bytes."""
    count = FIRST
    while True:
        contents = construct.write(min(count, construct.most))
        yield contents
        if construct.is_refused_beyond:
            if count >= construct.most:
                yield construct.write(BEYOND * construct.most)
                return
            count *= STEP
            continue
        if len(contents) >= largest or count >= construct.most:
            return
        left = -(-largest // len(contents))
        count *= left if left <= LAST else min(max(left // LAST, 2), STEP)
