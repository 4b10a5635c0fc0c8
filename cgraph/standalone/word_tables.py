"""Tables of arguments of an export: words that are equal in all calls of a kernel are constants in its code."""

from collections.abc import Sequence
from itertools import accumulate, chain

from cgraph.kernels.families import signature_of
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.signature import NARROW, WordTable
from cgraph.standalone.program import WORD, ExportProgram, ExportRow, Word

LOW, HIGH = -(1 << 31), 1 << 31


def word_tables(programs: Sequence[ExportProgram], bits: int) -> tuple[WordTable | None, ...]:
    """Return the form of the tables of each kernel; None for one that no row calls.

    Parameters
        bits: of an address; with 32, words are narrow where all fit
    """
    rows: dict[int, list[ExportRow]] = {}
    for row in (row for x in programs for row in x.rows if row.kernel >= 0):
        rows.setdefault(row.kernel, []).append(row)
    return tuple(word_table(kernel, rows.get(i, []), bits) for i, kernel in enumerate(programs[0].kernels))


def word_table(kernel: Kernel, rows: Sequence[ExportRow], bits: int) -> WordTable | None:
    """Return the form of the tables of a kernel's calls; None without calls.

    Words before the first list that the kernel indexes are constants where they are equal; all later ones are stored.
    """
    if not rows:
        return None
    count = len(signature_of(kernel.family).unrolled_kinds(kernel.params))
    columns = list(zip(*(row.words[:count] for row in rows), strict=True))
    constants = {i: x[0] for i, x in enumerate(columns) if isinstance(x[0], int) and len(set(x)) == 1}
    others = [i for i in range(count) if i not in constants]
    stored = chain.from_iterable([row.words[i] for i in others] + list(row.words[count:]) for row in rows)
    width = NARROW if bits == 8 * NARROW and all(map(is_short, stored)) else WORD
    places = accumulate((width for _ in others), initial=0)
    return WordTable(constants, dict(zip(others, places)), width)


def is_short(word: Word) -> bool:
    """Return True for an address, and for an integer of 32 bits."""
    return not isinstance(word, int) or LOW <= word < HIGH


def stored_words(row: ExportRow, table: WordTable | None) -> list[tuple[int, Word]]:
    """Return the words that a row's table holds, with their first bytes."""
    if table is None:
        return [(WORD * i, word) for i, word in enumerate(row.words)]
    words = [row.words[i] for i in table.places] + list(row.words[table.first :])
    return [(table.width * i, word) for i, word in enumerate(words)]
