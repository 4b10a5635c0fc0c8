"""The sum of one array over all members, in the order of the tree of shards.

If the number of members is a power of two and all have equally many shards: halving and doubling. Partners at distance
1, 2, 4, … exchange halves of their sums, then wholes back; ``2 log W`` messages and ``2 n (W - 1) / W`` elements each
way (Rabenseifner 2004). It adds neighbours first, as the tree does. Otherwise segments: every member adds up one piece
of the array for all others; ``2 (W - 1)`` messages.
"""

from collections.abc import Sequence
from functools import partial
from itertools import accumulate

import numpy as np

from cgraph.dist.mesh import Mesh
from cgraph.dist.tree import Part, add_neighbours, parts_of

DOUBLING, SEGMENT, TOTAL = 1 << 16, 1 << 17, 1 << 18  # tags; the number of a level, part or segment is added

PIECE = 1 << 18  # elements of a frame while halves are added


def is_even(deal: Sequence[int]) -> bool:
    """Return True if the number of members is a power of two and all have equally many shards."""
    return len(deal) & (len(deal) - 1) == 0 and len(set(deal)) == 1


def peers_of(me: int, deal: Sequence[int]) -> list[int]:
    """Return the members with which a member exchanges data."""
    if is_even(deal):
        return [me ^ (1 << level) for level in range(len(deal).bit_length() - 1)]
    return [i for i in range(len(deal)) if i != me]


def sum_over_members(
    mesh: Mesh, step: int, deal: Sequence[int], parts: Sequence[tuple[Part, np.ndarray]]
) -> np.ndarray:
    """Return the sum over all shards.

    Parameters
        deal: number of shards of each member, in order
        parts: this member's parts, each ``[n]``, added as far as possible; changed
    Raises
        LostError: the round ended before the sum was complete
    """
    if is_even(deal):
        ((_, x),) = parts
        return sum_by_halving(mesh, step, x, len(deal))
    return sum_by_segments(mesh, step, deal, parts)


def sum_by_halving(mesh: Mesh, step: int, x: np.ndarray, members: int) -> np.ndarray:
    """Add ever smaller halves, then send the sums back (recursive halving and doubling)."""
    levels, spans, span = members.bit_length() - 1, [], slice(0, len(x))
    room = np.empty(len(x) - len(x) // 2, x.dtype)
    for level in range(levels):
        mate = mesh.me ^ (1 << level)
        middle = (span.start + span.stop) // 2
        low, high = slice(span.start, middle), slice(middle, span.stop)
        own, other = (low, high) if mesh.me < mate else (high, low)
        incoming = pieces_of(room[: own.stop - own.start])
        pairs = list(zip(pieces_of(x[own]), incoming))
        mesh.exchange(
            step, [(mate, level, piece) for piece in pieces_of(x[other])],
            [(mate, level, piece) for piece in incoming], partial(add_piece, pairs, mesh.me < mate),
        )  # fmt: skip
        spans.append(other)
        span = own
    for level in reversed(range(levels)):
        mate, other = mesh.me ^ (1 << level), spans.pop()
        mesh.exchange(step, [(mate, DOUBLING + level, x[span])], [(mate, DOUBLING + level, x[other])])
        span = slice(min(span.start, other.start), max(span.stop, other.stop))
    return x


def pieces_of(x: np.ndarray) -> list[np.ndarray]:
    """Return an array in pieces of `PIECE` elements, the last one smaller: one piece is added while others come."""
    return [x[i : i + PIECE] for i in range(0, len(x), PIECE)]


def add_piece(pairs: Sequence[tuple[np.ndarray, np.ndarray]], is_left: bool, index: int) -> None:
    """Add the piece that came to the own one, which is the left operand for the earlier member."""
    mine, came = pairs[index]
    np.add(mine, came, out=mine) if is_left else np.add(came, mine, out=mine)


def sum_by_segments(mesh: Mesh, step: int, deal: Sequence[int], parts: Sequence[tuple[Part, np.ndarray]]) -> np.ndarray:
    """Add one segment of all parts, and send its sum to all members."""
    members, n, others = len(deal), len(parts[0][1]), peers_of(mesh.me, deal)
    edges = [n * i // members for i in range(members + 1)]
    at = [slice(*pair) for pair in zip(edges, edges[1:])]
    firsts = [0, *accumulate(deal)]
    tree = {part: x[at[mesh.me]].copy() for part, x in parts}
    sent = [(i, SEGMENT + part[0], x[at[i]]) for part, x in parts for i in others]
    incoming = []
    for i in others:
        for part in parts_of(firsts[i], deal[i]):
            tree[part] = np.empty_like(parts[0][1][at[mesh.me]])
            incoming.append((i, SEGMENT + part[0], tree[part]))
    mesh.exchange(step, sent, incoming)
    ((_, total),) = add_neighbours(sorted(tree.items()))
    sums = np.empty_like(parts[0][1])
    sums[at[mesh.me]] = total
    mesh.exchange(step, [(i, TOTAL, total) for i in others], [(i, TOTAL, sums[at[i]]) for i in others])
    return sums
