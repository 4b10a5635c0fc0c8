"""Decoding of pictures: the only module that opens files with Pillow.

Pillow recognises a file by its contents, not by its name, and passes PostScript to another program. So only `FORMATS`
are tried, which Pillow decodes itself. Each of its errors becomes a FormatError that names the file.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from cgraph.errors import CgraphError, FormatError
from cgraph.system.extras import missing_package

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "WEBP")
ENDINGS = (".jpg", ".jpeg", ".png", ".apng", ".bmp", ".gif", ".webp")  # of their files
MOST_PIXELS = 1 << 28


@contextmanager
def open_picture(source: str | Path | IO[bytes], name: str = "") -> Iterator[Any]:
    """Open a picture, as a context manager of a ``PIL.Image.Image`` that the caller decodes.

    Parameters
        source: a path or an open file
        name: its name in errors, by default the path
    Raises
        FormatError: it is not a readable picture of one of `FORMATS`, is damaged, or has too many pixels
        UnavailableError: Pillow is not installed
    """
    try:
        from PIL import Image
    except ImportError:
        raise missing_package("Pillow", "pictures") from None
    try:
        with Image.open(source, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise FormatError(
                    f"{image.width} x {image.height} pixels are too many; at most {MOST_PIXELS} are read. Scale it down"
                )
            yield image
    except FormatError as error:
        raise FormatError(f"{name or source}: {error}") from None
    except CgraphError:
        raise
    except Exception as error:  # Pillow's decoders raise a dozen kinds
        raise FormatError(f"{name or source}: not a readable picture: {reason_of(error)}") from error


def read_rgb(source: str | Path | IO[bytes], name: str = "") -> Any:
    """Read a picture into memory as a ``PIL.Image.Image`` of three bands. FormatError as in `open_picture`."""
    with open_picture(source, name) as image:
        return image.convert("RGB")


def reason_of(error: Exception) -> str:
    """Return the message of Pillow or the system, without the file's name."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if type(error).__name__ == "UnidentifiedImageError":
        return f"it is none of {', '.join(FORMATS)}"
    return f"{type(error).__name__} {error}".rstrip()
