"""Tables of arguments of an export: words that are equal in all calls of a kernel are constants in its code."""

from collections.abc import Sequence
from itertools import accumulate

from cgraph.kernels.families import signature_of
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.signature import Words, WordTable
from cgraph.standalone.program import WORD, ExportProgram, ExportRow, Word

NARROW = 4  # bytes
LOW, HIGH = -(1 << 31), 1 << 31


def word_tables(programs: Sequence[ExportProgram], bits: int) -> tuple[WordTable | None, ...]:
    """Return the form of the tables of each kernel; None where the kernel reads a list of words.

    Parameters
        bits: of an address; with 32, words are narrow where all fit
    """
    rows: dict[int, list[ExportRow]] = {}
    for row in (row for x in programs for row in x.rows if row.kernel >= 0):
        rows.setdefault(row.kernel, []).append(row)
    return tuple(word_table(kernel, rows.get(i, []), bits) for i, kernel in enumerate(programs[0].kernels))


def word_table(kernel: Kernel, rows: Sequence[ExportRow], bits: int) -> WordTable | None:
    """Return the form of the tables of a kernel's calls."""
    kinds = list(signature_of(kernel.family).args.values())
    if not rows or any(isinstance(kind, Words) for kind in kinds):
        return None
    columns = list(zip(*(row.words for row in rows), strict=True))
    constants = {i: x[0] for i, x in enumerate(columns) if isinstance(x[0], int) and len(set(x)) == 1}
    others = [i for i in range(len(columns)) if i not in constants]
    is_narrow = bits == 32 and all(kinds[i] != "f8" and all(map(is_short, columns[i])) for i in others)
    width = NARROW if is_narrow else WORD
    places = accumulate((width for _ in others), initial=0)
    return WordTable(constants, dict(zip(others, places)), width)


def is_short(word: Word) -> bool:
    """Return True for an address, and for an integer of 32 bits."""
    return not isinstance(word, int) or LOW <= word < HIGH


def stored_words(row: ExportRow, table: WordTable | None) -> list[tuple[int, Word]]:
    """Return the words that a row's table holds, with their first bytes."""
    if table is None:
        return [(WORD * i, word) for i, word in enumerate(row.words)]
    return [(place, row.words[i]) for i, place in table.places.items()]
