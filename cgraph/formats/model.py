"""Model: a graph read from a file, with its inputs and outputs by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.trimmed_function import TrimmedFunction
from cgraph.function import Function, compile
from cgraph.ir.graph import Node
from cgraph.ir.labels import distinct_names
from cgraph.ops.leaf import Var
from cgraph.storage.cell import assign_all


@dataclass(frozen=True, eq=False)
class Model:
    """A network from outside as a graph of this library.

    Fields
        inputs: Vars, named as in the file
        outputs: nodes, in the file's order
        names: the outputs' names; where a file gives one twice, the later ones are changed, as ``y_1``
        values: every named value of the file's main graph
        updates: update edges, for what is kept from run to run
        fixed: inputs whose given value decided a shape; the graph is right for that value alone
        counts: per output, by its place, whose length along some axes is known only when run, per axis how many
            elements count; what `compile` makes cuts them off
        checks: what must hold when the graph has run, and what an InputError says where it does not
    """

    inputs: tuple[Var, ...]
    outputs: tuple[Node, ...]
    names: tuple[str, ...]
    values: dict[str, Any] = field(default_factory=dict, repr=False)
    updates: dict[Var, Node] = field(default_factory=dict, repr=False)
    fixed: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    counts: dict[int, dict[int, Node]] = field(default_factory=dict, repr=False)
    checks: dict[Node, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Give each output a name of its own. FormatError when they are not as many as the outputs."""
        if len(self.names) != len(self.outputs):
            raise FormatError(f"{len(self.names)} names for {len(self.outputs)} outputs")
        object.__setattr__(self, "names", distinct_names(self.names, (*self.values, *(x.name for x in self.inputs))))

    @property
    def is_open(self) -> bool:
        """Some lengths are known only when run."""
        return bool(self.counts or self.checks)

    def compile(self, **options: Any) -> Function:
        """A Function of the inputs that returns a list of the outputs; options as for `cgraph.compile`."""
        counts = list(dict.fromkeys(n for axes in self.counts.values() for n in axes.values()))
        outputs = [*self.outputs, *counts, *self.checks]
        function = compile(outputs, inputs=self.inputs, updates=self.updates, **options)
        if not self.is_open:
            return function
        place = {n: len(self.outputs) + i for i, n in enumerate(counts)}
        cuts = [{axis: place[n] for axis, n in self.counts.get(i, {}).items()} for i in range(len(self.outputs))]
        return TrimmedFunction.of(function, cuts, tuple(self.checks.values()))

    def with_state(self, state: Mapping[str, str]) -> "Model":
        """The same with inputs that are kept from run to run: after a run each holds what the output of its name was.

        Such an input is a Var that is read and written by the Function itself, in place where that can be, and begins
        with zeros; its output is not returned.

        Parameters
            state: per input the output whose value it holds after a run, such as ``{"past": "present"}``
        Raises
            FormatError: there is no such input or output, or the two differ in shape or dtype; lengths are known only
                when run
        """
        if state and self.is_open:
            raise FormatError("state: lengths are known only when run, and what a run has kept cannot be taken back")
        inputs, outputs = {x.name: x for x in self.inputs}, dict(zip(self.names, self.outputs))
        for names, available in ((state, list(inputs)), (state.values(), list(outputs))):
            for name in names:
                if name not in available:
                    raise FormatError(f"state: there is no {name!r}; there are {', '.join(available)}")
        replaced: dict[Var, Node] = {}
        for name, source in state.items():
            x, y = inputs[name], outputs[source]
            if x.spec != y.spec:
                raise FormatError(f"state: {name} {x.spec} cannot hold {source} {y.spec}, which is another")
            replaced[x] = y
        assign_all({x: np.zeros(x.shape, x.dtype) for x in replaced if not x.is_assigned})
        shown = [name for name in self.names if name not in state.values()]
        return replace(
            self,
            inputs=tuple(x for x in self.inputs if x not in replaced),
            outputs=tuple(outputs[name] for name in shown),
            names=tuple(shown),
            updates=self.updates | replaced,
        )
