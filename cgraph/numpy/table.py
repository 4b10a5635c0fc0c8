"""The table from NumPy's functions to ours, by function object.

NumPy has fifteen names that mean two functions (``np.trace`` and ``np.linalg.trace``), so no name is ever compared.
"""

from collections.abc import Callable
from typing import Any

from cgraph.ir.graph import Called, locates_errors

FUNCTIONS: dict[Any, Callable] = {}
"""NumPy's function or ufunc → ours, which takes NumPy's arguments by NumPy's names."""


def of(*numpy: Any) -> Callable[[Called], Called]:
    """Register the decorated function as the meaning of NumPy's functions for nodes; its errors name the user's
    line."""

    def decorate(function: Called) -> Called:
        entry = locates_errors(function)
        FUNCTIONS.update(dict.fromkeys(numpy, entry))
        return entry

    return decorate
