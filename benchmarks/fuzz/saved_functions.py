"""Saved functions for the fuzzer: a folder as one file, and changes with matching checksums, so that they get
further.

The file has, for each file of the folder, a line ``name bytes`` and then its bytes. Functions are read but not run:
checksums detect damage, not malice.
"""

import json
from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks.fuzz.mutate import mutated
from cgraph.errors import FormatError
from cgraph.saved.layout import MANIFEST, sum_of, with_sum

SUMMED = 0.9  # share of changes whose checksums are made to match
OTHERS: tuple[Any, ...] = (None, True, -1, 0, 1, 7, 1 << 31, 1 << 62, 0.5, "", "x", "f4", [], [0], [[1]], {}, {"x": 1})


def read(path: Path) -> Any:
    from cgraph.saved.read import load_files

    files = {name: np.frombuffer(raw, np.uint8) for name, raw in unpacked(path.read_bytes()).items()}
    return load_files(Present(files), threads=1, verify=True, in_memory=False)


class Present(dict[str, np.ndarray]):
    """Files by name."""

    def __missing__(self, name: str) -> np.ndarray:
        raise FormatError(f"{name}: No such file")


def packed(files: dict[str, bytes]) -> bytes:
    return b"".join(f"{name} {len(raw)}\n".encode() + raw for name, raw in files.items())


def unpacked(raw: bytes) -> dict[str, bytes]:
    """Return the files; as many as are complete."""
    files: dict[str, bytes] = {}
    while raw:
        line, _, rest = raw.partition(b"\n")
        name, _, count = line.decode(errors="replace").partition(" ")
        if not (count.isascii() and count.isdigit() and len(count) < 12):
            break
        files[name], raw = rest[: int(count)], rest[int(count) :]
    return files


@cache
def samples() -> tuple[bytes, ...]:
    """Return a script with constants, a step with cells, a loop."""
    import cgraph as cg
    from cgraph.saved.write import bytes_of

    x, w, i = cg.Var((6, 5), name="x"), cg.Var((5,), name="w"), cg.Var((3,), "int64", name="i")
    w.assign(np.arange(5, dtype="float32"))
    y = cg.tanh(x @ np.ones((5, 7), "float32"))
    script = cg.compile([y, cg.take(y, i, 0), cg.Const(np.arange(4.0)), x], [x, i])
    step = cg.compile(cg.sum(x * w), [x], updates={w: w * 0.5 + cg.sum(x, 0)})
    loop = cg.compile(cg.scan(lambda h, row: (cg.tanh(h + row), h), w, x)[1], [x])
    return tuple(packed(bytes_of([f])) for f in (script, step, loop))


def change(sample: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """Change one file, or take it from another function; mostly with matching checksums."""
    files = unpacked(sample)
    entries = json.loads(files[MANIFEST])
    entries.pop("crc32")
    name = rng.choice(list(files))
    if name == MANIFEST:
        for _ in range(rng.randint(1, 3)):
            change_entry(entries, rng)
    elif rng.random() < 0.1:
        files[name] = unpacked(rng.choice(others)).get(name, b"")
    else:
        files[name] = mutated(files[name], rng)
    if rng.random() < SUMMED:
        if name != MANIFEST:
            entries["files"][name] = [len(files[name]), sum_of([files[name]])]
        files[MANIFEST] = with_sum(json.dumps(entries))
    return packed(files)


def change_entry(value: Any, rng: Random) -> None:
    """Replace or remove an entry of a manifest."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(value[key], dict | list) and value[key] and rng.random() < 0.85:
            value = value[key]
        elif rng.random() < 0.1:
            del value[key]
            return
        else:
            value[key] = deepcopy(rng.choice(OTHERS))
            return
