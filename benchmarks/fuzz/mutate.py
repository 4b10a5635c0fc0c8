"""Mutations of bytes, texts and JSON that work for any format."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

NUMBERS = [0, 1, -1, 2, 3, 7, 8, 127, 128, 255, 256, 1000, 65535, 65536, 10**6, 2**31 - 1, 2**31, -(2**31), 2**32 - 1]
NUMBERS += [2**32, 2**40, 2**48, 2**62, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 10**18, 10**30]
TEXTS = ["", " ", "\0", "x", "nan", "inf", "-inf", "1e400", "é", "\ud800", "../..", "/", "a" * 300, "[", "{", "0x10"]


def number(rng: Random) -> int:
    """Return a number at which sizes often fail, or one next to it."""
    return rng.choice(NUMBERS) + (rng.randint(-2, 2) if rng.random() < 0.3 else 0)


def span(rng: Random, n: int) -> tuple[int, int]:
    """Return a range within n, more often a short one."""
    start = rng.randrange(n + 1)
    return start, min(start + int(rng.expovariate(1 / 12)) + 1, n)


def flip(data: bytearray, rng: Random) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def replace_byte(data: bytearray, rng: Random) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.randrange(256)


def replace_number(data: bytearray, rng: Random) -> None:
    """Replace an integer of 1 to 8 bytes, often at a multiple of its size."""
    width = rng.choice((1, 2, 4, 8))
    if len(data) >= width:
        at = rng.randrange(len(data) - width + 1)
        at -= at % width if rng.random() < 0.7 else 0
        data[at : at + width] = (number(rng) % 256**width).to_bytes(width, rng.choice(("little", "little", "big")))


def delete(data: bytearray, rng: Random) -> None:
    start, stop = span(rng, len(data))
    del data[start:stop]


def repeat(data: bytearray, rng: Random) -> None:
    start, stop = span(rng, len(data))
    data[stop:stop] = data[start:stop] * rng.choice((1, 1, 2, 20))


def insert(data: bytearray, rng: Random) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.randint(1, 12))


def move(data: bytearray, rng: Random) -> None:
    start, stop = span(rng, len(data))
    piece = data[start:stop]
    del data[start:stop]
    at = rng.randrange(len(data) + 1)
    data[at:at] = piece


def cut(data: bytearray, rng: Random) -> None:
    del data[rng.randrange(len(data) + 1) :]


CHANGES: Sequence[Callable[[bytearray, Random], None]] = (
    flip, flip, replace_byte, replace_byte, replace_number, replace_number, replace_number,
    delete, repeat, insert, move, cut,
)  # fmt: skip


def mutated(data: bytes, rng: Random) -> bytes:
    """Apply some changes, more often few."""
    found = bytearray(data)
    for _ in range(1 + int(rng.expovariate(0.7))):
        rng.choice(CHANGES)(found, rng)
    return bytes(found)


def changed_list(items: list, rng: Random, random_item: Callable[[], Any]) -> list:
    """Return a list with an item dropped, repeated, swapped, replaced or added."""
    items = list(items)
    kind = rng.randrange(5)
    at = rng.randrange(len(items)) if items else 0
    if kind == 0 and items:
        del items[at]
    elif kind == 1 and items:
        items[at:at] = [items[at]] * rng.choice((1, 1, 3, 50))
    elif kind == 2 and items:
        other = rng.randrange(len(items))
        items[at], items[other] = items[other], items[at]
    elif kind == 3 and items:
        items[at] = random_item()
    else:
        items.insert(at, random_item())
    return items


def changed_json(x: Any, rng: Random) -> Any:
    """Return a value with one place in it changed."""

    def random_value() -> Any:
        return rng.choice([number(rng), rng.random(), True, None, rng.choice(TEXTS), [], {}, [number(rng)], [[0]]])

    if rng.random() < 0.15:
        return random_value()
    if isinstance(x, dict) and x:
        key = rng.choice(list(x))
        if rng.random() < 0.15:
            return {k: v for k, v in x.items() if k != key} | (
                {rng.choice(TEXTS): x[key]} if rng.random() < 0.5 else {}
            )
        return x | {key: changed_json(x[key], rng)}
    if isinstance(x, list) and x:
        if rng.random() < 0.3:
            return changed_list(x, rng, random_value)
        at = rng.randrange(len(x))
        return [*x[:at], changed_json(x[at], rng), *x[at + 1 :]]
    if isinstance(x, int) and rng.random() < 0.5:
        return x + rng.randint(-2, 2)
    return random_value()
