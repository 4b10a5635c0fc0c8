"""Arguments shared by families that walk arrays of any rank."""

from collections.abc import Callable
from operator import attrgetter
from types import SimpleNamespace

from cgraph.kernels.signature import Signature, Words

Count = Callable[[SimpleNamespace], int]


def axes(rank: str | Count, arrays: Count) -> Words:
    """Return the axes of a walk, fastest first: the extent, then the bytes per position in each array.

    `rank` is their number, or the name of the argument or param with it.
    """
    count = attrgetter(rank) if isinstance(rank, str) else rank
    return Words(("i8",), lambda values: count(values) * (arrays(values) + 1))


def streams(arrays: Count) -> Words:
    """Return arrays that are read or written along a row: address, and bytes from one column to the next."""
    return Words(("address", "i8"), arrays, is_unrolled=True)


def operands_and_outputs(values: SimpleNamespace) -> int:
    """Return the number of entries of the params `ins` and `outs`."""
    return len(values.ins) + len(values.outs)


def run(family: str, params: tuple[str, ...], arrays: tuple[str, ...], **more: str) -> Signature:
    """Return the signature of an emitter that uses `each_run`: rows of columns divided into tasks, then its own
    arguments.

    A task is at most `each` rows and one of `blocks` blocks of `block` columns; the last block has the remaining
    columns. A step is the bytes from one column to the next.
    """
    places = dict.fromkeys(arrays, "u1*") | {"columns": "i8"} | {f"{name}_step": "i8" for name in arrays}
    cut = dict.fromkeys(("block", "blocks", "each", "rows"), "i8")
    every_axis = axes("rank", lambda _: len(arrays))
    return Signature(family, params, {**places, **cut, **more, "rank": "i8", "axes": every_axis})
