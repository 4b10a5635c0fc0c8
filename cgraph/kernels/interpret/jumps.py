"""Rows of a table that jump: the rounds of loops, and rows that run only if a byte or a count has some value.

The thread that owns the table runs them. A loop changes addresses among the arguments of the kernels inside it.
"""

from cgraph.kernels.control import BEGIN, BETWEEN, FIRST_MOVE, MOVE_WORDS, MOVES, ROUND, ROUNDS, SKIP
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Ptr, Val


def jump(k: Builder, entry: Ptr) -> Val:
    """Run a row that jumps; return the distance from it to the next row."""
    kind, args, far, distance = entry.load(0), k.pointer(entry.load(1), "i8"), entry.load(3), k.slot(1, "i8")
    with k.if_else((kind == SKIP) | (kind == BETWEEN)) as (skip, rounds):
        with skip, k.if_else(kind == SKIP) as (by_byte, by_count):
            with by_byte:
                byte = k.cast(k.pointer(args.load(0), "u1").load(), "i8")
                distance.value = k.select(byte == args.load(1), k.const(1, "i8"), far)
            with by_count:
                count = k.pointer(args.load(0), "i8").load()
                inside = (args.load(1) < count) & (count <= args.load(2))
                distance.value = k.select(inside, k.const(1, "i8"), far)
        with rounds:
            begins = kind == BEGIN
            words = k.pointer(k.select(begins, args.load(0), entry.load(1)), "i8")
            number = k.select(begins, k.const(0, "i8"), words.load(ROUND) + 1)
            words.store(number, ROUND)
            goes_on = number < words.load(ROUNDS)
            with k.if_(goes_on):
                move_addresses(k, words, number)
            first, later = k.select(goes_on, k.const(1, "i8"), far), k.select(goes_on, 1 - far, k.const(1, "i8"))
            distance.value = k.select(begins, first, later)
    return distance.value


def move_addresses(k: Builder, words: Ptr, number: Val) -> None:
    """Write the addresses of a round."""
    with k.loop(0, words.load(MOVES)) as i:
        place, first, stride = ((words + (i * MOVE_WORDS + FIRST_MOVE)).load(j) for j in range(MOVE_WORDS))
        k.pointer(place, "i8").store(first + number * stride)
