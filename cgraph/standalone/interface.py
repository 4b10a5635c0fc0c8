"""The interface of an exported function: inputs, outputs and state, as C sees them."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of, is_storage
from cgraph.errors import FormatError
from cgraph.ir.spec import Spec
from cgraph.record import Record
from cgraph.running.runner import Runner
from cgraph.standalone.names import c_names

C_TYPES = {
    "f4": "float",
    "f8": "double",
    "c8": "float",
    "c16": "double",
    "b1": "uint8_t",
    "i1": "int8_t",
    "u1": "uint8_t",
    "i2": "int16_t",
    "u2": "uint16_t",
    "i4": "int32_t",
    "u4": "uint32_t",
    "i8": "int64_t",
    "u8": "uint64_t",
}
"""The C type of each dtype's numbers: pairs for complex ones. Storage dtypes are unsigned integers with their bits."""
OWN = ("run", "reset", "begin", "memory", "arena", "constants", "stop", "done")  # names that a header may declare
TABLE = re.compile(r"[ak]\d+(_\d+)*|run(_\d+)+")  # the names of argument tables, kernels and runs of one size


class CValue(Record, eq=False):
    """An input, an output or a state Var.

    Fields
        name: C identifier
        spec: shape and dtype
        source: the Var or node
    """

    name: str
    spec: Spec
    source: Any

    @property
    def type(self) -> str:
        if is_storage(self.spec.dtype):
            return f"uint{8 * self.spec.dtype.itemsize}_t"
        return C_TYPES[code_of(self.spec.dtype)]

    @property
    def count(self) -> int:
        """Numbers of the C type; at least one, since C has no empty array."""
        return max(self.spec.size * (2 if self.spec.dtype.kind == "c" else 1), 1)

    @property
    def nbytes(self) -> int:
        return self.spec.nbytes


class Interface(Record, eq=False):
    """The names and types that a caller uses.

    Fields
        prefix: beginning of every public name
        inputs, outputs: parameters of the run, in order
        state: Vars with an update edge
    """

    prefix: str
    inputs: tuple[CValue, ...]
    outputs: tuple[CValue, ...]
    state: tuple[CValue, ...]

    def symbol(self, name: str) -> str:
        """Return the public name of a part of the function."""
        return f"{self.prefix}_{name}"


def interface_of(
    function: Runner, prefix: str, output_names: Sequence[str] = (), state: Sequence[Any] | None = None
) -> Interface:
    """Return the interface of a compiled function.

    Parameters
        state: the Vars that have an update edge here or in another function of the same object file; None for those of
            this function

    Raises
        FormatError: an input has an update edge, a Var has no value, or the numbers of names and outputs differ
    """
    updated = function.updated if state is None else state
    check_vars(function, updated)
    labels = output_names or [x.name for x in function.outputs]
    if len(labels) != len(function.outputs):
        raise FormatError(f"{len(labels)} names for {len(function.outputs)} outputs. Give one for each")
    inputs = c_names(x.name for x in function.inputs)
    outputs = c_names((f"{x}_out" if x in inputs else x for x in c_names(labels)), inputs)
    names = c_names(v.name for v in updated)
    labels = c_names((f"{x}_state" if x in OWN or TABLE.fullmatch(x) else x for x in names), OWN)
    return Interface(
        prefix,
        values_of(inputs, function.inputs),
        values_of(outputs, function.outputs),
        values_of(labels, updated),
    )


def values_of(names: Sequence[str], sources: Sequence[Any]) -> tuple[CValue, ...]:
    return tuple(CValue(name, x.spec, x) for name, x in zip(names, sources))


def check_vars(function: Runner, state: Sequence[Any] | None = None) -> None:
    """Raise FormatError for an input with an update edge, and for a Var without a value."""
    updated = function.updated if state is None else state
    both = next((x for x in function.inputs if any(x is v for v in updated)), None)
    if both is not None:
        raise FormatError(
            f"{both.name} {both.spec} is an input and the target of an update: an exported function keeps its state in "
            "memory of its own. Remove it from inputs="
        )
    empty = next((x for x in (*function.cells, *updated) if x.cell.array is None), None)
    if empty is not None:
        raise FormatError(f"{empty.name} {empty.spec} has no value to export. Assign one first")


def present_bytes(x: Any) -> bytes:
    """Return a Var's present value in C order."""
    return np.ascontiguousarray(x.cell.array).tobytes()
