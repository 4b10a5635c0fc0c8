"""State that the functions of one object file share."""

from collections.abc import Mapping, Sequence

from cgraph.errors import FormatError
from cgraph.ops.leaf import Var
from cgraph.running.runner import Runner
from cgraph.standalone.interface import present_bytes


def shared_state(functions: Sequence[Runner]) -> list[list[Var]]:
    """Return the state of each function: those of all, in one order.

    Vars of different functions are one state if they are the same Var, or have one name, shape and value.
    """
    every: list[Var] = []
    own: list[dict[int, Var]] = [{} for _ in functions]
    for i, function in enumerate(functions):
        for x in function.updated:
            at = place_of(x, every, own[i])
            if at == len(every):
                every.append(x)
            own[i][at] = x
    for function, places in zip(functions, own):
        for x in function.cells:  # one that this size only reads
            at = place_of(x, every, places)
            if at < len(every):
                places[at] = x
    return [[places.get(at, x) for at, x in enumerate(every)] for places in own]


def place_of(x: Var, every: Sequence[Var], own: Mapping[int, Var]) -> int:
    """Return the place of a Var among those of other sizes; their number if it is not there."""
    for at, other in enumerate(every):
        if x is other or x is own.get(at):
            return at
    for at, other in enumerate(every):
        if at not in own and x.name == other.name:
            check_same(x, other)
            return at
    return len(every)


def check_same(x: Var, other: Var) -> None:
    """Raise FormatError unless two Vars of one name have one shape, dtype and value."""
    if x.spec != other.spec:
        raise FormatError(
            f"the state {x.name} is {other.spec} at one size and {x.spec} at another; all sizes share it. "
            "Give each its own name"
        )
    if x.cell.array is not None and other.cell.array is not None and present_bytes(x) != present_bytes(other):
        raise FormatError(f"the state {x.name} has other values at another size; all sizes share it. Use one Var")
