"""What a file leaves open and only its user can say."""

from collections.abc import Mapping, Sequence
from typing import Any

from cgraph.errors import FormatError


class UnknownError(FormatError):
    """Sizes or values of inputs must be known when a graph is built, and are not.

    Fields
        reason: who needs them, without the way out
        shapes: what `shapes` must give, by name, with an example of each: a size, or an input's whole shape
        constants: inputs whose value `constants` must give
        maximum: values of whose largest number `maximum` may tell instead
    """

    def __init__(
        self,
        reason: str,
        shapes: Mapping[str, Any] | None = None,
        constants: Sequence[str] = (),
        maximum: Sequence[str] = (),
    ) -> None:
        self.reason, self.shapes, self.constants = reason, dict(shapes or {}), tuple(constants)
        self.maximum = tuple(dict.fromkeys(maximum))
        ways = [f"shapes={self.shapes}"] if self.shapes else []
        ways += [f"constants={{{name!r}: value}}" for name in self.constants]
        least = [f"maximum={{{name!r}: n}}" for name in self.maximum]
        super().__init__(f"{reason}; give {' or '.join(filter(None, (*least, ', '.join(ways))))}")
