"""Placement of streamed weights in a ring buffer, and the rows that wait for them.

Pieces enter the ring in the order in which rows first read them. Each lies after the previous one, or at the start of
the ring if it does not fit there, so a piece has one fixed offset. A piece may overwrite an earlier one only when no
later row reads the earlier one.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from cgraph.budget.refusal import ring_refusal
from cgraph.engine.cpu.code import Code, Piece, Ring
from cgraph.kernels.control import PASSED, WAIT
from cgraph.record import Record, replace
from cgraph.storage.weight_file import PAGE, pages, place_of


class ControlledTable(Record, eq=False):
    """A table of rows, some of which wait for pieces.

    Fields
        table: as `ThreadPool.run` takes it
        numbers: for each row its number in the code; for a control row, that of the next row
        orders: the reader's orders, see `cgraph.kernels.ring.emit.read`
    """

    table: np.ndarray
    numbers: np.ndarray
    orders: np.ndarray


def ring_of(code: Code) -> Ring | None:
    """Return the ring of a program; None if none of its constants lies in a weight file.

    A ring without pieces means that all such constants stay in memory; they are still read from the file.

    Raises
        BudgetError: the ring is smaller than the weights that one kernel call reads
    """
    places = (place_of(x) for x in code.constants if isinstance(x, np.ndarray))
    file = next((place[0] for place in places if place), None)
    if file is None:
        return None
    weights, nbytes = file.weights, pages(file.weights.ring_nbytes or 0)
    pieces = place_pieces(pieces_of(code, place_in_file), nbytes)
    return Ring(file.path, file.stamp, nbytes, pieces, file.sums if weights.verify else {})


def place_in_file(array: np.ndarray) -> int | None:
    """Return the offset of an array in its weight file, or None."""
    place = place_of(array)
    return place[1] if place else None


def pieces_of(code: Code, place: Callable[[np.ndarray], int | None]) -> list[Piece]:
    """Return the constants that are streamed from a file, in order, without offsets in the ring.

    `place` returns the offset of an array in the file, or None if the array stays in memory.
    """
    return sequential_pieces(sorted(large_pieces(code, place), key=lambda p: p.first))


def resident_constants(code: Code, pieces: Sequence[Piece] | None = None) -> list[np.ndarray]:
    """Return the constants that stay in memory. `pieces` are those in the ring, by default the code's own."""
    streamed_pieces = code.ring.pieces if pieces is None and code.ring else pieces or ()
    through = {p.constant for p in streamed_pieces}
    return [x for i, x in enumerate(code.constants) if i not in through and isinstance(x, np.ndarray)]


def large_pieces(code: Code, place: Callable[[np.ndarray], int | None]) -> Iterable[Piece]:
    """Yield the constants in a weight file that no update edge reads."""
    writes, spans = int(code.first_row[code.first_write]), jump_spans(code)
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
            first, last = around(spans, int(rows.min()), int(rows.max()))
            yield Piece(number, offset, pages(array.nbytes), first, last)


def jump_spans(code: Code) -> list[tuple[int, int]]:
    """Return the first and last rows between which rows jump, without spans inside others."""
    spans: list[tuple[int, int]] = []
    for first, last in sorted((min(row, to), max(row, to - 1)) for _, row, to in code.jumps()):
        if spans and first <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(last, spans[-1][1]))
        else:
            spans.append((first, last))
    return spans


def around(spans: Sequence[tuple[int, int]], first: int, last: int) -> tuple[int, int]:
    """Return rows moved out of loops: a weight that a loop reads stays in the ring for all of its rounds."""
    for low, high in spans:
        first = low if low <= first <= high else first
        last = high if low <= last <= high else last
    return first, last


def sequential_pieces(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces whose last reader comes before the next piece's first; the others stay in memory."""
    sequence: list[Piece] = []
    for i, piece in enumerate(pieces):
        if i + 1 == len(pieces) or piece.last <= pieces[i + 1].first:
            sequence.append(piece)
    return sequence


def place_pieces(pieces: Sequence[Piece], nbytes: int) -> tuple[Piece, ...]:
    """Return the pieces with their offsets in the ring.

    Raises
        BudgetError: the ring is too small; the message names the smallest size that works
    """
    placement = placement_in(pieces, nbytes)
    if placement is None:
        raise ring_refusal(nbytes, least_ring(pieces))
    return placement


def least_ring(pieces: Sequence[Piece]) -> int:
    """Return the bytes of the smallest ring that holds the weights that calls read together."""
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
    """Return the pieces with their offsets in a ring; None if two that are needed together would overlap."""
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
    """Return some rows of a program, with rows that wait for pieces and rows that release them.

    Parameters
        table: all rows
        numbers: the rows to run, in order
        words, ring: addresses of the words shared with the reader, and of the ring
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
