"""User functions that become kernels, named by a hash of what they compute.

The hash covers the function's code and constants, its closure, the globals it reads, the functions it calls,
recursively, and Numba's version. A value that cannot be described makes the name valid in this process only.
"""

import hashlib
import os
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from cgraph.record import Record

PROCESS = os.urandom(16)  # part of names that are valid in this process only
PLAIN = (int, float, complex, bool, str, bytes, type(None), type)
Visited = dict[int, tuple[int, Any]]  # by identity: its number, and the value itself, so that it stays alive


class UserFunction(Record):
    """A Python function identified by its name: equal names compute the same.

    Fields
        name: as in this module's docstring
        python: the function
    """

    name: str
    python: Callable[..., Any]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UserFunction) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name

    @property
    def label(self) -> str:
        """The function's own name."""
        return self.python.__name__

    @property
    def where(self) -> str:
        """Its file and line."""
        code = self.python.__code__  # type: ignore[attr-defined]
        return f"{code.co_filename.rpartition('/')[2]}:{code.co_firstlineno}"


def user_function(function: Callable[..., Any]) -> UserFunction:
    """Return the UserFunction of a plain Python function or one compiled by Numba.

    Raises
        TypeError: any other callable
    """
    from importlib.metadata import version  # processes without such functions need not import it

    python = getattr(function, "py_func", function)
    if not isinstance(python, FunctionType):
        raise TypeError(f"a kernel needs a plain Python function, not {function!r:.80}. Wrap it in def or lambda")
    text = repr((version("numba"), describe(python, {})))
    return UserFunction(f"{python.__name__}_{hashlib.sha256(text.encode()).hexdigest()[:24]}", python)


def describe(value: Any, visited: Visited) -> Any:
    """Return a description of a value as plain data."""
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.str, value.shape, value.tobytes()
    if id(value) in visited:
        return "seen", visited[id(value)][0]
    visited[id(value)] = len(visited), value
    if isinstance(value, np.dtype):
        return value.str
    if isinstance(value, tuple | frozenset | list):
        return type(value).__name__, [describe(x, visited) for x in value]
    if isinstance(value, CodeType):
        return value.co_code, value.co_names, value.co_varnames, describe(value.co_consts, visited)
    function = getattr(value, "py_func", value)  # of a function that Numba has compiled
    if isinstance(function, FunctionType):
        return describe_function(function, visited)
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if module and name:
        return module, name
    return PROCESS, id(value)  # the function keeps it alive


def describe_function(function: FunctionType, visited: Visited) -> list:
    """Return a description of a function's code and of all outside values that it reads."""
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    used = tuple(function.__globals__[name] for name in sorted(names_of(function.__code__) & set(function.__globals__)))
    parts = (function.__code__, function.__defaults__ or (), cells, used)
    return [describe(x, visited) for x in parts]


def names_of(code: CodeType) -> set[str]:
    """Return the global names and attributes in code, including the functions that it defines."""
    inner = (names_of(x) for x in code.co_consts if isinstance(x, CodeType))
    return set(code.co_names).union(*inner)
