"""The trace in progress: while a Python function is traced, every public function of the library passes through it.

`cgraph.transforms.trace` sets it and provides the slot `traced_call`. Library code always runs with no trace, so that
it sees nodes only.
"""

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar, cast

from cgraph import slots

Called = TypeVar("Called", bound=Callable)

TRACE: ContextVar[Any] = ContextVar("trace", default=None)
"""The `cgraph.transforms.trace.FunctionTrace` of the function that is traced in this context, or None."""


def traceable(function: Called) -> Called:
    """Return a function that takes nodes, and traced arrays while a function is traced."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if TRACE.get() is not None:
            return slots.traced_call(called, args, kwargs)
        return function(*args, **kwargs)

    return cast(Called, called)
