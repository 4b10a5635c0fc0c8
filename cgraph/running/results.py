"""Results: the outputs of one call, by position and by name."""

from collections.abc import Sequence
from typing import Any, SupportsIndex

from cgraph.errors import InputError


class Results(list):
    """The outputs of one call: a list that also takes the outputs' names.

        results = f(image=x)
        results[0], results["boxes"], dict(results)

    Fields
        names: of the outputs, each different
    """

    __slots__ = ("names",)

    def __init__(self, values: Any, names: tuple[str, ...]) -> None:
        super().__init__(values)
        self.names = names

    def __getitem__(self, key: SupportsIndex | slice | str) -> Any:  # type: ignore[override]
        return super().__getitem__(position_of(self.names, key) if isinstance(key, str) else key)

    def keys(self) -> tuple[str, ...]:
        """Return the names of the outputs, so that ``dict(results)`` is a dictionary of them."""
        return self.names


def position_of(names: Sequence[str], name: str) -> int:
    """Return the position of an output. InputError if no output has the name."""
    if name not in names:
        raise InputError(f"the Function has no output {name!r:.60}. Use one of {', '.join(names) or 'none'}")
    return names.index(name)
