"""Check vectors: the inputs of one run and the outputs that an exported function must return, bit for bit."""

from collections.abc import Sequence

import numpy as np

from cgraph.dtypes.convert import convert
from cgraph.errors import PositionError
from cgraph.function import Function
from cgraph.ir.spec import Spec

SEED = 1


def check_files(twin: Function, arrays: Sequence[np.ndarray] | None, suffix: str = "") -> dict[str, bytes]:
    """Return ``check/in.bin`` with all inputs and ``check/out.bin`` with all outputs, concatenated.

    Parameters
        twin: the same graph compiled for this machine, with the lanes of the exported target
        arrays: the inputs; None for random numbers, with zeros for integers if a random index is out of bounds
        suffix: of the files' names
    """
    if arrays is not None:
        values = [np.array(x, v.spec.dtype, order="C") for x, v in zip(arrays, twin.inputs, strict=True)]
        return vectors(values, outputs_of(twin, values), suffix)
    values = [random_input(np.random.default_rng([SEED, i]), x.spec) for i, x in enumerate(twin.inputs)]
    try:
        return vectors(values, outputs_of(twin, values), suffix)
    except PositionError:
        values = [np.zeros_like(x) if x.dtype.kind in "iu" else x for x in values]
        return vectors(values, outputs_of(twin, values), suffix)


def random_input(rng: np.random.Generator, spec: Spec) -> np.ndarray:
    """Return numbers from 0 to 1, or integers from 0 to 126."""
    kind = spec.dtype.kind
    if kind == "c":
        return (rng.random(spec.shape) + 1j * rng.random(spec.shape)).astype(spec.dtype)
    if kind == "b":
        return rng.random(spec.shape) < 0.5
    if kind in "iu":
        return rng.integers(0, 127, spec.shape).astype(spec.dtype)
    return convert(rng.random(spec.shape, np.float32), spec.dtype)


def outputs_of(twin: Function, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the outputs of a run that changes no Var."""
    with twin.instance_for(tuple(values), {}) as instance:
        before = [None if instance.makes(x) else np.array(instance.read(x)) for x in twin.outputs]
        instance.run()
        return [np.array(instance.read(x)) if y is None else y for x, y in zip(twin.outputs, before)]


def vectors(values: Sequence[np.ndarray], results: Sequence[np.ndarray], suffix: str) -> dict[str, bytes]:
    return {
        f"check/in{suffix}.bin": b"".join(np.ascontiguousarray(x).tobytes() for x in values),
        f"check/out{suffix}.bin": b"".join(np.ascontiguousarray(x).tobytes() for x in results),
    }
