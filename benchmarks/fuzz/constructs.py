"""Constructs that formats of arrays and descriptions may repeat: files with any number of repetitions, for
`amplify`.

Numbers in a file may collide in a dictionary: `probed` returns numbers that one look-up walks through.
"""

import json
import struct
import zipfile
import zlib
from collections.abc import Mapping

import numpy as np

from benchmarks.fuzz.amplify import Construct
from benchmarks.fuzz.archives import packed, tensor, text
from benchmarks.fuzz.media import coco, image, npy_samples, sound, thing

NET = b"[net]\nwidth=8\nheight=8\nchannels=6\n"
RECORDS = b"id,first_op,last_op,size_bytes\n"


def probed(count: int) -> list[int]:
    """Return the places that Python probes for the last number, in a dictionary of so many numbers."""
    size = 1 << max(count * 3 // 2, 8).bit_length()
    places: dict[int, None] = {}
    key = i = perturb = size * 3 + 7
    while len(places) < count:
        places[i & (size - 1)] = None
        perturb >>= 5
        i = (i * 5 + perturb + 1) & (size - 1)
    return [*places, key]


# -- safetensors ------------------------------------------------------------------------------------------------------


def headed(header: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + data


def entries(count: int) -> bytes:
    one = '{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    return headed(("{" + ",".join(f'"{i:x}":{one}' for i in range(count)) + "}").encode())


def repeated_name(count: int) -> bytes:
    return headed(("{" + ",".join(f'"{i:x}":0' for i in range(count)) + ',"z":0,"z":0}').encode())


def bfloats(count: int) -> bytes:
    header = f'{{"a":{{"dtype":"BF16","shape":[{count}],"data_offsets":[0,{2 * count}]}}}}'
    return headed(header.encode(), bytes(2 * count))


SAFETENSORS = (
    Construct("arrays", entries),
    Construct("a name twice behind many", repeated_name),
    Construct("empty lists", lambda k: headed(b'{"a":[' + b",".join([b"[]"] * k) + b"]}")),
    Construct("nested lists", lambda k: headed(b'{"a":' + b"[" * k + b"]" * k + b"}")),
    Construct("axes", lambda k: headed(b'{"a":{"dtype":"U8","shape":[' + b",".join([b"1"] * k) + b"]}}")),
    Construct("digits of a number", lambda k: headed(b'{"a":' + b"7" * k + b"}")),
    Construct("letters of a name", lambda k: headed(b'{"' + "\U0001f600".encode() + b"x" * k + b'":0}')),
    Construct("escapes of a name", lambda k: headed(b'{"' + b"\\ud83d\\ude00" * k + b'":0}')),
    Construct("numbers of bfloat16", bfloats),
)

# -- zip archives -----------------------------------------------------------------------------------------------------


def zipped_entries(count: int, extra: bytes, nbytes: int = 0, name: bytes = b"") -> bytes:
    """Return an archive of empty members, each with an extra field in the table."""
    body, table = bytearray(), bytearray()
    for i in range(count):
        own = name + b"%d.npy" % i
        head = (20, 0, 0, 0, 0, 0, 0, nbytes, len(own))
        table += struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, *head, len(extra), 0, 0, 0, 0, len(body)) + own + extra
        body += struct.pack("<4s5H3I2H", b"PK\3\4", *head, 0) + own
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, len(table), len(body), 0)
    return bytes(body + table) + end


def npy(header: str, data: bytes = b"") -> bytes:
    raw = header.encode() + b"\n"
    return b"\x93NUMPY\2\0" + struct.pack("<I", len(raw)) + raw + data


def bytes_array(count: int) -> bytes:
    return npy(f"{{'descr': '|i1', 'fortran_order': False, 'shape': ({count},), }}", bytes(count))


def shape_of(axes: str) -> bytes:
    return npy(f"{{'descr': '|i1', 'fortran_order': False, 'shape': ({axes}), }}")


ZEROS = zlib.compress(bytes(1 << 20), 9)
NPZ = (
    Construct("arrays", lambda k: packed([(f"{i}.npy", bytes_array(1)) for i in range(k)]), 30_000),
    Construct("extra fields of 64 KB", lambda k: zipped_entries(k, b"\1\0\0\0" * 16_383), 60_000),
    Construct("extra fields, sizes of 64 bits", lambda k: zipped_entries(k, b"\2\0\0\0" * 16_383, 0xFFFFFFFF), 60_000),
    Construct("letters of names", lambda k: zipped_entries(k, b"", name=b"\xff" * 60_000), 60_000),
    Construct("compressed zeros", lambda k: packed([("a.npy", bytes_array(k))], zipfile.ZIP_DEFLATED), 1 << 27),
    Construct("axes", lambda k: packed([("a.npy", shape_of("1, " * k))])),
    Construct("numbers that are not aligned", lambda k: packed([("a.npy", floats(k))])),
)


