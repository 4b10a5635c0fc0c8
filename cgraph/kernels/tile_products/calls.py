"""Call builders of products on tile registers: matrices of bytes or bfloat16 numbers by constant panels."""

from typing import Any

import numpy as np

from cgraph.kernels.activation.calls import BoundedActivation
from cgraph.kernels.conv8.calls import ByteWeights, MatrixRows, Result, join_args, residual_args
from cgraph.kernels.kernel import LINE, Call, Pointer
from cgraph.kernels.tile_products.signature import (
    ACROSS,
    BYTES,
    COLUMNS,
    OF_BYTES,
    OF_NUMBERS,
    ROUND_ROWS,
    STEP,
    TILE_NBYTES,
    TILES,
)
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of, table
from cgraph.record import Record
from cgraph.system.alignment import aligned_zeros

ROWS = 16  # of a tile, at most
WIDTH = ACROSS * COLUMNS  # columns of a panel
FEW_ROWS, FEW_BYTES = 4, 32  # rows, and bytes of a row, from which on tiles are faster than vectors: estimates
NEAR_INPUT = 512 << 10  # bytes of rows that stay in L2 while all panels pass over them
NEAR_PANELS = 300_000  # bytes of panels that stay in L2
LINES = ACROSS * TILE_NBYTES // LINE  # cache lines of a panel in one step
MOST_AHEAD = 16  # cache lines of the next panel prefetched in one step
TASKS, ROUNDED_IN_A_TASK = 16, 1 << 15  # tasks of rounding, at least so many for long rows; numbers in one
TILE_NS, GROUP_NS = 5.3, 115.0  # measured on a Xeon: a product of 16 rows, and the rest of a group


