"""cg.kernel: a user's Python function as an op that is planned, threaded and differentiated like all others.

A function of numbers without branches or loops on its operands is called once with nodes: it becomes ordinary
pointwise ops, which fuse and have gradients. Any other function is compiled by Numba (`kernels/llvm/user.py`) and
called in native code: element by element or, if it indexes arrays itself, task by task.
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
from cgraph.ir.tracing import traceable
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
MOST_OPS = 64  # of a function that becomes ops; a longer one, such as an unrolled loop, is compiled
UNKNOWN = 0xFF  # the bytes of elements that no task writes
SAME_NAMES = "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh sqrt erf erfc hypot copysign".split()
MATHEMATICS: dict[str, Callable[..., Node]] = {
    **{name: getattr(elementary, name) for name in SAME_NAMES},
    **{f"a{name}": getattr(elementary, f"arc{name}") for name in "sin cos tan sinh cosh tanh tan2".split()},
    "pow": power,
    "fabs": arithmetic.abs,
}  # functions of numbers and the ops that replace them
OPS_OF_MATH = SimpleNamespace(**MATHEMATICS)  # replaces the module math
BY_FUNCTION = {getattr(math, name): op for name, op in MATHEMATICS.items()}


class EachNumber(Op):
    """A compiled function of numbers, applied to each element of operands of one spec.

    Fields
        function: takes one number of each operand
        result: dtype of its result
    """

    function: UserFunction
    result: np.dtype

    @property
    def name(self) -> str:
        return self.function.label

    def infer(self, *specs: Spec) -> Spec:
        return Spec(specs[0].shape, self.result)

    def meaning(self, *xs):
        each = (x.flat if x.dtype.kind == "f" else x.reshape(-1).tolist() for x in xs)  # Python's integers do not wrap
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
    """A compiled function that is called for each of several tasks and writes a part of the result in each.

    Fields
        function: takes the task's number, the result and the operands; operands of rank 0 are numbers
        spec: of the result
        tasks: number of tasks
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
    """The callable that `kernel` returns for a function of numbers: nodes, arrays and numbers broadcast."""

    function: Callable[..., Any]
    dtype: np.dtype | None
    gradient: Gradient

    @traceable
    def __call__(self, *xs: Any) -> Node:
        nodes, function = unify(*xs), user_function(self.function)
        result = self.dtype or nodes[0].dtype
        y = traced_with_nodes(function, nodes)
        if y is None:
            y = apply(EachNumber(function, result), *nodes)
        return attach_gradient(broadcast_to(y, nodes[0].shape).astype(result), nodes, self.gradient)


class ArrayKernel(Record, eq=False):
    """The callable that `kernel` returns for a function of arrays; it takes nodes, arrays and numbers."""

    function: Callable[..., Any]
    out: Callable[..., Any]
    tasks: Callable[..., int]
    gradient: Gradient

    @traceable
    def __call__(self, *xs: Any) -> Node:
        nodes, function = [as_node(x) for x in xs], user_function(self.function)
        specs = [x.spec for x in nodes]
        out_spec = self.out(*specs)
        spec = out_spec if isinstance(out_spec, Spec) else Spec(shape_of(out_spec[0]), dtype_of(out_spec[1]))
        tasks = int(self.tasks(*specs))
        if tasks < 0:
            raise ShapeError(f"{function.label}: tasks returned {tasks}; return a number >= 0")
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
    """Turn a Python function into an op; a decorator. The function is compiled together with the graph that uses it.

    Without `out` and `tasks`, the function takes and returns numbers and is applied element by element to operands that
    are broadcast to one shape and dtype. With both, it takes a task number, the result and the operands as arrays in C
    order (operands of rank 0 as numbers), and writes a part of the result. All tasks together must write every element,
    and no two tasks may write the same one. Such a function allocates no memory, raises no exceptions, and its indices
    are not checked. Globals and closures have the values they had when the kernel was called.

    Parameters
        out: takes the operands' specs (`shape`, `dtype`) and returns that of the result: one of them, or ``(shape,
            dtype)``
        tasks: takes the operands' specs and returns the number of tasks
        dtype: of the result of a function of numbers; the operands' dtype by default
        grad: takes the gradient of the result, the result and the operands, all nodes; returns a gradient for each
            operand, or None for an operand without one
    Raises
        GraphError: `function` is not a plain Python function, or only one of `out` and `tasks` is given
        NoKernelError, at compile: the function has a construct that kernels do not support, or reads a global that has
            changed
    """
    if function is None:
        return partial(kernel, out=out, tasks=tasks, dtype=dtype, grad=grad)
    if (out is None) != (tasks is None):
        raise GraphError(
            f"{'tasks' if tasks is None else 'out'}= is missing. Pass out= and tasks= for a kernel of arrays, neither "
            "for one of numbers"
        )
    try:
        user_function(function)
    except TypeError as error:
        raise GraphError(str(error)) from None
    if out is None or tasks is None:
        return NumberKernel(function, None if dtype is None else dtype_of(dtype), grad)
    return ArrayKernel(function, out, tasks, grad)


def attach_gradient(y: Node, xs: Sequence[Node], gradient: Gradient) -> Node:
    """Return `y` with the user's gradient, if there is one."""
    if gradient is None:
        return y

    def backward(g: Node) -> list[Node]:
        gradients = gradient(g, custom_gradient(y, xs, backward), *xs)  # differentiable again
        each = gradients if isinstance(gradients, tuple | list) else [gradients]
        zeros = [zeros_like(x) for x in xs[: len(each)]]
        return [zero if gx is None else gx for gx, zero in zip(each, zeros)]

    return custom_gradient(y, xs, backward)


# -- functions that become ops ----------------------------------------------------------------------------------------


def traced_with_nodes(function: UserFunction, xs: Sequence[Node]) -> Node | None:
    """Call a function of numbers with nodes. Return None if it needs numbers or gives more than pointwise ops."""
    try:
        y = as_node(replace_math(function.python)(*xs), xs[0].dtype)
    except Exception:  # nodes do not support it; Numba decides whether the function is valid
        return None
    inner = inner_nodes(y, xs)
    fits = len(inner) <= MOST_OPS and all(isinstance(x.op, Pointwise) and x.shape == xs[0].shape for x in inner)
    return y if fits and y.shape in ((), xs[0].shape) else None


def replace_math(function: Any) -> Callable[..., Any]:
    """Return the function with ops in place of Python's mathematical functions."""
    globals_ = function.__globals__
    changed = {name: op_for_global(globals_[name]) for name in function.__code__.co_names if name in globals_}
    return FunctionType(
        function.__code__, globals_ | changed, function.__name__, function.__defaults__, function.__closure__
    )


def op_for_global(value: Any) -> Any:
    """Return the op that replaces a global value, or the value itself."""
    if value is math:
        return OPS_OF_MATH
    return BY_FUNCTION.get(value, value) if isinstance(value, BuiltinFunctionType) else value


def inner_nodes(y: Node, xs: Sequence[Node]) -> list[Node]:
    """Return the nodes between `xs` and `y`, `y` included: all that depend on one of `xs`, operands first."""
    order = post_order([y])
    depends = descendants(order, xs) - set(post_order(xs))
    return [x for x in order if x in depends]
