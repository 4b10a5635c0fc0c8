"""Which weights of a program are read from a file, where in a ring each lies, and the rows that wait for them.

Pieces go through the ring in the order in which rows first read them, each behind the one before it, or at the
beginning where there is no room behind: a piece lies at one place for good. What a later piece lies over must not be
needed any more when that one is read.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from cgraph.engine.cpu.code import Code, Piece, Ring
from cgraph.errors import BudgetError, bytes_text
from cgraph.kernels.control import PASSED, WAIT
from cgraph.record import Record, replace
from cgraph.weight_file import pages, place_of


class Controlled(Record, eq=False):
    """Rows among which some wait for pieces.

    Fields
        table: as `ThreadPool.run` takes it
        numbers: for each row, which of the code's it is; of a control row, that of the row which follows
        orders: what the reader does meanwhile, see `cgraph.kernels.llvm.ring.read`
    """

    table: np.ndarray
    numbers: np.ndarray
    orders: np.ndarray


def ring_of(code: Code) -> Ring | None:
    """The ring of a program; None where no constant lies in a file for it.

    Raises
        BudgetError: the ring is smaller than what one kernel call reads
    """
    found = sorted(large_pieces(code), key=lambda p: p.first)
    if not found:
        return None
    file = place_of(code.constants[found[0].constant])[0]  # type: ignore[index]
    return Ring(file, pages(file.weights.ring), placed(in_turn(found), pages(file.weights.ring)))


def large_pieces(code: Code) -> Iterable[Piece]:
    """Constants in a file of weights, which no row reads that writes update edges."""
    writes = int(code.first_row[code.first_write])
    for relocation in code.relocations:
        if relocation.symbol.kind != "constant":
            continue
        array = code.constants[relocation.symbol.number]
        place = place_of(array) if isinstance(array, np.ndarray) else None
        if place is None:
            continue
        rows = np.searchsorted(code.table[:, 1], relocation.positions, "right") - 1
        if rows.max() < writes:
            number = relocation.symbol.number
            yield Piece(number, place[1], pages(array.nbytes), int(rows.min()), int(rows.max()))


def in_turn(pieces: Sequence[Piece]) -> list[Piece]:
    """Those that are read, used and not needed any more before the next one is; the others stay in memory."""
    found: list[Piece] = []
    for i, piece in enumerate(pieces):
        if i + 1 == len(pieces) or piece.last <= pieces[i + 1].first:
            found.append(piece)
    return found


def placed(pieces: Sequence[Piece], nbytes: int) -> tuple[Piece, ...]:
    """The pieces with their places in the ring."""
    found: list[Piece] = []
    at = 0
    for piece in pieces:
        at = at if at + piece.nbytes <= nbytes else 0
        found.append(replace(piece, at=at))
        together = [p for p in found if p.last >= piece.first]
        if at + piece.nbytes > nbytes or any(p.meets(found[-1]) for p in together[:-1]):
            least = max(sum(p.nbytes for p in pieces if p.first <= q.first <= p.last) for q in pieces)
            raise BudgetError(
                f"the ring of {bytes_text(nbytes)} does not hold the weights that one kernel call reads; "
                f"it needs {bytes_text(least)}"
            )
        at += piece.nbytes
    return tuple(found)


def controlled(table: np.ndarray, numbers: np.ndarray, pieces: Sequence[Piece], words: int, ring: int) -> Controlled:
    """Some rows of a program, with those that wait for the pieces that they read and say what they are done with.

    Parameters
        table: all rows
        numbers: those that are to run, in order
        words, ring: addresses of the words that are shared with the reader, and of the ring
    """
    edges = np.searchsorted(numbers, [(p.first, p.last + 1) for p in pieces]) if pieces else np.empty((0, 2), int)
    used = [(p, int(low), int(high)) for p, (low, high) in zip(pieces, edges) if low < high]
    orders, places, rows = [], [], []
    for i, (piece, low, high) in enumerate(used):
        freed = max((j + 1 for j, (other, _, _) in enumerate(used[:i]) if other.meets(piece)), default=0)
        orders.append((piece.offset, piece.nbytes, ring + piece.at, freed, i + 1))
        places += [low, high]
        rows += [(WAIT, words, i + 1, 1), (PASSED, words, i + 1, 1)]
    order = np.argsort(places, kind="stable")
    at = np.array(places, np.int64)[order]
    own = table[numbers]
    following = np.append(numbers, numbers[-1:])[at] if len(numbers) else at
    return Controlled(
        np.insert(own, at, np.array(rows, np.int64).reshape(-1, 4)[order], axis=0),
        np.insert(numbers, at, following),
        np.array(orders, np.int64).reshape(-1, 5),
    )
