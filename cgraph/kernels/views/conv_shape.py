"""The geometry of a convolution and the tiling of its kernel, decided once for packing and for the calls.

The tile is ``pixels x vectors`` sums in registers. `vectors` divides the blocks of the result, or the last panels have
one block fewer (`ConvShape.is_mixed`). `pixels` is the number of neighbouring pixels that wastes least for this width;
a last tile that does not fit repeats pixels of its neighbour.
Measured efficiencies: docs/performance.md.
"""

from functools import cached_property, lru_cache
from itertools import product

from cgraph.kernels.target import Target
from cgraph.kernels.views.window import Window
from cgraph.record import Record, replace

WIDE = 3  # blocks of a wide panel, where narrow ones have one fewer
UNROLL = 8  # unrolled reduction steps; 16 makes LLVM hoist loads and spill


class LayerShape(Record):
    """The fields that convolutions and transposed ones share; see `ConvShape`."""

    c: int
    h: int
    w: int
    k: int
    target: Target
    window: Window = Window()


class ConvShape(LayerShape):
    """A convolution of images ``[n, c, h, w]`` with filters ``[k, c / groups, r, s]``.

    Fields
        c, h, w: channels, rows and columns of an image
        k: channels of the result
        window: filter size, stride, padding, dilation
        groups: independent groups of channels
        is_plain: images are plain ``[n, c, h, w]`` (first layers of few channels), else channel-blocked
        target: the machine
        dtype: ``f4`` or ``f8``
        panel: blocks of result channels in a tile; 0 lets `vectors` choose. Packed filters depend on it, so a part of
            a layer uses that of the whole
        is_mixed: the last panels may have one block fewer, where only panels of one block divide all; for constant
            filters of one group
        is_clipped: taps that meet padding are left out (`cgraph.kernels.conv.clipped`); for filters of finite numbers
        by_lanes: lanes of sums are input channels, for few result channels (`cgraph.kernels.conv.lanes_emit`)
    """

    groups: int = 1
    is_plain: bool = False
    dtype: str = "f4"
    panel: int = 0
    is_mixed: bool = False
    by_lanes: bool = False
    is_clipped: bool = False

    def __post_init__(self) -> None:
        if self.c % self.groups or self.k % self.groups:
            raise ValueError(
                f"{self.groups} groups do not divide {self.c} and {self.k} channels. Choose groups= that divides both"
            )
        if self.is_plain and self.groups != 1:
            raise ValueError(f"plain images need one group, not {self.groups}. Convert them to channel-blocked images")

    @cached_property
    def lanes(self) -> int:
        return self.target.channels_of(self.dtype)

    @property
    def source_lanes(self) -> int:
        """Channels in a block of the source images."""
        return self.lanes

    @property
    def blocks(self) -> int:
        """Blocks of channels in the result."""
        return -(-self.k // self.lanes)

    @cached_property
    def result(self) -> tuple[int, int]:
        return self.window.result(self.h, self.w)

    @cached_property
    def vectors(self) -> int:
        """Blocks of result channels in a tile: many when there are few pixels to share a weight.

        A tile of grouped filters reads the channels of all groups it touches, so it takes few blocks.
        """
        if self.panel:
            return self.panel
        if self.target.has_blocks:  # its tiles are cut from all filters that read the same channels
            return self.k // self.groups
        pixels = self.result[0] * self.result[1] if self.window.is_point or self.is_column else self.result[1]
        few = range(1, 9) if pixels < 4 else (1, 3, 2)
        fitting = [v for v in few if self.blocks % v == 0 and tile_fits(pixels, v, self.target)]
        if self.groups > 1:
            least = min(self.blocks_read(v) for v in fitting)
            fitting = [v for v in fitting if self.blocks_read(v) == least]
        return WIDE if fitting[-1] == 1 and self.takes_mixed(pixels) else fitting[-1]

    @property
    def is_column(self) -> bool:
        """True if the result has one column of pixels, which tiles take as a row."""
        return self.result[1] == 1 and not self.target.has_blocks

    def takes_mixed(self, pixels: int) -> bool:
        """Return True if panels of three and two blocks can replace those of one block.

        A tile of one block reads a number of the image for each multiply-add: 1.25 to 1.35 times as slow.
        """
        fits = self.blocks > WIDE and pixels >= 4 and tile_fits(pixels, WIDE, self.target)
        return self.is_mixed and self.groups == 1 and fits and self.target.code != "ptx"

    def spans(self, vectors: int) -> list[tuple[int, int]]:
        """Return the first and the last input block (excluded) of each panel of `vectors` blocks."""
        per_in, per_out, width = self.c // self.groups, self.k // self.groups, vectors * self.lanes
        spans = []
        for start in range(0, self.k, width):
            first, last = start // per_out, (min(start + width, self.k) - 1) // per_out
            spans.append((first * per_in // self.lanes, -(-(last + 1) * per_in // self.lanes)))
        return spans

    def blocks_read(self, vectors: int) -> int:
        """Return the input blocks that every panel of `vectors` blocks reads: the most that any panel touches."""
        return max((stop - start for start, stop in self.spans(vectors)), default=0)

    @property
    def panels(self) -> int:
        return -(-self.blocks // self.vectors)

    @property
    def narrow(self) -> int:
        """The number of the last panels that have one block fewer."""
        return self.panels * self.vectors - self.blocks

    @property
    def parts(self) -> "tuple[ConvShape, ...]":
        """The wide panels and the narrow ones as layers of equal panels; the layer itself if it is one."""
        if not self.narrow:
            return (self,)
        k = (self.panels - self.narrow) * self.panel_channels
        wide = replace(self, k=k, panel=self.vectors, is_mixed=False)
        narrow = replace(self, k=self.k - k, panel=self.vectors - 1, is_mixed=False)
        return (wide, narrow) if k else (narrow,)

    @property
    def panel_channels(self) -> int:
        return self.vectors * self.lanes

    def pixels(self, columns: int) -> int:
        """Return the neighbouring pixels in a tile, for rows of `columns` pixels."""
        return pixels_for(columns, self.k if self.by_lanes else self.vectors, self.target)

    @property
    def unroll(self) -> int:
        """Input channels of one step."""
        if self.by_lanes:
            return self.lanes
        return 1 if self.is_plain else min(UNROLL, self.lanes)

    @cached_property
    def panel_blocks(self) -> tuple[tuple[int, ...], int]:
        """For grouped filters: the first input block of each panel, and how many blocks every panel reads."""
        count = self.blocks_read(self.vectors)
        total = -(-self.c // self.lanes)
        return tuple(min(start, total - count) for start, _ in self.spans(self.vectors)), count

    @cached_property
    def steps(self) -> tuple[tuple[int, int, int], ...]:
        """The reduction in order: (first channel, counted from the panel's first block; filter row; filter column).

        Steps that would read only unused lanes of the last block are left out.
        """
        if self.is_plain:
            return plain_steps(self.c, self.window.kernel)
        blocks = self.panel_blocks[1]
        channels = blocks * self.lanes if self.groups > 1 else self.c
        return block_steps(channels, blocks, self.lanes, self.unroll, self.window.kernel)

    @property
    def panel_weights(self) -> int:
        """Packed weights of one panel, in elements."""
        return len(self.steps) * self.unroll * self.panel_channels

    @property
    def block_weights(self) -> int:
        """Packed weights of one block of a panel, in elements."""
        return len(self.steps) * self.unroll * self.lanes

    @property
    def weights_nbytes(self) -> int:
        if self.by_lanes:
            return len(self.steps) * self.k * self.lanes * int(self.dtype[1:])
        return (self.panels * self.panel_weights - self.narrow * self.block_weights) * int(self.dtype[1:])

    @property
    def flops(self) -> int:
        """Multiplications and additions of one image."""
        return 2 * self.result[0] * self.result[1] * self.k * (self.c // self.groups) * self.window.taps


@lru_cache(64)
def plain_steps(channels: int, kernel: tuple[int, int]) -> tuple[tuple[int, int, int], ...]:
    """Return the steps over plain images: channel by channel. While a graph is compiled, many shapes have the same."""
    r, s = kernel
    return tuple(product(range(channels), range(r), range(s)))


@lru_cache(64)
def block_steps(
    channels: int, blocks: int, lanes: int, unroll: int, kernel: tuple[int, int]
) -> tuple[tuple[int, int, int], ...]:
    """Return the steps over blocks of `lanes` channels: block by block, then tap by tap."""
    r, s = kernel
    steps: list[tuple[int, int, int]] = []
    for first in range(0, blocks * lanes, lanes):
        used = range(first, min(first + lanes, channels), unroll)
        steps += [(c, i, j) for i, j in product(range(r), range(s)) for c in used]
    return tuple(steps)


def sums(target: Target) -> int:
    """Return the vector registers available for sums, besides the weights and one broadcast scalar."""
    if target.registers < 16:
        return max(target.registers - 2, 1)
    return 28 if target.registers == 32 else 12 if target.fma else 8


def tile_fits(pixels: int, vectors: int, target: Target) -> bool:
    """Return True if the registers hold a tile of a row of `pixels`: its sums, its weights, one broadcast scalar.

    Weights of a single pixel are read from memory. Long rows are cut into tiles (`pixels_for`).
    """
    rows = max(pixels, 1) if pixels < 4 else 1
    weights = vectors if pixels > 1 else 1
    if vectors == 1 or rows * vectors > sums(target):
        return vectors == 1
    return pixels >= 4 or rows * vectors + weights + 1 + (not target.fma) <= target.registers


def pixels_for(columns: int, vectors: int, target: Target) -> int:
    """Return the tile width that wastes least: repeated pixels against fewer sums in flight."""
    most = min(max(sums(target) // vectors, 1), 14)
    if columns <= most:
        return max(columns, 1)
    if target.code == "ptx":  # tiles that overlap would be two threads at the same pixels
        return next(pixels for pixels in range(most, 0, -1) if columns % pixels == 0)
    few = max(most // 2, 1)

    def cost(pixels: int) -> float:
        return -(-columns // pixels) * (pixels + 0.5)  # 0.5: loop overhead and weight loads of a tile

    return min(range(most, few - 1, -1), key=cost)
