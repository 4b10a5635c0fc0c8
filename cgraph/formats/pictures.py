"""Decoding of pictures: the only module that opens files with Pillow.

Pillow recognises a file by its contents, not by its name, and passes PostScript to another program. So only `FORMATS`
are tried, which Pillow decodes itself. The memory of decoding is charged before anything is decoded. Each of Pillow's
errors becomes a FormatError that names the file.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from cgraph.errors import CgraphError, FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.jpeg_scans import spend_scans
from cgraph.system.extras import missing_package

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "WEBP")
ENDINGS = (".jpg", ".jpeg", ".png", ".apng", ".bmp", ".gif", ".webp")  # of their files
JPEG = ("JPEG", "MPO")
MOST_PIXELS = 1 << 28
# bytes of memory for each pixel, measured with Pillow 13: decoded, of modes; converted to RGB or grey; of decoders
DECODED, DECODED_OTHERS = {"1": 1, "L": 1, "P": 1, "I;16": 2}, 4
CONVERTED, COPIED = 4, 1
BUFFERS = {"WEBP": 12, "BMP": 2}
FILTER = 16  # for each row and column of a picture that is resized


@contextmanager
def open_picture(
    source: str | Path | IO[bytes], name: str = "", *, resized: tuple[int, int] | None = None
) -> Iterator[Any]:
    """Open a picture, as a context manager of a ``PIL.Image.Image`` that the caller decodes.

    Decoding it and converting it to RGB take at most twice its file and 64 MiB; an array of its pixels comes on top.

    Parameters
        source: a path or an open file
        name: its name in errors, by default the path
        resized: columns and rows that the caller resizes it to. A JPEG that would take too much memory is then
            decoded at a half, a quarter or an eighth of its size
    Raises
        FormatError: it is not a readable picture of one of `FORMATS`, is damaged, or would take too much memory or time
        UnavailableError: Pillow is not installed
    """
    try:
        from PIL import Image
    except ImportError:
        raise missing_package("Pillow", "pictures") from None
    try:
        allowance = Allowance(size_of(source))
        with Image.open(source, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise FormatError(
                    f"{image.width} x {image.height} pixels are too many; at most {MOST_PIXELS} are read. Scale it down"
                )
            spend_decoding(image, allowance, resized)
            yield image
    except FormatError as error:
        raise FormatError(f"{name or source}: {error}") from None
    except CgraphError:
        raise
    except Image.DecompressionBombError:
        most = 2 * (Image.MAX_IMAGE_PIXELS or 0)
        raise FormatError(f"{name or source}: Pillow reads at most {most} pixels, it has more. Scale it down") from None
    except Exception as error:  # Pillow's decoders raise a dozen kinds
        raise FormatError(
            f"{name or source}: not a readable picture: {reason_of(error)}. Save it as PNG or JPEG"
        ) from error


def size_of(source: str | Path | IO[bytes]) -> int:
    """Return the bytes of a file; an open one keeps its position."""
    if isinstance(source, str | Path):
        return os.stat(source).st_size
    at = source.tell()
    size = source.seek(0, os.SEEK_END)
    source.seek(at)
    return size


def spend_decoding(image: Any, allowance: Allowance, resized: tuple[int, int] | None) -> None:
    """Charge the memory and time of decoding an open picture; with `resized`, decode a large JPEG at a smaller size."""
    if image.format in JPEG:
        spend_scans(image, allowance)
        factor = next((f for f in (1, 2, 4) if decoding_nbytes(image, resized, f) <= allowance.nbytes), 8)
        if resized is not None and factor > 1:
            image.draft(None, (max(image.width // factor, 1), max(image.height // factor, 1)))
    pixels = f"decoding {image.width} x {image.height} pixels"
    allowance.spend(pixels, nbytes=decoding_nbytes(image, resized))


def decoding_nbytes(image: Any, resized: tuple[int, int] | None, factor: int = 1) -> float:
    """Return the bytes of decoding a picture at a fraction of its size, converting and resizing it."""
    each = DECODED.get(image.mode, DECODED_OTHERS) + BUFFERS.get(image.format, 0)
    each += COPIED if image.mode == "RGB" else CONVERTED
    between = 0 if resized is None else 4 * max(resized) * image.height / factor + FILTER * sum(image.size)
    return each * image.width * image.height / factor**2 + between


def read_rgb(source: str | Path | IO[bytes], name: str = "") -> Any:
    """Read a picture into memory as a ``PIL.Image.Image`` of three bands. FormatError as in `open_picture`."""
    with open_picture(source, name) as image:
        return rgb_of(image)


def rgb_of(image: Any) -> Any:
    """Return an open picture decoded and in three bands; one that has them already is not copied."""
    image.load()
    return image if image.mode == "RGB" else image.convert("RGB")


def reason_of(error: Exception) -> str:
    """Return the message of Pillow or the system, without the file's name."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if type(error).__name__ == "UnidentifiedImageError":
        return f"it is none of {', '.join(FORMATS)}"
    return f"{type(error).__name__} {error}".rstrip()
