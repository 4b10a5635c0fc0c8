"""TFLite files: networks of the tests, changed field by field as tables, then offset by offset as bytes.

A changed table is written again with correct offsets: other numbers, vectors, names, operators, repeated or shared
tables. A changed offset, vtable or length points anywhere, even back to itself.
"""

import copy
import struct
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np

from benchmarks.fuzz.mutate import TEXTS, mutated, number
from tests.support import tflite_byte_cases
from tests.support.tflite_cases import CASES, model_of
from tests.support.tflite_models import Table, written

Holder = tuple[Any, Any]  # a table or list, and the key that may be changed in it


@cache
def trees() -> dict[bytes, Table]:
    """Return each network unchanged, and with the values of its inputs stored in it."""
    found = {}
    for net, outputs, values in [*map(model_of, CASES), *map(tflite_byte_cases.model_of, tflite_byte_cases.CASES)]:
        found[net.bytes(*outputs)] = net.root(*outputs)
        for i, value in zip(net.inputs, values):
            net.buffers.append(Table({0: np.frombuffer(value.tobytes(), "uint8")}))
            net.tensors[i][2] = ("I", len(net.buffers) - 1)
        net.inputs = []
        found[net.bytes(*outputs)] = net.root(*outputs)
    return found


def samples() -> Sequence[bytes]:
    return list(trees())


def change(whole: bytes, rng: Random, samples: Sequence[bytes]) -> bytes:
    """Change fields of tables, then perhaps words of the file."""
    if rng.random() < 0.25:
        return redirected(whole, rng)
    tree = copy.deepcopy(trees()[whole])
    for _ in range(1 + int(rng.expovariate(0.8))):
        holder, key = rng.choice(list(places(tree)))
        changed(holder, key, rng)
    found = written(tree, rng.choice([b"TFL3"] * 30 + [b"TFL2"]))
    return found if rng.random() < 0.8 else redirected(found, rng) if rng.random() < 0.5 else mutated(found, rng)


def places(tree: Table) -> Iterator[Holder]:
    """Return every place in a tree that may be changed."""
    waiting: list[Any] = [tree]
    while waiting:
        at = waiting.pop()
        items = at.items() if isinstance(at, Table) else enumerate(at)
        for key, value in items:
            yield at, key
            if isinstance(value, Table | list):
                waiting.append(value)


def changed(holder: Any, key: Any, rng: Random) -> None:
    """Change one field or one table of a list: another value, none, repeated, another field's."""
    value, kind = holder[key], rng.random()
    if kind < 0.1:
        del holder[key]
    elif kind < 0.2 and isinstance(holder, list):
        holder[key:key] = [value] * rng.choice((1, 1, 3, 200))
    elif kind < 0.3:
        holder[rng.choice(list(holder) if isinstance(holder, Table) else range(len(holder)))] = value
    elif isinstance(value, np.ndarray):
        holder[key] = changed_vector(value, rng)
    elif isinstance(value, str):
        holder[key] = rng.choice([t for t in TEXTS if t.isprintable()]) * rng.choice((1, 1, 50))
    elif isinstance(value, tuple):
        holder[key] = (value[0], fitting(value[0], value[1], rng))
    elif value and rng.random() < 0.3:
        rng.shuffle(value) if isinstance(value, list) else value.pop(rng.choice(list(value)))


def fitting(kind: str, value: Any, rng: Random) -> Any:
    """Return a number that fits a kind of `struct`."""
    if kind == "f":
        return rng.choice([0.0, -1.0, float("nan"), float("inf"), 1e-40, 1e30, value + 1])
    made = rng.choice([number(rng), rng.randrange(12), int(value) + rng.choice((-1, 1))])
    bits = 8 * struct.calcsize("<" + kind)
    made %= 1 << bits
    return made - (1 << bits) if kind.islower() and made >> (bits - 1) else bool(made) if kind == "?" else made


def changed_vector(value: np.ndarray, rng: Random) -> np.ndarray:
    """Return a vector with an element changed, added or removed."""
    value, kind = value.copy(), rng.random()
    if kind < 0.6 and value.size:
        made = number(rng) if rng.random() < 0.4 else rng.randint(-3, 20)
        with np.errstate(over="ignore"):
            value[rng.randrange(value.size)] = np.array(made % 2**63).astype(value.dtype)
    elif kind < 0.8:
        value = np.concatenate([value, value[:1] if value.size else np.zeros(1, value.dtype)] * rng.choice((1, 1, 9)))
    else:
        value = value[: rng.randrange(value.size + 1)]
    return value


def redirected(whole: bytes, rng: Random) -> bytes:
    """Change words of the file: offsets, lengths and entries of vtables."""
    found = bytearray(whole)
    for _ in range(rng.randint(1, 3)):
        width = rng.choice((2, 4, 4))
        at = rng.randrange(max(min(len(found), 4000) // width, 1)) * width
        if at + width <= len(found):
            old = int.from_bytes(found[at : at + width], "little")
            new = rng.choice([number(rng), old + rng.choice((-8, -4, -2, 2, 4, 8)), -at, rng.randrange(len(found))])
            found[at : at + width] = (new % 256**width).to_bytes(width, "little")
    return bytes(found)
