"""jit: a Python function over arrays, compiled for each structure of its arguments."""

from collections.abc import Callable, Iterable
from functools import update_wrapper
from inspect import Parameter, signature
from types import MethodType
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from cgraph.errors import ArgumentError, GraphError
from cgraph.function import Function, compile
from cgraph.ir.graph import Node
from cgraph.ir.tracing import TRACE
from cgraph.planning.options import COMPILE_KEYWORDS, CompileKeywords, options_of
from cgraph.system.keywords import checks_keywords
from cgraph.transforms.executable import EXECUTABLES, CacheInfo, Executable, node_or_constant, number_of
from cgraph.transforms.leaves import argument, descriptor, node_of, placeholder, tracer_of
from cgraph.transforms.trace import FunctionTrace
from cgraph.transforms.tracer import Tracer
from cgraph.transforms.trees import READY, Static, flatten, map_leaves, paths, streams_in, unflatten, with_settings
from cgraph.transforms.weak import SAMPLES


@checks_keywords(COMPILE_KEYWORDS)
def jit(
    f: Callable | None = None,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    **options: Unpack[CompileKeywords],
) -> Any:
    """Compile a Python function over arrays; use it as a decorator or a function.

    The function is called once for each structure, shapes and dtypes of its arguments, with traced arrays in place of
    arrays and Python numbers. What it computes becomes a `Function`, which later calls run.

        @cg.jit
        def step(x, v, dt=0.1):
            v = v - dt * np.sin(x)
            return x + dt * v, v

    Parameters
        f: takes and returns arrays and numbers, also in tuples, lists, dicts, named tuples and dataclasses
        static_argnums, static_argnames: arguments that keep their Python value; the function is compiled again for each
            value. They must be hashable
        options: of `cgraph.compile`, such as engine=, threads=, budget=
    Returns
        a `CompiledFunction`; without `f`, a decorator
    Raises
        GraphError: an unknown option; while tracing, an operation that needs a value, which is not known yet
        ArgumentError: an argument is neither an array nor named as static
    """
    numbers = tuple(static_argnums) if isinstance(static_argnums, Iterable) else (static_argnums,)
    if not all(isinstance(i, int) for i in numbers):
        raise ArgumentError(
            f"static_argnums is {static_argnums!r:.60}. Pass positions of arguments, such as 0 or (0, 2)"
        )
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    if f is None:
        return lambda function: CompiledFunction(function, numbers, names, dict(options))
    return CompiledFunction(f, numbers, names, dict(options))


def cache_info() -> CacheInfo:
    """Return the number and bytes of all functions that `jit` has compiled, and the limits."""
    return EXECUTABLES.info()


jit.cache_info = cache_info  # type: ignore[attr-defined]


