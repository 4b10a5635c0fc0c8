"""The manifest of a saved function, and arrays in its files. Anything that does not fit raises FormatError."""

import json
from collections.abc import Sequence
from dataclasses import field
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.ir.labels import distinct_names
from cgraph.ir.spec import Spec, dtype_of
from cgraph.kernels.isa.architectures import host_architecture
from cgraph.kernels.kernel import View
from cgraph.record import Record
from cgraph.saved.layout import FORMAT, VERSION, sum_fits
from cgraph.storage.cell import Cell, assign, value_of
from cgraph.system.machine import system_name
from cgraph.version import __version__

LARGEST = 4 << 20  # maximum bytes of a manifest
MOST_VALUES = 250_000  # maximum number of its numbers, texts, lists and objects


class SavedVar(Record, eq=False):
    """A Var of a saved function, without a graph. Mutable: its cell changes."""

    name: str
    spec: Spec
    where: str
    cell: Cell = field(default_factory=Cell)

    @property
    def value(self) -> np.ndarray:
        """Return a copy of the value. UnassignedError if there is none."""
        return value_of(self)

    def assign(self, value: Any, copy: bool = True) -> "SavedVar":
        """Assign a value, as to a Var."""
        assign(self, value, copy)
        return self


class SavedOutput(Record, eq=False):
    """An output of a saved function, without a graph."""

    spec: Spec


class Manifest(Record, eq=False):
    """The contents of a manifest.

    Fields
        entries: the manifest itself
        variables: inputs and cells
        starts: offset of each value in the file of the state; -1 without a value
        inputs, cells, updated: positions of these variables
        outputs: outputs with their specs
        names: names of the outputs; empty if they have none
        files: bytes and checksum of each file
    """

    entries: dict[str, Any]
    variables: tuple[SavedVar, ...]
    starts: tuple[int, ...]
    inputs: tuple[SavedVar, ...]
    cells: tuple[SavedVar, ...]
    updated: tuple[SavedVar, ...]
    outputs: tuple[SavedOutput, ...]
    names: tuple[str, ...]
    files: dict[str, list[int]]


