"""ValuedFunction: one function of an ONNX file in which the values of small inputs may determine shapes.

Examples are the axes of a sum, the shape of a reshape or a number of frames. Each such value has a plan, as each size
has: the graph is built with it as a constant.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import InputError
from cgraph.formats.model import Model
from cgraph.formats.unspecified import UnknownError
from cgraph.function import Function
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import Var
from cgraph.sizes import SizedFunction, Sizes

MOST_ELEMENTS = 64  # of an input whose value determines shapes
Values = Mapping[str, Any]


class Value:
    """The value of an input, as part of a key."""

    def __init__(self, name: str, array: Any) -> None:
        self.name, self.array = name, array
        x = np.asarray(array)
        contents = tuple(x.reshape(-1).tolist()) if x.dtype == object else x.tobytes()
        self._key = name, x.dtype.str, x.shape, contents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class ValuedFunction(SizedFunction):
    """A function of arrays whose sizes vary, and of small arrays whose values determine shapes.

    Mutable: it compiles new sizes and values, and learns from the first of them which inputs determine shapes.

    Fields
        values: names of the inputs that determine shapes, as far as calls have shown
    """

    needs_sizes = False

    def __init__(
        self, build: Callable[[Sizes, Values], Model], shapes: Mapping[str, Any], options: Mapping, names: Sequence[str]
    ) -> None:
        self.values: tuple[str, ...] = ()
        super().__init__(lambda sizes: build(sizes, {}).compile, shapes, None, options, names)
        self._build = build

    def _function_for(self, arrays: Sequence[Any]) -> Function:
        """Return the Function for the sizes and values of these arrays."""
        named = dict(zip(self.shapes, arrays))
        while True:
            try:
                return self._with_values(named) if self.values else super()._function_for(arrays)
            except UnknownError as error:
                self._learn(error, named)

    def _with_values(self, arrays: Mapping[str, Any]) -> Function:
        """Return the Function for these arrays, by the values that determine shapes."""
        sizes = self.sizes_of(arrays)
        return self._with_key((*(sizes[name] for name in self.sizes), *(Value(x, arrays[x]) for x in self.values)))

    def _learn(self, error: UnknownError, arrays: Mapping[str, Any]) -> None:
        """Record the inputs whose values the graph needs. Raise the error if it needs another value, or a large one."""
        new = [name for name in error.constants if name not in self.values]
        if not new or not all(name in arrays and np.size(arrays[name]) <= MOST_ELEMENTS for name in new):
            raise error
        self.values = (*self.values, *new)

    def _compiled_for(self, key: tuple) -> Function:
        """Compile the Function of a key: the sizes in order, then values."""
        values = {x.name: constant_of(x.array) for x in key[len(self.sizes) :]}
        if not values:
            return super()._compiled_for(key)
        model = self._build(dict(zip(self.sizes, key)), values)
        read = {x for x in post_order(model.nodes) if isinstance(x, Var)}
        inputs = tuple(x for x in model.inputs if x.name not in model.fixed or x in read)
        return self._compiled(replace(model, inputs=inputs).compile)

    def _passed(self, function: Function, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the arrays that a Function takes: not those that are constants of its graph."""
        if not self.values:
            return arrays
        named = dict(zip(self.shapes, arrays))
        return [named[x.name] for x in function.inputs]

    def at(self, **sizes: Any) -> Function:
        """Return the Function for these sizes, and for the values of inputs that determine shapes.

        Its inputs are the others. Its calls use the same memory, so views of results are valid only until the next
        call.
        """
        inputs = [name for name in sizes if name not in self.sizes]
        if len(sizes) - len(inputs) != len(self.sizes) or not all(name in self.shapes for name in inputs):
            names = ", ".join((*self.sizes, *self.values)) or "names of inputs"
            raise InputError(f"give {names}, not {', '.join(sizes) or 'nothing'}")
        function = None
        while function is None:
            missing = [name for name in self.values if name not in sizes]
            if missing:
                raise InputError(
                    f"the value of {missing[0]!r} determines shapes. Give it, as in at({missing[0]}=[1, 2])"
                )
            values = [Value(name, sizes[name]) for name in self.values]
            try:
                function = self._with_key((*(sizes[name] for name in self.sizes), *values))
            except UnknownError as error:
                self._learn(error, sizes)
        for name in inputs:
            if name not in self.values:
                raise InputError(
                    f"the value of {name!r} determines no shape. Pass it to the function that at() returns"
                )
        return function


def constant_of(value: Any) -> Any:
    """Return a value for `constants`, as a number or list, so that it gets the input's dtype or is refused."""
    x = np.asarray(value)
    return x if x.dtype == object or not x.size else x.tolist()


def are_small(names: Sequence[str], shapes: Mapping[str, Sequence[int | str]]) -> bool:
    """Return True if some inputs are given that may be part of a key: each is small, or of a size that varies."""
    return bool(names) and all(
        name in shapes and prod(n for n in shapes[name] if isinstance(n, int)) <= MOST_ELEMENTS for name in names
    )
