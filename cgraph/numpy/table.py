"""The one table: which function of ours is meant by one of NumPy's, by the function objects themselves.

NumPy has fifteen names that mean two functions (``np.trace`` and ``np.linalg.trace``), so no name is ever compared.
"""

from collections.abc import Callable
from typing import Any

from cgraph.ir.graph import Called, locates_errors

FUNCTIONS: dict[Any, Callable] = {}
"""NumPy's function or ufunc → ours, which takes NumPy's arguments by NumPy's names."""


def of(*numpy: Any) -> Callable[[Called], Called]:
    """The decorated function is what these functions of NumPy mean for nodes; it says where it refuses."""

    def decorate(function: Called) -> Called:
        entry = locates_errors(function)
        FUNCTIONS.update(dict.fromkeys(numpy, entry))
        return entry

    return decorate
