"""compile_sizes: one function of arrays whose sizes vary from call to call: batch, sequence length, image height.

Each size has a plan of its own, made at its first use; the most recently used plans are kept. All of them run in the
memory of the largest, and share the graph's Vars. Kernels take sizes as arguments, so a new size compiles few or none.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Unpack

import numpy as np

from cgraph import slots
from cgraph.collector import rare_collections
from cgraph.errors import FormatError, GraphError, InputError
from cgraph.function import Function, compile
from cgraph.planning.mixed_precision import Tolerance
from cgraph.planning.options import COMPILE_KEYWORDS, CompileKeywords, options_of
from cgraph.record import Record
from cgraph.running.arguments import ordered, run_by_name
from cgraph.storage.shared_arenas import SharedArenas
from cgraph.system.byte_counts import byte_count
from cgraph.system.fair_lock import FairLock
from cgraph.system.keywords import checks_keywords
from cgraph.terminal import visible

MOST_KEPT = 16  # sizes

Sizes = Mapping[str, int]
Shape = Sequence[int | str]


@checks_keywords(COMPILE_KEYWORDS)
def compile_sizes(
    build: Callable[[Sizes], tuple | Callable[..., Function]],
    shapes: Mapping[str, Shape],
    most: Sizes | None = None,
    **options: Unpack[CompileKeywords],
) -> "SizedFunction":
    """Make one function of a graph for each size.

    Parameters
        build: a function that takes each size by name and returns the arguments of `cgraph.compile`: outputs, inputs
            and, perhaps, update edges; or a function of options that returns a Function. Weights are Vars or arrays
            from outside it, so that all sizes share them
        shapes: for each input, in order, its shape, with names for the sizes that vary: ``{"x": ("batch", 784)}``
        most: the largest sizes: their plan is made at once, and no other size needs a larger arena. Without it, memory
            grows with the largest size so far
        options: as for `cgraph.compile`
    Raises
        GraphError: `build` is not a function; `shapes` has no shape by name; a size belongs to no input; `most` omits a
            size or has another; `build` returns no graph of its inputs
        all errors of `compile`
    """
    return SizedFunction(build, shapes, most, options)


class SizedInput(Record):
    """An input whose sizes vary.

    Fields
        name: as in a call
        shape: with names for the sizes that vary
    """

    name: str
    shape: tuple[int | str, ...]

    @property
    def spec(self) -> str:
        """The shape as text."""
        return f"[{','.join(map(str, self.shape))}]"


class SizedFunction:
    """A function of arrays whose sizes vary. Mutable: it compiles new sizes, and runs change the Vars of update edges.

    Fields
        shapes: per input its shape, with names for the sizes that vary
        most: the largest sizes, or None
        sizes: names of the sizes that vary
        names: of the outputs, if a file has them
    """

    needs_sizes = True

    def __init__(
        self,
        build: Callable[[Sizes], tuple | Callable[..., Function]],
        shapes: Mapping[str, Shape],
        most: Sizes | None,
        options: Mapping,
        names: Sequence[str] = (),
    ) -> None:
        if not callable(build) or not isinstance(shapes, Mapping) or not all(map(is_shape, shapes.values())):
            raise GraphError(
                "compile_sizes needs a function and a dict from input name to shape, "
                f"got {build!r:.60} and {shapes!r:.60}. Pass shapes such as {{'x': ('n', 3)}}"
            )
        if not isinstance(most, Mapping | None):
            raise GraphError(
                f"most gives the largest sizes by name, not {most!r:.60}. Pass a dict such as {{'batch': 64}}"
            )
        self.build, self.shapes, self.options = build, {x: tuple(shape) for x, shape in shapes.items()}, dict(options)
        self.inputs = tuple(SizedInput(x, shape) for x, shape in self.shapes.items())
        self.names = tuple(names)
        self.sizes = tuple(dict.fromkeys(n for shape in self.shapes.values() for n in shape if isinstance(n, str)))
        self._places = [place_of(name, self.shapes) for name in self.sizes]
        if not self.sizes and self.needs_sizes:
            raise GraphError(f"no size varies in {self.shapes}. Use cg.compile, or give a size a name in shapes=")
        self.most = dict(most) if most is not None else None
        check_options(self.options)
        self._rooms, self._turns, self._making = SharedArenas(), FairLock(), FairLock()
        self._functions: OrderedDict[tuple, Function] = OrderedDict()
        self._latest: Function | None = None  # of the last call that needed no conversion; the last in `_functions`
        if isinstance(self.options.get("precision"), Tolerance):
            self.options["precision"] = self._measured_precision()
        if self.most is not None:
            if self.most.keys() != set(self.sizes):
                raise GraphError(
                    f"most gives {', '.join(self.most) or 'nothing'}; sizes are {', '.join(self.sizes)}. Give each one"
                )
            self.at(**self.most)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{x.name} {x.spec}" for x in self.inputs)
        return visible(f"<SizedFunction ({inputs}); {len(self._functions)} sizes>")

    def __getattr__(self, name: str) -> Any:
        error = f"SizedFunction has no attribute {name!r}"
        if hasattr(Function, name) and not name.startswith("_"):
            sizes = ", ".join(f"{size}=1" for size in self.sizes)
            error += f": each size has its own Function. Use at({sizes}).{name}"
        raise AttributeError(error)

    def _measured_precision(self) -> Any:
        """Return the choice of layers, measured at the sizes of the first sample; every other size has the same."""
        samples = list(self.options["precision"].samples)
        first = samples[0] if samples else ()
        arrays = first if isinstance(first, tuple | list) else (first,)
        if len(arrays) != len(self.shapes):
            raise InputError(
                f"a Tolerance needs samples with {len(self.shapes)} arrays each, one for each input, not {len(arrays)}"
            )
        sizes = self.sizes_of(dict(zip(self.shapes, arrays)))
        self._check(sizes)
        return self._compiled_at(sizes).precision  # not kept: a plan of this size would limit that of the largest

    @property
    def nbytes(self) -> int:
        """Bytes of the shared arenas."""
        return self._rooms.nbytes

    def __call__(self, /, *args: Any, out: Any = None, copy: bool = True, **named: Any) -> Any:
        """Run at the sizes of these arrays, by position, by name or in one dictionary, as a Function's call does.

        Raises
            InputError: an input is unknown, missing or given twice; sizes differ, or are larger than `most`
        """
        arrays = ordered(args, named, self.inputs)
        latest = self._latest
        if latest is not None and out is None and copy:
            results = latest.run_directly(arrays)
            if results is not None:
                return results
        function = self._function_for(arrays)
        return function(*self._passed(function, arrays), out=out, copy=copy)

    def run(self, names: Sequence[str] | None, inputs: Mapping[str, Any]) -> list[Any]:
        """Run as onnxruntime's ``InferenceSession.run`` does: see `Runner.run`."""
        latest = self._latest
        if latest is not None and names is None and type(inputs) is dict and len(inputs) == len(self.shapes):
            results = latest.results_directly(tuple(map(inputs.get, self.shapes)))
            if results is not None:
                return results
        arrays = ordered((inputs,), {}, self.inputs)
        function = self._function_for(arrays)
        return run_by_name(lambda _: function(*self._passed(function, arrays)), function.names, names, inputs)

    def _function_for(self, arrays: Sequence[Any]) -> Function:
        """Return the Function for the sizes of these arrays."""
        return self._fitting(arrays) or self._at(self.sizes_of(dict(zip(self.shapes, arrays))))

    def _passed(self, function: Function, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the arrays that a Function takes."""
        return arrays

    def _fitting(self, arrays: Sequence[Any]) -> Function | None:
        """Return the Function that is there for these arrays, if they need no conversion; else None."""
        latest = self._latest
        if latest is not None and latest.fits(arrays):
            return latest
        self._latest = None
        try:
            key = tuple([arrays[i].shape[axis] for i, axis in self._places])
            function = self._functions[key]
            if function.fits(arrays):
                self._functions.move_to_end(key)
                self._latest = function
                return function
        except (AttributeError, IndexError, KeyError):  # a first use, or another message follows
            pass
        return None

    def sizes_of(self, arrays: Mapping[str, Any]) -> dict[str, int]:
        """Return the sizes that arrays have. InputError if they disagree."""
        by_name: dict[str, tuple[int, str]] = {}
        for x, shape in self.shapes.items():
            sizes = np.shape(arrays[x])
            if len(sizes) != len(shape):
                raise InputError(
                    f"{x} has {len(sizes)} axes, not the {len(shape)} of [{','.join(map(str, shape))}]. Reshape it"
                )
            for size, name in zip(sizes, shape):
                if not isinstance(name, str):
                    continue
                first_size, where = by_name.setdefault(name, (size, x))
                if first_size != size:
                    raise InputError(f"{name} is {first_size} in {where} and {size} in {x}. Give both one size")
        return {name: by_name[name][0] for name in self.sizes}

    def at(self, **sizes: int) -> Function:
        """Return the Function for these sizes. Its calls use the same memory, so views of results are valid only until
        the next call.
        """
        if sizes.keys() != set(self.sizes):
            raise InputError(f"sizes are {', '.join(self.sizes)}, not {', '.join(sizes) or 'none'}. Give each one")
        return self._at(sizes)

    def _at(self, sizes: Sizes) -> Function:
        """Return the Function for these sizes, and mark it as the last one used."""
        self._check(sizes)
        return self._with_key(tuple(sizes[name] for name in self.sizes))

    def _with_key(self, key: tuple) -> Function:
        """Return the Function of a key, and mark it as the last one used."""
        self._latest = None
        function = self._functions.get(key)
        if function is None:
            return self._making.run(lambda: self._function_of(key))
        with suppress(KeyError):  # another thread has removed it
            self._functions.move_to_end(key)
        return function

    def _check(self, sizes: Sizes) -> None:
        """Raise InputError for a size that is larger than the largest."""
        for name, size in sizes.items():
            if self.most is not None and size > self.most[name]:
                raise InputError(
                    f"{name} is {size}; it was compiled for {self.most[name]} at most. Raise most= of compile_sizes"
                )

    def _function_of(self, key: tuple) -> Function:
        """Return the Function of a key, compiled now if no other thread has done so."""
        function = self._functions.get(key)
        if function is None:
            with rare_collections():
                function = self._compiled_for(key)
            while len(self._functions) >= MOST_KEPT:
                self._functions.popitem(last=False)
                self._rooms.sweep()
            self._functions[key] = function
        return function

    def _compiled_for(self, key: tuple) -> Function:
        """Compile the Function of a key: the sizes in order."""
        return self._compiled_at(dict(zip(self.sizes, key)))

    def _compiled_at(self, sizes: Sizes) -> Function:
        """Compile the graph of these sizes into the shared arenas."""
        function = self._compiled(self.build(sizes))
        if [x.name for x in function.inputs] != list(self.shapes):
            named = ", ".join(x.name for x in function.inputs) or "none"
            raise GraphError(
                f"the graph has the inputs {named}; shapes has {', '.join(self.shapes)}. Name the Vars as in shapes="
            )
        return function

    def _compiled(self, built: Any) -> Function:
        """Compile what `build` returns into the shared arenas."""
        options = dict(self.options)
        if self.most is not None and self._functions and self.nbytes:  # 0 on an engine without plans
            limits = (options.get("budget"), self.nbytes)
            options["budget"] = min(byte_count(n) for n in limits if n is not None)
        if callable(built):
            function = built(**options)
        elif isinstance(built, tuple) and len(built) in (2, 3):
            outputs, inputs, *updates = built
            function = compile(outputs, inputs, *updates, **options)
        else:
            raise GraphError(
                f"build gives outputs, inputs and, perhaps, update edges, not {built!r:.60}. Return such a tuple"
            )
        function.share(self._rooms, self._turns)
        return function

    def export(self, folder: str | os.PathLike, sizes: Sequence[Sizes], **settings: Any) -> Any:
        """Write one object file with a run for each size, for a function compiled with `cgraph.ExportEngine`.

        Parameters
            folder: path of the folder to create
            sizes: of each run, such as ``[{"batch": 1}, {"batch": 8}]``
            settings: name, names, form, memory and reset, as for `cgraph.export`
        Raises
            FormatError: another engine compiles the function; or as for `cgraph.export_sizes`, which also writes check
                vectors
        """
        return slots.export_sized(self, folder, sizes, **settings)

    def save(self, folder: str | os.PathLike) -> None:
        """Raise FormatError: a saved function has one plan."""
        size = next(iter(self.sizes), "")
        raise FormatError(f"a function of several sizes is not saved; save one of them: function.at({size}=…)")


def place_of(size: str, shapes: Mapping[str, tuple[int | str, ...]]) -> tuple[int, int]:
    """Return the first input with a size, and its axis."""
    return next((i, shape.index(size)) for i, shape in enumerate(shapes.values()) if size in shape)


def check_options(options: Mapping[str, Any]) -> None:
    """Raise GraphError for an option that `cgraph.compile` does not take, before anything is compiled."""
    options_of({name: value for name, value in options.items() if name not in ("engine", "threads")})


def is_shape(x: Any) -> bool:
    """Return True for a sequence of integers and names of sizes that vary."""
    return isinstance(x, Sequence) and not isinstance(x, str) and all(isinstance(n, int | str) for n in x)
