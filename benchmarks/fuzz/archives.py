"""npz and torch files: archives with changed members, and pickles changed by instruction."""

import io
import pickle
import pickletools
import struct
import zipfile
from collections.abc import Callable, Sequence
from random import Random

import numpy as np

from benchmarks.fuzz.mutate import changed_list, mutated, number

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
Members = list[tuple[str, bytes]]


def packed(members: Members, method: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, body in members:
            archive.writestr(zipfile.ZipInfo(name), body, method)
    return out.getvalue()


def members_of(whole: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist()]


def repacked(whole: bytes, rng: Random, change: Callable[[bytes, Random], bytes]) -> bytes:
    """Return the archive with some members changed inside, dropped, repeated or swapped; sometimes with bytes changed,
    too.
    """
    members = members_of(whole)
    for _ in range(rng.randint(1, 2)):
        if rng.random() < 0.8 and members:
            at = rng.randrange(len(members))
            members[at] = members[at][0], change(members[at][1], rng)
        else:
            members = changed_list(members, rng, lambda: (f"{number(rng)}.npy", rng.randbytes(20)))
    unique = dict(members)
    found = packed(list(unique.items()), rng.choice(METHODS))
    return found if rng.random() < 0.7 else mutated(found, rng)


# -- npz --------------------------------------------------------------------------------------------------------------


def npz_samples() -> Sequence[bytes]:
    arrays = {
        "a": np.arange(6, dtype="f4").reshape(2, 3), "b": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "c": np.zeros((0, 4), "i1"), "d": np.array(True), "e": np.array([1j, 2]), "f": np.arange(3, dtype=">i4"),
    }  # fmt: skip
    found = []
    for save in (np.savez, np.savez_compressed):
        out = io.BytesIO()
        save(out, **arrays)
        found.append(out.getvalue())
    return found


def npz_change(whole: bytes, rng: Random, samples: Sequence[bytes]) -> bytes:
    return repacked(whole, rng, changed_array)


def changed_array(body: bytes, rng: Random) -> bytes:
    """Return a member with another header: its dtype, order, shape, or any of its bytes; the data changed or not."""
    length = int.from_bytes(body[8:10], "little")
    text, data = body[10 : 10 + length].decode("latin1"), body[10 + length :]
    shape = ", ".join(str(number(rng)) for _ in range(rng.randint(0, 4)))
    options = [
        f"{{'descr': '{rng.choice(DTYPES)}', 'fortran_order': {rng.choice((True, False))}, 'shape': ({shape},), }}",
        text.replace("(", f"({number(rng)},"),
        text.replace("f4", rng.choice(DTYPES)),
        "(" * rng.choice((10, 1000, 9000)),
        mutated(text.encode("latin1"), rng).decode("latin1"),
        text,
    ]
    head = rng.choice(options).encode("latin1", "replace")
    head += b" " * rng.choice((0, 0, -(len(head) + 11) % 64)) + b"\n"
    data = rng.choice([data, data, data[:-1], data + b"\0", mutated(data, rng)])
    version = rng.choice((b"\1\0", b"\1\0", b"\2\0", b"\3\0"))
    return b"\x93NUMPY" + version + struct.pack("<H", len(head) % 65536) + head + data


DTYPES = ("<f4", ">f8", "|b1", "<i8", "|O", "<U3", "<c16", "|V8", "<M8[s]", "|S0", "<f2", "<f16", "2<i4", "")

# -- torch ------------------------------------------------------------------------------------------------------------

CODES = [b"}", b"]", b")", b"(", b"t", b"\x85", b"\x86", b"\x87", b"N", b"\x88", b"h\0", b"q\1", b"\x94", b"R", b"b"]
CODES += [b"s", b"u", b"a", b"e", b"Q", b"\x93", b"0", b"2", b".", b"I01\n", b"X\1\0\0\0k", b"ctorch\nFloatStorage\n"]
CODES += [b"ccollections\nOrderedDict\n", b"ctorch._utils\n_rebuild_tensor\n", b"cos\nsystem\n"]
CODES += [b"h\0h\0\x86q\0", b"}q\0h\0", b"}q\0h\0h\0s"]


def torch_samples() -> Sequence[bytes]:
    six = struct.pack("<6f", *range(6))
    tree = described(a=tensor("0", 6, (2, 3), (3, 1)), b=tensor("0", 6, (4,), (1,), 2), c=tensor("1", 2, (), ()))
    two = struct.pack("<2f", 5, 7)
    members = [("x/data.pkl", tree), ("x/byteorder", b"little"), ("x/data/0", six), ("x/data/1", two)]
    machine = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
    head = b"".join(pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, machine))
    tail = pickle.dumps(["0", "1"], 2) + struct.pack("<q", 6) + six + struct.pack("<q", 2) + two
    return [packed(members), head + tree + tail]


def text(s: str) -> bytes:
    return b"X" + struct.pack("<I", len(s)) + s.encode()


def numbers(ns: Sequence[int]) -> bytes:
    return b"(" + b"".join(b"\x8a\x08" + struct.pack("<q", n) for n in ns) + b"t"


def tensor(key: str, count: int, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> bytes:
    """Return instructions of one tensor, as torch writes them."""
    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text(key) + text("cpu") + b"K%ctQ" % count
    rest = b"K" + bytes([offset]) + numbers(shape) + numbers(strides) + b"\x89ccollections\nOrderedDict\n)R"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + rest + b"tR"


def described(**tensors: bytes) -> bytes:
    items = b"".join(text(name) + body for name, body in tensors.items())
    return b"\x80\2ccollections\nOrderedDict\n)R(" + items + b"u."


def torch_change(whole: bytes, rng: Random, samples: Sequence[bytes]) -> bytes:
    if whole.startswith(b"PK"):
        return repacked(whole, rng, changed_pickle)
    return changed_pickle(whole, rng)


def changed_pickle(body: bytes, rng: Random) -> bytes:
    """Return instructions dropped, repeated, swapped and added, and numbers replaced."""
    pieces = instructions(body)

    def random_instruction() -> bytes:
        n = number(rng)
        return rng.choice([rng.choice(CODES), b"\x8a\x08" + struct.pack("<q", (n + 2**63) % 2**64 - 2**63), b"K\7"])

    for _ in range(rng.randint(1, 4)):
        pieces = changed_list(pieces, rng, random_instruction)
    return b"".join(pieces)


def instructions(body: bytes) -> list[bytes]:
    """Return the bytes of each instruction of the pickles in `body`, one after another; the remainder is one piece."""
    stream, places = io.BytesIO(body), []
    try:
        while True:
            places += [at for _, _, at in pickletools.genops(stream) if at is not None]
    except ValueError:
        pass
    places = sorted({0, *places, min(stream.tell(), len(body)), len(body)})
    return [body[a:b] for a, b in zip(places, places[1:])]
