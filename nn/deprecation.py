"""Deprecated names of methods and keyword arguments, which work for one more version."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from warnings import warn

P = ParamSpec("P")
R = TypeVar("R")


def renamed_keyword(old: str, new: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that passes the keyword argument `old` as `new`, with a DeprecationWarning.

    A call with both names raises TypeError.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__name__

        @wraps(function)
        def call(*args: Any, **keywords: Any) -> R:
            if old in keywords:
                if new in keywords:
                    raise TypeError(f"{name} takes {new}= or its old name {old}=, not both. Drop {old}=.")
                warn(f"{name}: {old}= is called {new}= now. Use {new}=.", DeprecationWarning, stacklevel=2)
                keywords[new] = keywords.pop(old)
            return function(*args, **keywords)

        return call

    return decorate


def renamed_method(old: str, new: str) -> Callable[..., Any]:
    """Return a method that calls the method `new` of the same object, with a DeprecationWarning.

    A class assigns it to its old name: ``clipped = renamed_method("clipped", "clip")``.
    """

    def call(self: Any, *args: Any, **keywords: Any) -> Any:
        warn(f"{type(self).__name__}.{old} is called {new} now. Use {new}.", DeprecationWarning, stacklevel=2)
        return getattr(self, new)(*args, **keywords)

    call.__name__ = old
    call.__doc__ = f"Deprecated name of `{new}`."
    return call
