"""Small files that describe something huge: refused, within seconds and little memory, whichever way they take.

Each is read by a child with limits, so a fault costs this test alone.
"""

import io
import struct
import zipfile
from collections.abc import Callable

import pytest

from benchmarks.fuzz.archives import packed, tensor, text
from benchmarks.fuzz.child import Child, Outcome
from benchmarks.fuzz.constructs import colliding_keys, colliding_memo, zipped_entries
from benchmarks.fuzz.constructs_of_graphs import added, deflate_bomb, keras, shared_scales

NET = b"[net]\nwidth=8\nheight=8\nchannels=3\n"
CELLS = b"[net]\nwidth=12000\nheight=12000\nchannels=6\n[yolo]\nnum=1\nclasses=1\nanchors=1,1\n"
DOUBLED = b"\x80\x02K\x01K\x02\x86q\x00" + b"h\x00h\x00\x86q\x00" * 40
"""A tuple of 2**40 numbers, in 42 instructions."""


def torch_file(instructions: bytes, storages: dict[str, bytes] | None = None) -> bytes:
    bodies = {f"a/data/{key}": body for key, body in (storages or {}).items()}
    return packed([("a/data.pkl", instructions), *bodies.items()])


def shared_storage(count: int) -> bytes:
    """Tensors of one element, all in one storage of 8 MB."""
    one = b"".join(text(f"{i:05d}") + tensor("0", 255, (1,), (1,)) for i in range(count))
    wide = one.replace(b"K\xfftQ", b"J" + struct.pack("<i", 2 << 20) + b"tQ")
    return torch_file(b"\x80\x02}(" + wide + b"u.", {"0": bytes(8 << 20)})


def nested_keys(depth: int) -> bytes:
    """Dictionaries within one another, under one key of 1 MB."""
    key = b"X" + struct.pack("<I", 1 << 20) + b"k" * (1 << 20)
    return torch_file(b"\x80\x02}" + key + b"q\x00" + b"}h\x00" * depth + b"}" + b"s" * (depth + 1) + b".")


def equal_hashes(count: int) -> bytes:
    """A dictionary whose keys have one hash: building it takes the square of their number."""
    step = (1 << 61) - 1
    keys = b"".join(b"\x8a\x0b" + (i * step).to_bytes(11, "little") + b"N" for i in range(count))
    return torch_file(b"\x80\x02}(" + keys + b"u.")


