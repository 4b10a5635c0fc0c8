"""Tables of a plan for incremental evaluation: arrays without a graph, which can be saved with a function."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.memory.layout import owner_of, producers_of
from cgraph.memory.tables import Lists, Tables


def tables_of(compiled: Any, variables: Sequence[Any]) -> Tables:
    """Return the tables of a plan, for changes of these Vars."""
    layout, usage = compiled.layout, compiled.usage
    values, value_of = layout.values, layout.value_of
    low = [usage.offset(compiled.plan, i) for i in range(len(values))]
    edges = sorted({x for a, v in zip(low, values) for x in (a, a + v.nbytes)})
    at = {x: i for i, x in enumerate(edges)}
    producers = producers_of(layout.views, value_of)
    read = [node.op.reads(node.operands) for node in layout.steps]
    reads = [dict.fromkeys(i for i in (producers[x] for x in operands) if i >= 0) for operands in read]
    parts: list[list[int]] = [[] for _ in values]
    for i, whole in enumerate(usage.inside):
        if whole >= 0:
            parts[whole].append(i)
    owners = (owner_of(layout.views[n]) for n in (*compiled.outputs, *compiled.sources))
    return Tables(
        segments=np.array([(at[a], at[a + v.nbytes]) for a, v in zip(low, values)], np.int64).reshape(-1, 2),
        reads=Lists.of(reads),
        parts=Lists.of(parts),
        workspace=np.array([layout.workspace_of.get(node, -1) for node in layout.steps], np.int64),
        lasting=np.array(sorted({value_of[o] for o in owners if o in value_of}), np.int64),
        depends=depends_of(layout, variables),
    )


def depends_of(layout: Any, variables: Sequence[Any]) -> np.ndarray:
    """Return bits, uint8 ``[steps, bytes]``: the Vars that a step depends on, and last, whether it depends on an impure
    op.
    """
    always = len(variables)
    bits: dict[Any, int] = {}
    number_of = {x: i for i, x in enumerate(variables)}
    for node in layout.views:
        mask = 1 << number_of[node] if node in number_of else 0 if node.op.pure else 1 << always
        for x in node.operands:
            mask |= bits[x]
        bits[node] = mask
    nbytes = always // 8 + 1
    rows = b"".join(bits[node].to_bytes(nbytes, "little") for node in layout.steps)
    return np.frombuffer(rows, np.uint8).reshape(len(layout.steps), nbytes)
