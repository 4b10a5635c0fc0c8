"""Images of either layout, channel-blocked or plain ``[n, c, h, w]``, as planes."""

from cgraph.kernels.kernel import Pointer, View
from cgraph.kernels.views.blocked_views import BlockedView, require_whole_blocks
from cgraph.record import Record

Images = BlockedView | View


class Planes(Record):
    """`n` images of `count` planes (channels, or blocks of channels); steps in elements."""

    n: int
    count: int
    rows: int
    columns: int
    at: Pointer
    image: int
    plane: int
    row: int
    column: int


def planes_of(x: Images) -> Planes:
    """Return the planes of channel-blocked images or of a plain view. ValueError if a value shares a block."""
    if isinstance(x, BlockedView):
        require_whole_blocks(x)
        return Planes(x.n, x.blocks, x.h, x.w, x.origin, x.image, x.plane, x.row, x.lanes)
    image, plane, row, column = (s // x.itemsize for s in x.strides)
    n, c, h, w = x.shape
    return Planes(n, c, h, w, x.at, image, plane, row, column)


def is_plane_by_plane(x: Images) -> bool:
    """Return True if every plane is one channel, as in plain images."""
    return not isinstance(x, BlockedView) or x.lanes == 1


def same_planes(out: Images, x: Images) -> tuple[Planes, Planes]:
    """Return the planes of a result and of its operand. ValueError if layout, images or channels differ."""
    planes = planes_of(out), planes_of(x)
    if isinstance(out, BlockedView) != isinstance(x, BlockedView):
        raise ValueError("values of one layout are needed, both channel-blocked or both plain. Convert one first")
    if (planes[0].n, planes[0].count) != (planes[1].n, planes[1].count):
        raise ValueError(f"numbers of images or planes differ: {planes[0]} and {planes[1]}")
    return planes
