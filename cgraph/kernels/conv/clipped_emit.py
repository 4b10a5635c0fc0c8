"""Direct convolution by some taps of its filters, whose weights do not follow one another."""

from cgraph.kernels.conv.emit import Tile, tiles
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final


class ClippedTile(Tile):
    """A tile whose steps are the taps that meet the image."""

    @property
    def is_clipped(self) -> bool:
        """True: a table names the step of the packed filters of each step."""
        return True


@final
def tile(k: Builder, *params) -> None:
    """As `tile` of `cgraph.kernels.conv.emit`, by the steps `picks` of the packed filters."""
    tiles(k, ClippedTile(*params))
