"""The verdicts of mutation runs, kept in a file of JSON lines, and their table by part of the library."""

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from benchmarks.mutant_tests import part_of

NOTICED, DIED, MISSED = "noticed", "died", "missed"


class Verdict(NamedTuple):
    """How the tests ended under one fault; a line of a record."""

    fault: str  # `Drawn.identity`
    commit: str
    kind: str
    seed: int
    place: str  # file and line
    name: str  # of the fault
    verdict: str  # MISSED; NOTICED by a failing test; DIED: the tests crashed or ran too long
    by: str  # the failing test
    seconds: float  # of the processor

    @property
    def part(self) -> str:
        """The part of the library that the fault was in."""
        return part_of(self.place.split(":")[0])


def read_record(file: Path | None) -> list[Verdict]:
    """Return the verdicts of a file; none if it does not exist."""
    if file is None or not file.exists():
        return []
    return [Verdict(**json.loads(line)) for line in file.read_text().splitlines()]


def append_verdict(file: Path | None, verdict: Verdict) -> None:
    """Write a line at the end of a record."""
    if file is not None:
        with file.open("a") as lines:
            lines.write(json.dumps(verdict._asdict()) + "\n")


def table_of(verdicts: list[Verdict]) -> str:
    """Return a Markdown table: noticed of all faults, by part and kind."""
    counts = Counter((x.part, x.kind, x.verdict == MISSED) for x in verdicts)
    kinds = sorted({x.kind for x in verdicts})
    rows = [["part", *kinds]]
    for part in [*sorted({x.part for x in verdicts}), "all"]:
        parts = {x.part for x in verdicts} if part == "all" else {part}
        cells = []
        for kind in kinds:
            noticed, missed = (sum(counts[x, kind, is_missed] for x in parts) for is_missed in (False, True))
            cells.append(share(noticed, noticed + missed))
        rows.append([part, *cells])
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def share(noticed: int, count: int) -> str:
    return f"{noticed} of {count}, {noticed / count:.0%}" if count else "–"
