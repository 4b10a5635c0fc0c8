"""Stubs for type checkers of modules whose names are registered at run time: every public name with its signature.

In ``cgraph/__init__.pyi`` functions are registered by `public` and loaded when they are first named; those of
``cgraph/array_api`` follow lists of the standard's signatures.
"""

import re
from collections.abc import Callable
from inspect import Parameter, signature
from math import isfinite
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import cgraph
from cgraph import array_api

PACKAGE = Path(cgraph.__file__).parent
SEVERAL = (
    "broadcast_arrays eig eigh meshgrid nonzero qr slogdet svd unique_all unique_counts unique_inverse unstack"
).split()
"""Functions of the standard that return more than one array."""
HEAD = '"""The public names of {}. Written by `python -m docs.generate`."""'
DOTTED = re.compile(r"\b((?:[a-z_]\w*\.)+)(\w+)")  # a type by its module


def stubs() -> dict[Path, str]:
    """The text of every generated stub, by its path."""
    folder = PACKAGE / "array_api"
    files = {PACKAGE / "__init__.pyi": stub(), folder / "__init__.pyi": stub_of_the_standard(array_api)}
    files[PACKAGE / "formats" / "__init__.pyi"] = stub_of_formats()
    return files | {folder / f"{m}.pyi": stub_of_the_standard(getattr(array_api, m)) for m in ("fft", "linalg")}


def stub() -> str:
    """The text of the stub: classes and functions by import, then the functions of ops and pictures."""
    names = {name for names in cgraph.NAMES.values() for name in names}
    functions = [declared(name, getattr(cgraph, name)) for name in sorted(set(cgraph.__all__) - names)]
    imports = {f"from {module} import {name}" for text in functions for module, name in types_of(text)}
    exported = [f"from {m} import {name} as {name}" for m, names in cgraph.NAMES.items() for name in names]
    packages = [*(f"from cgraph import {name} as {name}" for name in cgraph.PACKAGES), "import nn as nn"]
    hidden = {text for text in imports if f"{text} as {text.split()[-1]}" not in exported}
    lines = [HEAD.format("cgraph"), "", *sorted(hidden), "", *sorted(packages + exported), ""]
    return "\n".join([*lines, *(DOTTED.sub(r"\2", text) for text in functions)]) + "\n"


def stub_of_formats() -> str:
    """The text of the stub of formats: its modules."""
    imports = [f"from cgraph.formats import {name} as {name}" for name in cgraph.formats.FORMATS]
    return "\n".join([HEAD.format("cgraph.formats"), "", *imports]) + "\n"


def stub_of_the_standard(module: ModuleType) -> str:
    """The text of the stub of a module of the array API: its functions and values, and classes by import."""
    lines = ["from typing import Any", "", "from cgraph.array_api.array import Array as Array"]
    for name in sorted(set(module.__all__) - {"Array"}):
        x = getattr(module, name)
        if isinstance(x, ModuleType):
            lines.append(f"from {module.__name__} import {name} as {name}")
        elif isinstance(x, FunctionType):
            lines.append(f"def {name}{loosely(x, name in SEVERAL)}: ...")
        else:
            lines.append(f"{name}: {'float' if isinstance(x, float) else 'Any'}")
    return "\n".join([HEAD.format(module.__name__), "", *lines]) + "\n"


def loosely(function: Callable[..., Any], several: bool) -> str:
    """The signature of a function of the standard, which takes Arrays, numbers and dtypes (whose names hide types)."""
    whole = signature(function)
    parameters = [parameter.replace(annotation=Any) for parameter in whole.parameters.values()]
    is_array = not several and whole.return_annotation in (whole.empty, array_api.Array)
    text = DOTTED.sub(r"\2", str(whole.replace(parameters=parameters, return_annotation=whole.empty)))
    return f"{text} -> {'Array' if is_array else 'Any'}"


def declared(name: str, function: Callable[..., Any]) -> str:
    """One function with the types by their modules; a default that is not a literal is left out."""
    whole = signature(function)
    parameters = [shown(parameter) for parameter in whole.parameters.values()]
    return f"def {name}{whole.replace(parameters=parameters)}: ...".replace("Ellipsis", "...")


def shown(parameter: Parameter) -> Parameter:
    literal = not isinstance(parameter.default, float) or isfinite(parameter.default)
    return parameter if literal else parameter.replace(default=...)


def types_of(text: str) -> list[tuple[str, str]]:
    """Module and name of every type that a declaration mentions."""
    return [(match[1].rstrip("."), match[2]) for match in DOTTED.finditer(text)]
