"""Variables: the state of a TFLite file that persists between runs, as Vars with update edges.

A *resource variable* has a name, and operators read and assign it by its handle. A *variable tensor* is an operand that
its operator also writes, as the past inputs of SVDF are. While a graph is built, a variable has the value of the last
assignment, so an operator behind it reads that one; the last value of all becomes the update edge. A variable that is
assigned before it is read is not state. Values have the file's order of axes; int8 is stored as bytes.
"""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from math import prod

import numpy as np

from cgraph.errors import FormatError, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.formats.constants import Evaluator
from cgraph.ir.graph import Node
from cgraph.ir.spec import Spec
from cgraph.ops.leaf import Const, Var

VARIABLE = 1000  # bytes of memory of a variable, besides its value and its name
COPIES = 2  # a run may write into a copy of the initial value


class TfliteVariable:
    """One variable. Changes while a graph is built.

    Fields
        name: for messages and for the state of a Function
        initial: its value before the first run; zeros by default
        start: the Var that holds its value when a run starts; None until it is read
        value: its value at this point of the graph
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.initial: np.ndarray | None = None
        self.start: Var | None = None
        self.value: Node | None = None


class Variables:
    """The variables of a file, by number. Changes while its graphs are built.

    Parameters
        allowance: the remaining cost of reading the file
    """

    def __init__(self, allowance: Allowance) -> None:
        self.allowance = allowance
        self.numbers: dict[Hashable, int] = {}
        self.variables: list[TfliteVariable] = []
        self.graphs: set[int] = set()
        self.is_initial = False

    def number(self, key: Hashable, name: str) -> int:
        """Return the number of a variable, which is created at its first use."""
        if key not in self.numbers:
            self.allowance.spend("a variable", nbytes=VARIABLE + 4 * len(name))
            self.numbers[key] = len(self.variables)
            self.variables.append(TfliteVariable(name))
        return self.numbers[key]

    def at(self, number: int) -> TfliteVariable:
        """Return a variable. FormatError if there is none of this number."""
        if not 0 <= number < len(self.variables):
            raise damaged_file(f"variable {number} is outside the {len(self.variables)} variables of the file")
        return self.variables[number]

    def read(self, number: int, spec: Spec, zero: int = 0) -> Node:
        """Return the present value of a variable.

        Parameters
            spec: of its value, unless an initial one is known
            zero: fills it, unless an initial value is known
        """
        variable = self.at(number)
        if variable.value is None:
            value = self.initial_value(variable, spec, zero)
            if self.is_initial:
                return Const(value)
            variable.start = Var(value.shape, value.dtype, variable.name).assign(value)
            variable.value = variable.start
        return variable.value

    def initial_value(self, variable: TfliteVariable, spec: Spec, zero: int) -> np.ndarray:
        if variable.initial is None:
            self.allowance.spend(
                f"variable {variable.name!r:.60}", nbytes=COPIES * prod(spec.shape) * spec.dtype.itemsize
            )
            variable.initial = np.full(spec.shape, zero, spec.dtype)
        return variable.initial

    def assign(self, number: int, value: Node) -> None:
        """Give a variable a value: of this point of a run, or of the state before the first one."""
        variable = self.at(number)
        if not self.is_initial:
            variable.value = value
            return
        if variable.value is not None:
            raise FormatError(
                f"variable {variable.name!r:.60} gets its initial value after it was used. Call CALL_ONCE first"
            )
        self.allowance.spend(f"variable {variable.name!r:.60}", nbytes=COPIES * value.nbytes)
        variable.initial = Evaluator(self.allowance).array(value, f"the initial value of {variable.name!r:.60}")

    @contextmanager
    def initialising(self) -> Iterator[None]:
        """Make assignments those of initial values."""
        self.is_initial = True
        try:
            yield
        finally:
            self.is_initial = False

    def updates(self) -> dict[Var, Node]:
        """Return the update edges: for each variable that is read, its last value. FormatError if its spec changes."""
        edges = {}
        for variable in self.variables:
            start, value = variable.start, variable.value
            if start is None or value is None or value is start:
                continue
            if start.spec != value.spec:
                raise FormatError(
                    f"variable {variable.name!r:.60} is {start.spec} and becomes {value.spec}. Assign values of one "
                    "shape and dtype"
                )
            edges[start] = value
        return edges
