"""Band buffers: a region of images computed band by band, with the place of every band.

A region is a list of values. The last one is its *join*, the only one that is read outside. Every other value has a
*ring* in the band buffer: memory for some of its rows, in order, each row with all images and channels. If the next
band does not fit, live rows *slide* to another place. The region's operands and the join lie outside the buffer.
"""

from collections.abc import Iterator, Sequence

from cgraph.record import Record, replace


class Event(Record):
    """A band: rows ``first..stop`` (excluded) of a value are computed."""

    value: int
    first: int
    stop: int


class Move(Record):
    """Rows and their place.

    Fields
        event: the rows
        at: byte of the band buffer where the first of them lies; other rows of the ring lie before and after it
        slides: they are not computed, but moved here
        workspace: first byte of the workspace
        room: bytes of the workspace
    """

    event: Event
    at: int = 0
    slides: bool = False
    workspace: int = 0
    room: int = 0


class BandLoop(Record):
    """Repeated moves: they run `count` times, each time some rows further, at the same places.

    Fields
        first, last: range of the moves, the last one excluded
        begin: per value, the rows present before the first turn
        shift: per value, the rows from one turn to the next
        count: number of turns
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
    """A join whose rows overwrite another value, the *fork*, while that is read for the last time.

    The rows of both are contiguous in memory.

    Fields
        fork: index of the value
        ahead: minimum of bytes from the begin of the join to that of the fork
    """

    fork: int
    ahead: int


class BandBuffer(Record):
    """The places of all rows of a region.

    Fields
        moves: every band and every slide with its place
        nbytes: size of the buffer
        loop: the repeated moves. Rows are numbered as if they ran once, so those after the loop are further down
    """

    moves: tuple[Move, ...]
    nbytes: int
    loop: BandLoop | None = None

    def turns(self, numbers: Sequence[int] = (0,)) -> Iterator[tuple[Move, int]]:
        """Yield the moves as they run if the loop takes only the turns `numbers`.

        Rows are numbered without the omitted turns. With each move comes the number of turns omitted before it.
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
        """Return the move shifted by a number of turns of the loop."""
        event = move.event
        far = turns * self.loop.shift[event.value] if self.loop else 0
        return replace(move, event=Event(event.value, event.first + far, event.stop + far))
