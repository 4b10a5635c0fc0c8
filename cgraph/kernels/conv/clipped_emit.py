"""Direct convolution by some taps of its filters, whose weights do not follow one another."""

from cgraph.kernels.conv.emit import Tile, tiles
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.record import replace


@final
def tile(k: Builder, *params) -> None:
    """As `tile` of `cgraph.kernels.conv.emit`, by the steps `picks` of the packed filters."""
    tiles(k, replace(Tile(*params), is_clipped=True))
