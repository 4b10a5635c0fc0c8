"""Sample inputs of a function, checked."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cgraph.errors import InputError
from cgraph.storage.cell import Variable, fitting_array

Samples = Sequence[tuple[np.ndarray, ...]]


def sample_runs(samples: Iterable[Any], inputs: Sequence[Variable], work: str) -> list[tuple[np.ndarray, ...]]:
    """Return the arrays of each run.

    Parameters
        samples: for each run the array of the input, or a tuple with one for each input
        work: what needs the samples, for the message
    Raises
        InputError: `samples` is empty, or one does not fit the inputs
    """
    runs = [sample_arrays(x, inputs) for x in samples]
    if not runs:
        raise InputError(f"{work} needs at least one sample. Pass arrays that the network will meet")
    return runs


def sample_arrays(sample: Any, inputs: Sequence[Variable]) -> tuple[np.ndarray, ...]:
    """Return the arrays of one run. InputError if they do not fit the inputs."""
    arrays = sample if isinstance(sample, tuple | list) else (sample,)
    if len(arrays) != len(inputs):
        raise InputError(f"a sample has {len(arrays)} arrays for {len(inputs)} inputs. Pass a tuple with one for each")
    return tuple(fitting_array(array, x.spec, x.name) for array, x in zip(arrays, inputs))
