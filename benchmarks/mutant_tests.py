"""The table of tests that `benchmarks/mutants.py` runs for a module."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNELS = "tests/kernels"
BY_ROWS, SIZES = "tests/function/test_by_rows.py", "tests/function/test_cgraph_sizes.py"
FROM_DISK = ("tests/function/test_streamed_weights.py", "tests/function/test_streamed_changes.py")
RUNS = ("tests/function", "tests/memory/test_incremental.py", "tests/ops/test_index.py", "tests/ops/test_callback.py")
FILES = (
    "tests/saved/test_folder.py",
    f"{KERNELS}/test_store.py",
    f"{KERNELS}/test_cache.py",
    "tests/system/test_files.py",
)
RERUNS = ("tests/memory/test_incremental.py", "tests/rematerialise", "tests/passes/test_recompute_refusals.py")
BANDS = ("tests/budget", "tests/passes/test_stream_rows.py", "tests/passes/test_cut_patches.py", BY_ROWS)
# the tests of a file below cgraph, or in nn: those of the longest path of this table that contains it
TESTS: dict[str, tuple[str, ...]] = {
    "": ("tests/function", "tests/ops/test_cases.py"),
    "array_api": ("tests/array_api",),
    "autodiff": ("tests/autodiff",),
    "batching": ("tests/batching", "tests/jit/test_vectorise.py"),
    "budget": BANDS,
    "cli": ("tests/cli",),
    "dist": ("tests/dist",),
    "dtypes": ("tests/dtypes",),
    "engine/cpu": ("tests/engine", *RUNS),
    "engine/cpu/reader": FROM_DISK,
    "engine/cpu/recorder": ("tests/view/test_trace.py", "tests/view/test_clock.py"),
    "engine/cpu/ring": FROM_DISK,
    "engine/cpu/ring_timing": ("tests/function/test_streamed_weights.py", "tests/view", "tests/cli/test_stream.py"),
    "engine/cpu/streamed_rows": (BY_ROWS,),
    "engine/cpu/streamed_weights": FROM_DISK,
    "engine/cuda": ("tests/engine", f"{KERNELS}/test_gpu.py"),
    "formats": ("tests/formats",),
    "function": RUNS,
    "ir": ("tests/ir", "tests/ops/test_numpy_semantics.py", "tests/function/test_errors.py"),
    "kernels": (KERNELS,),
    "kernels/cache": (f"{KERNELS}/test_store.py", f"{KERNELS}/test_cache.py"),
    "kernels/interpret": ("tests/engine", "tests/function"),
    "kernels/objects": (f"{KERNELS}/test_kernels_objects.py", f"{KERNELS}/test_store.py", "tests/saved"),
    "kernels/store": (f"{KERNELS}/test_store.py", f"{KERNELS}/test_gpu.py"),
    "lowering": ("tests/lowering", "tests/passes", "tests/ops/test_cases.py"),
    "memory": ("tests/memory", "tests/budget", "tests/function/test_wiring.py", "tests/passes/test_stream_rows.py"),
    "memory/packing": ("tests/memory/test_packing.py",),
    "nn": ("tests/nn",),
    "nn/parallel": ("tests/dist",),
    "numpy": ("tests/numpy",),
    "ops": ("tests/ops", "tests/autodiff"),
    "ops/physical": ("tests/lowering", "tests/passes", "tests/ops/test_cases.py"),
    "ops/physical/stream": ("tests/passes/test_stream_rows.py",),
    "passes": ("tests/passes", "tests/lowering", "tests/ops/test_control.py"),
    "planning": ("tests/planning", "tests/memory", "tests/function", "tests/rematerialise/test_segments.py"),
    "precision": ("tests/precision", "tests/planning/test_mixed_precision.py"),
    "quantiser": ("tests/quantiser",),
    "rematerialise": RERUNS,
    "running": ("tests/running", *RUNS, "tests/saved"),
    "running/streaming_runner": (BY_ROWS, SIZES),
    "saved": ("tests/saved",),
    "standalone": ("tests/standalone",),
    "schedule": ("tests/schedule", "tests/planning/test_orders.py"),
    "sizes": (SIZES,),
    "storage": ("tests/storage", *RUNS, "tests/saved"),
    "storage/row_streams": ("tests/storage/test_row_streams.py", BY_ROWS, "tests/budget/test_row_rings.py"),
    "storage/shared_arenas": (
        "tests/storage/test_shared_arenas.py",
        "tests/function/test_runs.py",
        "tests/function/test_transactions.py",
        SIZES,
    ),
    "storage/weight_file": ("tests/storage/test_weight_file.py", *FROM_DISK),
    "system": (*FILES, "tests/system", "tests/nn/test_files.py", "tests/nn/test_progress.py"),
    "terminal": ("tests/cli/test_terminal.py",),
    "transforms": ("tests/jit",),
    "view": ("tests/view",),
}


def files_of(module: str) -> list[str]:
    """Return the files of a module, relative to the root. SystemExit when there are none."""
    place = ROOT / module if module.split("/")[0] == "nn" else ROOT / "cgraph" / module
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    if not all(file.is_file() for file in files):
        sys.exit(f"{module} is neither a file nor a folder below cgraph")
    return [file.relative_to(ROOT).as_posix() for file in files]


def tests_of(file: str) -> tuple[str, ...]:
    """Return the tests of a file."""
    module = file.removeprefix("cgraph/").removesuffix(".py")
    return TESTS[max((start for start in TESTS if f"{module}/".startswith(f"{start}/" if start else "")), key=len)]


def part_of(file: str) -> str:
    """Return the part of the library that a file belongs to: a folder or a file below ``cgraph``, or ``nn``."""
    names = Path(file).with_suffix("").parts
    return names[1] if names[0] == "cgraph" else names[0]
