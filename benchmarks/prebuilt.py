"""Record the kernels of ONNX files and of Python programs in the lists of `cgraph.kernels.prebuilt`.

python -m benchmarks.prebuilt FILES...            add the kernels that this machine's target and AVX2 use
python -m benchmarks.prebuilt --complete          add variants of listed kernels, remove those that emitters refuse
python -m benchmarks.prebuilt --covered FILES...  print how many kernels of each file are in the list of this target

Each file runs once, on one thread and on two; a program runs on the target and the threads of this machine. Kernels for
tiles are recorded on any machine, since their functions do not run.
"""

import argparse
import runpy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.zoo.inputs import feeds_of
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import CgraphError
from cgraph.formats.onnx import load
from cgraph.kernels.host import TILES
from cgraph.kernels.isa.records import Target
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.llvm.compile import emit_kernel
from cgraph.kernels.move.calls import MOST_RUNS
from cgraph.kernels.prebuilt.kernel_list import FOLDER, kernel_of, line_of
from cgraph.kernels.store import KernelStore
from cgraph.kernels.target import host_target, on_tiles, target_named
from cgraph.record import replace

WITH_TILES = "cgraph.engine.cpu.engine.with_tiles"
ENGINES = (
    ("host", {"engine": CpuEngine("host", threads=1)}),
    ("host", {"engine": CpuEngine("host", threads=2)}),
    ("host", {"engine": CpuEngine("host", threads=1), "precision": "bf16"}),
    ("avx2", {"engine": CpuEngine("avx2", threads=1)}),
    ("tiles", {"engine": CpuEngine("host", threads=1, tiles=True)}),
    ("tiles", {"engine": CpuEngine("host", threads=1, tiles=True), "precision": "bf16"}),
)
"""A list, and options of a compile whose kernels belong into it."""


@contextmanager
def recorded_kernels() -> Iterator[dict[Kernel, None]]:
    """Collect the kernels that are loaded within this context."""
    kernels: dict[Kernel, None] = {}
    load_kernels = KernelStore.load

    def record(store: KernelStore, requests: Iterable[Kernel], target: Any) -> dict[Kernel, int]:
        requests = list(requests)
        kernels.update(dict.fromkeys(requests))
        return load_kernels(store, requests, target)

    with patch.object(KernelStore, "load", record), patch(WITH_TILES, with_features):
        yield kernels


def with_features(target: Target) -> Target:
    """Return a target with tiles, for which LLVM can compile on any x86-64 machine."""
    missing = [f"+{x}" for x in TILES if f"+{x}" not in target.features]
    return replace(on_tiles(target), features=",".join([target.features, *missing]))


def kernels_of(path: Path, options: dict[str, Any]) -> list[Kernel]:
    """Return the kernels that compiling a file and one run need; none of a file that is refused."""
    if path.suffix == ".py":
        return kernels_of_program(path) if options == ENGINES[0][1] else []
    with recorded_kernels() as kernels:
        try:
            feeds = feeds_of(path, seed=0)
            function = load(path, shapes={name: x.shape for name, x in feeds.items()}).compile(**options)
            if not options["engine"].tiles:
                function(*feeds.values())
        except (CgraphError, ValueError, KeyError) as error:
            print(f"{path.name}: {str(error)[:100]}")
            return []
    return list(kernels)


def kernels_of_program(path: Path) -> list[Kernel]:
    with recorded_kernels() as kernels, patch("sys.argv", [str(path)]):
        runpy.run_path(str(path), run_name="__main__")
    return list(kernels)


def list_path(name: str) -> Path:
    return FOLDER / f"{host_target().name if name == 'host' else name}.txt"


def lines_in(path: Path) -> set[str]:
    return set(path.read_text().splitlines()) if path.exists() else set()


def write_lines(path: Path, lines: set[str]) -> None:
    temporary = path.with_suffix(".part")
    temporary.write_text("".join(f"{line}\n" for line in sorted(lines)))
    temporary.replace(path)


def record(paths: Iterable[Path]) -> None:
    """Add the kernels of files to the lists."""
    for path in paths:
        for name, options in ENGINES:
            recorded = {line for kernel in kernels_of(path, options) if (line := line_of(kernel))}
            lines = lines_in(list_path(name))  # read now: another process may record, too
            new = recorded - lines
            if name == "tiles":
                new -= lines_in(list_path("host"))
            write_lines(list_path(name), lines | new)
            print(f"{path.name} {name}: {len(new)} new, {len(lines | new)} in all", flush=True)


def with_variants(listed: Iterable[Kernel]) -> set[Kernel]:
    """Return kernels with their close relatives.

    These are products whose left side is packed or not and that prefetch more or less, packing of any number of rows,
    attention with the usual masks, and alternating copies of any number of runs. Convolutions with other numbers of
    pixels, and pointwise operations with other kinds of operands, were tried: 300 more kernels had 18 of the 163 that
    40 networks lacked.
    """
    kernels = set(listed)
    complete = set(kernels)
    for kernel in kernels:
        if kernel.family == "gemm.tile" and kernel.params[4] == "f4":
            dtype, rows, vectors, _, b_dtype, _ = kernel.params
            complete |= {
                Kernel(kernel.family, (dtype, rows, vectors, is_packed, b_dtype, ahead))
                for is_packed in (False, True)
                for ahead in (0, 1, 2, 4, 8)
            }
        elif kernel.family.startswith("gemm.pack.along"):
            complete |= {Kernel(kernel.family, (kernel.params[0], rows)) for rows in range(1, 17)}
        elif kernel.family == "attention.bands":
            masks, rules = ("", "added"), product((False, True), (False,), (False, True))
            complete |= {
                Kernel(kernel.family, (*kernel.params[:4], *rest)) for rest in product(masks, (False,), list(rules))
            }
        elif kernel.family in ("move.zips", "move.unzips"):
            complete |= {
                Kernel(kernel.family, (kernel.params[0], n, kernel.params[2])) for n in range(2, MOST_RUNS + 1)
            }
    return complete


def complete_lists() -> None:
    """Add the variants of listed kernels to the lists. Remove kernels that emitters no longer accept."""
    targets = {"host": host_target(), "avx2": target_named("avx2"), "tiles": with_features(host_target())}
    for name, target in targets.items():
        path = list_path(name)
        accepted = {kernel for kernel in map(kernel_of, lines_in(path)) if is_accepted(kernel, target)}
        more = set() if name == "tiles" else with_variants(accepted) - accepted
        kernels = accepted | {kernel for kernel in more if is_accepted(kernel, target)}
        write_lines(path, {line for kernel in kernels if (line := line_of(kernel))})


def is_accepted(kernel: Kernel, target: Target) -> bool:
    try:
        return bool(emit_kernel(kernel, "symbol", target).text)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, ImportError, AssertionError) as error:
        print(f"{kernel}: {error}"[:150])
        return False


def show_covered(paths: Iterable[Path]) -> None:
    """Print the kernels of each file, and how many of them are listed."""
    listed = set(map(kernel_of, lines_in(list_path("host"))))
    for path in paths:
        kernels = kernels_of(path, ENGINES[0][1])
        print(f"{path.name}: {len(listed & set(kernels))} of {len(kernels)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--complete", action="store_true")
    parser.add_argument("--covered", action="store_true")
    args = parser.parse_args()
    if args.complete:
        complete_lists()
    (show_covered if args.covered else record)(args.files)


if __name__ == "__main__":
    main()
