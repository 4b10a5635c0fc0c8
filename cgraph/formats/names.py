"""Every op's function by name, so that importers read as a user's code does: ``cg.softmax(x, axis=1)``."""

from typing import Any

from cgraph.errors import FormatError
from cgraph.ir.graph import OPS


class Names:
    """Attributes are the public functions of `OPS`, looked up when they are used."""

    def __getattr__(self, name: str) -> Any:
        if name not in OPS:
            raise FormatError(f"the op {name} is not there")
        return OPS[name]


cg = Names()
