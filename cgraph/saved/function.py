"""SavedFunction: a function loaded from a folder, without its graph."""

import os
from functools import partial
from importlib import import_module

import numpy as np

from cgraph import slots
from cgraph.engine.cpu.cores import cores
from cgraph.engine.cpu.program import CpuProgram
from cgraph.engine.cpu.threads import WORDS, interpreter, offer_native
from cgraph.errors import FormatError, InputError
from cgraph.kernels.code_image import UnknownCode, place_image
from cgraph.kernels.kernel import Kernel
from cgraph.memory.incremental import IncrementalPlan
from cgraph.running.runner import Runner
from cgraph.saved.layout import STATE
from cgraph.saved.manifest import get, malformed
from cgraph.saved.parts import Parts
from cgraph.saved.program import code_of, tables_of
from cgraph.storage.cell import Cell, CellValue, aligned_empty, commit, set_all


class SavedFunction(Runner):
    """A function loaded from a folder, without its graph. Changes: as a Function does.

    Fields
        parts: its files
    """

    def __init__(self, parts: Parts, threads: int) -> None:
        manifest, code, tables = parts.manifest, code_of(parts), tables_of(parts.arrays)
        variables, steps = (*manifest.inputs, *manifest.cells), len(tables.workspace)
        if tables.depends.shape[1] != len(variables) // 8 + 1 or len(code.first_row) != steps + 2:
            raise malformed("what depends on what")
        offer_native(partial(native_of, parts))
        memory, addresses = place_code(parts, "kernels")
        program = CpuProgram(code, code.addresses(addresses), threads or cores(), memory=memory)
        roles = manifest.inputs, manifest.cells, manifest.updated, manifest.outputs
        single = get(manifest.entries, "single", bool) and len(manifest.outputs) == 1
        super().__init__(program, *roles, single, IncrementalPlan(steps, variables, lambda: tables), manifest.names)
        self.parts = parts
        precision = parts.entry.get("precision")
        if precision is not None:
            self.precision = import_module("cgraph.saved.precision_entry").precision_of(precision)
        self._fill(parts.files[STATE])

    def save(self, folder: str | os.PathLike) -> None:
        """Write the function again with the present values of its cells: see `Function.save`."""
        slots.save_functions([self], folder)

    def share_cells(self, other: Runner) -> None:
        """Use the cells of another function wherever names agree. InputError if a spec differs; then nothing
        changes.
        """
        pairs = [(x, y) for x in (*self.cells, *self.updated) for y in (other.state.get(x.name),) if y is not None]
        for x, y in pairs:
            if x.spec != y.spec:
                raise InputError(
                    f"{x.name} {x.spec} cannot share a cell with {y.spec}. Save both functions with Vars of one spec"
                )
        set_all([x for x, _ in pairs], "cell", [y.cell for _, y in pairs])

    def __reduce__(self) -> tuple:
        return slots.reduced_function(self)

    def _fill(self, state: np.ndarray) -> None:
        """Assign the saved values to the cells."""
        values: dict[Cell, CellValue] = {}
        for x, start in zip(self.parts.manifest.variables, self.parts.manifest.starts):
            if start >= 0:
                if start + x.spec.nbytes > len(state):
                    raise malformed("a value outside of its file")
                own = aligned_empty(x.spec)
                own.reshape(-1).view(np.uint8)[...] = state[start : start + x.spec.nbytes]
                values[x.cell] = CellValue(own)
        commit([*values], values.values())


def native_of(parts: Parts) -> tuple[dict[Kernel, int], np.ndarray]:
    """Return the interpreter's functions and their memory."""
    memory, addresses = place_code(parts, "interpreter")
    if len(addresses) != len(WORDS):
        raise malformed("the interpreter")
    return dict(zip(interpreter(), addresses)), memory


def place_code(parts: Parts, name: str) -> tuple[np.ndarray, list[int]]:
    """Return executable memory with an image, and the addresses of its functions."""
    image = parts.image(name)
    try:
        memory, addresses = place_image(image)
    except UnknownCode as error:
        raise FormatError(str(error)) from None
    return memory, list(addresses.values())
