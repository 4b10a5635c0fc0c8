"""Checks of arguments, which raise an InputError that names the parameter."""

from typing import Any

import numpy as np

from cgraph import InputError, Node, ShapeError


def check_kind(name: str, value: Any, kind: Any, words: str) -> None:
    """Raise InputError unless `value` is an instance of `kind`, which `words` describe."""
    if not isinstance(value, kind):
        raise InputError(f"{name} is {value!r:.60}. Pass {words}.")


def check_integer(name: str, value: Any, least: int) -> None:
    """Raise InputError unless `value` is an integer and at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is {value!r:.60}. Pass an integer >= {least}.")


def check_axes(layer: Any, x: Node, axes: str) -> None:
    """Raise ShapeError unless `x` has the axes that `axes` names, such as ``n steps features`` or ``n ...``."""
    names = axes.split()
    fits = x.ndim >= len(names) - 1 if "..." in names else x.ndim == len(names)
    if not fits:
        raise ShapeError(f"{type(layer).__name__} takes arrays [{', '.join(names)}], not {x!r}. Reshape it.")
