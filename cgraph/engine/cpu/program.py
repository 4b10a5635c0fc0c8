"""The CPU program: loaded code that creates the instance its code needs."""

from importlib import import_module

import numpy as np

from cgraph.engine.cpu.instance import CpuInstance, LoadedCode


class CpuProgram(LoadedCode, eq=False):
    """Loaded code that creates its instances. All values lie in the host's memory."""

    on_host = ()
    own_array = None

    def instance(self, memory: np.ndarray | None = None) -> CpuInstance:
        """Return an instance with an arena of its own, or with one in this memory.

        Most functions neither stream weights nor exchange rows, so a process that runs a saved function loads neither
        module.
        """
        if self.code.ring is not None:
            return import_module("cgraph.engine.cpu.streamed_weights").StreamedInstance(self, self.code.ring)
        if any(c.port is not None for c in self.code.callbacks):
            return import_module("cgraph.engine.cpu.streamed_rows").RowsInstance(self, memory)
        return CpuInstance(self, memory)
