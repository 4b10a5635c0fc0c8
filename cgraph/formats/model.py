"""Model: a graph that was read from a file, with its inputs and outputs by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.string_codes import StringCodes
from cgraph.formats.trimmed_function import Case, TrimmedFunction
from cgraph.function import Function, compile
from cgraph.ir.graph import Node
from cgraph.ir.labels import distinct_names
from cgraph.ops.leaf import Const, Var
from cgraph.planning.options import COMPILE_KEYWORDS, CompileKeywords
from cgraph.record import Record
from cgraph.storage.cell import assign_all
from cgraph.system.keywords import checks_keywords

TRUE = Const(np.array(True))


class Alternative(Record, eq=False):
    """One of several arrays of which a run returns one.

    Fields
        holds: bool scalar: this array is returned
        node: the array
        counts: the length of each axis of dynamic length
    """

    holds: Node
    node: Node
    counts: Mapping[int, Node]


@dataclass(frozen=True, eq=False)
class Model:
    """A network that was read from a file, as a graph of this library.

    Fields
        inputs: Vars, named as in the file
        outputs: nodes, in the file's order
        names: names of the outputs; repeated names in a file get a suffix, such as ``y_1``
        values: the named values of the file's main graph
        updates: update edges, for state that persists between runs
        fixed: inputs whose constant value decided a shape; the graph is valid for this value only
        counts: for each output of dynamic length, by its index, the length per axis; the Function from `compile` trims
        its results to these lengths
        checks: conditions that each run must meet, with the text of the InputError if one does not hold
        choices: for each output whose number of axes or dtype a run decides, by its index, other arrays that the
            Function from `compile` returns in its place if their condition holds
        strings: which inputs and outputs hold numbers of strings, which the Function from `compile` looks up
    """

    inputs: tuple[Var, ...]
    outputs: tuple[Node, ...]
    names: tuple[str, ...]
    values: dict[str, Any] = field(default_factory=dict, repr=False)
    updates: dict[Var, Node] = field(default_factory=dict, repr=False)
    fixed: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    counts: dict[int, dict[int, Node]] = field(default_factory=dict, repr=False)
    checks: dict[Node, str] = field(default_factory=dict, repr=False)
    choices: dict[int, tuple[Alternative, ...]] = field(default_factory=dict, repr=False)
    strings: StringCodes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Make the names of outputs distinct. FormatError if the number of names differs from that of the outputs."""
        if len(self.names) != len(self.outputs):
            raise FormatError(f"{len(self.names)} names for {len(self.outputs)} outputs: give one name for each output")
        object.__setattr__(self, "names", distinct_names(self.names, (*self.values, *(x.name for x in self.inputs))))

    @property
    def is_open(self) -> bool:
        """Return True if some lengths or numbers of axes are known only at run time, or there are strings."""
        return bool(self.counts or self.checks or self.choices or self.strings)

    @checks_keywords(COMPILE_KEYWORDS)
    def compile(self, **options: Unpack[CompileKeywords]) -> Function:
        """Compile a Function of the inputs whose results have the outputs' names; options as for `cgraph.compile`."""
        arrays = [(choice.holds, choice.node) for choices in self.choices.values() for choice in choices]
        counts = [n for choices in self._cases() for choice in choices for n in choice.counts.values()]
        extra = list(dict.fromkeys([*counts, *(x for pair in arrays for x in pair)]))
        nodes = [*self.outputs, *extra, *self.checks]
        names = (*self.names, *(f"length{i}" for i in range(len(nodes) - len(self.names))))
        outputs = dict(zip(distinct_names(names), nodes))
        function = compile(outputs, inputs=self.inputs, updates=self.updates, **options)
        if not self.is_open:
            return function
        place = {n: len(self.outputs) + i for i, n in enumerate(extra)}
        cases = [
            [
                Case(place.get(x.holds), place.get(x.node, i), {a: place[n] for a, n in x.counts.items()})
                for x in choices
            ]
            for i, choices in enumerate(self._cases())
        ]
        return TrimmedFunction.of(function, cases, tuple(self.checks.values()), self.strings)

    def _cases(self) -> list[tuple[Alternative, ...]]:
        """Return for each output the arrays that it may be; the last one is it if no condition before holds."""
        return [
            (*self.choices.get(i, ()), Alternative(TRUE, node, self.counts.get(i, {})))
            for i, node in enumerate(self.outputs)
        ]

    def with_state(self, state: Mapping[str, str]) -> "Model":
        """Return a model some of whose inputs are state: after a run, each holds the value of its output.

        Such an input is a Var that the Function reads and writes itself, in place where possible. It starts as zeros.
        Its output is not returned.

        Parameters
            state: output name by input name, such as ``{"past": "present"}``
        Raises
            FormatError: an input or output does not exist, the two differ in shape or dtype, or lengths are known only
                at run time
        """
        if state and self.is_open:
            raise FormatError(
                "state: lengths are known only at run time, or values are strings. Give shapes= or constants= that fix "
                "them"
            )
        inputs, outputs = {x.name: x for x in self.inputs}, dict(zip(self.names, self.outputs))
        for names, available in ((state, list(inputs)), (state.values(), list(outputs))):
            for name in names:
                if name not in available:
                    raise FormatError(f"state: there is no {name!r}. Use one of {', '.join(available)}")
        replaced: dict[Var, Node] = {}
        for name, source in state.items():
            x, y = inputs[name], outputs[source]
            if x.spec != y.spec:
                raise FormatError(
                    f"state: {name} {x.spec} cannot hold {source} {y.spec}: shape and dtype must be equal"
                )
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
