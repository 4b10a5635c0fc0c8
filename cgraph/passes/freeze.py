"""Conversion of the present values of Vars to constants."""

from collections.abc import Iterable

from cgraph.errors import UnassignedError
from cgraph.ir.graph import Node
from cgraph.ir.roots import rebuild
from cgraph.ops.leaf import Const, Var


def freeze(outputs: tuple[Node, ...], variables: Iterable[Var]) -> tuple[Node, ...]:
    """Replace these Vars by Consts of their present values, so that passes may fold and pack them.

    Nothing is copied: a Var that is assigned later gets new bytes. UnassignedError names a Var without a value.
    """
    constants: dict[Node, Node] = {}
    for x in variables:
        if x.cell.array is None:
            raise UnassignedError(
                f"{x.name} {x.spec} (made at {x.where}) cannot be frozen: it has no value. Assign one first"
            )
        constants[x] = Const(x.cell.share(), name=x.name, copy=False)
    return rebuild(outputs, lambda node, new: constants.get(node)) if constants else outputs
