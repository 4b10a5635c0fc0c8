"""grad and value_and_grad of Python functions over trees of arrays."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from cgraph.autodiff import gradient
from cgraph.errors import ArgumentError, DTypeError, GraphError, ShapeError
from cgraph.ir.graph import Node
from cgraph.transforms.leaves import SETTINGS, node_of, placeholder
from cgraph.transforms.trace import suspended
from cgraph.transforms.tracer import Tracer
from cgraph.transforms.transformation import InnerCall, Transformation, leaves_of, substitute
from cgraph.transforms.trees import flatten, unflatten


def grad(f: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the function that computes the gradient of a function.

        cg.grad(lambda x: np.sum(x**2))(np.ones(3))  # array([2., 2., 2.])

    Parameters
        f: a function over trees of arrays that returns one float
        argnums: the position of the argument to differentiate, or several; its leaves are floats, and the gradient has
            its structure
        has_aux: `f` returns a pair of that float and a tree, which is returned with the gradient
    Raises, when called
        ShapeError, DTypeError: the result is not one float, or an argument is not of floats
        NoGradientError: an operation has no gradient
    """
    return Differentiated(f, argnums, has_aux, False)


def value_and_grad(f: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the function that computes a function and its gradient, as a pair; see `grad`.

    cg.value_and_grad(lambda x: np.sum(x**2))(np.ones(3))  # 3.0, array([2., 2., 2.])
    """
    return Differentiated(f, argnums, has_aux, True)


class Differentiated(Transformation):
    """The gradient of a function, with its value if asked for."""

    def __init__(self, f: Callable, argnums: int | Sequence[int], has_aux: bool, with_value: bool) -> None:
        numbers = argument_numbers(argnums)
        self.numbers, self.is_single = numbers, isinstance(argnums, int)
        self.has_aux, self.with_value = has_aux, with_value
        step = ("value_and_grad" if with_value else "grad", numbers, self.is_single, has_aux)
        super().__init__(f, self.inside, step)

    def inside(self, /, *args: Any, **kwargs: Any) -> Any:
        """Build the gradient in the trace in progress."""
        call = InnerCall(self.f, args, kwargs)
        leaves, positions = leaves_of((args, kwargs)), leaf_positions(args, self.numbers)
        variables: dict[int, Node] = {i: variable_of(leaves[i], i) for i in positions}
        results, form, keys = call.run(variables, leaves)
        y, aux, aux_form = self.parts(results, form)
        nodes = [x for x in aux if isinstance(x, Node)]
        graph = suspended(self.graph, y, list(variables.values()), (*nodes, *keys))
        actual = {variable: node_of(leaves[i]) for i, variable in variables.items()}
        new = iter(suspended(substitute, graph, actual))
        wrap = call.outer.tracer
        value = wrap(next(new))
        slopes = {i: next(new) for i in variables}
        gradients = iter([wrap(slopes[i]) for i in positions])  # an argument may be named twice
        aux_tree = unflatten(aux_form, iter([wrap(next(new)) if isinstance(x, Node) else x for x in aux]))
        call.advance_streams(list(new))
        trees = [unflatten(flatten(args[i], []), gradients) for i in self.numbers]
        return self.result(value, aux_tree, trees[0] if self.is_single else tuple(trees))

    def graph(self, y: Node, variables: list[Node], others: Sequence[Node]) -> list[Node]:
        """Return the value, its gradients and other results, in one graph."""
        return [y, *gradient(y, variables), *others]

    def parts(self, results: list[Any], form: Any) -> tuple[Node, list[Any], Any]:
        """Return the value to differentiate, and leaves and structure of the rest."""
        aux_form = None
        if self.has_aux:
            if not hasattr(form, "children") or len(form.children) != 2:
                raise GraphError(f"{self!r}: with has_aux the function returns a pair. Return (value, others)")
            aux_form = form.children[1]
            form = form.children[0]
        y = results[0] if results else None
        if form != "*" or not isinstance(y, Node):
            raise GraphError(
                f"{self!r}: the function returns {y!r:.80}, which is not one traced float; return one number that "
                "depends on the arguments, or pass has_aux=True and return a pair"
            )
        if y.shape:
            raise ShapeError(f"{self!r}: the function returns {y.name} {y.spec}; return one number, such as its sum")
        if y.dtype.kind != "f":
            raise DTypeError(f"{self!r}: the function returns {y.name} {y.spec}; return a float, such as np.real(y)")
        return y, results[1:], aux_form

    def result(self, value: Tracer, aux: Any, gradients: Any) -> Any:
        """Arrange the results as the user expects them."""
        if not self.with_value:
            return (gradients, aux) if self.has_aux else gradients
        return ((value, aux) if self.has_aux else value), gradients


def variable_of(x: Any, i: int) -> Node:
    """Return a placeholder for a leaf. DTypeError if it is not a float."""
    if isinstance(x, SETTINGS):
        raise DTypeError(
            f"the gradient with respect to {x!r:.60} of {type(x).__name__} is not defined; "
            "pass it in an argument that argnums does not name"
        )
    variable = suspended(partial(placeholder, x, f"x{i}"))
    if variable.dtype.kind not in "fc":
        raise DTypeError(
            f"the gradient with respect to {variable.spec} is not defined: its elements are not floats; "
            "convert the argument with astype(float), or leave it out of argnums"
        )
    return variable


def argument_numbers(argnums: int | Sequence[int]) -> tuple[int, ...]:
    """Return the positions of arguments that `argnums` names. ArgumentError if it names none."""
    numbers = tuple(argnums) if isinstance(argnums, Iterable) else (argnums,)
    if not numbers or not all(isinstance(i, int) for i in numbers):
        raise ArgumentError(f"argnums={argnums!r:.60} names no argument; pass a position such as 0, or several")
    return numbers


def leaf_positions(args: Sequence[Any], numbers: Sequence[int]) -> list[int]:
    """Return the positions, among the leaves of all arguments, of those of the numbered ones.

    ArgumentError for an argument that is missing.
    """
    starts, count = [], 0
    for x in args:
        size = len(leaves_of(x))
        starts.append(range(count, count + size))
        count += size
    for i in numbers:
        if not -len(args) <= i < len(args):
            raise ArgumentError(
                f"argnums has {i}, and {len(args)} arguments are passed by position. Pass this one by position, too"
            )
    return [position for i in numbers for position in starts[i]]
