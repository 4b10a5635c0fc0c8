"""safetensors and CSV files: samples, and changes of the header, of cells, of the order of rows."""

import io
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.fuzz.mutate import TEXTS, changed_json, changed_list, mutated, number
from cgraph.formats.safetensors import DTYPES, write_safetensors


def safetensors_samples() -> Sequence[bytes]:
    arrays = {
        "weights": np.arange(12, dtype="f4").reshape(3, 4), "flag": np.array([True, False]), "n": np.array(7),
        "empty": np.zeros((0, 5), "i2"), "half": np.array([1.5, -2.0], "f2"),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        write_safetensors(Path(folder) / "x", arrays, {"by": "fuzz"})
        whole = (Path(folder) / "x").read_bytes()
    entry = {"dtype": "BF16", "shape": [5], "data_offsets": [0, 10]}
    return [whole, packed({"a": entry}, bytes(10)), packed({}, b"")]


def packed(header: object, data: bytes, more: int = 0) -> bytes:
    text = json.dumps(header).encode("utf-8", "replace")
    return max(len(text) + more, 0).to_bytes(8, "little") + text + data


def safetensors_change(whole: bytes, rng: Random, samples: Sequence[bytes]) -> bytes:
    """Change the header's values, mostly with a correct length; shorten or extend the data."""
    length = int.from_bytes(whole[:8], "little")
    header, data = json.loads(whole[8 : 8 + length]), whole[8 + length :]
    for _ in range(rng.randint(1, 3)):
        kind = rng.random()
        if kind < 0.6:
            header = changed_json(header, rng)
        elif kind < 0.8 and isinstance(header, dict):
            shape = [number(rng) for _ in range(rng.randint(0, 4))]
            begin = rng.choice([0, len(data), rng.randint(0, 60)])
            offsets = [begin, begin + rng.choice([0, 8])]
            entry = {"dtype": rng.choice(list(DTYPES)), "shape": shape, "data_offsets": offsets}
            header = header | {rng.choice(["a", "b", *TEXTS]): entry}
        else:
            data = rng.choice([data[: len(data) // 2], data + bytes(rng.randint(1, 40)), mutated(data, rng)])
    found = packed(header, data, rng.choice([0] * 12 + [-1, 1, 8]))
    return found if rng.random() < 0.8 else mutated(found, rng)


def csv_samples() -> Sequence[bytes]:
    rng = Random(0)
    rows = [(i, first := rng.randint(0, 30), first + rng.randint(0, 9), rng.randint(0, 5000)) for i in range(12)]
    body = "".join(f"{','.join(map(str, row))}\n" for row in rows)
    named = "".join(f"{','.join(map(str, row))},value {row[0]}\n" for row in rows)
    later = "".join(f"{i},{a},{b + 1},{n}\n" for i, a, b, n in rows)
    return [
        f"id,first_op,last_op,size_bytes\n{body}".encode(),
        f"id,first_op,last_op,size_bytes,name\n{named}".encode(),
        f"id,lower,upper,size\n{later}".encode(),
    ]


def csv_change(whole: bytes, rng: Random, samples: Sequence[bytes]) -> bytes:
    """Change cells and rows."""
    rows = [line.split(",") for line in whole.decode().splitlines()]
    for _ in range(rng.randint(1, 4)):
        kind = rng.random()
        row = rng.choice(rows) if rows else []
        if kind < 0.5 and row:
            row[rng.randrange(len(row))] = rng.choice([str(number(rng)), rng.choice(TEXTS), '"', '"a,b"', "٣", " 7 "])
        elif kind < 0.7:
            rows = [[*x] for x in changed_list(rows, rng, lambda: [str(number(rng)) for _ in range(rng.randint(0, 6))])]
        elif kind < 0.85 and rows:
            at = rng.randrange(len(rows))
            rows[at] = changed_list(rows[at], rng, lambda: str(number(rng)))
        else:
            rows = [*rows, [*row]]
    text = io.StringIO()
    end = rng.choice(["\n", "\n", "\r\n", "\r", "\n\n"])
    text.write(end.join(",".join(row) for row in rows))
    return text.getvalue().encode("utf-8", "replace")
