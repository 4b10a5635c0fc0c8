"""Packing of the constant right sides of matrix products."""

from functools import partial
from math import prod

import numpy as np

from cgraph.dtypes.convert import is_storage
from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, rebuild
from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.gemm.portions import pack_b
from cgraph.kernels.target import Target
from cgraph.kernels.views.gemm_tile import GemmTile
from cgraph.late import LateModule
from cgraph.lowering.options import LoweringOptions
from cgraph.ops.leaf import Const
from cgraph.ops.linear import Matmul
from cgraph.ops.physical.matmul import MatmulEpilogue, PackedMatmul
from cgraph.ops.physical.pairs import PairedMatmul, pack_pairs
from cgraph.ops.shape import Transpose, unbroadcast
from cgraph.passes.fold_constants import stored_array
from cgraph.passes.loop_bodies import in_bodies

tiles = LateModule("cgraph.ops.physical.tiled")
CACHED = 4 << 20  # bytes of a matrix that may stay in a cache between its products


def pack_matmul(
    outputs: tuple[Node, ...],
    target: Target,
    options: LoweringOptions = LoweringOptions(),  # noqa: B008 - frozen
) -> tuple[Node, ...]:
    """Pack the constant right sides of products into panels, in bodies too: same values, no packing in every run.

    Constants of a storage dtype keep it. May worsen: bytes kept for good, when the constant has other users. Not
    packed: many floats for one row, columns that lie in one piece each, whose dot products stream them; whole
    numbers, which have no tiled kernel; constants that differ by batch; and for blocks of a GPU's threads, which
    read any order.
    """
    if target.has_blocks:
        return outputs
    graph = in_bodies(outputs, partial(pack_matmul, target=target, options=options))
    if not graph.has(Matmul, MatmulEpilogue):
        return graph

    panels = Panels(target, options)

    def change(node: Node, new: New) -> Node | None:
        if not isinstance(node.op, Matmul | MatmulEpilogue):
            return None
        return pack_floats(node, tuple([new[x] for x in node.operands]), panels)

    return rebuild(graph, change)


class Panels:
    """Constants that were packed; products that read the same constant read the same panels. Changes: it grows."""

    def __init__(self, target: Target, options: LoweringOptions) -> None:
        self.target, self.options = target, options
        self.packed: dict[tuple, tuple[Node, GemmTile]] = {}
        self.tiled: dict[Node, Node] = {}

    def add(self, panels: np.ndarray) -> Node:
        """Return packed numbers as a constant."""
        return Const(self.options.keep(panels), copy=False)

    def of(self, source: Node, y: np.ndarray, rows: int, in_pairs: bool) -> tuple[Node, GemmTile]:
        """Return the matrix `y`, the value of `source`, in panels for a product of `rows` rows."""
        key = source, y.shape, rows, in_pairs
        if key not in self.packed:
            panels, tile = pack_b(self.target, pack_pairs(y) if in_pairs else y, rows)
            self.packed[key] = self.add(panels), tile
        return self.packed[key]

    def of_tiles(self, source: Node, y: np.ndarray) -> Node:
        """Return the matrix `y`, the value of `source`, rounded to bfloat16 in tiles."""
        if source not in self.tiled:
            self.tiled[source] = self.add(tiles.pack_numbers(y))
        return self.tiled[source]


def pack_floats(node: Node, operands: tuple[Node, ...], panels: Panels) -> Node | None:
    """Return a product of floats by a packed constant; None if it is not packed.

    With tiles, few or short rows read a float32 constant as bfloat16 numbers and compute in float32.
    """
    y = constant_matrix(operands[1])
    if y is None or node.dtype.kind != "f" or 0 in (node.size, len(y)):
        return None
    rows, source, (k, n) = prod(node.shape[:-1]), unbroadcast(operands[1]), y.shape
    rounds = node.dtype == np.float32 and panels.options.rounds(node)
    has_tiles = bool(panels.target.tiles)
    has_addend, activation = epilogue_of(node)
    if rounds and has_tiles and tiles.suits_numbers(rows, k):
        op = tiles.TiledMatmul(k, n, has_addend, activation)
        return apply(op, operands[0], panels.of_tiles(source, y), *operands[2:])
    if rounds and has_tiles and y.dtype == np.float32:
        y = tiles.round_numbers(y)
    in_pairs = rounds and not has_tiles
    if not in_pairs and is_streamed(y, rows):
        return None
    constant, tile = panels.of(source, y, rows, in_pairs)
    kind = PairedMatmul if in_pairs else PackedMatmul
    return apply(kind(k, n, tile, has_addend, activation), operands[0], constant, *operands[2:])


def epilogue_of(node: Node) -> tuple[bool, BoundedActivation]:
    """Return whether something is added to a product, and the activation."""
    return getattr(node.op, "has_addend", False), getattr(node.op, "activation", NONE)


def is_streamed(y: np.ndarray, rows: int) -> bool:
    """Return True for one row of floats by one column, or by columns that lie in one piece each and exceed a cache.

    Panels of a matrix that stays in a cache are read 1.1 to 1.4 times as fast (256 KiB: 95 and 70 GB/s on a Zen 4).
    From memory, both are as fast, and the columns of a mapped file need no copy.
    """
    if rows != 1 or is_storage(y.dtype):
        return False
    return y.shape[1] == 1 or (y.strides[0] == y.itemsize and y.nbytes > CACHED)


def constant_matrix(node: Node) -> np.ndarray | None:
    """Return the matrix if it is constant and the same for every batch, else None."""
    source = unbroadcast(node)
    matrix = held_matrix(source)
    if matrix is None or prod(source.shape[:-2]) != 1 or source.shape[-2:] != node.shape[-2:]:
        return None
    return matrix.reshape(node.shape[-2:])


def held_matrix(node: Node) -> np.ndarray | None:
    """Return a constant as it is stored, perhaps transposed; None for other nodes."""
    if isinstance(node.op, Transpose):
        matrix = held_matrix(node.operands[0])
        return None if matrix is None else node.op.meaning(matrix)
    return stored_array(node)
