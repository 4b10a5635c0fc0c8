"""The order in which shards are added: a balanced binary tree, whichever member computes which shard.

Floating-point sums depend on their order. This order depends only on the number of shards: neighbours first, then
neighbours of these sums; the left one is always the left operand. A part is a whole subtree, identified by its first
shard and the number of shards.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from cgraph.errors import InputError

Part = tuple[int, int]
UNEVEN = 1.3  # if no member takes longer per shard than this multiple of the fastest, all get equally many


def check_shards(shards: int, rows: int) -> None:
    """Raise InputError unless there is a complete tree of equal shards."""
    if shards < 1 or shards & (shards - 1):
        raise InputError(
            f"{shards} shards; their number must be a power of two. Pass shards={1 << max(shards, 1).bit_length()}"
        )
    if rows % shards:
        raise InputError(
            f"a batch of {rows} samples cannot be cut into {shards} equal shards. "
            f"Choose a batch that is a multiple of {shards}"
        )


def add_neighbours(parts: Iterable[tuple[Part, np.ndarray]]) -> list[tuple[Part, np.ndarray]]:
    """Add neighbours of the tree as far as possible, into the left arrays, and return the parts in shard order."""
    stack: list[tuple[Part, np.ndarray]] = []
    for part, x in parts:
        stack.append((part, x))
        while len(stack) > 1 and are_neighbours(stack[-2][0], stack[-1][0]):
            _, right = stack.pop()
            (first, count), left = stack.pop()
            np.add(left, right, out=left)
            stack.append(((first, 2 * count), left))
    return stack


def parts_of(first: int, count: int) -> list[Part]:
    """Return the parts that remain when adjacent shards are added."""
    nothing = np.zeros(0, np.float32)
    return [part for part, _ in add_neighbours(((i, 1), nothing) for i in range(first, first + count))]


def are_neighbours(left: Part, right: Part) -> bool:
    """Return True if two parts are the halves of a larger one."""
    (first, count), (second, other) = left, right
    return count == other and first + count == second and first % (2 * count) == 0


def deal_shards(shards: int, seconds: Sequence[float]) -> list[int]:
    """Return the number of shards of each member, in order: at least one, fewer for slower members.

    Parameters
        seconds: time of a shard on each member, 0 if unknown; at most as many members as shards
    """
    members = len(seconds)
    even = [shards * (i + 1) // members - shards * i // members for i in range(members)]
    if min(seconds) <= 0 or max(seconds) <= UNEVEN * min(seconds):
        return even
    counts = [1] * members
    for _ in range(shards - members):
        counts[min(range(members), key=lambda i: (counts[i] + 1) * seconds[i])] += 1
    return counts
