"""A user's own Python functions as nodes: delay, delay_array, lazy_print."""

import sys
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from pathlib import Path
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
    """The result of a Python function of arrays, computed at each run.

    Fields
        function: gets copies of the operands' values
        spec: what it returns
        where: the user's file and line, for messages
    Raises, at the run
        whatever the function raises, with a note that says where the node was made
        ShapeError, DTypeError: it returns something else
        GraphError: it asks for the value of a node that depends on this one
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
        return self.fitting(copy_context().run(self.called, xs))

    def work(self, target: Target, *specs: Spec) -> Work:
        def run(outs: tuple[np.ndarray, ...], values: tuple[np.ndarray, ...]) -> None:
            outs[0][...] = self.meaning(*values)

        return Work(lambda out, *xs: [callback_call(run, [out], xs)], strided=True)

    def called(self, xs: tuple[np.ndarray, ...]) -> Any:
        """What the function returns; refuse to run inside itself, say where the node is when it raises.

        It runs in a context of its own, so that however it ends, nothing says that it is still running.
        """
        going_on = _RUNNING.get()
        if any(op is self for op in going_on):
            raise GraphError(
                f"{self.name} at {self.where}: its function asks for a value that depends on the {self.name} itself"
            )
        _RUNNING.set((*going_on, self))
        try:
            return self.function(*(np.array(x) for x in xs))
        except Exception as error:
            error.add_note(f"in the function of {self.name} at {self.where}")
            raise

    def fitting(self, value: Any) -> np.ndarray:
        """The returned value as an array of the declared spec."""
        if isinstance(value, Node):
            raise GraphError(f"{self.name} at {self.where}: the function returned {value!r}; it must return an array")
        if not isinstance(value, np.ndarray | np.generic):
            value = np.asarray(value, self.spec.dtype)
        got = f"{value.dtype}[{','.join(map(str, value.shape))}]"
        if value.dtype != self.spec.dtype:
            raise DTypeError(f"{self.name} at {self.where}: the function returned {got}, declared is {self.spec}")
        if value.shape != self.spec.shape:
            raise ShapeError(f"{self.name} at {self.where}: the function returned {got}, declared is {self.spec}")
        return np.asarray(value)


_RUNNING: ContextVar[tuple["Delay", ...]] = ContextVar("running", default=())


class LazyPrint(Delay):
    """The operand itself, written to standard output at each run."""

    def work(self, target: Target, *specs: Spec) -> Work:
        return replace(super().work(target, *specs), overwrites=(0,))

    def grad(self, node, g):
        return (g,)


class Printing(Record):
    """How a value is written.

    Fields
        rows, columns: at most so many along the last two axes
        header: name, spec and place come first
        fmt: how one element becomes text; NumPy's own way by default
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
    """The user's file and line."""
    file, line = user_line()
    return f"{Path(file).name}:{line}"


@public
def delay(function: Callable[..., Any], x: Any) -> Node:
    """``function(x)``, computed at each run; it returns an array of the operand's shape and dtype."""
    x = as_node(x)
    return apply(Delay(function, x.spec, here()), x)


@public
def delay_array(shape: Any, dtype: Any, function: Callable[..., Any], *xs: Any) -> Node:
    """``function(*xs)``, computed at each run; it returns an array of this shape and dtype."""
    return apply(Delay(function, Spec(shape_of(shape), dtype_of(dtype)), here()), *(as_node(x) for x in xs))


@public
def lazy_print(
    x: Any, max_row: int = 20, max_col: int = 10, header: bool = True, fmt: Callable[[Any], str] | None = None
) -> Node:
    """`x` itself, written to standard output at each run.

    Parameters
        max_row, max_col: rows and columns written at most
        header: write name, spec and place first
        fmt: one element as text
    """
    x = as_node(x)
    title = f"{x.name} {x.spec} at {here()}"
    return apply(LazyPrint(Printing(title, max_row, max_col, header, fmt), x.spec, here()), x)
