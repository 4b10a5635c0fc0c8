"""Films as sequences of pictures: GIF, APNG and WebP by Pillow, others (H.264) by imageio-ffmpeg (extra `video`)."""

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cgraph import FormatError
from cgraph.formats.pictures import open_picture, rgb_of
from cgraph.system.extras import missing_package
from cgraph.terminal import write

PILLOW = (".gif", ".png", ".apng", ".webp")
FILMS = (*PILLOW, ".mp4", ".mov", ".mkv", ".avi", ".webm")
DEMUXERS = "mov,mp4,matroska,webm,avi"
"""Formats that ffmpeg may read: it would also accept playlists, which name other files and addresses."""


class Film(NamedTuple):
    """A film: frames uint8 ``[h, w, 3]``.

    Fields
        length: approximate number of frames
        rate: frames per second
        frames: iterator over the frames
    """

    length: int
    rate: float
    frames: Iterator[np.ndarray]


def read_film(path: Path) -> Film:
    """Read the frames of a file. FormatError when it is not a readable film."""
    if path.suffix.lower() in PILLOW:
        return pillow_film(path)
    try:
        return ffmpeg_film(path)
    except (OSError, RuntimeError, StopIteration) as error:
        raise FormatError(
            f"{path} is not a film that ffmpeg reads: {error}. Convert it to one of {', '.join(FILMS)}."
        ) from error


def is_film(path: Path) -> bool:
    """Return True if a file has several frames or the ending of a film."""
    if path.suffix.lower() not in PILLOW:
        return path.suffix.lower() in FILMS
    with open_picture(path) as image:
        return getattr(image, "n_frames", 1) > 1


def pillow_film(path: Path) -> Film:
    """Read a film with Pillow."""
    with open_picture(path) as image:
        image.load()  # before it, Pillow knows no duration of a WebP file
        count, milliseconds = getattr(image, "n_frames", 1), image.info.get("duration") or 100

    def frames() -> Iterator[np.ndarray]:
        with open_picture(path) as image:
            for i in range(count):
                image.seek(i)
                yield np.asarray(rgb_of(image))

    return Film(count, 1000 / milliseconds, frames())


def ffmpeg_film(path: Path) -> Film:
    """Read a film with ffmpeg."""
    try:
        from imageio_ffmpeg import read_frames
    except ImportError:
        raise missing_package("imageio-ffmpeg", "films") from None
    reader = read_frames(
        f"file:{path}", input_params=["-protocol_whitelist", "file,pipe", "-format_whitelist", DEMUXERS]
    )
    facts = next(reader)
    columns, rows = facts["size"]
    frames = (np.frombuffer(frame, np.uint8).reshape(rows, columns, 3) for frame in reader)
    return Film(round(facts["fps"] * facts["duration"]), facts["fps"], frames)


def count_frames(film: Film, name: str) -> Iterator[np.ndarray]:
    """Yield the frames, with progress and frames per second on the error stream; off a terminal only at the end."""
    start, done = time.perf_counter(), 0
    for done, frame in enumerate(film.frames, 1):
        yield frame
        if sys.stderr.isatty():
            write(f"{name}: frame {done} of {film.length}", sys.stderr, before="\r")
    rate = done / (time.perf_counter() - start)
    write(f"{name}: {done} frames, {rate:.1f} a second\n", sys.stderr, before="\r")


def write_film(path: Path, rate: float, images: Iterable[Any]) -> None:
    """Write Pillow images as a film, in the format of the file's ending."""
    if path.suffix.lower() in PILLOW:
        first, *rest = list(images)
        first.save(path, save_all=True, append_images=rest, duration=round(1000 / rate), loop=0)
        return
    try:
        from imageio_ffmpeg import write_frames
    except ImportError:
        raise missing_package("imageio-ffmpeg", "films") from None
    writer = None
    try:
        for image in images:
            if writer is None:
                writer = write_frames(str(path), image.size, fps=rate, macro_block_size=2)
                writer.send(None)
            writer.send(np.ascontiguousarray(np.asarray(image)))
    finally:
        if writer is not None:
            writer.close()
