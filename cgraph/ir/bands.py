"""A region that is computed band by band: which rows of which value when, and where they lie.

A region is a list of values, the last of which is its *join*: the only one that is read outside. Every other value has
a *ring* in the region's frame, a buffer of some of its rows, which lie one behind the other: first all images and
channels of one row, then those of the next. When its next band does not fit, rows that are still wanted *slide* to
another place. What the join needs, and what others need of it, lies outside.
"""

from cgraph.record import Record


class Event(Record):
    """A band: rows ``first..stop`` (excluded) of a value are computed."""

    value: int
    first: int
    stop: int


class Move(Record):
    """Some rows in their place.

    Fields
        event: which rows
        at: the byte of the frame where the first of them lies; the others of the ring lie before and behind it
        slides: they are not computed, but moved to here from where they were
        workspace: the first byte of the workspace
    """

    event: Event
    at: int = 0
    slides: bool = False
    workspace: int = 0


class Frame(Record):
    """Where everything of a region is.

    Fields
        moves: every band and every slide with its place
        nbytes: of the frame
    """

    moves: tuple[Move, ...]
    nbytes: int
