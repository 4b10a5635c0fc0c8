"""Channel-blocked images: the layout between kernels, ``[n, c / lanes, h + halo, w + halo, lanes]``.

The channels of one block are adjacent and form one vector register. The halo, zero pixels around an image, lets a
convolution read beyond the border without a test. Lanes beyond the last channel are zero and stay zero (as long as
values are finite: 0 times an infinity is not zero). In images of bytes the halo contains the zero point, and lanes
beyond the last channel are undefined.
"""

from cgraph.kernels.kernel import Pointer
from cgraph.record import Record, replace


class BlockedView(Record):
    """The memory of a channel-blocked value: a whole buffer, or some of its channels.

    Fields
        at: first byte of the buffer, halo included
        n, c, h, w: images, channels of this value, rows, columns
        lanes: channels in a block, as many as the target's vectors have for `dtype`
        halo: zero pixels around each image ``(top, left, bottom, right)``
        channel_offset: first channel of this value in the buffer
        channels: channels of the whole buffer; 0 means that it ends with this value
        dtype: ``f4``, ``f8``, ``u1`` or the code of bfloat16
        steps: elements from one image, block and row to the next, if they are not contiguous in this order
        fill: value of the halo; for bytes the number that means 0
    """

    at: Pointer
    n: int
    c: int
    h: int
    w: int
    lanes: int
    halo: tuple[int, int, int, int] = (0, 0, 0, 0)
    channel_offset: int = 0
    channels: int = 0
    dtype: str = "f4"
    steps: tuple[int, int, int] | None = None
    fill: int = 0

    @property
    def itemsize(self) -> int:
        return int(self.dtype[1:])

    @property
    def buffer_blocks(self) -> int:
        """Blocks of channels in the whole buffer."""
        return -(-(self.channels or self.channel_offset + self.c) // self.lanes)

    @property
    def blocks(self) -> int:
        """Blocks of channels that this value fills; the last one may be partial."""
        return -(-self.c // self.lanes)

    @property
    def row(self) -> int:
        """Elements from one row to the next."""
        return self.steps[2] if self.steps else self.width

    @property
    def width(self) -> int:
        """Elements of a row, halo included."""
        return (self.w + self.halo[1] + self.halo[3]) * self.lanes

    @property
    def plane(self) -> int:
        """Elements from one block of channels to the next."""
        return self.steps[1] if self.steps else (self.h + self.halo[0] + self.halo[2]) * self.width

    @property
    def image(self) -> int:
        """Elements from one image to the next."""
        return self.steps[0] if self.steps else self.buffer_blocks * self.plane

    @property
    def nbytes(self) -> int:
        """Bytes of the whole buffer."""
        return self.n * self.image * self.itemsize

    @property
    def starts_a_block(self) -> bool:
        """True if the first channel is the first lane of a block; only `copy_channels_calls` allows others."""
        return self.channel_offset % self.lanes == 0

    @property
    def ends_a_block(self) -> bool:
        """True if no channel of another value follows the last one in its block."""
        end = self.channel_offset + self.c
        return end % self.lanes == 0 or end == (self.channels or end)

    @property
    def origin(self) -> Pointer:
        """The first pixel of the first channel, or of its block if it does not start one."""
        return self.pixel(0, 0)

    def pixel(self, row: int, column: int) -> Pointer:
        """Return a pixel of the first block; negative and large indices reach into the halo."""
        block = self.channel_offset // self.lanes
        elements = block * self.plane + (self.halo[0] + row) * self.row + (self.halo[1] + column) * self.lanes
        return self.at + elements * self.itemsize

    @property
    def has_halo(self) -> bool:
        return self.halo != (0, 0, 0, 0)

    @property
    def is_flat(self) -> bool:
        """True if the rows of a block are contiguous."""
        return not self.has_halo and self.row == self.width

    def covers(self, halo: tuple[int, int, int, int]) -> bool:
        """Return True if the halo is at least `halo` wide on every side."""
        return all(have >= need for have, need in zip(self.halo, halo))

    def part(self, first: int, count: int) -> "BlockedView":
        """Return some of the channels of this value."""
        whole = self.channels or self.channel_offset + self.c
        return replace(self, c=count, channel_offset=self.channel_offset + first, channels=whole)


def require_whole_blocks(*values: BlockedView | None) -> None:
    """Raise ValueError if a value shares a block with another; `copy_channels_calls` must separate them first."""
    for x in values:
        if x is not None and not (x.starts_a_block and x.ends_a_block):
            end = x.channel_offset + x.c
            raise ValueError(
                f"channels {x.channel_offset} to {end} do not fill whole blocks of {x.lanes}. Use copy_channels_calls"
            )


def require_first_lane(x: BlockedView) -> None:
    """Raise ValueError if a value starts inside a block. A shared last block needs filters that are zero beyond `c`."""
    if not x.starts_a_block:
        raise ValueError(
            f"channel offset {x.channel_offset} is not a multiple of {x.lanes} lanes. Use copy_channels_calls"
        )
