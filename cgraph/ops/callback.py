"""User functions as nodes, called at each run: delay, delay_array, lazy_print."""

import sys
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, GraphError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.origin import user_line
from cgraph.ir.spec import Spec, dtype_of, shape_of
from cgraph.ir.work import Work
from cgraph.kernels.callback import callback_call
from cgraph.kernels.target import Target
from cgraph.ops.leaf import as_node
from cgraph.record import Record, replace
from cgraph.terminal import say


class Delay(Op, eq=False):
    """The result of a Python function of arrays, called at each run.

    Fields
        function: receives copies of the operands' values
        spec: of its result
        where: the user's file and line, for messages
    Raises, at the run
        the exception of the function, with a note that names the node's line
        ShapeError, DTypeError: the result has another shape or dtype
        GraphError: the function evaluates a node that depends on this one
    """

    takes_complex = True

    function: Callable[..., Any]
    spec: Spec
    where: str
    pure = False
    can_fail = True

    def infer(self, *specs: Spec) -> Spec:
        return self.spec

    def meaning(self, *xs):
        return self.checked(copy_context().run(self.call, xs))

    def work(self, target: Target, *specs: Spec) -> Work:
        def run(outs: tuple[np.ndarray, ...], values: tuple[np.ndarray, ...]) -> None:
            outs[0][...] = self.meaning(*values)

        return Work(lambda out, *xs: [callback_call(run, [out], xs)], strided=True)

    def call(self, xs: tuple[np.ndarray, ...]) -> Any:
        """Call the function. Refuse to run inside itself, and add the node's line to exceptions.

        The call has a context of its own, so however it ends, it is not recorded as running.
        """
        active = _RUNNING.get()
        if any(op is self for op in active):
            raise GraphError(
                f"{self.name} at {self.where}: its function evaluates a node that depends on the {self.name} itself; "
                "pass the value as an operand"
            )
        _RUNNING.set((*active, self))
        try:
            return self.function(*(np.array(x) for x in xs))
        except Exception as error:
            error.add_note(f"in the function of {self.name} at {self.where}")
            raise

    def checked(self, value: Any) -> np.ndarray:
        """Return the function's result as an array. ShapeError or DTypeError unless it has the declared spec."""
        if isinstance(value, Node):
            raise GraphError(f"{self.name} at {self.where}: the function returned the node {value!r}; return an array")
        if not isinstance(value, np.ndarray | np.generic):
            value = np.asarray(value, self.spec.dtype)
        got = f"{value.dtype}[{','.join(map(str, value.shape))}]"
        if value.dtype != self.spec.dtype:
            raise DTypeError(f"{self.name} at {self.where}: the function returned {got}, but {self.spec} is declared")
        if value.shape != self.spec.shape:
            raise ShapeError(f"{self.name} at {self.where}: the function returned {got}, but {self.spec} is declared")
        return np.asarray(value)


_RUNNING: ContextVar[tuple["Delay", ...]] = ContextVar("running", default=())


class LazyPrint(Delay):
    """The operand itself, printed to standard output at each run."""

    def work(self, target: Target, *specs: Spec) -> Work:
        return replace(super().work(target, *specs), overwrites=(0,))

    def grad(self, node, g):
        return (g,)


class Printing(Record):
    """The format in which a value is printed.

    Fields
        rows, columns: printed at most along the last two axes
        header: print name, spec and line first
        fmt: converts one element to text; NumPy's format by default
    """

    title: str
    rows: int
    columns: int
    header: bool
    fmt: Callable[[Any], str] | None = None

    def __call__(self, x: np.ndarray) -> np.ndarray:
        shown = x[..., : self.rows, : self.columns] if x.ndim > 1 else x[: self.columns] if x.ndim else x
        formatter: Any = {"all": self.fmt} if self.fmt else None
        text = np.array2string(shown, threshold=sys.maxsize, formatter=formatter)
        more = "" if shown.shape == x.shape else f"\nthe first {'x'.join(map(str, shown.shape))} of {x.shape}"
        say((f"{self.title}\n" if self.header else "") + text + more)
        return x


def here() -> str:
    """Return the user's file and line."""
    return str(user_line())


@public
def delay(function: Callable[..., Any], x: Any) -> Node:
    """Return ``function(x)``, called at each run. It must return an array of the shape and dtype of `x`."""
    x = as_node(x)
    return apply(Delay(function, x.spec, here()), x)


@public
def delay_array(shape: Any, dtype: Any, function: Callable[..., Any], *xs: Any) -> Node:
    """Return ``function(*xs)``, called at each run. It must return an array of this shape and dtype."""
    return apply(Delay(function, Spec(shape_of(shape), dtype_of(dtype)), here()), *(as_node(x) for x in xs))


@public
def lazy_print(
    x: Any, max_row: int = 20, max_col: int = 10, header: bool = True, fmt: Callable[[Any], str] | None = None
) -> Node:
    """Return `x` itself, and print it to standard output at each run.

    Parameters
        max_row, max_col: rows and columns printed at most
        header: print name, spec and line first
        fmt: converts one element to text
    """
    x = as_node(x)
    title = f"{x.name} {x.spec} at {here()}"
    return apply(LazyPrint(Printing(title, max_row, max_col, header, fmt), x.spec, here()), x)
