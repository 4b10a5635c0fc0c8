"""The call of a user's function with tracers, and the passage of every operation from tracers to nodes and back.

Inside the library no trace is active, so that library code sees only nodes; a user's function that the library calls
while it builds (the body of a loop) is traced in a trace of its own.
"""

from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

import numpy as np

from cgraph import slots
from cgraph.errors import DTypeError, GraphError
from cgraph.ir.graph import OPS, Node
from cgraph.ir.tracing import TRACE
from cgraph.numpy.assign import with_item
from cgraph.ops.arithmetic import astype
from cgraph.ops.join import stack
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import broadcast_to
from cgraph.ops.slicing import getitem, is_array_index
from cgraph.ops.sort import sort as sorted_along
from cgraph.transforms.in_place import CHANGING, partition, put, update_at
from cgraph.transforms.number_states import NumberStates, kinds_of, types_in
from cgraph.transforms.storage import Storage, is_exact, path_between
from cgraph.transforms.tracer import Tracer
from cgraph.transforms.weak import (
    is_weak,
    number_types,
    promotes_numbers,
    python_arithmetic,
    strong_arguments,
    weak_type,
)

T = TypeVar("T")
VIEWS = frozenset(
    "T array_split asanyarray asarray ascontiguousarray asfortranarray atleast_1d atleast_2d atleast_3d "
    "broadcast_arrays broadcast_to diag diagonal dsplit expand_dims flip fliplr flipud getitem hsplit imag "
    "matrix_transpose moveaxis mT permute_dims ravel real reshape rollaxis rot90 sliding_window_view split squeeze "
    "swapaxes transpose unstack view vsplit".split()
)
"""Functions, methods and attributes whose results may share bytes with an operand in NumPy."""
LOOPS = {
    "fori": ("lower", "upper", "body", "state", "maximum"),
    "scan": ("f", "init", "xs", "length"),
    "while_loop": ("condition", "body", "state", "maximum"),
}
"""Loops, with the names of their parameters."""


