"""A region that is computed band by band: which rows of which value when, and where they lie.

A region is a list of values, the last of which is its *join*: the only one that is read outside. Every other value has
a *ring* in the region's frame, a buffer of some of its rows.
"""

from cgraph.record import Record


class Event(Record):
    """A band: rows ``first..stop`` (excluded) of a value are computed."""

    value: int
    first: int
    stop: int


class Slide(Record):
    """Rows of a ring that move to its front: `count` rows from row `slot` of the ring."""

    slot: int
    count: int


class Move(Record):
    """An event in its ring.

    Fields
        event: the band
        slot: the ring's row in which its first row lies
        slide: what moves before it, or None
    """

    event: Event
    slot: int
    slide: Slide | None


class Frame(Record):
    """Where everything of a region is.

    Fields
        moves: every band with its place
        heights: rows of each ring; 0 for the join, which lies outside
        rings: the first byte of each ring
        workspace: the first byte of the workspace
        nbytes: of the frame
    """

    moves: tuple[Move, ...]
    heights: tuple[int, ...]
    rings: tuple[int, ...]
    workspace: int
    nbytes: int