def floats(count: int) -> bytes:
    return npy(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({count},), }}", bytes(8 * count))


NPY = (
    Construct("numbers that are not aligned", floats),
    Construct("axes", lambda k: shape_of("1, " * k)),
    Construct("digits", lambda k: shape_of("1" * k)),
    Construct("letters of a header", lambda k: npy("{" * k)),
    Construct("bytes behind", lambda k: npy_samples()[0] + bytes(k)),
)

# -- torch ------------------------------------------------------------------------------------------------------------


def torch_file(instructions: bytes, storages: Mapping[str, bytes] | None = None) -> bytes:
    bodies = {f"a/data/{key}": body for key, body in (storages or {}).items()}
    return packed([("a/data.pkl", b"\x80\2" + instructions + b"."), *bodies.items()])


def colliding_memo(count: int) -> bytes:
    """Return numbers of a memo, the last of which is looked up as often as there are numbers."""
    numbers = [struct.pack("<I", n) for n in probed(count)]
    return torch_file(b"N" + b"".join(b"r" + n for n in numbers) + (b"j" + numbers[-1]) * count)


def colliding_keys(count: int) -> bytes:
    """Return keys of a dictionary, the last of which occurs as often as there are others."""
    numbers = [b"J" + struct.pack("<I", n) for n in probed(count)]
    return torch_file(b"}(" + b"N".join([*numbers, *numbers[-1:] * count]) + b"Nu")


def tensors(count: int) -> bytes:
    one = b"".join(text(f"{i}") + tensor("0", 255, (1,), (1,)) for i in range(count))
    return torch_file(b"}(" + one + b"u", {"0": bytes(4 * 255)})


def storages(count: int) -> bytes:
    one = b"".join(text(f"{i}") + tensor(f"{i}", 1, (1,), (1,)) for i in range(count))
    return torch_file(b"}(" + one + b"u", {f"{i}": bytes(4) for i in range(count)})


TORCH = (
    Construct("tensors of one storage", tensors),
    Construct("storages", storages, 30_000),
    Construct("memo numbers that collide", colliding_memo),
    Construct("keys that collide", colliding_keys),
    Construct("memo look-ups", lambda k: torch_file(b"Nq\0" + b"h\0" * k)),
    Construct("doubled tuples", lambda k: torch_file(b"K\1K\2\x86q\0" + b"h\0h\0\x86q\0" * k)),
    Construct("dictionaries", lambda k: torch_file(b"}" * k)),
    Construct("nested dictionaries", lambda k: torch_file(b"}" + (text("k") + b"}") * k + b"s" * k)),
    Construct("marks", lambda k: torch_file(b"(" * k)),
    Construct("texts", lambda k: torch_file(b"](" + text("ab") * k + b"e")),
    Construct("letters", lambda k: torch_file(text("x" * k))),
    Construct("digits of a number", lambda k: torch_file(b"\x8b" + struct.pack("<I", k) + b"\7" * k)),
)

# -- Darknet ----------------------------------------------------------------------------------------------------------


def sections(section: bytes) -> Construct:
    return Construct(f"[{section.partition(b']')[0].decode()[1:]}]", lambda k: NET + section * k)


