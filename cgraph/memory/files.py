"""Planning problems from CSV files, and plans as JSON.

Two headers are supported: usage records ``id,first_op,last_op,size_bytes,name`` (both steps included, the name
optional), and MiniMalloc's ``id,lower,upper,size`` (`upper` is the first step after the last use).

Source: the second is the input of https://github.com/google/minimalloc.
"""

import csv
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from cgraph.errors import FormatError
from cgraph.memory.bounds import lower_bound
from cgraph.memory.problem import MOST_BYTES, Plan, Problem, ProblemOperand, UsageInterval
from cgraph.record import Record

ROW = 400  # bytes in memory of an operand while all are checked
FREE, TIMES = 64 << 20, 2  # limit of the memory that reading may use: constant, and per byte of the file
LONGEST_ROW = 1 << 16  # maximum letters of a row


class Columns(Record):
    """Names of a file's columns; `after` is 1 if a column has the step after the last instead of the last."""

    first: str
    last: str
    nbytes: str
    after: int


LAYOUTS = (Columns("first_op", "last_op", "size_bytes", 0), Columns("lower", "upper", "size", 1))


def read_problem(path: str | Path, *, alignment: int = 1) -> Problem:
    """Return the operands of a CSV file, in its order; an operand without a name is called by its id.

    Raises
        FormatError: the file cannot be read, or a line of it is malformed; the message names file and line
    """
    rows = _rows(Path(path))
    line, header = next(rows, (1, []))
    if len(set(header)) != len(header):
        raise FormatError(f"{path}:{line}: two columns of {','.join(header)!r:.200} have one name. Rename one")
    most = _most_rows(path)
    columns = next((x for x in LAYOUTS if {"id", x.first, x.last, x.nbytes} <= set(header)), None)
    if columns is None:
        headers = " or ".join(f"id,{x.first},{x.last},{x.nbytes}" for x in LAYOUTS)
        raise FormatError(f"{path}:{line}: the header is {','.join(header)!r:.200}. Write {headers}")
    operands: list[ProblemOperand] = []
    line_of: dict[str, int] = {}
    for line, cells in rows:
        where = f"{path}:{line}"
        if len(operands) == most:
            raise FormatError(f"{where}: it has more than the {most:,} rows that are read of a file of its size")
        if len(cells) != len(header):
            raise FormatError(f"{where}: {len(cells)} values for {len(header)} columns. Write one for each")
        row = dict(zip(header, cells))
        if line_of.setdefault(row["id"], line) != line:
            raise FormatError(f"{where}: id {row['id']!r} is already in line {line_of[row['id']]}. Rename one")
        operands.append(_operand(row, columns, where))
    return Problem(tuple(operands), alignment)


def plan_text(problem: Problem, plan: Plan, regions: Sequence[dict[str, Any]] = (), **graph: Any) -> str:
    """Return offsets, sizes and usage intervals as JSON, with the arena's size, its lower bound, its regions, and more
    facts about the graph.
    """
    facts: dict[str, Any] = {
        "strategy": plan.strategy,
        "nbytes": plan.nbytes,
        "lower_bound": lower_bound(problem),
        "proved": plan.proved,
        "alignment": problem.alignment,
        "operands": [
            {"name": x.name, "first": x.interval.first, "last": x.interval.last, "nbytes": x.nbytes, "offset": at}
            for x, at in zip(problem.operands, plan.offsets)
        ],
    }
    if regions:
        facts["regions"] = list(regions)
    return json.dumps(facts | graph, indent=1) + "\n"


def write_plan(
    path: str | Path, problem: Problem, plan: Plan, regions: Sequence[dict[str, Any]] = (), **graph: Any
) -> None:
    """Write `plan_text`."""
    Path(path).write_text(plan_text(problem, plan, regions, **graph), encoding="utf-8")


def _most_rows(path: str | Path) -> int:
    """Return the number of rows that fit into the memory that reading a file may use."""
    return (FREE + TIMES * os.stat(path).st_size) // ROW


class _Lines:
    """The lines of a file. Changes: `number` counts them, and `letters` grows with each until the reader of a whole row
    resets it to 0.
    """

    def __init__(self, file: TextIO) -> None:
        self.file, self.number, self.letters = file, 0, 0

    def __iter__(self) -> Iterator[str]:
        while line := self.file.readline(LONGEST_ROW + 1):
            self.number += 1
            self.letters += len(line)
            if self.letters > LONGEST_ROW:
                raise csv.Error(f"a row has more than {LONGEST_ROW:,} letters")
            yield line


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of each line that is not blank."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = _Lines(file)
            reader = csv.reader(lines, strict=True)
            for cells in reader:
                lines.letters = 0
                if cells:
                    yield lines.number, [cell.strip() for cell in cells]
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not a text file: {error.reason} at byte {error.start}. Save it as UTF-8") from error
    except csv.Error as error:
        raise FormatError(f"{path}:{lines.number}: {error}") from error


def _operand(row: dict[str, str], columns: Columns, where: str) -> ProblemOperand:
    first = _number(row, columns.first, where)
    last = _number(row, columns.last, where) - columns.after
    if last < first:
        raise FormatError(
            f"{where}: {columns.last} {last + columns.after} leaves no step from {columns.first} {first} on. "
            f"Write a larger {columns.last}"
        )
    return ProblemOperand(_number(row, columns.nbytes, where), UsageInterval(first, last), row.get("name") or row["id"])


def _number(row: dict[str, str], column: str, where: str) -> int:
    """Return an integer of at least 0 that is small enough for offsets."""
    text = row[column]
    if not (text.isascii() and text.isdigit()):
        raise FormatError(f"{where}: {column} is {text!r}. Write an integer of at least 0")
    if len(text) > 19 or int(text) > MOST_BYTES:
        raise FormatError(f"{where}: {column} is {text[:24]}. Write at most {MOST_BYTES}")
    return int(text)
