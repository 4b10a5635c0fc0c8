"""Both sides of a product on tile registers, rounded to bfloat16 and packed in each run."""

from math import prod

from cgraph.dtypes.storage import BFLOAT16
from cgraph.kernels.kernel import Call, Pointer, View, contiguous
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.pairs.paired_sides import PairedSide
from cgraph.kernels.pairs.signature import PAIRS
from cgraph.kernels.target import Target
from cgraph.kernels.tile_products.calls import WIDTH, TileSize
from cgraph.kernels.tile_products.signature import ACROSS
from cgraph.kernels.views.window_views import reorder_axes, split_axis
from cgraph.record import Record
from cgraph.system.alignment import aligned


class LeftSide(Record):
    """Rows of whole steps, as tiles load them.

    Fields
        x: float32 numbers ``[..., m, k]``, of any strides
        size: of the product
    """

    x: View
    size: TileSize

    @property
    def side(self) -> PairedSide:
        return PairedSide(self.x, self.x.shape[-2], self.size.padded // 2)

    @property
    def nbytes(self) -> int:
        """Bytes of workspace: the rows, and before them in another order those of a transposed side."""
        return aligned(self.side.nbytes) * (1 if self.side.keeps_lines else 2)

    def rows(self, place: Pointer) -> View:
        """Return the rounded numbers ``[..., m, padded]`` in a workspace."""
        side = self.side
        rows = contiguous(place, (*side.batch, side.lines, 2 * side.depth), BFLOAT16.code)
        steps = [step if there else 0 for step, there in zip(rows.strides, self.x.strides[:-2])]
        return View(place, (*self.x.shape[:-1], 2 * side.depth), (*steps, *rows.strides[-2:]), rows.dtype)

    def calls(self, target: Target, place: Pointer) -> list[Call]:
        """Return the calls that write the rows."""
        side = self.side
        if side.keeps_lines:
            return side.calls(target, place)
        turned = place + aligned(side.nbytes)
        rows = contiguous(place, (*side.batch, side.lines, side.depth), PAIRS)
        pairs = side.at(turned)
        source = View(turned, rows.shape, pairs.strides, PAIRS)
        return [*side.calls(target, turned), *copy_calls(target, rows, source)]


class RightSide(Record):
    """Panels of tiles, as `pack_tiles` returns them for each matrix.

    Fields
        y: float32 numbers ``[..., k, n]``, of any strides
        size: of the product
    """

    y: View
    size: TileSize

    @property
    def side(self) -> PairedSide:
        columns = reorder_axes(self.y, (*range(len(self.y.shape) - 2), len(self.y.shape) - 1, len(self.y.shape) - 2))
        return PairedSide(columns, self.size.panels * WIDTH, self.size.padded // 2)

    @property
    def nbytes(self) -> int:
        """Bytes of workspace: the panels, and the pairs before they are packed."""
        return 2 * aligned(self.side.nbytes)

    @property
    def matrix_nbytes(self) -> int:
        """Bytes of the panels of one matrix."""
        return self.size.panels * self.size.panel_nbytes

    def steps(self) -> tuple[int, ...]:
        """Return the bytes from the panels of one matrix to those of the next along each batch axis; 0 where a matrix
        repeats.
        """
        batch = self.side.batch
        sizes = [self.matrix_nbytes * prod(batch[i + 1 :]) for i in range(len(batch))]
        return tuple(size if there else 0 for size, there in zip(sizes, self.y.strides[:-2]))

    def calls(self, target: Target, place: Pointer) -> list[Call]:
        """Return the calls that write the panels."""
        side, loose = self.side, place + aligned(self.side.nbytes)
        pairs = side.at(loose)
        pairs = View(loose, (*side.batch, *pairs.shape[-2:]), pairs.strides, PAIRS)
        return [*side.calls(target, loose), *pack_calls(target, self.size, place, pairs)]


def pack_calls(target: Target, size: TileSize, place: Pointer, pairs: View) -> list[Call]:
    """Pack pairs ``[..., lines, depth]``, up to the last panel's and the last step's end, as `pack_tiles` does."""
    count = len(pairs.shape) - 2
    tiles = split_axis(pairs, count + 1, size.steps)
    tiles = split_axis(split_axis(tiles, count, size.panels), count + 1, ACROSS)
    panel, across, column, step, pair = range(count, count + 5)
    tiles = reorder_axes(tiles, (*range(count), panel, step, across, pair, column))
    return copy_calls(target, contiguous(place, tiles.shape, PAIRS), tiles)
