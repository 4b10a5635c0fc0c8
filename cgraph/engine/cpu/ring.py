"""Which weights of a program are read from a file, where in a ring each lies, and the rows that wait for them.

Pieces go through the ring in the order in which rows first read them, each behind the one before it, or at the
beginning where there is no room behind: a piece lies at one place for good. What a later piece lies over must not be
needed any more when that one is read.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from cgraph.engine.cpu.code import Code, Piece, Ring
from cgraph.errors import BudgetError, bytes_text
from cgraph.kernels.control import PASSED, WAIT
from cgraph.record import Record, replace
from cgraph.storage.weight_file import PAGE, pages, place_of


class ControlledTable(Record, eq=False):
    """Rows among which some wait for pieces.

    Fields
        table: as `ThreadPool.run` takes it
        numbers: for each row, which of the code's it is; of a control row, that of the row which follows
        orders: what the reader does meanwhile, see `cgraph.kernels.ring.emit.read`
    """

    table: np.ndarray
    numbers: np.ndarray
    orders: np.ndarray


def ring_of(code: Code) -> Ring | None:
    """The ring of a program; None where no constant lies in a file for it.

    One without pieces, where all such constants stay in memory: they come from the file all the same.

    Raises
        BudgetError: the ring is smaller than what one kernel call reads
    """
    places = (place_of(x) for x in code.constants if isinstance(x, np.ndarray))
    file = next((place[0] for place in places if place), None)
    if file is None:
        return None
    weights, nbytes = file.weights, pages(file.weights.ring or 0)
    pieces = place_pieces(pieces_of(code, place_in_file), nbytes)
    return Ring(weights.path, file.stamp, nbytes, pieces, file.sums if weights.verify else {})


def place_in_file(array: np.ndarray) -> int | None:
    """Where in a file of weights an array lies; None if it does not."""
    place = place_of(array)
    return place[1] if place else None


def pieces_of(code: Code, place: Callable[[np.ndarray], int | None]) -> list[Piece]:
    """The constants that are read from a file, in order, without their places in the ring.

    `place`: where in the file an array lies, or would lie; None if it stays in memory.
    """
    return sequential_pieces(sorted(large_pieces(code, place), key=lambda p: p.first))


def resident_constants(code: Code, pieces: Sequence[Piece] | None = None) -> list[np.ndarray]:
    """The constants that no ring takes; `pieces`: those that go through it, by default those of the code's own."""
    streamed_pieces = code.ring.pieces if pieces is None and code.ring else pieces or ()
    through = {p.constant for p in streamed_pieces}
    return [x for i, x in enumerate(code.constants) if i not in through and isinstance(x, np.ndarray)]


def large_pieces(code: Code, place: Callable[[np.ndarray], int | None]) -> Iterable[Piece]:
    """Constants in a file of weights, which no row reads that writes update edges."""
    writes = int(code.first_row[code.first_write])
    for relocation in code.relocations:
        if relocation.symbol.kind != "constant":
            continue
        array = code.constants[relocation.symbol.number]
        offset = place(array) if isinstance(array, np.ndarray) else None
        if offset is None:
            continue
        rows = np.searchsorted(code.table[:, 1], relocation.positions, "right") - 1
        if rows.max() < writes:
            number = relocation.symbol.number
            yield Piece(number, offset, pages(array.nbytes), int(rows.min()), int(rows.max()))


def sequential_pieces(pieces: Sequence[Piece]) -> list[Piece]:
    """Those that are read, used and not needed any more before the next one is; the others stay in memory."""
    sequence: list[Piece] = []
    for i, piece in enumerate(pieces):
        if i + 1 == len(pieces) or piece.last <= pieces[i + 1].first:
            sequence.append(piece)
    return sequence


def place_pieces(pieces: Sequence[Piece], nbytes: int) -> tuple[Piece, ...]:
    """The pieces with their places in the ring.

    Raises
        BudgetError: it is too small for them; which size is not, is said
    """
    placement = placement_in(pieces, nbytes)
    if placement is None:
        raise BudgetError(
            f"the ring of {bytes_text(nbytes)} does not hold the weights that one kernel call reads; "
            f"it needs {bytes_text(least_ring(pieces))}"
        )
    return placement


def least_ring(pieces: Sequence[Piece]) -> int:
    """Bytes of the smallest ring that holds what calls read together, where these pieces come to lie in it."""
    sums, together = [0], 0
    for i, piece in enumerate(pieces):
        while pieces[i - together].last < piece.first:
            together -= 1
        together += 1
        sums.append(sum(p.nbytes for p in pieces[i - together + 1 : i + 1]))
    nbytes = max(sums)
    while placement_in(pieces, nbytes) is None:  # two that are read together, and the second begins anew over the first
        nbytes += PAGE
    return nbytes


def placement_in(pieces: Sequence[Piece], nbytes: int) -> tuple[Piece, ...] | None:
    """The pieces with their places in a ring; None where two that are needed together would lie over one another."""
    placement: list[Piece] = []
    at = 0
    for piece in pieces:
        at = at if at + piece.nbytes <= nbytes else 0
        here = replace(piece, at=at)
        others = itertools.takewhile(lambda p: p.last >= piece.first, reversed(placement))  # noqa: B023 - used at once
        if at + piece.nbytes > nbytes or any(map(here.meets, others)):
            return None
        placement.append(here)
        at += piece.nbytes
    return tuple(placement)


def with_control_rows(
    table: np.ndarray, numbers: np.ndarray, pieces: Sequence[Piece], words: int, ring: int
) -> ControlledTable:
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
    return ControlledTable(
        np.insert(own, at, np.array(rows, np.int64).reshape(-1, 4)[order], axis=0),
        np.insert(numbers, at, following),
        np.array(orders, np.int64).reshape(-1, 5),
    )
