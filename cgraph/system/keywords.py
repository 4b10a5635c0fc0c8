"""Keyword arguments that do not exist: an error that names the function and the nearest name."""

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, cast

from cgraph.errors import OptionError

Called = TypeVar("Called", bound=Callable)
NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def checks_keywords(more: Iterable[str] = (), name: str = "") -> Callable[[Called], Called]:
    """Return a decorator: calls with a keyword that the function does not take raise OptionError.

    Parameters
        more: names that ``**options`` of the function may contain
        name: of the function in messages, by default its own
    """

    def decorate(function: Called) -> Called:
        parameters = signature(function).parameters.values()
        names = [x.name for x in parameters if x.kind in NAMED and x.name != "self"]
        names += [x for x in more if x not in names]
        accepted = frozenset(names)

        @wraps(function)
        def called(*args: Any, **named: Any) -> Any:
            if not accepted.issuperset(named):
                raise unknown_option(name or function.__name__, next(x for x in named if x not in accepted), names)
            return function(*args, **named)

        return cast(Called, called)

    return decorate


def unknown_option(function: str, option: str, names: Iterable[str]) -> OptionError:
    """Return the error for a keyword: it suggests the nearest name, or lists all."""
    from difflib import get_close_matches

    near = get_close_matches(option, names, 1)
    remedy = f"; did you mean {near[0]!r}?" if near else f". Use one of {', '.join(names)}"
    return OptionError(f"{function} has no option {option!r}{remedy}")
