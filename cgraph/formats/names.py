"""Functions of all ops by name, so that importers read like user code: ``cg.softmax(x, axis=1)``."""

from typing import Any

from cgraph.errors import FormatError
from cgraph.ir.graph import OPS


class Names:
    """A namespace of the public functions of `OPS`, looked up on use."""

    def __getattr__(self, name: str) -> Any:
        try:
            return OPS[name]
        except KeyError:
            raise FormatError(f"the op {name} does not exist") from None


cg = Names()
