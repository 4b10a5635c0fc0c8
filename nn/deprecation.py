"""Deprecated names of keyword arguments, which work for one more version."""

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
