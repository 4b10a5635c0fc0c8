"""Arguments that families share which go through arrays of any rank."""

from collections.abc import Callable
from types import SimpleNamespace

from cgraph.kernels.signature import Signature, Words

Count = Callable[[SimpleNamespace], int]


def axes(rank: str, arrays: Count) -> Words:
    """The axes of a walk, fastest first: the extent, then the bytes from one position to the next in each array.

    `rank`: the argument or param that says how many they are.
    """
    return Words(("i8",), lambda values: getattr(values, rank) * (arrays(values) + 1))


def streams(arrays: Count) -> Words:
    """Arrays that are read or written along a row: address, and bytes from one column to the next."""
    return Words(("address", "i8"), arrays)


def operands_and_outputs(values: SimpleNamespace) -> int:
    """As many arrays as the params `ins` and `outs` have entries."""
    return len(values.ins) + len(values.outs)


def run(family: str, params: tuple[str, ...], arrays: tuple[str, ...], **more: str) -> Signature:
    """What an emitter that uses `each_run` reads: rows of columns cut into tasks, then arguments of its own.

    A task is at most `each` rows and one of `blocks` blocks of columns, `block` columns each; the last one takes what
    is left over. A step is the bytes from one column to the next.
    """
    places = dict.fromkeys(arrays, "u1*") | {"columns": "i8"} | {f"{name}_step": "i8" for name in arrays}
    cut = dict.fromkeys(("block", "blocks", "each", "rows"), "i8")
    every_axis = axes("rank", lambda _: len(arrays))
    return Signature(family, params, {**places, **cut, **more, "rank": "i8", "axes": every_axis})
