"""load: a saved function as a callable. It imports nothing of the compiler."""

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from cgraph import slots
from cgraph.engine.cpu.cores import check_threads, cores
from cgraph.engine.cpu.program import CpuProgram
from cgraph.engine.cpu.threads import WORDS, interpreter, offer_native
from cgraph.errors import CgraphError, FormatError, InputError
from cgraph.kernels.code_image import UnknownCode, place_image
from cgraph.kernels.kernel import Kernel
from cgraph.memory.incremental import IncrementalPlan
from cgraph.running.runner import Runner
from cgraph.saved.folder import Folder
from cgraph.saved.layout import GRAPH, MANIFEST, STATE
from cgraph.saved.manifest import entries_of, get, malformed, manifest_of, misfit, target_of
from cgraph.saved.parts import Files, Parts, check_file
from cgraph.saved.program import code_of, tables_of
from cgraph.storage.cell import Cell, CellValue, aligned_empty, commit, set_all


def load(
    folder: str | os.PathLike,
    *,
    threads: int = 0,
    trust: bool = False,
    verify: bool = False,
    in_memory: bool = False,
) -> Runner:
    """Load a saved function with the values of its cells. NumPy and a few modules suffice.

    Parameters
        folder: a folder that `Function.save` wrote
        threads: 0 for all cores that this process may use
        trust: run its machine code even if other users may have written it
        verify: check constants and graph too, which takes a second for some gigabytes; all other files are always
            checked. Weights that runs read from the folder are compared with checksums by every run
        in_memory: copy constants instead of mapping them (truncating a mapped file kills the process)
    Raises
        GraphError: a negative number of threads
        FormatError: the folder is damaged, writable by other users, or of another version, system or processor and
            without a graph. With a graph, the graph is compiled instead
    """
    check_threads(threads)
    opened = Folder(folder, trust)
    try:
        return load_files(opened, threads, verify, in_memory)
    except CgraphError as error:
        raise FormatError(f"{os.fspath(folder)}: {error}") from None
    finally:
        opened.close()


def load_files(files: Files, threads: int, verify: bool, in_memory: bool) -> Runner:
    """Return the function of these files."""
    try:
        return load_or_compile(files, threads, verify, in_memory)
    except RecursionError:
        raise malformed("lists in lists without end") from None


def load_or_compile(files: Files, threads: int, verify: bool, in_memory: bool) -> Runner:
    """Return the saved function, or its graph compiled if the code does not fit this machine and version."""
    entries, features = entries_of(files[MANIFEST]), cpu_features()
    reason = misfit(entries, features)
    if reason:
        if isinstance(files, Folder) and GRAPH in files:
            return compile_graph(graph_of(files, entries), entries, threads)
        raise FormatError(reason)
    manifest = manifest_of(entries)
    if GRAPH in manifest.files and isinstance(files, Folder):
        check_file(GRAPH, files[GRAPH], manifest.files, verify)
    target = target_of(get(entries, "targets", dict), features)
    assert target is not None  # misfit
    return SavedFunction(Parts(files, manifest, target, verify, in_memory), threads)


def graph_of(folder: Folder, entries: dict[str, Any]) -> memoryview:
    """Return the graph beside a program, checked against the manifest's checksum; formats 1 and 2 have none."""
    graph, sums = folder[GRAPH], entries.get("files")
    if entries.get("version") not in WITHOUT_SUM:
        check_file(GRAPH, graph, sums if isinstance(sums, dict) else {}, True)
    return graph.data


def compile_graph(graph: memoryview, entries: dict[str, Any], threads: int) -> Runner:
    """Compile a graph for this machine."""
    return slots.compile_onnx(graph, entries.get("single") is True, threads)


WITHOUT_SUM = (1, 2)  # formats whose manifest does not list the graph


def cpu_features() -> frozenset[str]:
    """Return this processor's features as named by Linux; an empty set on other systems."""
    try:
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            text = file.read(1 << 14)
    except OSError:
        return frozenset()
    lines = (line for line in text.split(b"\n") if line.startswith(b"flags"))
    return frozenset(next(lines, b":").decode().partition(":")[2].split())


class SavedFunction(Runner):
    """A function loaded from a folder, without its graph. Changes: as a Function does.

    Fields
        parts: its files
        names: names of the outputs; empty if they are unknown
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
        super().__init__(program, *roles, single, IncrementalPlan(steps, variables, lambda: tables))
        self.parts, self.names = parts, manifest.names
        self._fill(parts.files[STATE])

    def save(self, folder: str | os.PathLike) -> None:
        """Write the function again with the present values of its cells: see `Function.save`."""
        slots.save_functions([self], folder, names=self.names)

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
        return unpickle, (slots.bytes_of_functions([self]),)

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


def unpickle(files: Mapping[str, bytes]) -> Runner:
    """Return a function from its files' bytes. Unpickling runs code in any case, so trust is not checked."""
    arrays = {name: np.frombuffer(raw, np.uint8) for name, raw in files.items()}
    return load_files(arrays, threads=0, verify=True, in_memory=True)


unpickled = unpickle  # as older pickles name it
