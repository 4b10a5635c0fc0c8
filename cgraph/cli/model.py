"""What a user means by MODEL on the command line: a file by its ending, or a Python reference ``module:function``.

A file's reader stands in `READERS`; a Python reference is the user's own code, and runs.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from cgraph.errors import FormatError
from cgraph.function import Function, compile
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Var

REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


@dataclass(frozen=True)
class Model:
    """A graph to be compiled, or one that is compiled already.

    Fields
        outputs, inputs, updates: as `compile` takes them
        function: what the user compiled; None when that is left to the command
    """

    outputs: tuple[Node, ...]
    inputs: tuple[Var, ...] = ()
    updates: Mapping[Var, Node] = field(default_factory=dict)
    function: Function | None = None

    def compiled(self, **options: Any) -> Function:
        """The Function: the user's own, unless `options` of `compile` ask for another."""
        if self.function is not None and not options:
            return self.function
        return compile(self.outputs, self.inputs, self.updates, **options)


READERS: dict[str, Callable[[Path], Model]] = {}  # by file ending


def load_model(reference: str) -> Model:
    """The model that a reference names. FormatError when there is none."""
    reader = READERS.get(Path(reference).suffix.lower())
    if reader is not None:
        return reader(Path(reference))
    if not REFERENCE.fullmatch(reference):
        known = ", ".join(READERS)
        files = f"a file ({known}) or " if known else ""
        raise FormatError(f"{reference} is no model: give {files}a Python reference such as package.module:function")
    return model_of(python_object(reference), reference)


def python_object(reference: str) -> Any:
    """What ``module:name`` names, and what it returns if it is a function; the folder one is in is searched first."""
    module, name = reference.split(":")
    with _here_first():
        try:
            found = getattr(import_module(module), name)
            return found() if callable(found) and not isinstance(found, Function) else found
        except Exception as error:
            raise FormatError(f"{reference}: {type(error).__name__}: {error}") from error


def model_of(found: Any, reference: str) -> Model:
    """A Function, a node, or several nodes as a model. FormatError for anything else."""
    if isinstance(found, Function):
        return Model(found.outputs, found.inputs, found.updates, found)
    if isinstance(found, Node):
        return Model((found,))
    if isinstance(found, Sequence) and found and all(isinstance(x, Node) for x in found):
        return Model(tuple(found))
    raise FormatError(f"{reference} gives {found!r:.60}, expected a Function, a node or a sequence of nodes")


@contextmanager
def _here_first():
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
