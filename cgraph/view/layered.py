"""Layered layout of a graph: every node below its operands, with few crossings.

Idea: a node's layer is the longest path from a leaf. Leaves, and values computed only from leaves and read once, such
as packed weights, are placed directly above their first user, not all in one wide layer at the top. Layers are sorted
by the mean position of their neighbours, downwards and upwards in turn, and every node moves as near to that mean as
possible. There are no dummy nodes for edges over several layers, which would make it quadratic: such edges cross nodes.

Source: Sugiyama, Tagawa and Toda 1981, doi 10.1109/TSMC.1981.4308636 (layers and means).
Time O((n + e) log n) for n nodes and e operands; loops, no recursion.
"""

from collections.abc import Sequence

SWEEPS = 4


def layered(operands: Sequence[Sequence[int]]) -> tuple[list[float], list[int]]:
    """Return column and layer of each node, given the positions of its operands, which come before it.

    Columns are multiples of a node's width: nodes of one layer are at least 1 apart; layers count from 0.
    """
    users: list[list[int]] = [[] for _ in operands]
    for i, xs in enumerate(operands):
        for x in xs:
            users[x].append(i)
    layer = _layers(operands, users)
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for i in range(len(operands)):
        rows[layer[i]].append(i)
    columns = [0.0] * len(operands)
    for row in rows:
        for k, i in enumerate(row):
            columns[i] = k - (len(row) - 1) / 2
    for sweep in range(SWEEPS):
        joined = users if sweep % 2 else operands
        for row in reversed(rows) if sweep % 2 else rows:
            _settle(row, joined, columns)
    return columns, layer


def _layers(operands: Sequence[Sequence[int]], users: Sequence[Sequence[int]]) -> list[int]:
    layer, is_loose = [0] * len(operands), [True] * len(operands)
    for i, xs in enumerate(operands):
        layer[i] = 1 + max(layer[x] for x in xs) if xs else 0
        is_loose[i] = all(not operands[x] or (is_loose[x] and len(users[x]) == 1) for x in xs)
    for i in reversed(range(len(operands))):
        if is_loose[i] and users[i]:
            layer[i] = min(layer[user] for user in users[i]) - 1
    return layer


def _settle(row: list[int], joined: Sequence[Sequence[int]], columns: list[float]) -> None:
    """Sort a layer by the mean positions of their neighbours, and move its nodes there as far as they stay 1 apart.

    Pushing all nodes to the right of their means, and all to the left, both keep the distance; the result is halfway
    between.
    """
    means = {i: sum(columns[x] for x in joined[i]) / len(joined[i]) if joined[i] else columns[i] for i in row}
    row.sort(key=lambda i: (means[i], columns[i]))
    right, at = [], float("-inf")
    for i in row:
        at = max(means[i], at + 1)
        right.append(at)
    at = float("inf")
    for i, high in zip(reversed(row), reversed(right)):
        at = min(means[i], at - 1)
        columns[i] = (at + high) / 2
