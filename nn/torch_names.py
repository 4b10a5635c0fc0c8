"""TorchNames: arrays of a PyTorch module, by the names within the module."""

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from cgraph import Record


class TorchNames(Record, eq=False):
    """The arrays below one module. Changes: `read`.

    Fields
        arrays: all arrays of the file, by name
        prefix: the module's path and a dot; empty for the root
        read: names that were read, of all modules together
    """

    arrays: Mapping[str, np.ndarray]
    prefix: str = ""
    read: set[str] = field(default_factory=set)

    def __getitem__(self, name: str) -> np.ndarray:
        """Return an array of this module. KeyError with its full name when it is missing."""
        whole = self.prefix + name
        if whole not in self.arrays:
            raise KeyError(whole)
        self.read.add(whole)
        return self.arrays[whole]

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.arrays

    def below(self, name: str) -> "TorchNames":
        """Return the arrays of a module inside this one."""
        return TorchNames(self.arrays, f"{self.prefix}{name}.", self.read)
