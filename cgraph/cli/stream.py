"""``--stream FILE``: stream a model's weights from a file, which is written with a progress bar."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cgraph.errors import bytes_text
from cgraph.storage.weight_file import StreamedWeights
from cgraph.terminal import complain, visible


def add_stream(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names the file."""
    parser.add_argument(
        "--stream",
        type=Path,
        metavar="FILE",
        help="keep large weights in this file, which is written unless it holds them, and read them during the run "
        "through a ring of memory, which --budget counts; convolutions are computed directly",
    )


@contextmanager
def stream_options(path: Path | None) -> Iterator[dict[str, Any]]:
    """Yield options of `compile` for streamed weights, without Winograd filters, which are larger to read; none without
    a file.
    """
    if path is None:
        yield {}
        return
    with write_progress(path) as progress:
        yield {"weights": StreamedWeights(str(path), progress=progress), "winograd": False}


@contextmanager
def write_progress(path: Path) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of the bytes written and of all bytes: a rich bar, or one line at the end without rich."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
    except ImportError:
        yield lambda done, total: report_written(path, done, total)
        return
    columns = TextColumn("writing {task.description}", markup=False), BarColumn(), DownloadColumn(binary_units=True)
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: list[Any] = []

        def advance(done: int, total: int) -> None:
            if not tasks:
                tasks.append(bar.add_task(visible(str(path), ""), total=total))
            bar.update(tasks[0], completed=done)

        yield advance


def report_written(path: Path, done: int, total: int) -> None:
    """Print a line when the file is written."""
    if done == total:
        complain(f"{path}: {bytes_text(total)} written")
