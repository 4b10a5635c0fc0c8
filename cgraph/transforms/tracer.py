"""Tracer: the object that a traced function gets in place of an array. It behaves as an ndarray without a value."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from cgraph.errors import GraphError, NoMeaningError
from cgraph.ir.graph import _BINARY, _UNARY, COMPARISONS, Node
from cgraph.ir.origin import user_line
from cgraph.ir.tracing import TRACE
from cgraph.transforms.storage import Path, Storage, follow

WAYS = (
    "Use np.where or cg.cond to choose, cg.while_loop or cg.fori to repeat, static_argnames= for an argument that is a "
    "plain setting, or keep this part outside the function"
)
CONVERSIONS = (
    "Use x.astype(float) and the like to convert, np.sin in place of math.sin, static_argnames= for an argument that "
    "is a plain setting, or keep this part outside the function"
)


class Tracer:
    """A traced array: a node, with the assignments and views of NumPy. Mutable: assignments replace its node.

    Fields
        storage, path: the storage that it shares with its views, and the view ops from there to itself
        weak: the type of the Python number that it stands for, which promotes as NumPy promotes Python numbers; or
            None
        is_scalar: it stands for a number, which ``x += 1`` binds anew, not for an array of rank 0
    """

    __slots__ = ("__weakref__", "_node", "_version", "is_scalar", "path", "storage", "weak")
    __array_priority__ = 2000

    def __init__(self, storage: Storage, path: Path = (), weak: type | None = None, is_scalar: bool = False) -> None:
        self.storage, self.path, self.weak, self.is_scalar = storage, path, weak, is_scalar
        self._node, self._version = follow(storage.node, path), storage.version

    @property
    def node(self) -> Node:
        """The present value. GraphError after the end of the trace that created it."""
        storage = self.storage
        if not storage.trace.is_open and not getattr(TRACE.get(), "reads_closed", False):
            raise GraphError(
                f"a traced array of {self._node.where} is used after its function has returned: it has left it through "
                "a list, an attribute or a global. Return the value instead"
            )
        node = storage.value()
        if self._version != storage.version:
            self._node, self._version = follow(node, self.path), storage.version
        return self._node

    def assign(self, node: Node) -> None:
        """Replace the value, for all views of it. GraphError for an array of an enclosing function."""
        line = here()
        if self.storage.trace is not TRACE.get():
            raise GraphError(
                f"{line} assigns to an array of an enclosing function. Pass the array as an argument, "
                "and return its new value"
            )
        self.storage.assign(self.path, node, line)

    # -- properties -----------------------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        return self._node.shape

    @property
    def dtype(self) -> Any:
        return self._node.dtype

    @property
    def ndim(self) -> int:
        return self._node.ndim

    @property
    def size(self) -> int:
        return self._node.size

    @property
    def nbytes(self) -> int:
        return self._node.nbytes

    @property
    def itemsize(self) -> int:
        return self._node.dtype.itemsize

    def __repr__(self) -> str:
        return f"<traced {self._node!r:.200}>"

    def __format__(self, form: str) -> str:
        return self._no_value(f"format {form!r} needs a number") if form else repr(self)

    def __len__(self) -> int:
        return len(self._node)

    def __iter__(self) -> "Iterator[Any]":
        return (self[i] for i in range(len(self)))

    # -- what needs a value ---------------------------------------------------------------------------------------
    def _no_value(self, what: str, ways: str = WAYS) -> Any:
        raise GraphError(
            f"{here()}: {what}, and {self._node.name} {self._node.spec} (made at {self._node.where}) has no value "
            f"while its function is traced. {ways}"
        )

    def __bool__(self) -> bool:
        return self._no_value("if, while, and, or and not need True or False")

    def __float__(self) -> float:
        return self._no_value("float() needs a number", CONVERSIONS)

    def __int__(self) -> int:
        return self._no_value("int() needs a number", CONVERSIONS)

    def __complex__(self) -> complex:
        return self._no_value("complex() needs a number", CONVERSIONS)

    def __index__(self) -> int:
        return self._no_value("range(), a shape or a slice needs an integer")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise NoMeaningError(
            f"{here()}: NumPy needs the values of {self._node.name} {self._node.spec} (made at "
            f"{self._node.where}), which are not there while the function is traced. To fill an array, create it with "
            "np.zeros_like(x) or cg.numpy.zeros(shape); to join arrays, use np.stack or np.concatenate instead of "
            "np.array; to convert, x.astype(np.float32) instead of np.float32(x); otherwise keep this part outside the "
            "function"
        )

    def item(self, *_: Any) -> Any:
        return self._no_value("item() needs a number")

    def eval(self) -> Any:
        return self._no_value("eval() needs the value")

    def tolist(self) -> Any:
        return self._no_value("tolist() needs numbers")

    # -- operations -----------------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"a traced array has no attribute {name!r}")
        return current(self).attribute(self, name)

    def __getitem__(self, index: Any) -> Any:
        return current(self).get_item(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        current(self).set_item(self, index, value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return current(self).ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: tuple, kwargs: dict) -> Any:
        return current(self).numpy_function(function, args, kwargs)

    def __copy__(self) -> "Tracer":
        return self if self.is_scalar else self.copy()

    def __deepcopy__(self, memo: Any) -> "Tracer":
        return self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._no_value("pickle needs the value")

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __round__(self, digits: int | None = None) -> Any:
        """Return the rounded value; of a number without `digits` an integer, as Python and NumPy do."""
        result = self.round(digits or 0)
        if self.is_scalar and digits is None and result.dtype.kind == "f":
            result = result.astype("int64")
        if self.weak is not None:
            result.weak = int if digits is None or self.weak is bool else self.weak
        return result

    if TYPE_CHECKING:

        def _of_two(self, other: Any) -> Any: ...
        def _of_one(self) -> Any: ...

        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = _of_two
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = _of_two
        __and__ = __or__ = __xor__ = __lt__ = __le__ = __gt__ = __ge__ = _of_two
        __neg__ = __abs__ = __invert__ = __pos__ = _of_one
        T: Any


def here() -> str:
    """Return the user's file and line."""
    return str(user_line())


def current(tracer: Tracer) -> Any:
    """Return the trace in progress. GraphError if there is none, so that the tracer has left its function."""
    trace = TRACE.get()
    if trace is None:
        tracer.node  # noqa: B018 - raises if its trace is over
        raise GraphError(
            f"{tracer!r} is used in another thread, or in a function that runs later, than the one that is traced. "
            "Pass it as an operand"
        )
    return trace


def _operator(name: str, swap: bool = False) -> Callable:
    def operate(self: Tracer, *other: Any) -> Any:
        return current(self).operator(name, (*other, self) if swap else (self, *other))

    return operate


def _in_place(name: str) -> Callable:
    def operate(self: Tracer, other: Any) -> Any:
        return current(self).operate_in_place(name, self, other)

    return operate


for _python, _name in (_BINARY | COMPARISONS | _UNARY).items():
    setattr(Tracer, f"__{_python}__", _operator(_name))
for _python, _name in _BINARY.items():
    setattr(Tracer, f"__r{_python}__", _operator(_name, swap=True))
    setattr(Tracer, f"__i{_python}__", _in_place(_name))
# `==` is traced, so tracers are hashed by identity
Tracer.__hash__ = object.__hash__  # type: ignore[method-assign]