def deflated(size: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        head = b"{'descr': '|i1', 'fortran_order': False, 'shape': (%d,), }\n" % size
        archive.writestr("a.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + bytes(size))
    return out.getvalue()


def headed(header: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + data


FILES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "doubled tuple called": ("torch", lambda: torch_file(DOUBLED + b")R.")),
    "doubled tuple as a name": ("torch", lambda: torch_file(DOUBLED + b"h\x00\x93.")),
    "doubled tuple appended to": ("torch", lambda: torch_file(DOUBLED + b"K\x01a.")),
    "doubled tuple as a storage": ("torch", lambda: torch_file(DOUBLED + tensor("0", 1, (), ())[:-60] + b"h\x00QR.")),
    "doubled tuple as a list of storages": (
        "torch",
        lambda: DOUBLED + b"." + DOUBLED + b"." + DOUBLED + b"." + DOUBLED + b".",
    ),
    "many tensors of one storage": ("torch", lambda: shared_storage(300)),
    "nested keys": ("torch", lambda: nested_keys(3000)),
    "keys of one hash": ("torch", lambda: equal_hashes(100_000)),
    "a million dictionaries": ("torch", lambda: torch_file(b"\x80\x02" + b"}" * 1_000_000 + b".")),
    "a million marks": ("torch", lambda: torch_file(b"\x80\x02" + b"(" * 1_000_000 + b".")),
    "deep tuples": ("torch", lambda: torch_file(b"\x80\x02)" + b"\x85" * 400_000 + b".")),
    "a text longer than the file": ("torch", lambda: torch_file(b"\x80\x02\x8d" + struct.pack("<Q", 1 << 40) + b"k.")),
    "shape of a missing axis": (
        "safetensors",
        lambda: headed(b'{"a":{"dtype":"F64","shape":[0,4611686018427387904],"data_offsets":[0,0]}}'),
    ),
    "many small objects": (
        "safetensors",
        lambda: headed(b"{" + b",".join(b'"%x":{}' % i for i in range(500_000)) + b"}"),
    ),
    "many small lists": ("safetensors", lambda: headed(b'{"a":[' + b",".join([b"[]"] * 1_000_000) + b"]}")),
    "many numbers": ("safetensors", lambda: headed(b'{"a":[' + b",".join([b"300"] * 1_000_000) + b"]}")),
    "wide letters": ("safetensors", lambda: headed(b'{"a":"' + "\U0001f600".encode() + b"x" * 20_000_000 + b'"}')),
    "bfloat16": (
        "safetensors",
        lambda: headed(b'{"a":{"dtype":"BF16","shape":[25165824],"data_offsets":[0,50331648]}}', bytes(50331648)),
    ),
    "compressed zeros": ("npz", lambda: deflated(200 << 20)),
    "many filters": ("darknet", lambda: NET + b"[convolutional]\nfilters=2000000000\nsize=3\n"),
    "many drawn filters": ("darknet_drawn", lambda: NET + b"[convolutional]\nfilters=2000000000\nsize=3\n"),
    "wide padding": ("darknet", lambda: NET + b"[maxpool]\nsize=2000000000\nstride=1\npadding=2000000000\n"),
    "many groups": (
        "darknet",
        lambda: NET + b"[convolutional]\nfilters=2000000000\n[route]\nlayers=-1\ngroups=2000000000\n",
    ),
    "a large local filter": ("darknet", lambda: b"[net]\nwidth=99999\nheight=99999\n[local]\nsize=9999\n"),
    "many steps": ("darknet", lambda: b"[net]\ninputs=10\ntime_steps=1000000\n[rnn]\noutput=4\n"),
    "many options": ("darknet", lambda: NET + b"\n".join(b"o%d=" % i for i in range(1_000_000))),
    "a route of a million layers": ("darknet", lambda: NET + b"[dropout]\n[route]\nlayers=" + b"-1," * 1_000_000),
    "a repeated name behind many": (
        "safetensors",
        lambda: headed(("{" + ",".join(f'"{i:x}":0' for i in range(150_000)) + ',"z":0,"z":0}').encode()),
    ),
    "numbers of a memo that collide": ("torch", lambda: colliding_memo(80_000)),
    "keys that collide": ("torch", lambda: colliding_keys(80_000)),
    "extra fields": ("npz", lambda: zipped_entries(500, b"\1\0\0\0" * 16_383)),
    "extra fields before sizes of 64 bits": ("npz", lambda: zipped_entries(500, b"\2\0\0\0" * 16_383, 0xFFFFFFFF)),
    "shared scales": ("tflite", lambda: shared_scales(30_000, 200_000)),
    "a chunk that unpacks to 300 MB": ("h5", lambda: deflate_bomb(300, 1)),
    "a chunk that unpacks twice": ("h5", lambda: deflate_bomb(300, 2)),
    "a text as operands": ("h5", lambda: keras([added("a", "b" * 20_000), added("b", "c" * 20_000)])),
    "an operand many times": ("h5", lambda: keras([added("a", [["c"]] * 100_000)])),
    "operands of operands": ("h5", lambda: keras([added("a", [["b"]] * 20_000), added("b", [["c"]] * 20_000)])),
    "many layers": ("h5", lambda: keras([added("a", [["c"]]), *(added(f"{i}", [["c"]]) for i in range(30_000))])),
    "many cells": ("darknet_boxes", lambda: CELLS),
    "many layers of normalisation": (
        "darknet",
        lambda: NET + b"[convolutional]\nbatch_normalize=1\nactivation=mish\n" * 9_990,
    ),
    "wide states": ("darknet", lambda: b"[net]\ninputs=10\n" + b"[rnn]\nhidden=500000\n" * 500),
    "wide letters of a description": (
        "darknet",
        lambda: NET + b"[dropout]\nx=" + "\U0001f600".encode() + b"x" * 15_000_000,
    ),
    "many columns": ("csv", lambda: b"id,first_op,last_op,size_bytes\n" + b"1," * 8_000_000),
    "wide rows": ("csv", lambda: b"id,first_op,last_op,size_bytes\n" + b'"\n",1,' * 3_000_000),
    "many columns' names": ("csv", lambda: b"a," * 8_000_000),
    "huge steps": (
        "csv",
        lambda: b"id,first_op,last_op,size_bytes\n" + b"1,0,4611686018427387904,4611686018427387904\n" * 1,
    ),
}


@pytest.fixture(scope="module")
def children():
    """A child for each reader."""
    found: dict[str, Child] = {}
    yield lambda reader: found.setdefault(reader, Child(reader))
    for child in found.values():
        child.stop()


@pytest.mark.parametrize("name", FILES)
def test_a_small_file_costs_little(name, children, tmp_path):
    reader, make = FILES[name]
    path = tmp_path / "input"
    path.write_bytes(make())
    found: Outcome = children(reader).outcome(path)
    assert not found.is_trouble, found
