"""Runner: a program with its cells and the arenas that it runs in, independent of any graph.

`compile` returns a Runner with its graph (`cgraph.function`), `load` one without.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from operator import attrgetter
from typing import Any, Self, TypeVar
from weakref import ref

import numpy as np

from cgraph import slots
from cgraph.engine.instance import DirectRun, Instance, Program
from cgraph.errors import ArenaError, FormatError, InputError, bytes_text
from cgraph.ir.labels import distinct_names
from cgraph.ir.spec import Spec
from cgraph.kernels.mapped import in_c_order
from cgraph.memory.incremental import EVERY_STEP, IncrementalPlan, State, StepSelection
from cgraph.running.arguments import ordered, run_by_name
from cgraph.running.output_arrays import EarlyResults, check_output, copy_into, output_list
from cgraph.running.results import Results
from cgraph.storage.cell import CellValue, Variable, check_fits, commit, fitting_array, new_value, reader_of, unassigned
from cgraph.storage.shared_arenas import SharedArena, SharedArenas
from cgraph.system.fair_lock import FairLock
from cgraph.system.result_memory import result_array
from cgraph.terminal import visible

T = TypeVar("T")
Inputs = dict[Variable, np.ndarray]
PRESENT_VALUE = attrgetter("cell.value")  # only C code, as `Var.cell` is


def new_array(spec: Spec) -> np.ndarray:
    """Return an uninitialised array for a result."""
    return result_array(spec.shape, spec.dtype, spec.nbytes)


class Runner:
    """A callable program. Mutable: its arenas, and the cells of its update edges.

    Fields
        program: an engine's program; its code can be shown
        inputs: the inputs of a call, in order; each has a name and a spec
        cells: Vars that are read and are not inputs
        updated: Vars that a run gives new values
        outputs: outputs of a call; each has a spec
        single: a call returns the only output itself, not a list of it
        names: of the outputs, each different; ``output0``, ``output1``, … unless the caller or a file named them
        incremental: selects the steps that must run when Vars change; None if every step always runs
        precision: a `cgraph.MixedPrecision`, how each layer is computed, if `compile` got the option; else None
    """

    precision: Any = None

    def __init__(
        self,
        program: Program,
        inputs: Sequence[Any],
        cells: Sequence[Any],
        updated: Sequence[Any],
        outputs: Sequence[Any],
        single: bool,
        incremental: IncrementalPlan | None,
        names: Sequence[str] = (),
    ) -> None:
        self.program, self.inputs, self.outputs = program, tuple(inputs), tuple(outputs)
        self.cells, self.updated = tuple(cells), tuple(updated)
        self.single, self.incremental = single, incremental
        self.names = distinct_names(names) or tuple(f"output{i}" for i in range(len(self.outputs)))
        self._used: tuple[Variable, ...] = tuple(dict.fromkeys((*self.cells, *self.updated)))
        self._always = frozenset(self.inputs)
        self._usual = tuple((x.spec.dtype, x.spec.shape) for x in self.inputs)
        self._idle: list[_InstanceRecord] = []
        self._rooms_shared: SharedArenas | None = None
        self._turns = FairLock()
        self._read: Callable[[Any], Any] | None = None
        self._may_run_directly = self._can_run_directly()
        self._input_names = tuple(x.name for x in self.inputs)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{x.name} {x.spec}" for x in self.inputs)
        outputs = ", ".join(map(str, self.results))
        size = f"; arena {bytes_text(self.nbytes)}" if self.incremental else ""
        return visible(f"<{type(self).__name__} ({inputs}) -> {outputs or 'updates only'}{size}>")

    @property
    def results(self) -> list[Spec]:
        """The specs of the values that a call returns."""
        return [x.spec for x in self.outputs]

    @property
    def nbytes(self) -> int:
        """Bytes of the arena."""
        return self.program.code.nbytes

    def __copy__(self) -> Self:
        """Return the same cells and code with other arenas: runs of both may overlap if there are no update edges."""
        copy = type(self).__new__(type(self))
        copy.__dict__ |= {**self.__dict__, "_idle": []}
        return copy

    def returning(self, library: str) -> Self:
        """Return a Runner in the same memory whose calls return arrays of ``torch``, ``jax``, ``cupy`` or ``numpy``.

        They are new arrays, which the library reads in place. With ``copy=False`` they are arrays in a device's memory,
        which the next run overwrites. Inputs may be of any of these libraries in any case.

        Raises
            InputError: another library, or one that is not installed
        """
        copy = type(self).__new__(type(self))
        copy.__dict__ |= {**self.__dict__, "_read": None if library == "numpy" else reader_of(library)}
        copy._may_run_directly = copy._can_run_directly()
        return copy

    def share(self, rooms: SharedArenas, turns: FairLock) -> None:
        """Run in arenas shared with other Runners; those with update edges run one at a time."""
        rooms.need(self.nbytes if self.incremental else 0)
        self._rooms_shared, self._turns = rooms, turns

    # -- values of the cells ---------------------------------------------------------------------------------------
    @property
    def state(self) -> dict[str, Variable]:
        """The cells by name; a second cell of one name is called ``name.2``."""
        cells: dict[str, Variable] = {}
        for x in self._used:
            count, name = 1, x.name
            while name in cells:
                count += 1
                name = f"{x.name}.{count}"
            cells[name] = x
        return cells

    def for_saving(self) -> Self:
        """Return the Runner whose code `save` writes: this one."""
        return self

    def between_runs(self, work: Callable[[], T]) -> T:
        """Call `work` while no run of this Function writes its cells, and return its result."""
        return self._turns.run(work)

    def save_state(self, path: str | os.PathLike) -> None:
        """Write the values of the cells as a safetensors file; cells without a value are left out.

        At any moment the file is complete: the old one or the new one.
        """
        arrays = self.between_runs(self._arrays)
        slots.write_safetensors(path, arrays)

    def _arrays(self) -> dict[str, np.ndarray]:
        """Return copies of the cells' values at one moment, by name."""
        values = zip(self.state, self._values_now().values())
        return {name: np.array(value.array) for name, value in values if value.is_there}

    def _values_now(self) -> dict[Variable, CellValue]:
        """Return the cells' values at one moment, between assignments of several cells."""
        return dict(zip(self._used, map(PRESENT_VALUE, self._used)))

    def load_state(self, path: str | os.PathLike) -> None:
        """Assign the values that `save_state` wrote to the cells, all at once and between two runs.

        A cell without a value that the file leaves out stays without one.
        An exception, including an interrupt, leaves every cell unchanged, or all with the values of the file.

        Raises
            FormatError: the file is not one that `save_state` wrote, or has other names
            InputError: a shape or dtype differs
        """
        arrays, state = slots.read_safetensors(path), self.state
        assigned = {name for name, x in state.items() if x.cell.value.is_there}
        others = sorted((arrays.keys() - state.keys()) | (assigned - arrays.keys()))
        if others:
            raise FormatError(
                f"{os.fspath(path)}: {others[0]!r} is only in the file or only in the Function. "
                "Load the state into the Function that saved it"
            )
        values = {x: new_value(arrays[name], x.spec, name) for name, x in state.items() if name in arrays}
        self.between_runs(lambda: commit([x.cell for x in values], values.values()))

    # -- a run ----------------------------------------------------------------------------------------------------
    def __call__(self, /, *args: Any, out: Sequence[np.ndarray] | None = None, copy: bool = True, **named: Any) -> Any:
        """Run the program.

        Parameters
            args, named: arrays for the inputs, by position or by name; or one dictionary of arrays by name
            out: arrays for the outputs
            copy: False returns views that the next run overwrites; on a GPU engine, device arrays
        Returns
            the array of a single output; otherwise `Results`: a list that also takes the names of outputs
        Raises
            InputError: an input is unknown, missing, given twice, or of another shape or dtype
            UnassignedError: a Var that is not an input holds no value
        """
        if out is None and copy and not named:
            results = self.run_directly(args)
            if results is not None:
                return results
        if self._read is not None and not copy and self.program.own_array is None:
            raise InputError(
                "copy=False returns views of memory that later calls overwrite, which another library cannot track. "
                "Use copy=True"
            )
        values, arrays = self._values(args, named), self._arrays_for(out)
        if self.updated:
            return self.between_runs(lambda: self._run(values, arrays, copy))
        return self._run(values, arrays, copy)

    def fits(self, arrays: Sequence[Any]) -> bool:
        """Return True if these are contiguous arrays of exactly the shapes and dtypes of the inputs."""
        for x, (dtype, shape) in zip(arrays, self._usual):
            if type(x) is not np.ndarray or x.dtype != dtype or x.shape != shape or not x.flags.c_contiguous:
                return False
        return len(arrays) == len(self._usual)

    def run_directly(self, arrays: tuple) -> Any:
        """Return the result of a call with these arrays on the fast path; None if there is none, or they do not fit."""
        results = self.results_directly(arrays)
        if results is None:
            return None
        return results[0] if self.single else Results(results, self.names)

    def results_directly(self, arrays: tuple) -> list[Any] | None:
        """Return the outputs of a call with these arrays on the fast path; None if there is none, or they do not fit.

        Arrays fit if they need no conversion (`fits`) and do not lie in the arena.
        """
        if not self._may_run_directly:
            return None
        record = self._take()
        try:
            if record.direct is None:
                record.direct = self._direct_run(record)
                self._may_run_directly = record.direct is not None  # the same for each instance
            if record.direct is None or self._steady is None:
                return None
            if self._steady.run is None:
                return record.direct(arrays)
            if record.state != self._steady.after:
                return None
            record.state = None  # of a run that an exception ends
            results = record.direct(arrays)
            record.state = self._steady.after
            return results
        finally:
            self._give(record)

    def _can_run_directly(self) -> bool:
        """Return True unless calls read or write cells, convert results, or take arrays of a device."""
        return not self._used and self._read is None and self.program.own_array is None

    def _direct_run(self, record: "_InstanceRecord") -> DirectRun | None:
        """Return an instance's fast path, if calls with new inputs run the same steps each time."""
        if self._steady is None:
            return None
        return record.instance.direct_run(self.inputs, self.outputs, self._steady.run)

    @cached_property
    def _steady(self) -> StepSelection | None:
        """The steps of a call after earlier calls; None if no steps are selected, or not the same ones each time."""
        return None if self.incremental is None else self.incremental.steady(self._always)

    def run(self, names: Sequence[str] | None, inputs: Mapping[str, Any]) -> list[Any]:
        """Run the program as onnxruntime's ``InferenceSession.run`` does, and return a list of outputs.

        Parameters
            names: the outputs to return, in this order; None for all
            inputs: arrays by the names of the inputs
        Raises
            InputError: an output is unknown; as a call raises
        """
        if names is None and type(inputs) is dict and len(inputs) == len(self.inputs):
            results = self.results_directly(tuple(map(inputs.get, self._input_names)))
            if results is not None:
                return results
        return run_by_name(self, self.names, names, inputs)

    def run_each(self, arrays: Sequence[np.ndarray], complete: Callable[[int, np.ndarray], None]) -> None:
        """Run the program, and call `complete` with the number and the value of each output, a new array.

        Where the engine supports it, a value is passed as soon as it is complete, before later steps run.

        Parameters
            arrays: one for each input, in order
        Raises
            InputError, UnassignedError: as a call raises
            any exception of `complete`, which ends the run
        """
        values, early = self._values(tuple(arrays), {}), set()

        def passed(i: int, value: np.ndarray) -> None:
            early.add(i)
            complete(i, value)

        def run() -> list[np.ndarray]:
            record = self._take()
            try:
                return self._run_on(record, values, None, True, passed)
            finally:
                self._give(record)

        for i, value in enumerate(self.between_runs(run) if self.updated else run()):
            if i not in early:
                complete(i, value)

    def _values(self, args: tuple, named: dict[str, Any]) -> Inputs:
        return {x: self._value(x, value) for x, value in zip(self.inputs, ordered(args, named, self.inputs))}

    def _value(self, x: Any, value: Any) -> Any:
        """Return an input's value as an instance takes it; an array in the device's memory stays there."""
        own = self.program.own_array(value) if self.program.own_array is not None else None
        if own is None:
            return in_c_order(fitting_array(value, x.spec, x.name))
        check_fits(own, x.spec, x.name)
        return own

    def _arrays_for(self, out: Sequence[np.ndarray] | None) -> Sequence[np.ndarray] | None:
        """Return the arrays for the outputs, checked before anything is computed."""
        if out is None:
            return None
        arrays = output_list(out, self.single and isinstance(out, np.ndarray), len(self.outputs), "arrays")
        for array, spec in zip(arrays, self.results):
            check_output(array, spec)
        return arrays

    def _run(self, inputs: Inputs, out: Sequence[np.ndarray] | None, copy: bool) -> Any:
        record = self._take()
        try:
            results = self._run_on(record, inputs, out, copy)
            if self._read is not None:
                results = [x if x is None else self._read(x) for x in results]  # None: rows that went to a function
            elif out is None and copy:
                results = [x if x.ndim else x[()] for x in results]  # NumPy's scalars, as its functions return
        finally:
            self._give(record)
        return results[0] if self.single else Results(results, self.names)

    def _run_on(
        self,
        record: "_InstanceRecord",
        inputs: Inputs,
        out: Sequence[np.ndarray | None] | None,
        copy: bool,
        complete: Callable[[int, np.ndarray], None] | None = None,
    ) -> list[np.ndarray]:
        """Run: first everything that may fail, then the program, which writes all update edges or none, then the
        results. New arrays may be passed to `complete` earlier.

        A result computed from a Var may be stored under the Var's version. So there is no version while a run may be
        writing, and the values in the instance are known only when the run is over.
        """
        instance = record.instance
        values = self._values_now() if self._used else {}
        versions = [values[x].version for x in self.cells]
        if None in [value.stamp for value in values.values()]:
            self._check(values)
            if not all(values[x].is_there for x in self.updated):
                record.done = np.zeros(1, np.int64)
        instance.bind(inputs, values, record.done)
        shown = [None if fresh else np.array(instance.read(x)) for x, fresh in zip(self.outputs, record.fresh)]
        steps = self._steps(record, versions)
        direct: dict[Any, np.ndarray] = {}
        if out is None:
            direct, out = self._destinations(record, copy and not self.updated and steps.run is None, copy)
        early = None if complete is None else EarlyResults(self.outputs, instance, direct, out, complete)
        if direct:
            instance.write_to(direct)
        record.state = None
        try:
            for x in self.updated:
                values[x].version = None
            instance.run(steps.run, complete=early)
            record.versions, record.state = versions, steps.after
        finally:
            for x in self.updated:
                values[x].renew()
        results = (
            direct[x] if x in direct else instance.read(x) if value is None else value
            for x, value in zip(self.outputs, shown)
        )
        return [value if array is None else copy_into(array, value) for array, value in zip(out, results)]

    def _destinations(
        self, record: "_InstanceRecord", is_whole: bool, copy: bool
    ) -> tuple[dict[Any, np.ndarray], list[np.ndarray | None]]:
        """Return new arrays that the run computes in place, and those into which the other outputs are copied.

        Parameters
            is_whole: the run computes all outputs and returns copies
        """
        direct = self._arrays_of(record.results) if record.results and is_whole else {}
        others = [
            new_array(x.spec) if x not in direct and fresh and (copy or not own) else None
            for x, fresh, own in zip(self.outputs, record.fresh, record.own)
        ]
        return direct, others

    def _arrays_of(self, outputs: Sequence[Any]) -> dict[Any, np.ndarray]:
        """Return new arrays for outputs that a run computes in place; none if it may leave out their steps."""
        if self.incremental is not None and not self.incremental.runs_all(self._always):
            return {}
        return {x: new_array(x.spec) for x in outputs}

    def _steps(self, record: "_InstanceRecord", versions: list[int | None]) -> StepSelection:
        """Return the steps that must run, given the values in the instance."""
        if self.incremental is None:
            return EVERY_STEP
        if record.versions == versions and None not in versions:
            return self.incremental.steps(record.state, self._always)
        earlier = record.versions or [None] * len(versions)
        changed = (x for x, now, then in zip(self.cells, versions, earlier) if now is None or now != then)
        return self.incremental.steps(record.state, self._always.union(changed))

    def _check(self, values: Mapping[Variable, CellValue]) -> None:
        """Raise UnassignedError unless every Var that is not an input has a value."""
        for x in self.cells:
            if not values[x].is_there:
                raise unassigned(x)

    @contextmanager
    def instance_for(self, args: tuple, named: Mapping[str, Any]) -> Iterator[Instance]:
        """Yield an instance bound to these inputs, for timed or recorded runs that write no update edge."""
        inputs, record = self._values(args, dict(named)), self._take()
        try:
            values = self._values_now()
            self._check(values)
            values |= {x: CellValue(np.array(values[x].array) if values[x].is_there else None) for x in self.updated}
            record.state = None  # the values that stay in the arena belong to no version of the Vars
            record.instance.bind(inputs, values, record.done)
            yield record.instance
        finally:
            self._give(record)

    def _take(self) -> "_InstanceRecord":
        """Return an idle instance, or a new one."""
        if self._rooms_shared is None and self._idle:
            try:
                return self._idle.pop()
            except IndexError:  # another thread was quicker
                pass
        try:
            return self._new() if self._rooms_shared is None else self._in(self._rooms_shared.take())
        except MemoryError:
            if self.incremental is None:
                raise
            raise ArenaError(self._needs("which the machine does not give")) from None

    def _new(self) -> "_InstanceRecord":
        return _InstanceRecord(self.program.instance(), self.outputs)

    def _in(self, room: SharedArena) -> "_InstanceRecord":
        """Return the instance in an arena; its values are lost if another program has run there since."""
        own = ref(self)
        record = room.instances.get(own)
        if record is None:
            record = room.instances[own] = _InstanceRecord(self.program.instance(room.memory), self.outputs, room)
        if room.last is not own:
            record.state, room.last = None, own
        return record

    def _give(self, record: "_InstanceRecord") -> None:
        """Return an instance to the idle ones after a run."""
        if record.room is None:
            self._idle.append(record)
        elif self._rooms_shared is not None:
            self._rooms_shared.give(record.room)

    def _needs(self, available: str) -> str:
        """Return a text with the memory that a run needs, and the memory available."""
        return f"the arena needs {bytes_text(self.nbytes)}, {available}"


class _InstanceRecord:
    """An instance, and the values in it. Mutable: the values, and the versions of the cells that they were computed
    from.

    Fields
        fresh, own: for each output, whether a run computes it, and whether it is in the instance's memory
        results: outputs that a run may compute outside of that memory
        room: the memory that it shares with other programs; None if it has its own
        state: the valid values, see `IncrementalPlan`; None if unknown
        versions: versions of the cells in the run that `state` describes
        done: the word that a run sets when it has written its update edges
        direct: the fast path of calls; None if there is none, or before the first call
    """

    def __init__(self, instance: Instance, outputs: Sequence[Any], room: SharedArena | None = None) -> None:
        self.instance, self.room = instance, room
        self.fresh = [instance.makes(x) for x in outputs]
        self.own = [instance.owns(x) for x in outputs]
        self.results = [x for x in outputs if x in instance.results]
        self.state: State | None = None
        self.versions: list[int | None] = []
        self.done = np.zeros(1, np.int64)
        self.direct: DirectRun | None = None
