"""A campaign: many mutated files, read one after another; each kind of trouble is reported once, with a small
example.
"""

import hashlib
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.fuzz.child import Child, Outcome
from benchmarks.fuzz.readers import READERS
from cgraph.record import Record

ATTEMPTS, SLOW_ATTEMPTS = 150, 10  # tries to make one file smaller
MOST_KINDS = 20  # kinds of trouble, after which the campaign ends


class Trouble(Record):
    """A file with a forbidden outcome.

    Fields
        index: number of the campaign's file that it came from
        contents: its bytes, minimised
    """

    index: int
    outcome: Outcome
    contents: bytes

    def written(self, folder: Path, reader: str) -> str:
        """Write the file; return one line with the outcome and the path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{reader}-{self.outcome.kind}-{hashlib.sha256(self.contents).hexdigest()[:12]}"
        path.write_bytes(self.contents)
        return f"{path} ({len(self.contents)} bytes, input {self.index}): {self.outcome.kind}: {self.outcome.text}"


@dataclass
class Campaign:
    """The outcomes so far. Changes: with every file."""

    reader: str
    kinds: Counter[str] = field(default_factory=Counter)
    troubles: list[Trouble] = field(default_factory=list)
    most_nbytes: int = 0
    most_seconds: float = 0.0
    seconds: float = 0.0

    @property
    def count(self) -> int:
        return sum(self.kinds.values())


def run(reader: str, seed: int, count: int | None, seconds: float | None) -> Campaign:
    """Read mutated files, `count` of them or for some seconds. The same seed gives the same files."""
    found, start, index = Campaign(reader), time.monotonic(), 0
    samples = READERS[reader].samples()
    with tempfile.TemporaryDirectory() as folder, Child(reader) as child:
        path = Path(folder) / "input"
        while (count is None or index < count) and (seconds is None or time.monotonic() - start < seconds):
            rng = Random(f"{reader} {seed} {index}")
            path.write_bytes(READERS[reader].mutated(rng.choice(samples), rng, samples))
            noted(found, index, child.outcome(path), path, child)
            index += 1
            if len(found.troubles) >= MOST_KINDS:
                break
    found.seconds = time.monotonic() - start
    return found


def noted(found: Campaign, index: int, outcome: Outcome, path: Path, child: Child) -> None:
    """Count one outcome; minimise an example of a new kind of trouble."""
    outcome = excused(found.reader, outcome, path)
    found.kinds[outcome.kind] += 1
    if not outcome.is_trouble:
        found.most_nbytes = max(found.most_nbytes, outcome.nbytes)
        found.most_seconds = max(found.most_seconds, outcome.seconds)
    elif all(kind_of(outcome) != kind_of(t.outcome) for t in found.troubles):
        contents = smaller(path.read_bytes(), outcome, path, child, found.reader)
        found.troubles.append(Trouble(index, outcome, contents))


def excused(reader: str, outcome: Outcome, path: Path) -> Outcome:
    """Return the outcome of a reader in a process of its own, for a file that crashes a library: ideally a refusal."""
    apart = READERS[reader].apart
    if apart is None or outcome.kind not in ("crash", "time", "memory"):
        return outcome
    with Child(apart) as other:
        second = other.outcome(path)
    return second if second.is_trouble else Outcome("contained", f"{outcome.text}; {second.text}", 0, 0.0)


def kind_of(outcome: Outcome) -> tuple[str, str]:
    """Return the kind of a trouble: the same error at the same place has one cause."""
    return outcome.kind, outcome.text.partition(": ")[0] if outcome.kind == "untyped" else ""


def smaller(contents: bytes, outcome: Outcome, path: Path, child: Child, reader: str) -> bytes:
    """Return the file with bytes removed as long as the kind of trouble stays the same."""
    left, attempts, size = contents, 0, max(len(contents) // 2, 1)
    most = SLOW_ATTEMPTS if outcome.kind == "time" else ATTEMPTS
    while size and attempts < most:
        at = 0
        while at < len(left) and attempts < most:
            path.write_bytes(left[:at] + left[at + size :])
            attempts += 1
            if kind_of(excused(reader, child.outcome(path), path)) == kind_of(outcome):
                left = left[:at] + left[at + size :]
            else:
                at += size
        size //= 2
    return left


def table(found: Campaign) -> str:
    """Return one row of the table in docs/fuzzing.md."""
    trouble = sum(n for kind, n in found.kinds.items() if kind not in ("model", "refused", "contained"))
    return (
        f"| {found.reader} | {found.count:,} | {found.kinds['model']:,} | {found.kinds['refused']:,} | "
        f"{found.kinds['contained']:,} | {trouble:,} | {found.most_nbytes / 2**20:.0f} | {found.most_seconds:.1f} | "
        f"{found.seconds / 60:.0f} |"
    )
