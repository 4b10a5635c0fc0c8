"""Compile the listed kernels into tables: ``python -m cgraph.kernels.build_tables [all]``.

The build hook of the package (``hatch_build.py``) calls `build_tables`, for this machine's targets or for all common
ones.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from cgraph.kernels.host import host, tiles_state
from cgraph.kernels.isa.architectures import architecture_of_machine
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.llvm.side_by_side import compile_side_by_side
from cgraph.kernels.prebuilt.kernel_list import listed
from cgraph.kernels.prebuilt.table import FOLDER, path_of, write_table
from cgraph.kernels.store import prebuilt_name
from cgraph.kernels.target import Target, host_target, on_tiles
from cgraph.system.machine import allowed_processors
from cgraph.terminal import say


def build_tables(is_for_all: bool) -> list[Path]:
    """Write the tables of this machine's target, or those of all common processors of its kind. Return the files.

    A target without a list has no table. Tables of an earlier build are removed.
    """
    targets = common_targets() if is_for_all else own_targets()
    paths = [build_table(x, kernels, path_of(x)) for x in dict.fromkeys(targets) if (kernels := listed(x))]
    for old in set(FOLDER.glob("*.kernels")) - set(paths):
        old.unlink()
    return paths


def own_targets() -> list[Target]:
    """Return the widest target of this machine, and the same with tiles if the processor has them."""
    own = host_target()
    return [own, on_tiles(own)] if tiles_state() else [own]


def common_targets() -> list[Target]:
    """Return the targets of common processors of this machine's architecture."""
    own = architecture_of_machine(host().triple)
    targets = [own.detect(x) for x in own.common] if own.detect else []
    return [*targets, *(on_tiles(x) for x in targets if "+amx-tile" in x.features)]


def build_table(target: Target, kernels: Iterable[Kernel], path: Path) -> Path:
    """Compile kernels for a target into a table, and return its file."""
    named = {prebuilt_name(kernel, target): kernel for kernel in kernels}
    code: dict[str, bytes] = {}

    def keep(symbol: str, raw: bytes, seconds: float) -> None:
        code[symbol] = raw

    compile_side_by_side(named, target, allowed_processors(), keep)
    write_table(path, host().version, code)
    return path


if __name__ == "__main__":
    for path in build_tables(sys.argv[1:] == ["all"]):
        say(str(path))
