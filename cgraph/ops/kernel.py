"""cg.kernel: a user's plain Python function as an op, planned, threaded and differentiated like the others.

A function of numbers that neither branches nor loops on its operands is called once with nodes: what it computes is
then ordinary pointwise ops, which fuse and have gradients. Any other is compiled by Numba (`kernels/llvm/user.py`) and
called in native code: number by number, or, where it goes through arrays itself, task by task.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from types import BuiltinFunctionType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from cgraph.errors import GraphError, ShapeError
from cgraph.ir.cut import Cut, row_by_row
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.spec import Spec, dtype_of, shape_of
from cgraph.ir.traverse import descendants, post_order
from cgraph.ir.work import Work
from cgraph.kernels.target import Target
from cgraph.kernels.user.calls import each_calls, tasks_calls
from cgraph.kernels.user_function import UserFunction, user_function
from cgraph.ops import arithmetic, elementary
from cgraph.ops.family import ROWS_AXES, Pointwise, unify
from cgraph.ops.leaf import as_node
from cgraph.ops.power import power
from cgraph.ops.shape import broadcast_to, zeros_like
from cgraph.ops.stop import custom_gradient
from cgraph.record import Record

Gradient = Callable[..., Any] | None  # see `kernel`
MOST_OPS = 64  # of a function that becomes ops; a longer one, as a loop makes it, is better compiled
UNKNOWN = 0xFF  # bytes of a result that no task has written
SAME_NAMES = "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh sqrt erf erfc hypot copysign".split()
MATHEMATICS: dict[str, Callable[..., Node]] = {
    **{name: getattr(elementary, name) for name in SAME_NAMES},
    **{f"a{name}": getattr(elementary, f"arc{name}") for name in "sin cos tan sinh cosh tanh tan2".split()},
    "pow": power,
    "fabs": arithmetic.abs,
}  # Python's functions of numbers as functions of nodes
OPS_OF_MATH = SimpleNamespace(**MATHEMATICS)  # what stands for the module
BY_FUNCTION = {getattr(math, name): op for name, op in MATHEMATICS.items()}


class EachNumber(Op):
    """A compiled function of numbers, for each element of operands of one spec.

    Fields
        function: of a number of each operand
        result: the dtype of what it returns
    """

    function: UserFunction
    result: np.dtype

    @property
    def name(self) -> str:
        return self.function.label

    def infer(self, *specs: Spec) -> Spec:
        return Spec(specs[0].shape, self.result)

    def meaning(self, *xs):
        each = (x.flat if x.dtype.kind == "f" else x.reshape(-1).tolist() for x in xs)  # whole numbers do not wrap
        results = [self.function.python(*numbers) for numbers in zip(*each)]
        return np.array(results).astype(self.result).reshape(xs[0].shape)

    def work(self, target: Target, *specs: Spec) -> Work:
        overwrites = tuple(i for i, s in enumerate(specs) if s.dtype.itemsize == self.result.itemsize)
        return Work(partial(each_calls, target, self.function), overwrites=overwrites, strided=True)

    def cut(self, *specs: Spec) -> Cut | None:
        if specs[0].ndim < ROWS_AXES:
            return None
        return Cut((row_by_row(specs[0].shape[2]),) * len(specs), lambda first, stop: self)


class EachTask(Op):
    """A compiled function that is called for each of some tasks, and writes a part of the result in each.

    Fields
        function: of the task's number, the result and the operands; those of rank 0 are numbers
        spec: of the result
        tasks: how many there are
    """

    function: UserFunction
    spec: Spec
    tasks: int

    @property
    def name(self) -> str:
        return self.function.label

    def infer(self, *specs: Spec) -> Spec:
        return self.spec

    def meaning(self, *xs):
        out = np.frombuffer(bytearray([UNKNOWN]) * self.spec.nbytes, self.spec.dtype).reshape(self.spec.shape)
        operands = [np.broadcast_to(x, x.shape) if x.ndim else x[()] for x in xs]  # read-only
        for task in range(self.tasks):
            self.function.python(task, out, *operands)
        return out

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(partial(tasks_calls, self.function, self.tasks))


class NumberKernel(Record, eq=False):
    """What `kernel` makes of a function of numbers: call it with nodes, arrays and numbers, which are broadcast."""

    function: Callable[..., Any]
    dtype: np.dtype | None
    gradient: Gradient

    def __call__(self, *xs: Any) -> Node:
        nodes, function = unify(*xs), user_function(self.function)
        result = self.dtype or nodes[0].dtype
        y = traced_with_nodes(function, nodes)
        if y is None:
            y = apply(EachNumber(function, result), *nodes)
        return attach_gradient(broadcast_to(y, nodes[0].shape).astype(result), nodes, self.gradient)


class ArrayKernel(Record, eq=False):
    """What `kernel` makes of a function of arrays: call it with nodes, arrays and numbers."""

    function: Callable[..., Any]
    out: Callable[..., Any]
    tasks: Callable[..., int]
    gradient: Gradient

    def __call__(self, *xs: Any) -> Node:
        nodes, function = [as_node(x) for x in xs], user_function(self.function)
        specs = [x.spec for x in nodes]
        out_spec = self.out(*specs)
        spec = out_spec if isinstance(out_spec, Spec) else Spec(shape_of(out_spec[0]), dtype_of(out_spec[1]))
        tasks = int(self.tasks(*specs))
        if tasks < 0:
            raise ShapeError(f"{function.label} has {tasks} tasks; there are 0 or more")
        return attach_gradient(apply(EachTask(function, spec, tasks), *nodes), nodes, self.gradient)


@public
def kernel(
    function: Callable[..., Any] | None = None,
    *,
    out: Callable[..., Any] | None = None,
    tasks: Callable[..., int] | None = None,
    dtype: Any = None,
    grad: Gradient = None,
) -> Any:
    """A plain Python function as an op; a decorator. It is compiled where a graph with it is compiled.

    Without `out` and `tasks` the function takes and returns numbers, and is applied to operands that are broadcast and
    have one dtype. With both it takes a task's number, the result and the operands, arrays in C order (operands of rank
    0: numbers), and writes some of the result; all tasks together must write all of it, and no two of them the same
    element. It has no memory of its own, raises nothing, and does not look whether a position is inside an array.
    Globals and closed-over values are those of when the kernel is called.

    Parameters
        out: of the operands' specs (`shape`, `dtype`), the result's: one of them, or ``(shape, dtype)``
        tasks: of the operands' specs, how many tasks there are
        dtype: what a function of numbers returns; the operands' dtype by default
        grad: of the gradient for the result, the result and the operands, all nodes: the gradient for each operand, or
            None for one that gets none
    Raises
        GraphError: it is no plain Python function; only one of `out` and `tasks` is given
        NoKernelError, at compile: the function does what kernels cannot, or reads what has changed; it says what
    """
    if function is None:
        return partial(kernel, out=out, tasks=tasks, dtype=dtype, grad=grad)
    if (out is None) != (tasks is None):
        raise GraphError("a kernel of arrays has both, out and tasks; one of numbers has neither")
    try:
        user_function(function)
    except TypeError as error:
        raise GraphError(str(error)) from None
    if out is None or tasks is None:
        return NumberKernel(function, None if dtype is None else dtype_of(dtype), grad)
    return ArrayKernel(function, out, tasks, grad)


def attach_gradient(y: Node, xs: Sequence[Node], gradient: Gradient) -> Node:
    """`y` with the gradient that its user gave, if any."""
    if gradient is None:
        return y

    def backward(g: Node) -> list[Node]:
        gradients = gradient(g, custom_gradient(y, xs, backward), *xs)  # of which a gradient may be taken again
        each = gradients if isinstance(gradients, tuple | list) else [gradients]
        zeros = [zeros_like(x) for x in xs[: len(each)]]
        return [zero if gx is None else gx for gx, zero in zip(each, zeros)]

    return custom_gradient(y, xs, backward)


# -- functions that become ops ----------------------------------------------------------------------------------------


def traced_with_nodes(function: UserFunction, xs: Sequence[Node]) -> Node | None:
    """What a function of numbers returns for nodes; None where it must see numbers, or does more than pointwise ops."""
    try:
        y = as_node(replace_math(function.python)(*xs), xs[0].dtype)
    except Exception:  # whatever it is that nodes cannot do: Numba says whether the function is one of numbers
        return None
    inner = inner_nodes(y, xs)
    fits = len(inner) <= MOST_OPS and all(isinstance(x.op, Pointwise) and x.shape == xs[0].shape for x in inner)
    return y if fits and y.shape in ((), xs[0].shape) else None


def replace_math(function: Any) -> Callable[..., Any]:
    """The function with ops in the place of Python's mathematics."""
    globals_ = function.__globals__
    changed = {name: op_for_global(globals_[name]) for name in function.__code__.co_names if name in globals_}
    return FunctionType(
        function.__code__, globals_ | changed, function.__name__, function.__defaults__, function.__closure__
    )


def op_for_global(value: Any) -> Any:
    """A global as a function of nodes reads it."""
    if value is math:
        return OPS_OF_MATH
    return BY_FUNCTION.get(value, value) if isinstance(value, BuiltinFunctionType) else value


def inner_nodes(y: Node, xs: Sequence[Node]) -> list[Node]:
    """What lies between `xs` and `y`, which is among it: all that depends on one of `xs`, operands first."""
    order = post_order([y])
    depends = descendants(order, xs) - set(post_order(xs))
    return [x for x in order if x in depends]
