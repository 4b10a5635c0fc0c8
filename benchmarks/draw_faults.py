"""Which faults `benchmarks/mutants.py` puts into the library: drawn by a seed, or listed by hand."""

import ast
import hashlib
import random
import tomllib
from collections import defaultdict
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from benchmarks.faults import Fault, faults_of, function_around, function_spans
from benchmarks.meaning import meaning_faults_of
from benchmarks.mutant_tests import ROOT, part_of

MAKERS: dict[str, Callable[[str], list[Fault]]] = {"small": faults_of, "meaning": meaning_faults_of}
HAND_FAULTS = Path(__file__).with_name("hand_faults")
SHORTEST = 6  # lines of a function that can be drawn

Place = tuple[str, int, int]  # a file, and where in its text a fault starts and ends


class Drawn(NamedTuple):
    """A fault, the file it is put into, and that file's text."""

    file: str
    fault: Fault
    source: str

    def text(self) -> str:
        """Return the file's text with the fault."""
        return self.source[: self.fault.start] + self.fault.text + self.source[self.fault.end :]

    @property
    def identity(self) -> str:
        """A name of the fault and of the text that it changes."""
        return hashlib.sha256("\0".join((self.file, self.source, self.text())).encode()).hexdigest()[:12]


def drawn(sources: dict[str, str], count: int, seed: int, kind: str = "small") -> list[Drawn]:
    """Return some of the faults, no two in one place, in the order of the files."""
    by_place: dict[Place, list[Fault]] = defaultdict(list)
    for file, source in sources.items():
        for fault in MAKERS[kind](source):
            by_place[file, fault.start, fault.end].append(fault)
    rng = random.Random(seed)
    if kind == "meaning":
        faults = evenly(by_place, count, rng)
    else:
        places = rng.sample(sorted(by_place), min(count, len(by_place)))
        faults = [(place, rng.choice(by_place[place])) for place in places]
    return sorted(Drawn(place[0], fault, sources[place[0]]) for place, fault in faults)


def evenly(by_place: dict[Place, list[Fault]], count: int, rng: random.Random) -> list[tuple[Place, Fault]]:
    """Return as many faults of every name, while there are any; no two in one place."""
    by_name: dict[str, list[tuple[Place, Fault]]] = defaultdict(list)
    for place in sorted(by_place):
        for fault in by_place[place]:
            by_name[fault.name].append((place, fault))
    for some in by_name.values():
        rng.shuffle(some)
    selected: dict[Place, Fault] = {}
    while len(selected) < count and any(by_name.values()):
        for some in by_name.values():
            while some and some[-1][0] in selected:
                some.pop()
            if some and len(selected) < count:
                selected.update([some.pop()])
    return list(selected.items())


def draw_functions(sources: dict[str, str], count: int, seed: int) -> list[tuple[str, int]]:
    """Return files and lines of functions to write faults in by hand: of every part equally many, while it has any.

    Files that lie in no folder are one part.
    """
    by_part: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for file, source in sorted(sources.items()):
        spans = function_spans(ast.parse(source))
        part = "alone" if file == f"cgraph/{part_of(file)}.py" else part_of(file)
        by_part[part] += [(file, first) for first, last in spans if last - first + 1 >= SHORTEST]
    rng = random.Random(seed)
    for functions in by_part.values():
        rng.shuffle(functions)
    parts = rng.sample(sorted(by_part), len(by_part))
    rounds = (by_part[part][i] for i in range(count) for part in parts if i < len(by_part[part]))
    return sorted(islice(rounds, count))


def hand_faults(root: Path = ROOT, folder: Path = HAND_FAULTS) -> tuple[list[Drawn], list[str]]:
    """Return the faults that are listed by hand, and descriptions of those whose old text is not there exactly once."""
    faults, stale = [], []
    for table in sorted(folder.glob("*.toml")):
        for entry in tomllib.loads(table.read_text())["fault"]:
            source = (root / entry["file"]).read_text() if (root / entry["file"]).is_file() else ""
            if source.count(entry["old"]) == 1:
                faults.append(hand_fault(entry, source))
            else:
                stale.append(f"{entry['file']}: {entry['says']}")
    return faults, stale


def hand_fault(entry: dict[str, str], source: str) -> Drawn:
    """Return an entry of a table as a fault. The fault lies on the first line that differs."""
    old, new, start = entry["old"], entry["new"], source.index(entry["old"])
    same = next((i for i, (x, y) in enumerate(zip(old, new)) if x != y), min(len(old), len(new)))
    line = source.count("\n", 0, start + same) + 1
    function = function_around(function_spans(ast.parse(source)), line)
    return Drawn(entry["file"], Fault(line, function, start, start + len(old), new, entry["says"]), source)
