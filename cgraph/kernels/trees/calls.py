"""Calls that walk down decision trees."""

from math import ceil

import numpy as np

from cgraph.kernels.kernel import Call, View
from cgraph.kernels.trees.signature import LEAVES, SUMS, UNIT, node_dtype

PACKED = 1 << 16  # nodes that are packed at once, so that the arrays in between stay small
BLOCK = 64  # rows of a task; a tree's nodes are loaded into the cache once for all of them


def pack_nodes(
    features: np.ndarray, thresholds: np.ndarray, below: np.ndarray, above: np.ndarray, flags: np.ndarray
) -> np.ndarray:
    """Return nodes as bytes ``[nodes, itemsize of node_dtype]``; `features` is -1 at a leaf."""
    table, flags = np.zeros(len(features), node_dtype(thresholds.dtype)), np.broadcast_to(flags, len(features))
    for at in range(0, len(features), PACKED):
        part = slice(at, at + PACKED)
        places = np.arange(at, min(at + PACKED, len(features)))
        write_nodes(table, places, features[part], thresholds[part], below[part], above[part], flags[part])
    return bytes_of_nodes(table)


def write_nodes(
    table: np.ndarray,
    places: np.ndarray,
    features: np.ndarray,
    thresholds: np.ndarray,
    below: np.ndarray,
    above: np.ndarray,
    flags: np.ndarray,
) -> None:
    """Write nodes at places of a table of `node_dtype`; `features` is -1 at a leaf."""
    units, is_leaf = table.itemsize // UNIT, features < 0
    nodes = np.zeros(len(places), table.dtype)
    nodes["threshold"] = thresholds
    nodes["column"] = np.where(is_leaf, 0, features * thresholds.itemsize + flags)
    for i, way in enumerate((above, below)):
        nodes["ways"][:, i] = np.where(is_leaf, places, way) * units
    table[places] = nodes


def bytes_of_nodes(table: np.ndarray) -> np.ndarray:
    """Return a table of `node_dtype` as bytes ``[nodes, itemsize]``, which share its memory."""
    return table.view(np.uint8).reshape(len(table), table.itemsize)


def leaves_calls(out: View, x: View, roots: View, nodes: View, flags: int) -> list[Call]:
    """The leaves ``[n, trees]`` of rows ``[n, columns]``; see `cgraph.kernels.trees.emit`. All views contiguous.

    Parameters
        nodes: from `pack_nodes`; flags: those that some node has
    """
    (n, columns), trees = x.shape, roots.shape[0]  # at a leaf, the first number of a row is read and not used
    call = LEAVES.call(
        (x.dtype, flags), ceil(n / BLOCK),
        x=x.at if columns else nodes.at, n=n, columns=columns, roots=roots.at, trees=trees,
        nodes=nodes.at, leaves=out.at, block=BLOCK,
    )  # fmt: skip
    return [call] if n and trees else []


def sums_calls(out: View, x: View, roots: View, nodes: View, weights: View, flags: int) -> list[Call]:
    """The sums over trees ``[n, targets]`` of the weights ``[nodes, targets]`` of leaves. All views contiguous."""
    (n, columns), targets = x.shape, weights.shape[1]
    call = SUMS.call(
        (x.dtype, flags, weights.dtype, targets == 1), ceil(n / BLOCK),
        x=x.at if columns else nodes.at, n=n, columns=columns, roots=roots.at, trees=roots.shape[0],
        nodes=nodes.at, weights=weights.at, targets=targets, sums=out.at, block=BLOCK,
    )  # fmt: skip
    return [call] if n and targets else []
