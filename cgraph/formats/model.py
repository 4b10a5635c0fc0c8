"""Model: a graph that was read from a file, with its inputs and outputs by name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Unpack

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.trimmed_function import TrimmedFunction
from cgraph.function import Function, compile
from cgraph.ir.graph import Node
from cgraph.ir.labels import distinct_names
from cgraph.ops.compare import logical_and, logical_not, where
from cgraph.ops.leaf import Const, Var
from cgraph.planning.options import COMPILE_KEYWORDS, CompileKeywords
from cgraph.record import Record
from cgraph.record import replace as replace_record
from cgraph.running.string_codes import StringCodes
from cgraph.running.trimming_runner import Case, Trims
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
        extra, nodes = self._extra(), self.nodes
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
        return TrimmedFunction.of(function, Trims(cases, tuple(self.checks.values()), self.strings))

    @property
    def nodes(self) -> list[Node]:
        """All nodes that a run computes: the outputs, lengths, alternatives, and checks."""
        return [*self.outputs, *self._extra(), *self.checks]

    def _extra(self) -> list[Node]:
        """Return lengths, and the alternatives with their conditions."""
        arrays = [(choice.holds, choice.node) for choices in self.choices.values() for choice in choices]
        counts = [n for choices in self._cases() for choice in choices for n in choice.counts.values()]
        return list(dict.fromkeys([*counts, *(x for pair in arrays for x in pair)]))

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
            FormatError: an input or output does not exist, the two differ in shape or dtype, or the output's length is
                known only at run time
        """
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
            if self._varies(self.names.index(source)) or (self.strings is not None and x in self.strings.inputs):
                raise FormatError(
                    f"state: the length or the strings of {source} are known only at run time. Give shapes= or "
                    "constants= that fix them"
                )
            replaced[x] = self._if_checked(y, x)
        assign_all({x: np.zeros(x.shape, x.dtype) for x in replaced if not x.is_assigned})
        shown = [i for i, name in enumerate(self.names) if name not in state.values()]
        strings = self.strings
        if strings is not None:
            strings = replace_record(strings, outputs=frozenset(k for k, i in enumerate(shown) if i in strings.outputs))
        return replace(
            self,
            inputs=tuple(x for x in self.inputs if x not in replaced),
            outputs=tuple(self.outputs[i] for i in shown),
            names=tuple(self.names[i] for i in shown),
            updates=self.updates | replaced,
            counts={k: self.counts[i] for k, i in enumerate(shown) if i in self.counts},
            choices={k: self.choices[i] for k, i in enumerate(shown) if i in self.choices},
            strings=strings,
        )

    def _varies(self, i: int) -> bool:
        """Return True if the length, the number of axes or the strings of an output are known only at run time."""
        return i in self.counts or i in self.choices or (self.strings is not None and i in self.strings.outputs)

    def _if_checked(self, new: Node, old: Node) -> Node:
        """Return a new state, or the old one where the Function raises an error after the run."""
        holds = [*self.checks, *(n for cases in self._cases() for n in bounds_of(cases))]
        return where(reduce(logical_and, holds), new, old) if holds else new


def bounds_of(cases: Sequence[Alternative]) -> Iterator[Node]:
    """Yield conditions that the lengths of one output meet: those of the first array whose condition holds."""
    earlier: Node = logical_not(TRUE)
    for case in cases:
        is_other = earlier | ~case.holds
        earlier = earlier | case.holds
        for axis, count in case.counts.items():
            yield is_other | ((count >= 0) & (count <= case.node.shape[axis]))