class TileSize(Record):
    """A product ``[rows, k] @ [k, n]`` of numbers of `itemsize` bytes, cut into tiles.

    Fields
        k, n: numbers in a sum, columns of the right side
        itemsize: 1 for bytes, 2 for bfloat16 numbers
    """

    k: int
    n: int
    itemsize: int

    @property
    def depth(self) -> int:
        """Numbers of a left side in one step."""
        return BYTES // self.itemsize

    @property
    def steps(self) -> int:
        return -(-self.k // self.depth)

    @property
    def padded(self) -> int:
        """Numbers in a row of the left side, to the last step's end."""
        return self.steps * self.depth

    @property
    def panels(self) -> int:
        return -(-self.n // WIDTH)

    @property
    def panel_nbytes(self) -> int:
        return self.steps * ACROSS * TILE_NBYTES


def suits_tiles(rows: int, k: int, itemsize: int) -> bool:
    """Return True if a product of `rows` rows of `k` numbers is faster on tiles than in vectors.

    Shorter rows fill less than half of a step, and the rest of a group of tiles takes as long as for long ones.
    """
    return rows >= FEW_ROWS and k * itemsize >= FEW_BYTES


def packed_shape(size: TileSize) -> tuple[int, ...]:
    """Return the shape of a right side as `pack_tiles` returns it."""
    return size.panels, size.steps, ACROSS, COLUMNS, COLUMNS, 4 // size.itemsize


def pack_tiles(size: TileSize, y: np.ndarray) -> np.ndarray:
    """Return a right side as ``[panels, steps, 2, 16, 16, group]``; a group is four bytes or two numbers of one column.

    Parameters
        y: ``[k, n]``, int8 or the bits of bfloat16 numbers; missing rows and columns are 0
    """
    group = 4 // size.itemsize
    whole = np.zeros((size.padded, size.panels * WIDTH), y.dtype)
    whole[: size.k, : size.n] = y
    parts = whole.reshape(size.steps, COLUMNS, group, size.panels, ACROSS, COLUMNS)
    out = aligned_zeros(packed_shape(size), y.dtype)
    out[...] = parts.transpose(3, 0, 4, 1, 5, 2)
    return out


def unpack_tiles(size: TileSize, packed: np.ndarray) -> np.ndarray:
    """Return the right side that `pack_tiles` packed."""
    parts = packed.transpose(1, 3, 5, 0, 2, 4).reshape(size.padded, size.panels * WIDTH)
    return np.ascontiguousarray(parts[: size.k, : size.n])


def pack_columns(size: TileSize, x: np.ndarray) -> np.ndarray:
    """Return numbers ``[..., n]`` with zeros up to the last panel's end."""
    out = np.zeros((*x.shape[:-1], size.panels * WIDTH), x.dtype)
    out[..., : size.n] = x
    return out


class Tiles(Record):
    """Rows cut into tiles of equal height, in groups of one or two.

    Fields
        height: rows of a tile
        group: tiles of a group
        first: the first row of each tile; the last tiles begin early, so that they end with the last row
        new: in each tile, the first row that is in no tile before it
    """

    height: int
    group: int
    first: tuple[int, ...]
    new: tuple[int, ...]

    @property
    def groups(self) -> int:
        return len(self.first) // self.group

    @staticmethod
    def of(count: int) -> "Tiles":
        """Return the tiles of `count` rows."""
        group = 1 if count <= ROWS else 2
        tiles = group * -(-count // (ROWS * group))
        height = -(-count // tiles)
        first = tuple(min(i * height, count - height) for i in range(tiles))
        return Tiles(height, group, first, tuple(min(i * height - at, height) for i, at in enumerate(first)))


def config_of(height: int) -> np.ndarray:
    """Return the configuration of the registers: sums and left sides have `height` rows."""
    config = np.zeros(BYTES, np.uint8)
    config[0] = 1  # the palette
    config[16 : 16 + 2 * TILES].view("<u2")[:] = BYTES
    config[48 : 48 + TILES] = [height] * 6 + [COLUMNS] * 2
    return config


class LeftRows(Record):
    """Left sides: matrices of `m` rows, padded to whole steps.

    Fields
        at: the first row
        count, m: matrices, and rows of each
        image, step: bytes from one matrix and from one row to the next
        apart: bytes from one step of a row to the next
    """

    at: Pointer
    count: int
    m: int
    image: int
    step: int
    apart: int = BYTES

    @staticmethod
    def in_blocks(size: TileSize, at: Pointer, count: int, m: int) -> "LeftRows":
        """Return rows of which the same steps lie side by side, as `round_rows_calls` writes them.

        A tile is one piece of memory then: its loads are up to a fifth faster than from rows.
        """
        return LeftRows(at, count, m, size.steps * m * BYTES, BYTES, m * BYTES)


def shared_args(size: TileSize, tiles: Tiles, x: LeftRows, panels: Pointer, w_image: int = 0) -> dict[str, Any]:
    """Return the arguments of both kernels about the left and the right side.

    Parameters
        w_image: bytes from the panels of one matrix to those of the next
    """
    block = max(1, min(tiles.groups, NEAR_INPUT * tiles.groups // max(x.m * size.steps * BYTES, 1)))
    places = np.stack([tiles.first, tiles.new], axis=1)
    return {
        "config": Pointer(config_of(tiles.height)), "steps": size.steps,
        "x": x.at, "x_image": x.image, "x_step": x.step, "x_apart": x.apart,
        "w": panels, "w_image": w_image, "w_panel": size.panel_nbytes,
        "tiles": Pointer(table(places.ravel())), "channels": size.n,
        "groups": tiles.groups, "block": block, "blocks": -(-tiles.groups // block), "panels": size.panels,
    }  # fmt: skip


def tasks_of(size: TileSize, tiles: Tiles, x: LeftRows, args: dict[str, Any]) -> tuple[int, int]:
    """Return the number of tasks, and those that a thread takes at a time."""
    tasks = x.count * args["blocks"] * args["block"] * size.panels
    return tasks, chunk_of(tasks, ns_of(size, tiles.group))


def ns_of(size: TileSize, group: int) -> float:
    """Return the nanoseconds of a task: `group` tiles of rows and one panel."""
    return size.steps * group * ACROSS * TILE_NS + GROUP_NS


def ahead_of(size: TileSize, groups: int) -> int:
    """Return the cache lines of the next panel to prefetch in each step, so that the `groups` of a block together
    prefetch all of it; 0 if the panels stay in cache.
    """
    return min(-(-LINES // groups), MOST_AHEAD) if size.panels * size.panel_nbytes > NEAR_PANELS else 0


def byte_rows_calls(size: TileSize, out: MatrixRows, x: LeftRows, weights: ByteWeights, result: Result) -> KernelCalls:
    """Compute ``result(x @ weights + bias)`` of bytes.

    Operands
        out: rows of a matrix whose elements lie in one piece
        weights: panels as `pack_tiles` returns them; bias and scale as `pack_columns` does
    """
    if not x.count * x.m * size.n:
        return KernelCalls()
    tiles = Tiles.of(x.m)
    args = shared_args(size, tiles, x, weights.at)
    params = (
        tiles.group,
        tiles.height,
        ahead_of(size, args["block"]),
        result.dtype,
        result.fixed,
        result.joins,
    )
    call = OF_BYTES.call(
        params, *tasks_of(size, tiles, x, args), **args, **join_args(result), **residual_args(None),
        bias=weights.bias, scale=weights.scale, shifts=size.panels * WIDTH,
        out=out.at, o_image=out.image, o_step=out.step,
    )  # fmt: skip
    return KernelCalls((call,))


def round_rows_calls(size: TileSize, out: Pointer, x: MatrixRows, count: int, m: int) -> tuple[Call, ...]:
    """Round `count` matrices of `m` rows of float32 numbers to bfloat16, in the order of `LeftRows.in_blocks`."""
    rows = count * m
    each = max(1, min(-(-rows // TASKS), ROUNDED_IN_A_TASK // size.padded))
    call = ROUND_ROWS.call(
        (), -(-rows // each),
        x=x.at, x_image=x.image, x_row=x.step, columns=size.k, rows=m, count=rows, each=each,
        out=out, o_image=size.steps * m * STEP, o_step=m * STEP,
    )  # fmt: skip
    return (call,) if rows else ()


class Addend(Record):
    """Numbers that are added to sums: elements from one matrix and one row to the next."""

    at: Pointer
    image: int
    step: int


def number_rows_calls(
    size: TileSize,
    out: MatrixRows,
    x: LeftRows,
    panels: Pointer,
    addend: Addend | None,
    activation: BoundedActivation,
    w_image: int = 0,
) -> KernelCalls:
    """Compute ``activation(x @ panels + addend)`` of bfloat16 numbers, in float32.

    Operands
        out: rows of a matrix whose elements lie in one piece; `addend` may be at the same addresses
        panels: as `pack_tiles` returns them, for each matrix `w_image` bytes after those of the one before
    """
    if not x.count * x.m * size.n:
        return KernelCalls()
    tiles, beside = Tiles.of(x.m), addend or Addend(Pointer(None), 0, 0)
    args = shared_args(size, tiles, x, panels, w_image)
    call = OF_NUMBERS.call(
        (tiles.group, tiles.height, ahead_of(size, args["block"]), "f4"), *tasks_of(size, tiles, x, args), **args,
        beside=addend.at if addend else None, beside_image=beside.image, beside_step=beside.step,
        out=out.at, o_image=out.image, o_step=out.step, **activation.args,
    )  # fmt: skip
    return KernelCalls((call,))
