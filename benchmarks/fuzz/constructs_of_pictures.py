"""Constructs that pictures may repeat: files with any number of repetitions, for `amplify`. All pixels are zero."""

import io
import struct
import zlib
from collections.abc import Sequence

from benchmarks.fuzz.amplify import Construct
from benchmarks.fuzz.constructs import ZEROS
from benchmarks.fuzz.media import picture_samples


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(rows: int, more: Sequence[bytes] = (), columns: int | None = None) -> bytes:
    """Return a picture, as wide as high unless told otherwise, with more chunks before its pixels."""
    columns = rows if columns is None else columns
    head = struct.pack(">2I5B", columns, rows, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(rows * (columns + 1)), 9)
    return b"\x89PNG\r\n\x1a\n" + b"".join([chunk(b"IHDR", head), *more, chunk(b"IDAT", pixels), chunk(b"IEND", b"")])


def profile(nbytes: int) -> bytes:
    """Return a picture with a colour profile of so many zeros."""
    return png(8, [chunk(b"iCCP", b"k\0\0" + zlib.compress(bytes(nbytes)))])


def gif(count: int) -> bytes:
    """Return pictures of one pixel, one after another."""
    frame = b",\0\0\0\0\1\0\1\0\0\2\2D\1\0"
    return b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff" + frame * count + b";"


def saved(kind: str, size: int, **options: bool) -> bytes:
    """Return a picture as wide as high."""
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (size, size)).save(out, kind, **options)
    return out.getvalue()


def scans(count: int) -> bytes:
    """Return a JPEG whose last scan comes so many times."""
    whole = saved("JPEG", 2_000, progressive=True)
    last = whole[whole.rindex(b"\xff\xda") : -2]
    return whole[:-2] + last * count + whole[-2:]


def bmp_in_runs(size: int) -> bytes:
    """Return a picture whose rows are a run of one pixel and the end of a line."""
    head = struct.pack("<IiiHHIIiiII", 40, size, size, 1, 8, 1, 0, 0, 0, 256, 0)
    return b"BM" + struct.pack("<IHHI", 0, 0, 0, 1078) + head + bytes(1024) + b"\1\0\0\0" * size + b"\0\1"


PICTURE = (
    Construct("rows and columns", png, 3_600, True),
    Construct("rows of one column", lambda k: png(k, columns=1), 1_200_000, True),
    Construct("columns of one row", lambda k: png(1, columns=k), 3_000_000, True),
    Construct("texts", lambda k: png(8, [chunk(b"tEXt", b"k%d\0v" % i) for i in range(k)])),
    Construct("texts that unpack", lambda k: png(8, [chunk(b"zTXt", b"k%d\0\0" % i + ZEROS) for i in range(k)]), 1000),
    Construct("a colour profile that unpacks", profile, 1 << 26),
    Construct("bytes behind", lambda k: picture_samples()[0] + bytes(k)),
    Construct("frames", gif),
    Construct("rows and columns of a JPEG", lambda k: saved("JPEG", k), 3_600),
    Construct("rows and columns of a progressive JPEG", lambda k: saved("JPEG", k, progressive=True), 2_900),
    Construct("scans of a JPEG", scans),
    Construct("rows and columns of a GIF", lambda k: saved("GIF", k), 3_600, True),
    Construct("rows and columns of a WebP", lambda k: saved("WEBP", k), 1_900, True),
    Construct("rows and columns of a BMP in runs", bmp_in_runs, 3_000, True),
)