BOXES = b"[yolo]\nnum=1\nclasses=1\nanchors=1,1\n"
DARKNET = (
    sections(b"[dropout]\n"),
    sections(b"[convolutional]\nbatch_normalize=1\nfilters=6\nactivation=mish\n"),
    sections(b"[connected]\nbatch_normalize=1\n"),
    sections(b"[gru]\noutput=500000\n"),
    sections(b"[yolo]\nnum=1\nclasses=1\n"),
    Construct("options", lambda k: NET + b"".join(b"o%d=\n" % i for i in range(k))),
    Construct("letters of an option", lambda k: NET + b"a=" + "\U0001f600".encode() + b"x" * k),
    Construct("lines without an end", lambda k: NET + b"\r" * k),
    Construct("a route's layers", lambda k: NET + b"[dropout]\n[route]\nlayers=" + b"0," * k),
    Construct("a shortcut's layers", lambda k: NET + b"[dropout]\n[shortcut]\nfrom=" + b"0," * k),
    Construct("unknown sections", lambda k: NET + b"".join(b"[%d]\n" % i for i in range(k))),
    Construct("steps", lambda k: b"[net]\ninputs=1\ntime_steps=%d\n[gru]\n" % k, 1_990, True),
    Construct("pixels of a filter", lambda k: b"[net]\nwidth=99999\nheight=99999\n[local]\nsize=%d\n" % k, 9999),
)
DARKNET_BOXES = (
    Construct("[yolo]", lambda k: NET + BOXES * k),
    Construct("cells", lambda k: b"[net]\nwidth=%d\nheight=%d\nchannels=6\n" % (k, k) + BOXES, 1 << 16),
    Construct("anchors", lambda k: NET + BOXES[:-1] + b",1,1" * k),
)
WEIGHTS = (Construct("numbers", lambda k: np.array([0, 2, 0, 0, 0], "<i4").tobytes() + bytes(4 * k)),)

# -- planning files, sounds, COCO -------------------------------------------------------------------------------------

CSV = (
    Construct("rows", lambda k: RECORDS + b"".join(b"%d,0,0,8\n" % i for i in range(k)), 2_000),  # plans are quadratic
    Construct("columns", lambda k: RECORDS + b"1," * k),
    Construct("names of columns", lambda k: b"a," * k),
    Construct("lines of a row", lambda k: RECORDS + b'"\n",1,' * k),
    Construct("letters", lambda k: RECORDS + b"a" * k),
    Construct("digits", lambda k: RECORDS + b"1,0,1," + b"9" * k + b"\n"),
    Construct("one id", lambda k: RECORDS + b"1,0,0,8\n" * k),
)


def riff(chunks: bytes) -> bytes:
    whole = sound(b"")
    return whole[:4] + struct.pack("<I", len(whole) + len(chunks) - 8) + whole[8:12] + chunks + whole[12:]


SOUND = (
    Construct("samples", lambda k: sound(bytes(k), 1, 1)),
    Construct("chunks", lambda k: riff(b"junk\0\0\0\0" * k)),
    Construct("channels", lambda k: sound(bytes(2 * k), k), 32_767),
)


def polygons(count: int) -> list[list[int]]:
    return [[0, 0, 2, 0, 2, 2]] * count


def square(size: int) -> list[list[int]]:
    return [[0, 0, size, 0, size, size, 0, size]]


def colliding_pictures(count: int) -> bytes:
    """Return pictures whose numbers collide in a dictionary, and as many objects in the last one."""
    numbers = probed(count)
    return coco([image(n) for n in numbers], [thing(numbers[-1], [])] * count)


def names(count: int) -> bytes:
    """Return the beginning of a JSON object."""
    return json.dumps({f"{i}": 0 for i in range(count)})[:-1].encode()


COCO = (
    Construct("pictures", lambda k: coco([image(i) for i in range(k)], [])),
    Construct("objects", lambda k: coco([image(1)], [thing(1, polygons(1))] * k)),
    Construct("polygons", lambda k: coco([image(1)], [thing(1, polygons(k))])),
    Construct("corners", lambda k: coco([image(1)], [thing(1, [[0, 0] * k])])),
    Construct("runs", lambda k: coco([image(1)], [thing(1, {"counts": [*[0] * k, 16]})])),
    Construct("packed runs", lambda k: coco([image(1)], [thing(1, {"counts": "?" * k})])),
    Construct("masks of a large picture", lambda k: coco([image(1, 5_000)], [thing(1, square(5_000))] * k), 20, True),
    Construct("polygons of a large picture", lambda k: coco([image(1, 5_000)], [thing(1, square(5_000) * k)])),
    Construct("corners in every row", lambda k: coco([image(1, 4_000)], [thing(1, [[0, 0, 4_000, 4_000] * k])])),
    Construct("edges along a row", lambda k: coco([image(1, 4_000)], [thing(1, [[0, 0, 4_000, 0] * k])])),
    Construct("runs of a large picture", lambda k: coco([image(1, k)], [thing(1, {"counts": [k * k]})]), 8_000, True),
    Construct("numbers of pictures that collide", colliding_pictures),
    Construct("a name twice behind many", lambda k: names(k) + b',"a":0,"a":0}'),
    Construct("empty lists", lambda k: b'{"images":[' + b",".join([b"[]"] * k) + b"]}"),
)