class FunctionTrace:
    """The call of one function with tracers. Mutable: it is open until the function returns.

    Fields
        reads_closed: it may read arrays of functions that have returned, as the gradient of `custom_gradient` does
    """

    def __init__(self, reads_closed: bool = False) -> None:
        self.is_open, self.reads_closed = True, reads_closed

    def run(self, work: Callable[[], T]) -> T:
        """Call `work` with this trace in progress; afterwards its tracers cannot be used.

        It runs in a context of its own, so that nothing remains to be restored, in whatever way it ends.
        """
        try:
            return copy_context().run(self._in_progress, work)
        finally:
            self.is_open = False

    def _in_progress(self, work: Callable[[], T]) -> T:
        TRACE.set(self)
        return work()

    # -- from nodes to tracers and back ---------------------------------------------------------------------------
    def tracer(self, node: Node, weak: type | None = None, is_scalar: bool | None = None) -> Tracer:
        """Return a new array with this value."""
        return Tracer(Storage(node, self), (), weak, not node.shape if is_scalar is None else is_scalar)

    def number(self, x: Any, dtype: np.dtype, weak: type | None) -> Tracer:
        """Return a number in a dtype; `weak` is the type of the Python number that it stands for."""
        return self.tracer(suspended(lambda: astype(as_node(nodes_in(x, [])), dtype)), weak, True)

    def wrap(self, value: Any) -> Any:
        """Return results of an operation as tracers."""
        if isinstance(value, Node):
            return self.tracer(value)
        if isinstance(value, tuple | list):
            return members_as(value, map(self.wrap, value))
        if isinstance(value, dict):
            return {key: self.wrap(x) for key, x in value.items()}
        return value

    def wrap_views(self, name: str, value: Any, operands: Sequence[Tracer]) -> Any:
        """Return results of an operation as tracers; views share the bytes of the operand."""
        if isinstance(value, tuple | list):
            return members_as(value, [self.wrap_views(name, x, operands) for x in value])
        if not isinstance(value, Node):
            return value
        for source in operands:
            path = path_between(source.node, value)
            if path is not None and is_exact(path, name):
                return Tracer(source.storage, (*source.path, *path), source.weak)
        result = self.tracer(value, is_scalar=False)
        if operands:
            operands[0].storage.relate(result.storage)
        return result

    # -- operations -----------------------------------------------------------------------------------------------
    def call(self, function: Callable, args: tuple, kwargs: dict, name: str) -> Any:
        """Call a function of the library with nodes in place of tracers."""
        if name in LOOPS and len(args) <= len(LOOPS[name]) and kwargs.keys().isdisjoint(LOOPS[name][: len(args)]):
            return self.loop(function, dict(zip(LOOPS[name], args)) | kwargs, name)
        if name == "cond" and getattr(function, "__name__", "") == name:  # `np.linalg.cond` is another function
            return self.choice(function, *args, **kwargs)
        if name == "custom_gradient":
            args = tuple(partial(self.body, x, ()) if is_body(x) else x for x in args)
            kwargs = {key: partial(self.body, x, ()) if is_body(x) else x for key, x in kwargs.items()}
        if promotes_numbers(name, args, kwargs):
            args, kwargs = suspended(strong_arguments, name, args, kwargs)
        operands: list[Tracer] = []
        plain = [nodes_in(x, operands) for x in args]
        named = {key: nodes_in(x, operands) for key, x in kwargs.items()}
        result = suspended(function, *plain, **named)
        if name in VIEWS and not (name == "getitem" and copies(plain[1], result)):
            return self.wrap_views(name, result, operands)
        return self.wrap(result)

    def loop(self, function: Callable, arguments: dict[str, Any], name: str) -> Any:
        """Build a loop, as often as the kinds of its numbers change (see `number_states`)."""
        body, state = ("f", "init") if name == "scan" else ("body", "state")
        states = NumberStates()
        while not states.is_settled:
            states.is_settled = True
            initial = states.first(self, arguments.get(state))
            kinds = number_types(initial)
            numbers = (int, kinds) if name == "fori" else (kinds,)
            plain = {key: nodes_in(initial if key == state else x, []) for key, x in arguments.items()}
            if is_body(arguments.get(body)):
                plain[body] = partial(self.round, arguments[body], numbers, states, name)
            if is_body(arguments.get("condition")):
                plain["condition"] = partial(self.body, arguments["condition"], numbers)
            result = suspended(function, **plain)
        if name == "scan":
            return self.wrap_numbers(result[0], kinds), self.wrap(result[1])
        return self.wrap_numbers(result, kinds)

    def round(self, function: Callable, numbers: Sequence[Any], states: NumberStates, name: str, *args: Any) -> Any:
        """Call a user's function that builds a round of a loop: nodes in, nodes out."""
        place = len(numbers) - 1  # of the state

        def following(*wrapped: Any) -> Any:
            kinds = kinds_of(wrapped[place])
            answer = function(*wrapped)
            if name != "scan":
                return states.following(TRACE.get(), answer, kinds)
            if isinstance(answer, tuple) and len(answer) == 2:
                return states.following(TRACE.get(), answer[0], kinds), answer[1]
            return answer

        return self.body(following, numbers, *args)

    def choice(self, function: Callable, p: Any, f: Callable, g: Callable, *xs: Any) -> Any:
        """Build a choice, again if the kinds of the numbers that the branches return differ."""
        states, kinds = NumberStates(), [None]

        def left(*wrapped: Any) -> Any:
            results = states.first(TRACE.get(), f(*wrapped))
            kinds[0] = kinds_of(results)
            return results

        def right(*wrapped: Any) -> Any:
            return states.following(TRACE.get(), g(*wrapped), kinds[0])

        while not states.is_settled:
            states.is_settled = True
            branches = (partial(self.body, branch, number_types(xs)) for branch in (left, right))
            result = suspended(function, nodes_in(p, []), *branches, *(nodes_in(x, []) for x in xs))
        return self.wrap_numbers(result, types_in(kinds[0]))

    def body(self, function: Callable, numbers: Sequence[Any], *args: Any) -> Any:
        """Call a user's function that builds the body of a loop, a branch or a gradient: nodes in, nodes out.

        `numbers` has the types of the first arguments that are Python numbers.
        """
        inner = FunctionTrace(reads_closed=True)
        wrapped = [*map(inner.wrap_numbers, args, numbers), *map(inner.wrap, args[len(numbers) :])]
        return inner.run(lambda: nodes_in(function(*wrapped), []))

    def wrap_numbers(self, value: Any, kinds: Any) -> Any:
        """Return nodes as tracers; those with a type in `kinds`, of the same structure, stand for Python numbers."""
        if isinstance(value, tuple | list):
            return members_as(value, map(self.wrap_numbers, value, kinds))
        if isinstance(value, dict):
            return {key: self.wrap_numbers(x, kinds[key]) for key, x in value.items()}
        return self.tracer(value, kinds, True) if isinstance(value, Node) and kinds else self.wrap(value)

    def operator(self, name: str, args: tuple) -> Any:
        """Apply an operator; one of Python numbers gives a Python number."""
        if not all(map(is_weak, args)):
            return self.call(OPS[name], args, {}, name)
        result = self.call(OPS[name], suspended(python_arithmetic, name, args), {}, "")
        result.weak = weak_type(result.node)
        return result

    def operate_in_place(self, name: str, x: Tracer, other: Any) -> Any:
        """Apply an augmented assignment: in place on an array, a new value for a number."""
        result = self.operator(name, (x, other))
        if x.is_scalar:
            return result
        self.store(x, result, name)
        return x

    def store(self, x: Tracer, result: Tracer, name: str) -> None:
        """Write a result into an array. DTypeError where NumPy refuses the conversion."""
        if not np.can_cast(result.dtype, x.dtype, "same_kind"):
            raise DTypeError(
                f"{name} gives {result.dtype}, which does not go into {x!r} in place; "
                f"write x = np.{name}(x, y), or convert with astype"
            )
        if result.shape != x.shape:
            result = self.call(broadcast_to, (result, x.shape), {}, "")
        x.assign(suspended(astype, result.node, x.dtype))

    def set_item(self, x: Tracer, index: Any, value: Any) -> None:
        """Carry out ``x[index] = value``."""
        if x.is_scalar:
            raise DTypeError(f"{x!r} is a number, which does not support item assignment; use an array of one element")
        index = self.index(index)
        x.assign(suspended(with_item, x.node, nodes_in(index, []), nodes_in(value, [])))

    def get_item(self, x: Tracer, index: Any) -> Any:
        """Return ``x[index]``."""
        return self.call(getitem, (x, self.index(index)), {}, "getitem")

    def index(self, index: Any) -> Any:
        """Return an index in which lists with traced integers are traced arrays."""
        if isinstance(index, tuple):
            return tuple(map(self.index, index))
        if isinstance(index, list) and any(isinstance(x, Tracer | list) for x in index):
            members = [self.index(x) for x in index]
            return self.call(stack, (members,), {}, "stack") if any(isinstance(x, Tracer) for x in members) else index
        return index

    def change(self, function: Callable[..., Node], x: Tracer, args: tuple, kwargs: dict) -> None:
        """Assign the new value that a function computes of an array and other arguments."""
        if x.is_scalar:
            raise DTypeError(f"{x!r} is a number, which does not change in place; use an array of one element")
        named = {key: nodes_in(value, []) for key, value in kwargs.items()}
        x.assign(suspended(function, x.node, *(nodes_in(value, []) for value in args), **named))

    def attribute(self, x: Tracer, name: str) -> Any:
        """Return an attribute or method of an array."""
        if name in IN_PLACE:
            return partial(IN_PLACE[name], self, x)
        value = suspended(getattr, x.node, name)
        if not callable(value) or isinstance(value, Node):
            return self.wrap_views(name, value, [x]) if name in VIEWS else self.wrap(value)

        def method(*args: Any, **kwargs: Any) -> Any:
            if name in ("conj", "conjugate") and x.dtype.kind != "c" or (name == "astype" and not copies_dtype(kwargs)):
                return self.wrap_views(name, suspended(value, *args, **kwargs), [x])
            return self.call(lambda _, *xs, **named: value(*xs, **named), (x, *args), kwargs, name)

        return method

    def ufunc(self, ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict) -> Any:
        """Apply a ufunc; ``out=`` assigns to a traced array, and so does the method ``at``."""
        if method == "at" and isinstance(inputs[0], Tracer):
            return self.change(partial(update_at, ufunc), inputs[0], (self.index(inputs[1]), *inputs[2:]), kwargs)
        out = kwargs.pop("out", (None,))
        if out[0] is not None and (len(out) > 1 or not isinstance(out[0], Tracer)):
            raise GraphError(
                f"np.{ufunc.__name__} writes a traced value into an array of NumPy. Create the array with "
                "np.zeros_like(x) or cg.numpy.zeros(shape) inside the function, or write x = x + y"
            )
        result = self.call(
            lambda *xs, **named: slots.numpy_ufunc(ufunc, method, xs, named), inputs, kwargs, ufunc.__name__
        )
        if out[0] is None:
            return result
        self.store(out[0], result, ufunc.__name__)
        return out[0]

    def numpy_function(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        """Call a function of NumPy; those that change their first argument assign to a traced array."""
        if function in CHANGING and args and isinstance(args[0], Tracer):
            return self.change(CHANGING[function], args[0], args[1:], kwargs)

        def apply(*xs: Any, **named: Any) -> Any:
            return slots.numpy_function(function, (Node,), xs, named)

        return self.call(apply, args, kwargs, function.__name__)


def fill(trace: FunctionTrace, x: Tracer, value: Any) -> None:
    """Set all elements of an array to a value."""
    trace.set_item(x, Ellipsis, value)


def sort(trace: FunctionTrace, x: Tracer, axis: int = -1) -> None:
    """Sort an array in place."""
    x.assign(suspended(sorted_along, x.node, axis))


def change_by(function: Callable[..., Node]) -> Callable[..., None]:
    """Return the method that assigns what a function computes of the array and other arguments."""
    return lambda trace, x, *args, **kwargs: trace.change(function, x, args, kwargs)


IN_PLACE: dict[str, Callable] = {
    "fill": fill,
    "partition": change_by(partition),
    "put": change_by(put),
    "sort": sort,
}
"""Methods that change their array."""


def traced_call(function: Callable, args: tuple, kwargs: dict) -> Any:
    """Call a public function of the library during a trace: the slot of `cgraph.ir.graph.locates_errors`."""
    return TRACE.get().call(function, args, kwargs, function.__name__)


def suspended(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Call library code with no trace in progress."""
    return copy_context().run(_without_trace, function, args, kwargs)


def _without_trace(function: Callable[..., T], args: tuple, kwargs: dict) -> T:
    TRACE.set(None)
    return function(*args, **kwargs)


def nodes_in(value: Any, operands: list[Tracer]) -> Any:
    """Return an argument with nodes in place of tracers, which are appended to `operands`."""
    if isinstance(value, Tracer):
        operands.append(value)
        return value.node
    if isinstance(value, tuple | list):
        return members_as(value, [nodes_in(x, operands) for x in value])
    if type(value) is dict:
        return {key: nodes_in(x, operands) for key, x in value.items()}
    return value


def is_body(x: Any) -> bool:
    """Return True for a user's function."""
    return callable(x) and not isinstance(x, Tracer | Node)


def members_as(pattern: Any, members: Iterable[Any]) -> Any:
    """Return members as a list, tuple or named tuple of the class of `pattern`."""
    kind = type(pattern)
    return kind(*members) if hasattr(kind, "_fields") else kind(members)


def copies(index: Any, result: Any) -> bool:
    """Return True if NumPy's indexing gives a number or a copy, not a view."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(map(is_array_index, parts)) or (not result.shape and not any(part is Ellipsis for part in parts))


def copies_dtype(kwargs: dict) -> bool:
    """Return True unless ``astype(copy=False)`` may return the array itself."""
    return kwargs.get("copy", True) is not False
