"""UnknownError: a file leaves sizes or values open that its user must give."""

from collections.abc import Mapping, Sequence
from typing import Any

from cgraph.errors import FormatError


class UnknownError(FormatError):
    """Sizes or values of inputs are unknown while a graph is built, but needed.

    Fields
        reason: the message without the way out
        shapes: missing entries of `shapes` by name, with examples: a size, or the whole shape of an input
        constants: inputs whose value is missing in `constants`
        maximum: values for which an upper bound in `maximum` suffices
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
