"""Saved functions with results of dynamic length or strings: their part of the manifest, and the function itself."""

from collections.abc import Sequence
from math import prod
from typing import Any

from cgraph.running.runner import Runner
from cgraph.running.string_codes import StringCodes
from cgraph.running.trimming_runner import Case, Trimming, Trims
from cgraph.saved.function import SavedFunction
from cgraph.saved.manifest import Manifest, get, is_size, items, malformed, numbers
from cgraph.saved.parts import Parts
from cgraph.saved.texts import text_entry, texts_of

LAST = -1  # in place of a condition


class TrimmedSavedFunction(Trimming, SavedFunction):
    """A saved function whose calls return the first `length` elements along axes of dynamic length."""

    def __init__(self, parts: Parts, threads: int) -> None:
        self.trims = trims_of(get(parts.manifest.entries, "trims", dict), parts.manifest)
        super().__init__(parts, threads)


def trims_entry(function: Runner) -> dict[str, Any] | None:
    """Return a function's entry; None if its results are returned as they are."""
    if not isinstance(function, Trimming):
        return None
    trims, strings = function.trims, None
    if trims.strings is not None:
        inputs = [i for i, x in enumerate(function.inputs) if x in trims.strings.inputs]
        texts = [text_entry(trims.strings.texts.get(function.inputs[i])) for i in inputs]
        strings = {
            "words": [*trims.strings.numbers],
            "inputs": inputs,
            "outputs": sorted(trims.strings.outputs),
            "texts": texts,
        }
    return {
        "cases": [[case_entry(x) for x in cases] for cases in trims.cases],
        "texts": [*trims.texts],
        "strings": strings,
    }


def case_entry(case: Case) -> list[Any]:
    return [LAST if case.condition is None else case.condition, case.place, [[*pair] for pair in case.cut.items()]]


def trims_of(entry: dict[str, Any], manifest: Manifest) -> Trims:
    """Return the content of an entry. FormatError unless every index is that of an output that fits."""
    cases, texts, strings = get(entry, "cases", list), get(entry, "texts", list), entry.get("strings")
    if len(manifest.names) != len(cases) or not all(type(x) is str for x in texts):
        raise malformed("names or texts of results of dynamic length")
    first = len(manifest.outputs) - len(texts)
    if first < 0 or not all(is_scalar(x, "b") for x in manifest.outputs[first:]):
        raise malformed("conditions of results of dynamic length")
    by_output = tuple(cases_of(x, manifest.outputs) for x in cases)
    return Trims(by_output, tuple(texts), None if strings is None else strings_of(strings, manifest, len(by_output)))


def cases_of(entry: Any, outputs: Sequence[Any]) -> tuple[Case, ...]:
    """Return the cases of one output; the last one has no condition."""
    cases = tuple(case_of(x, outputs) for x in entry) if type(entry) is list else ()
    if not cases or cases[-1].condition is not None:
        raise malformed("an output of dynamic length without a last case")
    return cases


def case_of(entry: Any, outputs: Sequence[Any]) -> Case:
    condition, place, pairs = items(entry, 3)
    if not is_size(place) or place >= len(outputs) or type(pairs) is not list:
        raise malformed("a result of dynamic length")
    cut = dict(pair_of(x, outputs, len(outputs[place].spec.shape)) for x in pairs)
    if condition == LAST:
        return Case(None, place, cut)
    if not is_size(condition) or condition >= len(outputs) or not is_scalar(outputs[condition], "b"):
        raise malformed("a condition of a result")
    return Case(condition, place, cut)


def pair_of(entry: Any, outputs: Sequence[Any], ndim: int) -> tuple[int, int]:
    """Return an axis and the output that holds its length."""
    axis, length = items(entry, 2)
    if not is_size(axis) or not is_size(length) or axis >= ndim or length >= len(outputs):
        raise malformed("an axis of dynamic length")
    if not is_scalar(outputs[length], "iu"):
        raise malformed("a length")
    return axis, length


def is_scalar(output: Any, kinds: str) -> bool:
    """Return True for an output of one element of these kinds."""
    return prod(output.spec.shape) == 1 and output.spec.dtype.kind in kinds


def strings_of(entry: Any, manifest: Manifest, count: int) -> StringCodes:
    """Return the words of an entry, and which inputs and outputs hold their codes."""
    words = get(entry, "words", list)
    if not all(type(x) is str for x in words) or len(set(words)) != len(words):
        raise malformed("words")
    inputs = [manifest.inputs[i] for i in numbers(entry, "inputs", len(manifest.inputs))]
    if any(x.spec.dtype.kind != "i" for x in inputs):
        raise malformed("an input of strings")
    texts = texts_of(entry.get("texts", [None] * len(inputs)), inputs)
    outputs = frozenset(numbers(entry, "outputs", count))
    return StringCodes({x: i for i, x in enumerate(words)}, frozenset(inputs), outputs, texts)
