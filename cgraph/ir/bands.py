"""A region that is computed band by band: which rows of which value when, and where they lie.

A region is a list of values, the last of which is its *join*: the only one that is read outside. Every other value has
a *ring* in the region's frame, a buffer of some of its rows, which lie one behind the other: first all images and
channels of one row, then those of the next. When its next band does not fit, rows that are still wanted *slide* to
another place. What the join needs, and what others need of it, lies outside.
"""

from collections.abc import Iterator, Sequence

from cgraph.record import Record, replace


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
        room: bytes of the workspace
    """

    event: Event
    at: int = 0
    slides: bool = False
    workspace: int = 0
    room: int = 0


class BandLoop(Record):
    """Moves that come again: they run ``count`` times, each time some rows further on, at the same places.

    Fields
        first, last: of the moves, the last one excluded
        begin: per value, the rows that are there before the first time
        shift: per value, the rows from one time to the next
        count: how often
    """

    first: int
    last: int
    begin: tuple[int, ...]
    shift: tuple[int, ...]
    count: int

    @property
    def checked_turns(self) -> tuple[int, ...]:
        """The turns that checks look at: the first, the second and the last."""
        return (0, 1, self.count - 1)[: self.count]


class InPlaceJoin(Record):
    """A join whose rows take the bytes of another value, the *fork*, as that is read for the last time.

    Rows of both lie one behind the other in memory.

    Fields
        fork: which value
        ahead: bytes from where the join begins to where the fork begins, at least
    """

    fork: int
    ahead: int


class BandBuffer(Record):
    """Where everything of a region is.

    Fields
        moves: every band and every slide with its place
        nbytes: of the frame
        loop: which of the moves come again. Rows count as if they came once, so those behind them are further down
    """

    moves: tuple[Move, ...]
    nbytes: int
    loop: BandLoop | None = None

    def turns(self, numbers: Sequence[int] = (0,)) -> Iterator[tuple[Move, int]]:
        """The moves as they run when the loop takes these of its turns and no others.

        Rows count on without those that are left out; beside each move, how many turns have been left out before it.
        """
        if self.loop is None:
            yield from ((move, 0) for move in self.moves)
            return
        first, last, count = self.loop.first, self.loop.last, self.loop.count
        yield from ((move, 0) for move in self.moves[:first])
        for turn, number in enumerate(numbers):
            yield from ((self.further(move, turn), number - turn) for move in self.moves[first:last])
        count_run = len(numbers)
        yield from ((self.further(move, count_run - 1), count - count_run) for move in self.moves[last:])

    def further(self, move: Move, turns: int) -> Move:
        """The same move so many turns of the loop later."""
        event = move.event
        far = turns * self.loop.shift[event.value] if self.loop else 0
        return replace(move, event=Event(event.value, event.first + far, event.stop + far))
