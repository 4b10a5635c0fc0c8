"""The arrays of a call: by position, by name, or in one dictionary."""

from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from typing import Any

import numpy as np

from cgraph.errors import InputError
from cgraph.running.results import position_of

MISSING = object()


def ordered(args: tuple, named: Mapping[str, Any], inputs: Sequence[Any]) -> tuple:
    """Return the values of all inputs in order.

    Parameters
        args: arrays by position, or one dictionary of arrays by name
        named: arrays by name
        inputs: each has a name and a spec, for messages
    Raises
        InputError: an input is unknown, missing or given twice
    """
    if not named and len(args) == len(inputs) and not (args and is_mapping(args[0])):
        return args  # the usual case comes first, since every call makes it
    if not named and len(args) == 1 and type(args[0]) is dict and len(args[0]) == len(inputs):
        arrays = args[0]
        try:
            return tuple([arrays[x.name] for x in inputs])
        except KeyError:  # the message comes below; `suppress` takes longer than all of this
            pass
    args, named = by_name(args, named)
    if len(args) > len(inputs):
        raise InputError(f"the Function takes {len(inputs)} inputs, got {len(args)}. Pass one array for each input")
    values = [*args, *[MISSING] * (len(inputs) - len(args))]
    positions = {x.name: i for i, x in enumerate(inputs)}
    for name, value in named.items():
        if name not in positions:
            raise InputError(f"the Function has no input {name!r:.60}. Use one of {', '.join(positions) or 'none'}")
        if values[positions[name]] is not MISSING:
            raise InputError(f"input {name!r} is given twice. Pass it by position or by name")
        values[positions[name]] = value
    for x, value in zip(inputs, values):
        if value is MISSING:
            raise InputError(f"input {x.name} {x.spec} is missing. Pass {argument(x.name)}")
    return tuple(values)


def by_name(args: tuple, named: Mapping[str, Any]) -> tuple[tuple, Mapping[str, Any]]:
    """Return the arguments of a call, with a dictionary of inputs as keyword arguments. InputError for a name twice."""
    if not (len(args) == 1 and isinstance(args[0], Mapping)):
        return args, named
    twice = [name for name in named if name in args[0]]
    if twice:
        raise InputError(f"input {twice[0]!r} is given twice. Pass it in the dictionary or by keyword")
    return (), {**args[0], **named}


def is_mapping(x: Any) -> bool:
    """Return True for a mapping. The cheap checks come first, since every call makes them."""
    return type(x) is dict or (type(x) is not np.ndarray and isinstance(x, Mapping))


def argument(name: str) -> str:
    """Return the code that passes an input: ``x=array``, or a dictionary if the name is not an identifier."""
    return f"{name}=array" if name.isidentifier() and not iskeyword(name) else f"{{{name!r}: array}}"


def run_by_name(
    function: Callable[..., Any], outputs: Sequence[str], names: Sequence[str] | None, inputs: Mapping[str, Any]
) -> list[Any]:
    """Return the outputs of these names, or all.

    Parameters
        outputs: the names of all outputs
        names: those to return, in this order; None for all
        inputs: arrays by the names of the inputs
    Raises
        InputError: a name is unknown, before anything runs; as a call raises
    """
    if not is_mapping(inputs) or not (names is None or is_names(names)):
        raise InputError(
            f"run takes a list of output names, or None, and a dictionary of arrays, not {names!r:.60} and "
            f"{inputs!r:.60}. Call the function itself to pass arrays by position"
        )
    positions = None if names is None else [position_of(outputs, name) for name in names]
    results = function(inputs)
    values = list(results) if isinstance(results, list) else [results]
    return values if positions is None else [values[i] for i in positions]


def is_names(names: Any) -> bool:
    """Return True for a sequence of texts."""
    return isinstance(names, Sequence) and not isinstance(names, str) and all(isinstance(x, str) for x in names)
