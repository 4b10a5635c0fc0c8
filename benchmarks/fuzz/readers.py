"""The readers that are fuzzed, with small valid files to begin with, and the changes of these."""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.fuzz import archives, descriptions, media, tables
from benchmarks.fuzz.mutate import mutated
from cgraph.record import Record

Mutate = Callable[[bytes, Random, Sequence[bytes]], bytes]
PLAIN = 0.25  # share of files that are changed byte by byte, whatever their format


class Reader(Record):
    """One reader.

    Fields
        read: reads a file, as a user's call does
        samples: valid files, or half valid ones
        change: returns a file changed according to its format, from all samples
        apart: the name of a reader that reads the same files in a process of its own
    """

    read: Callable[[Path], Any]
    samples: Callable[[], Sequence[bytes]]
    change: Mutate
    apart: str | None = None

    def mutated(self, sample: bytes, rng: Random, samples: Sequence[bytes]) -> bytes:
        return mutated(sample, rng) if rng.random() < PLAIN else self.change(sample, rng, samples)


def late(module: str, name: str) -> Callable:
    """Return a function of a module that is imported at its first call: packages differ by reader."""
    return lambda *args: getattr(import_module(module), name)(*args)


@cache
def description() -> Path:
    """Return the network whose weights are fuzzed."""
    return descriptions.weights_description()


def read_weights(path: Path) -> Any:
    from cgraph.formats import darknet

    return darknet.load(description(), path)


def read_drawn(path: Path) -> Any:
    """Read a description with drawn parameters, within the memory that its file may use."""
    from cgraph.formats import darknet

    return darknet.load(path, seed=0, drawn=32 << 20)


def read_csv(path: Path) -> Any:
    """Read usage records, and plan them."""
    from cgraph.memory.bounds import lower_bound
    from cgraph.memory.check import check_plan
    from cgraph.memory.files import read_problem
    from cgraph.memory.strategies.greedy_by_size import greedy_by_size

    problem = read_problem(path)
    plan = greedy_by_size(problem)
    check_plan(problem, plan)
    return plan, lower_bound(problem)


def load_keras_apart(path: Path) -> Any:
    from cgraph.formats.keras_graph import load_keras

    return load_keras(path, apart=True, seconds=10)


READERS: dict[str, Reader] = {
    "onnx": Reader(
        late("cgraph.formats.onnx", "load"),
        late("benchmarks.fuzz.onnx_files", "samples"),
        late("benchmarks.fuzz.onnx_files", "change"),
    ),
    "safetensors": Reader(
        late("cgraph.formats.safetensors", "read_safetensors"), tables.safetensors_samples, tables.safetensors_change
    ),
    "npz": Reader(late("cgraph.formats.npz", "read_npz"), archives.npz_samples, archives.npz_change),
    "torch": Reader(late("cgraph.formats.torch_file", "read_torch"), archives.torch_samples, archives.torch_change),
    "darknet": Reader(late("cgraph.formats.darknet", "load"), descriptions.samples, descriptions.change),
    "darknet_drawn": Reader(read_drawn, descriptions.samples, descriptions.change),
    "darknet_boxes": Reader(late("cgraph.formats.darknet", "load_detector"), descriptions.samples, descriptions.change),
    "darknet_weights": Reader(read_weights, descriptions.weights_samples, lambda x, rng, _: mutated(x, rng)),
    "h5": Reader(
        late("cgraph.formats.keras_graph", "load_keras"),
        late("benchmarks.fuzz.keras_files", "samples"),
        late("benchmarks.fuzz.keras_files", "change"),
        "h5_apart",
    ),
    "h5_archive": Reader(
        late("cgraph.formats.keras_graph", "load_keras"),
        late("benchmarks.fuzz.keras_files", "archives"),
        late("benchmarks.fuzz.keras_files", "change_archive"),
        "h5_archive_apart",
    ),
    "h5_archive_apart": Reader(
        load_keras_apart,
        late("benchmarks.fuzz.keras_files", "archives"),
        late("benchmarks.fuzz.keras_files", "change_archive"),
    ),
    "h5_apart": Reader(
        load_keras_apart,
        late("benchmarks.fuzz.keras_files", "samples"),
        late("benchmarks.fuzz.keras_files", "change"),
    ),
    "saved": Reader(
        late("benchmarks.fuzz.saved_functions", "read"),
        late("benchmarks.fuzz.saved_functions", "samples"),
        late("benchmarks.fuzz.saved_functions", "change"),
    ),
    "tflite": Reader(
        late("cgraph.formats.tflite", "load"),
        late("benchmarks.fuzz.tflite_files", "samples"),
        late("benchmarks.fuzz.tflite_files", "change"),
    ),
    "csv": Reader(read_csv, tables.csv_samples, tables.csv_change),
    "npy": Reader(late("cgraph.formats.npz", "read_npy"), media.npy_samples, media.changed_bytes),
    "picture": Reader(media.read_picture, media.picture_samples, media.changed_bytes),
    "sound": Reader(media.read_sound, media.sound_samples, media.changed_bytes),
    "coco": Reader(media.read_coco, media.coco_samples, media.changed_coco),
}
