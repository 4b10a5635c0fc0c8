"""Late modules: a module's functions, callable before it is imported.

    gpu_scan = LateModule("cgraph.kernels.scan.gpu_calls")
    gpu_scan.scan_calls(out, x)  # imports the module at the first call

A module that most processes never call, such as those for GPUs, costs a start nothing. The same rules hold as for
import statements: no import runs up (tests/packaging/test_imports.py).
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any


class LateModule:
    """The functions of a module, as attributes. Mutable: the first call of one imports the module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function that calls the module's one of this name."""
        if name.startswith("__"):  # names that Python looks up in any object
            raise AttributeError(name)

        def called(*args: Any, **named: Any) -> Any:
            return getattr(import_module(self._name), name)(*args, **named)

        called.__name__ = name

        self.__dict__[name] = called
        return called