def entries_of(file: np.ndarray) -> dict[str, Any]:
    """Return the parsed manifest. FormatError unless it is whole and of this format."""
    if len(file) > LARGEST:
        raise FormatError(f"the manifest has {len(file)} bytes; at most {LARGEST} are read. Save the function again")
    raw = file.tobytes()
    if not sum_fits(raw):
        raise FormatError(
            f"the manifest of {len(raw)} bytes has another checksum: it is cut off or changed. Save the function again"
        )
    if sum(raw.count(mark) for mark in (b",", b":", b"[", b"{")) > MOST_VALUES:
        raise FormatError(f"the manifest holds more than {MOST_VALUES:,} values")
    try:
        entries = json.loads(raw, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the manifest is not JSON: {error}") from None
    if not isinstance(entries, dict) or entries.get("format") != FORMAT:
        form = entries.get("format") if isinstance(entries, dict) else None
        raise FormatError(
            f"this is not a saved function of format {FORMAT}, but {form!r:.40}. Pass a folder that Function.save wrote"
        )
    return entries


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the entries as a dictionary. FormatError if two have one name."""
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise malformed("an object has two entries of one name")
    return entries


def misfit(entries: dict[str, Any], features: frozenset[str]) -> str | None:
    """Return why this version of cgraph, this system or this processor cannot run it; None if they can."""
    if entries.get("version") != VERSION or entries.get("cgraph") != __version__:
        saved = f"cgraph {entries.get('cgraph')!s:.40}, format {entries.get('version')!s:.40}"
        return f"it was saved by {saved}; this is cgraph {__version__}, format {VERSION}"
    if entries.get("system") != system_name():
        return f"it was saved for {entries.get('system')!s:.80}; this is {system_name()}"
    targets = get(entries, "targets", dict)
    if target_of(targets, features) is None:
        return f"it holds code for {', '.join(targets) or 'nothing'}, which this processor does not run"
    return None


def target_of(targets: dict[str, Any], features: frozenset[str]) -> str | None:
    """Return the widest target that this processor runs."""
    own = host_architecture()
    names = [x.name for x in reversed(own.targets) if x.name in targets and x.name in own.needs]
    return next((name for name in names if features.issuperset(own.needs[name])), None)


def manifest_of(entries: dict[str, Any]) -> Manifest:
    """Return the manifest of this version's entries."""
    pairs = [variable_of(x) for x in get(entries, "variables", list)]
    variables = tuple(x for x, _ in pairs)

    def variables_in(name: str) -> tuple[SavedVar, ...]:
        return tuple(variables[i] for i in numbers(entries, name, len(variables)))

    outputs = tuple(SavedOutput(spec_of(*items(x, 2))) for x in get(entries, "outputs", list))
    names = get(entries, "names", list)
    is_trimmed = entries.get("trims") is not None  # then an output of the program may have no name
    if not all(type(x) is str for x in names) or not (is_trimmed or len(names) in (0, len(outputs))):
        raise malformed("names")
    get(entries, "single", bool)
    files = get(entries, "files", dict)
    if not all(isinstance(x, list) and len(x) == 2 and all(map(is_size, x)) for x in files.values()):
        raise malformed("files")
    starts = tuple(start for _, start in pairs)
    lists = variables_in("inputs"), variables_in("cells"), variables_in("updated"), outputs, distinct_names(names)
    return Manifest(entries, variables, starts, *lists, files)


def variable_of(entry: Any) -> tuple[SavedVar, int]:
    name, dtype, shape, where, start = items(entry, 5)
    if type(name) is not str or type(where) is not str or type(start) is not int or start < -1:
        raise malformed("variables")
    return SavedVar(name, spec_of(dtype, shape), where), start


def spec_of(dtype: Any, shape: Any) -> Spec:
    if type(dtype) is not str or type(shape) is not list or not all(map(is_size, shape)):
        raise malformed("a spec")
    return Spec(tuple(shape), dtype_of(dtype))


# -- checked access ----------------------------------------------------------------------------------------------------


def malformed(what: str) -> FormatError:
    return FormatError(f"the manifest of a saved function is malformed: {what}. Save the function again")


def get(entry: Any, name: str, kind: type) -> Any:
    """Return a field of an object. FormatError unless it is of exactly this type."""
    value = entry.get(name) if type(entry) is dict else None
    if type(value) is not kind:
        raise malformed(f"{name} is {value!r:.40}")
    return value


def items(entry: Any, count: int) -> list[Any]:
    """Return a list of exactly `count` items. FormatError otherwise."""
    if type(entry) is not list or len(entry) != count:
        raise malformed(f"{entry!r:.40} is not a list of {count}")
    return entry


def is_size(x: Any) -> bool:
    return type(x) is int and x >= 0


def numbers(entry: Any, name: str, below: int) -> list[int]:
    """Return a list of distinct numbers from 0 to less than `below`. FormatError otherwise."""
    values = get(entry, name, list)
    if not all(is_size(x) and x < below for x in values) or len(set(values)) != len(values):
        raise malformed(name)
    return values


class FileArrays:
    """Arrays in a file, by name."""

    def __init__(self, raw: np.ndarray, index: dict[str, Any]) -> None:
        self.raw, self.index = raw, index

    def get(self, name: str, dtype: str, *shape: int, below: int | None = None) -> np.ndarray:
        """Return an array of this dtype and shape, -1 for any size; FormatError unless integers are below `below`."""
        kind, sizes, start = items(self.index.get(name), 3)
        fits = type(sizes) is list and len(sizes) == len(shape) and all(map(is_size, sizes)) and is_size(start)
        if kind != dtype or not fits or any(n not in (-1, size) for n, size in zip(shape, sizes)):
            raise malformed(f"{name} is {kind!r:.20} {sizes!r:.40}")
        nbytes = prod(sizes) * np.dtype(dtype).itemsize
        if start + nbytes > len(self.raw):
            raise malformed(f"{name} ends after its file")
        array = self.raw[start : start + nbytes].view(dtype).reshape(sizes)
        if below is not None and array.size and (array.min() < 0 or array.max() >= below):
            raise malformed(f"{name} has numbers outside of their range")
        return array


def check_inside(view: View, nbytes: int) -> None:
    """Raise FormatError unless every element of a view is inside memory of `nbytes` bytes."""
    steps = [(n - 1) * stride for n, stride in zip(view.shape, view.strides)]
    low = view.at.offset + sum(x for x in steps if x < 0)
    high = view.at.offset + sum(x for x in steps if x > 0) + view.itemsize
    if view.size and not (low >= 0 and high <= nbytes):
        raise malformed("an output lies outside of its memory")


def integers(entry: Sequence[Any], count: int) -> tuple[int, ...]:
    """Return exactly `count` integers. FormatError otherwise."""
    values = items(entry, count)
    if not all(type(x) is int for x in values):
        raise malformed(f"{values!r:.40}")
    return tuple(values)
