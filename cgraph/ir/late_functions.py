"""A table of functions by name, whose modules are imported when a function is first looked up."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any

Function = Callable[..., Any]


class LateFunctions(MutableMapping[str, Function]):
    """Functions by name. Mutable: modules enter their functions when they are imported.

    A name is there, also for loops over all names, as soon as its module is listed. Its module is imported when the
    function is read. If the import ends with an exception, the next reader imports the module again, also for functions
    that it had entered before.
    """

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}
        self._modules: dict[str, str] = {}
        self._imported: set[str] = set()

    def list_modules(self, names: Mapping[str, str]) -> None:
        """List modules, each with the names, separated by spaces, of the functions that it enters."""
        self._modules |= {name: module for module, line in names.items() for name in line.split()}

    def __getitem__(self, name: str) -> Function:
        module = self._modules.get(name)
        if module is not None and module not in self._imported:
            import_module(module)
            self._imported.add(module)
        return self._functions[name]

    def __setitem__(self, name: str, function: Function) -> None:
        self._functions[name] = function

    def __delitem__(self, name: str) -> None:
        del self._functions[name]

    def __contains__(self, name: object) -> bool:
        return name in self._functions or name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._modules, *self._functions]))

    def __len__(self) -> int:
        return len(self._modules.keys() | self._functions.keys())
