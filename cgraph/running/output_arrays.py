"""Arrays that a caller passes for the outputs of a run, and outputs that are passed on during the run."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from cgraph.engine.instance import Instance
from cgraph.errors import InputError
from cgraph.ir.spec import Spec


def output_list(out: Any, is_one: bool, count: int, kinds: str) -> list[Any]:
    """Return what each output is written to.

    Parameters
        out: of a call
        is_one: `out` is for a single output
        count: number of outputs
        kinds: what an output can be written to, for messages
    Raises
        InputError: `out` is not a list, or has another number of elements
    """
    if is_one:
        return [out]
    if not isinstance(out, Iterable):
        raise InputError(f"out is {out!r:.60}. Pass an array for each of the {count} outputs")
    results = list(out)
    if len(results) != count:
        raise InputError(f"out has {len(results)} {kinds} for {count} outputs. Pass one for each")
    return results


def check_output(array: Any, spec: Spec) -> None:
    """Raise InputError unless an array takes values of this spec."""
    if not isinstance(array, np.ndarray):
        raise InputError(
            f"out has {array!r:.60} for {spec}; it takes arrays. Pass np.empty({list(spec.shape)}, {str(spec.dtype)!r})"
        )
    if array.shape != spec.shape or array.dtype != spec.dtype:
        raise InputError(f"out has {array.dtype}{list(array.shape)} for {spec}. Pass an array of this shape and dtype")
    if not array.flags.writeable:
        raise InputError(f"out has a read-only array for {spec}. Pass a copy")


def copy_into(array: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Copy a value into an array, and return the array."""
    array[...] = value
    return array


class EarlyResults:
    """Passes on outputs during a run. Mutable: values that it copies move from `out` to `direct`.

    Fields
        direct: outputs that the run computes where they are returned
        out: the array of each other output
        complete: receives the number of an output and its value
    """

    def __init__(
        self,
        outputs: Sequence[Any],
        instance: Instance,
        direct: dict[Any, np.ndarray],
        out: Any,
        complete: Callable[[int, np.ndarray], None],
    ) -> None:
        self.number_of = {x: i for i, x in enumerate(outputs)}
        self.instance, self.direct, self.out, self.complete = instance, direct, out, complete

    def __call__(self, x: Any) -> None:
        i = self.number_of[x]
        if x not in self.direct:
            self.direct[x], self.out[i] = copy_into(self.out[i], self.instance.read(x)), None
        self.complete(i, self.direct[x])
