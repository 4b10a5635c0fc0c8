"""What type checkers read of the package: ``cgraph/__init__.pyi``, every public name with its signature.

Functions are registered by `public` and loaded when they are first named, which no type checker can follow.
"""

import re
from collections.abc import Callable
from inspect import Parameter, signature
from math import isfinite
from typing import Any

import cgraph

HEAD = '"""The public names of cgraph. Written by `python -m docs.generate`."""'
DOTTED = re.compile(r"\b((?:[a-z_]\w*\.)+)(\w+)")  # a type by its module


def stub() -> str:
    """The text of the stub: classes and functions by import, then the functions of ops and pictures."""
    names = {name for names in cgraph.NAMES.values() for name in names}
    functions = [declared(name, getattr(cgraph, name)) for name in sorted(set(cgraph.__all__) - names)]
    imports = {f"from {module} import {name}" for text in functions for module, name in types_of(text)}
    exported = [f"from {m} import {name} as {name}" for m, names in cgraph.NAMES.items() for name in names]
    packages = [f"from cgraph import {name} as {name}" for name in cgraph.PACKAGES]
    hidden = {text for text in imports if f"{text} as {text.split()[-1]}" not in exported}
    lines = [HEAD, "", *sorted(hidden), "", *sorted(packages + exported), ""]
    return "\n".join([*lines, *(DOTTED.sub(r"\2", text) for text in functions)]) + "\n"


def declared(name: str, function: Callable[..., Any]) -> str:
    """One function with the types by their modules; a default that is no literal is left out."""
    found = signature(function)
    parameters = [shown(parameter) for parameter in found.parameters.values()]
    return f"def {name}{found.replace(parameters=parameters)}: ...".replace("Ellipsis", "...")


def shown(parameter: Parameter) -> Parameter:
    literal = not isinstance(parameter.default, float) or isfinite(parameter.default)
    return parameter if literal else parameter.replace(default=...)


def types_of(text: str) -> list[tuple[str, str]]:
    """Module and name of every type that a declaration mentions."""
    return [(found[1].rstrip("."), found[2]) for found in DOTTED.finditer(text)]
