"""jacobian and hessian of Python functions over trees of arrays."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from cgraph.batching.batch import batch
from cgraph.errors import DTypeError, GraphError
from cgraph.ir.graph import Node
from cgraph.ops.diagonal import eye
from cgraph.ops.leaf import Var
from cgraph.ops.pullback import pullback
from cgraph.ops.shape import reshape
from cgraph.transforms.differentiate import argument_numbers, grad, leaf_positions, variable_of
from cgraph.transforms.leaves import node_of
from cgraph.transforms.trace import suspended
from cgraph.transforms.transformation import InnerCall, Transformation, leaves_of, substitute
from cgraph.transforms.trees import flatten, unflatten


def jacobian(f: Callable, argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return the function that computes the derivative of each element of a result in each element of an argument.

        cg.jacobian(lambda x: x * x.sum())(np.array([1.0, 2.0]))  # array([[4., 1.], [2., 5.]])

    A result ``[*S]`` and an argument ``[*A]`` give an array ``[*S, *A]``. If `f` returns a tree, each array in it is
    replaced by such an array; if the argument is a tree, by a tree of them with its structure. Gradients of all
    elements of a result are computed as one batch (`vmap`).

    Parameters
        f: a function over trees of arrays that returns floats
        argnums: the position of the argument to differentiate, or several, which give a tuple; its leaves are floats
    Raises, when called
        GraphError, DTypeError: a result is not a traced array of floats, or an argument is not of floats
        NoGradientError: an operation has no gradient
    """
    return Jacobian(f, argnums)


def hessian(f: Callable, argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return the function that computes the second derivatives of a function: the Jacobian of its gradient.

        cg.hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))  # array([[ 6.,  0.], [ 0., 12.]])

    An argument ``[*A]`` gives an array ``[*A, *A]``. `cg.hessian_vector_product` needs no such array.

    Parameters
        f: a function over trees of arrays that returns one float
        argnums: the position of the argument to differentiate, or several; its leaves are floats
    Raises, when called
        ShapeError, DTypeError: the result is not one float, or an argument is not of floats
        NoGradientError: an operation has no gradient
    """
    return Jacobian(grad(f, argnums), argnums)


class Jacobian(Transformation):
    """The derivatives of all elements of a function's results."""

    def __init__(self, f: Callable, argnums: int | Sequence[int]) -> None:
        self.numbers, self.is_single = argument_numbers(argnums), isinstance(argnums, int)
        super().__init__(f, self.inside, ("jacobian", self.numbers, self.is_single))

    def inside(self, /, *args: Any, **kwargs: Any) -> Any:
        """Build the Jacobian in the trace in progress."""
        call = InnerCall(self.f, args, kwargs)
        leaves, positions = leaves_of((args, kwargs)), leaf_positions(args, self.numbers)
        variables: dict[int, Node] = {i: variable_of(leaves[i], i) for i in positions}
        results, form, keys = call.run(variables, leaves)
        graph = suspended(self.graph, results, list(variables.values()), keys)
        actual = {variable: node_of(leaves[i]) for i, variable in variables.items()}
        new = iter(suspended(substitute, graph, actual))
        rows = [self.row(args, {i: call.outer.tracer(next(new)) for i in variables}, positions) for _ in results]
        call.advance_streams(list(new))
        return unflatten(form, iter(rows))

    def row(self, args: Sequence[Any], derivatives: dict[int, Any], positions: list[int]) -> Any:
        """Return one result's derivatives in the structure of the arguments."""
        arrays = iter([derivatives[i] for i in positions])  # an argument may be named twice
        trees = [unflatten(flatten(args[i], []), arrays) for i in self.numbers]
        return trees[0] if self.is_single else tuple(trees)

    def graph(self, results: list[Any], variables: list[Node], others: Sequence[Node]) -> list[Node]:
        """Return the derivatives of each result in each variable, and other nodes, in one graph."""
        return [*[x for y in results for x in self.derivatives(y, variables)], *others]

    def derivatives(self, y: Any, variables: list[Node]) -> list[Node]:
        """Return the derivatives of one result: the gradient of each element, in a batch."""
        if not isinstance(y, Node):
            raise GraphError(
                f"{self!r}: the function returns {y!r:.80}, which is not a traced array; return arrays that depend on "
                "the arguments"
            )
        if y.dtype.kind != "f":
            raise DTypeError(f"{self!r}: the function returns {y.name} {y.spec}; return floats, such as np.real(y)")
        unit = Var(y.shape, y.dtype, "unit")
        size = prod(y.shape)
        units = reshape(eye(size, dtype=y.dtype), (size, *y.shape))
        rows = batch(pullback([y], [unit], variables), {}, {unit: units}, size)
        return [reshape(row, (*y.shape, *x.shape)) for row, x in zip(rows, variables)]
