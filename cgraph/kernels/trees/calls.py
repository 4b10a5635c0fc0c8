"""Calls that walk down decision trees."""

from math import ceil

from cgraph.kernels.kernel import Call, View
from cgraph.kernels.trees.signature import LEAVES

BLOCK = 64  # rows of a task; a tree's nodes are loaded into the cache once for all of them


def leaves_calls(
    out: View, x: View, roots: View, nodes: tuple[View, View, View, View], kinds: View | None
) -> list[Call]:
    """The leaves ``[n, trees]`` of rows ``[n, columns]``; see `cgraph.kernels.trees.emit`. All views contiguous.

    Parameters
        nodes: features, thresholds, below and above, one of each for a node
    """
    features, thresholds, below, above = nodes
    (n, columns), trees = x.shape, roots.shape[0]
    call = LEAVES.call(
        (x.dtype, kinds is None), ceil(n / BLOCK),
        x=x.at, n=n, columns=columns, roots=roots.at, trees=trees,
        features=features.at, thresholds=thresholds.at, below=below.at, above=above.at,
        kinds=None if kinds is None else kinds.at, leaves=out.at, block=BLOCK,
    )  # fmt: skip
    return [call] if n and trees else []
