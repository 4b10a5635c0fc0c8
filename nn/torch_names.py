"""TorchNames: arrays of a PyTorch module, which each layer reads by the names that its kind has there."""

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from cgraph import Record


class TorchNames(Record, eq=False):
    """The arrays below one module. Changes: what was read.

    Fields
        arrays: of the whole file, by name
        prefix: the module's path and a dot; empty for the whole
        read: names that were asked for, of all modules together
    """

    arrays: Mapping[str, np.ndarray]
    prefix: str = ""
    read: set[str] = field(default_factory=set)

    def __getitem__(self, name: str) -> np.ndarray:
        """An array of this module. KeyError with its whole name when it is not there."""
        whole = self.prefix + name
        if whole not in self.arrays:
            raise KeyError(whole)
        self.read.add(whole)
        return self.arrays[whole]

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.arrays

    def below(self, name: str) -> "TorchNames":
        """Those of a module inside this one."""
        return TorchNames(self.arrays, f"{self.prefix}{name}.", self.read)
