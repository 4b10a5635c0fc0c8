"""vmap: a function of one example applied to many at once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from cgraph.batching.batch import batch
from cgraph.errors import ArgumentError, ShapeError
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Var
from cgraph.ops.shape import axis_of, moveaxis
from cgraph.transforms.leaves import SETTINGS, node_of, placeholder
from cgraph.transforms.trace import suspended
from cgraph.transforms.transformation import InnerCall, Transformation, leaves_of
from cgraph.transforms.trees import Branch, flatten, key_of, unflatten


def vmap(f: Callable, in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Return the function that applies a function of one example to many examples at once.

        cg.vmap(np.dot)(np.ones((5, 3)), np.ones((5, 3)))  # five dot products

    Parameters
        f: a function over trees of arrays
        in_axes: the axis of examples: one for all arguments, or a tuple of one for each argument passed by position;
            None for an argument that all examples share. Instead of an axis there may be a tree of axes. Arguments
            passed by name have their examples along the first axis
        out_axes: the axis of examples in the result, or a tree of axes
    Raises, when called
        ArgumentError: the axes do not fit the arguments, or all are None
        ShapeError: arguments differ in the number of examples
    """
    return Vectorised(f, in_axes, out_axes)


class Vectorised(Transformation):
    """A function of one example, applied to many."""

    def __init__(self, f: Callable, in_axes: Any, out_axes: Any) -> None:
        if not callable(f):
            raise ArgumentError(f"vmap takes a function, not {f!r:.60}; pass a function of one example")
        self.in_axes, self.out_axes = in_axes, out_axes
        axes: list[Any] = []
        forms = flatten((in_axes, out_axes), axes)
        super().__init__(f, self.inside, ("vmap", forms, tuple(axes)))

    def inside(self, /, *args: Any, **kwargs: Any) -> Any:
        """Build the batched graph in the trace in progress."""
        call, leaves = InnerCall(self.f, args, kwargs), leaves_of((args, kwargs))
        axes = self.axes(args, kwargs)
        size = examples(leaves, axes)
        variables: dict[int, Var] = {}
        rows: dict[Node, Node] = {}
        for i, (x, axis) in enumerate(zip(leaves, axes)):
            if axis is not None:
                front = suspended(moveaxis, node_of(x), axis, 0)
                variables[i] = placeholder(x, f"example{i}", front.shape[1:])
                rows[variables[i]] = front
        results, form, keys = call.run(dict(variables), leaves)
        outputs = suspended(batch, [x for x in results if isinstance(x, Node)], {}, rows, size)
        nodes = iter(outputs)
        call.advance_streams(keys)
        places = leaf_axes(self.out_axes, form, "out_axes")
        new = [self.placed(call, next(nodes), axis) if isinstance(x, Node) else x for x, axis in zip(results, places)]
        return unflatten(form, iter(new))

    def placed(self, call: InnerCall, node: Node, axis: int | None) -> Any:
        """Return a result with the examples along the axis that `out_axes` names."""
        if axis is None:
            raise ArgumentError("out_axes has None, and a result has examples along some axis; pass its number")
        return call.outer.tracer(suspended(moveaxis, node, 0, axis))

    def axes(self, args: tuple, kwargs: dict) -> list[int | None]:
        """Return the axis of examples of each leaf, None for one that is shared."""
        prefixes = self.in_axes if isinstance(self.in_axes, tuple | list) else (self.in_axes,) * len(args)
        if len(prefixes) != len(args):
            raise ArgumentError(f"in_axes has {len(prefixes)} axes for {len(args)} arguments; pass one for each")
        pairs = [*zip(prefixes, args), *[(0, x) for x in kwargs.values()]]
        axes = [axis for prefix, x in pairs for axis in leaf_axes(prefix, flatten(x, []), "in_axes")]
        return [None if isinstance(x, SETTINGS) else axis for x, axis in zip(leaves_of((args, kwargs)), axes)]


def leaf_axes(prefix: Any, structure: Any, what: str) -> Iterator[int | None]:
    """Yield the axis of each leaf: a number or None stands for all leaves below it."""
    if prefix is None or isinstance(prefix, int):
        if structure == "*":
            yield prefix
        elif isinstance(structure, Branch):
            for child in structure.children:
                yield from leaf_axes(prefix, child, what)
        return
    form = members_of_axes(prefix, structure)
    if not isinstance(structure, Branch) or len(form) != len(structure.children):
        raise ArgumentError(f"{what} has {prefix!r:.80}, which does not fit the arrays there; pass one axis for each")
    for part, child in zip(form, structure.children):
        yield from leaf_axes(part, child, what)


def members_of_axes(prefix: Any, structure: Any) -> Sequence[Any]:
    """Return the members of a tree of axes in the order of the arrays: a dict's by their keys, none if keys differ.

    ArgumentError for anything else.
    """
    if isinstance(prefix, dict):
        axes = {key_of(key): axis for key, axis in prefix.items()}
        names = structure.names if isinstance(structure, Branch) else ()
        return [axes[name] for name in names] if axes.keys() == set(names) else []
    if isinstance(prefix, tuple | list):
        return prefix
    raise ArgumentError(f"{prefix!r:.60} is not an axis; pass an integer, None, or a tree of them")


def examples(leaves: Sequence[Any], axes: Sequence[int | None]) -> int:
    """Return the number of examples. ShapeError where arguments differ in it, or have no such axis."""
    sizes = set()
    for x, axis in zip(leaves, axes):
        if axis is not None:
            shape = np.shape(x) if not hasattr(x, "shape") else x.shape
            sizes.add(shape[axis_of(axis, len(shape))])
    if not sizes:
        raise ArgumentError("no argument has examples: in_axes is None everywhere; pass an axis for one of them")
    if len(sizes) > 1:
        raise ShapeError(
            f"arguments have {sorted(sizes)} examples; pass equally many, or None in in_axes for a shared one"
        )
    return sizes.pop()