class CompiledFunction:
    """A Python function that is traced and compiled once for each structure of its arguments.

    Fields
        static_numbers, static_names: positions and names of arguments that keep their Python values
        options: of `cgraph.compile`
    """

    def __init__(
        self, f: Callable, numbers: tuple[int, ...], names: tuple[str, ...], options: dict[str, Any], recipe: Any = None
    ) -> None:
        if not callable(f):
            raise ArgumentError(f"jit takes a function, not {f!r:.60}; pass a Python function over arrays")
        options_of({name: x for name, x in options.items() if name not in ("engine", "threads")})
        self.options, self.parameters = options, parameters_of(f)
        self.static_numbers, self.static_names = static_arguments(self.parameters, numbers, names)
        self._has_static = bool(self.static_numbers or self.static_names)
        update_wrapper(self, f, updated=())
        self.__wrapped__ = f
        base, steps = recipe or recipe_of(f)
        statics = (self.static_numbers, self.static_names)
        self.recipe = base, ("jit", steps, statics, tuple(sorted(options.items())))
        self._number = number_of(*self.recipe)

    def __repr__(self) -> str:
        return f"<jit of {getattr(self, '__qualname__', repr(self.__wrapped__))}>"

    if not TYPE_CHECKING:  # for a type checker, it would have every name

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError. A name of `Function` belongs to the Function of some arguments."""
            advice = f"; use f.compiled(*arguments).{name}" if hasattr(Function, name) else ""
            raise AttributeError(f"a function of cg.jit has no attribute {name!r}{advice}")

    def __reduce__(self) -> str:
        """Pickle it by its name, as Python pickles functions."""
        return getattr(self, "__qualname__", repr(self))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the function on these arguments; compile it if their structure is new."""
        if TRACE.get() is None:
            if not kwargs and not self._has_static:
                key: list[Any] = [self._number]
                for x in args:
                    if type(x) is not np.ndarray:
                        break
                    key += x.shape, x.dtype
                else:
                    executable = EXECUTABLES.get(tuple(key))
                    if executable is not None:
                        return executable.result(executable.run(*args))
            return self._call(args, kwargs)
        return self._inline(args, kwargs)

    def compiled(self, /, *args: Any, **kwargs: Any) -> Function:
        """Return the `Function` for arguments like these, with its plan, report and bytes; nothing is run."""
        function = self._executable(*self._leaves(args, kwargs), args, kwargs).function
        if function is None:
            raise GraphError(
                f"{self!r} returns nothing that depends on its arguments, so there is no Function. Return an array"
            )
        return function

    def clear(self) -> None:
        """Remove all that was compiled for this function."""
        EXECUTABLES.drop(self._number)

    # -- a call ---------------------------------------------------------------------------------------------------
    def _call(self, args: tuple, kwargs: dict) -> Any:
        """Run with arguments of any structure."""
        leaves, structure = self._leaves(args, kwargs)
        if not READY.issuperset(map(type, leaves)) and any(isinstance(x, Node | Tracer) for x in leaves):
            return self._inline(args, kwargs)
        executable = self._executable(leaves, structure, args, kwargs)
        values = executable.run(*leaves)
        if executable.streams:
            for stream, key in zip(streams_in((args, kwargs)), values[-executable.streams :]):
                stream.key = key
        return executable.result(values)

    def _leaves(self, args: tuple, kwargs: dict) -> tuple[list[Any], Any]:
        """Return the arrays and numbers of a call, and the structure of its arguments."""
        leaves: list[Any] = []
        structure = flatten(self._with_static(args, kwargs), leaves)
        if READY.issuperset(map(type, leaves)):
            return leaves, structure
        names = self._names(structure)
        values = [argument(x, name) for x, name in zip(leaves, names)]
        leaves = []
        return leaves, with_settings(structure, iter(values), leaves)

    def _with_static(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Return the arguments with static ones marked. ArgumentError for one that is not hashable."""
        if not self._has_static:
            return args, kwargs
        marked = tuple(static(x) if i in self.static_numbers else x for i, x in enumerate(args))
        return marked, {name: static(x) if name in self.static_names else x for name, x in kwargs.items()}

    def _executable(self, leaves: list[Any], structure: Any, args: tuple, kwargs: dict) -> Executable:
        """Return the executable for these arguments, compiled now if it is not there."""
        key: tuple = (self._number, structure, *map(descriptor, leaves))
        if not kwargs and not self._has_static and all(type(x) is np.ndarray for x in args):
            key = (self._number, *[part for x in args for part in (x.shape, x.dtype)])  # as `__call__` writes it
        executable = EXECUTABLES.get(key)
        if executable is None:
            executable = self._compile(leaves, structure)
            EXECUTABLES.add(key, executable)
        return executable

    def _compile(self, leaves: list[Any], structure: Any) -> Executable:
        """Trace the function and compile the resulting graph."""
        variables = [placeholder(x, name) for x, name in zip(leaves, self._names(structure))]
        trace = FunctionTrace()

        def work() -> tuple[Any, list[Any], list[Node]]:
            tracers = iter([tracer_of(trace, x, variable) for x, variable in zip(leaves, variables)])
            args, kwargs = unflatten(structure, tracers)
            results: list[Any] = []
            form = flatten(self.__wrapped__(*args, **kwargs), results)
            keys = [node_of(stream.key) for stream in streams_in((args, kwargs))]
            return form, [node_or_constant(x) for x in results], keys

        form, results, keys = trace.run(work)
        nodes = [*[x for x in results if isinstance(x, Node)], *keys]
        function = compile(nodes, variables, **self.options) if nodes else None
        positions = iter(range(len(nodes)))
        return Executable(function, form, [next(positions) if isinstance(x, Node) else x for x in results], len(keys))

    def _names(self, structure: Any) -> list[str]:
        """Return a name for each leaf, by the function's parameters."""
        positional, named = structure.children
        names = [path for i, x in enumerate(positional.children) for path in paths(x, self._name_of(i))]
        for name, x in zip(named.names, named.children):
            names += paths(x, name)
        return names

    def _name_of(self, position: int) -> str:
        """Return the name of the parameter that takes the argument at a position."""
        for i, (name, parameter) in enumerate(self.parameters.items()):
            if parameter.kind is Parameter.VAR_POSITIONAL:
                return f"{name}[{position - i}]"
            if i == position:
                return name
        return f"arguments[{position}]"

    def _inline(self, args: tuple, kwargs: dict) -> Any:
        """Call the function inside the trace in progress, or on nodes: its operations become part of their graph."""
        leaves, structure = self._leaves(args, kwargs)
        outer = TRACE.get()
        trace = outer or FunctionTrace()

        def work() -> Any:
            copies = iter([x if type(x) in SAMPLES else tracer_of(trace, x, node_of(x)) for x in leaves])
            inner_args, inner_kwargs = unflatten(structure, copies)
            result = self.__wrapped__(*inner_args, **inner_kwargs)
            for stream, inner in zip(streams_in((args, kwargs)), streams_in((inner_args, inner_kwargs))):
                stream.key = inner.key if outer else node_of(inner.key)
            return result if outer else map_leaves(lambda x: x.node if isinstance(x, Tracer) else x, result)

        return work() if outer else trace.run(work)


def recipe_of(f: Callable) -> tuple[Callable, Any]:
    """Return the user's Python function inside a transformed function, and the transformations applied to it."""
    return getattr(f, "recipe", (f, ()))


def parameters_of(f: Callable) -> dict[str, Parameter]:
    """Return a function's parameters by name; none where Python does not know them."""
    try:
        return dict(signature(f).parameters)
    except (TypeError, ValueError):
        return {}


def static_arguments(
    parameters: dict[str, Parameter], numbers: tuple[int, ...], names: tuple[str, ...]
) -> tuple[frozenset[int], frozenset[str]]:
    """Return positions and names of static arguments, each by position and by name. ArgumentError for unknown ones."""
    order = list(parameters)
    takes_names = any(x.kind is Parameter.VAR_KEYWORD for x in parameters.values())
    takes_more = any(x.kind is Parameter.VAR_POSITIONAL for x in parameters.values())
    for i in numbers:
        if parameters and not takes_more and not -len(order) <= i < len(order):
            raise ArgumentError(f"static_argnums has {i}, of {len(order)} parameters. Use 0 to {len(order) - 1}")
    for name in names:
        if parameters and name not in order and not takes_names:
            raise ArgumentError(f"static_argnames has {name!r}. Use one of {', '.join(order) or 'none'}")
    positions = {i % len(order) if order and i < 0 else i for i in numbers}
    by_name = {name for i, name in enumerate(order) if i in positions and is_named(parameters[name])}
    by_position = {i for i, name in enumerate(order) if name in names and is_positional(parameters[name])}
    return frozenset(positions | by_position), frozenset(by_name | set(names))


def is_named(parameter: Parameter) -> bool:
    return parameter.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def is_positional(parameter: Parameter) -> bool:
    return parameter.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.POSITIONAL_ONLY)


def static(x: Any) -> Static:
    """Return a static argument. ArgumentError if it is not hashable."""
    marked = Static(x)
    try:
        hash(marked)
    except TypeError:
        raise ArgumentError(
            f"the static argument {x!r:.60} of {type(x).__name__} is not hashable; pass a tuple, a number or text"
        ) from None
    return marked
