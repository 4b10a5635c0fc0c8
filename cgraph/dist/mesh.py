"""A mesh: the connections of one member to others in a round, with frames in both directions at once."""

import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from cgraph.dist.limits import Limits
from cgraph.dist.sockets import LATER, MEMBER, Address, Door, LostError, answers, connect

FRAME = struct.Struct("<4sIQQ")  # magic, tag, step, number of bytes that follow
MAGIC = b"cgf1"

Item = tuple[int, int, np.ndarray]
"""Member, tag, and a contiguous array, all bytes of which are sent or received."""


class Link:
    """A connection to one member. Mutable: queues of outgoing and incoming bytes."""

    def __init__(self, number: int, connection: socket.socket) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number, self.socket = number, connection
        self.out: deque[memoryview] = deque()
        self.incoming: deque[tuple[memoryview, bytes | None, Callable[[], None]]] = deque()

    def send(self, tag: int, step: int, x: np.ndarray) -> None:
        self.out.append(memoryview(FRAME.pack(MAGIC, tag, step, x.nbytes)))
        self.out.append(raw(x))

    def want(self, tag: int, step: int, x: np.ndarray, arrived: Callable[[], None]) -> None:
        """Receive the next frame into an array, then call `arrived`. A frame with another head is an error."""
        self.incoming.append((memoryview(bytearray(FRAME.size)), FRAME.pack(MAGIC, tag, step, x.nbytes), arrived))
        self.incoming.append((raw(x), None, arrived))

    @property
    def is_done(self) -> bool:
        return not self.out and not self.incoming

    @property
    def events(self) -> int:
        return selectors.EVENT_READ * bool(self.incoming) | selectors.EVENT_WRITE * bool(self.out)

    def move(self) -> bool:
        """Send and receive without waiting. LostError if the other end is closed or sends an unexpected frame."""
        try:
            sent = self._push()
            return self._pull() or sent
        except OSError as error:
            raise LostError(f"the connection to member {self.number} broke: {error}") from None

    def _push(self) -> bool:
        moved = False
        while self.out:
            view = self.out[0]
            try:
                count = self.socket.send(view) if view else 0
            except LATER:
                return moved
            moved = True
            if count == len(view):
                self.out.popleft()
            else:
                self.out[0] = view[count:]
        return moved

    def _pull(self) -> bool:
        moved = False
        while self.incoming:
            view, *_ = self.incoming[0]
            try:
                count = self.socket.recv_into(view) if view else 0
            except LATER:
                return moved
            if view and not count:
                raise LostError(f"member {self.number} has closed its connection")
            moved = True
            self._filled(count)
        return moved

    def _filled(self, count: int) -> None:
        """Count received bytes of the first incoming frame."""
        view, head, arrived = self.incoming[0]
        if count < len(view):
            self.incoming[0] = (view[count:], head, arrived)
            return
        self.incoming.popleft()
        if head is None:
            arrived()
            return
        came = bytes(view.obj)  # type: ignore[arg-type] # all of the room for a head
        if came != head:
            _, tag, step, nbytes = FRAME.unpack(head)
            raise LostError(
                f"member {self.number} sent a frame {came.hex()} where {nbytes} bytes of tag {tag} in step {step} "
                "were expected"
            )


def raw(x: np.ndarray) -> memoryview:
    """Return the bytes of an array without a copy."""
    return memoryview(x.reshape(-1).view(np.uint8))  # type: ignore[arg-type]


class Mesh:
    """The connections of one member in one round. Mutable: frames come and go until it is closed.

    Fields
        round: its number
        me: number of this member
        addresses: addresses of all members' doors, in order
    """

    def __init__(
        self, door: Door, round: int, me: int, addresses: Sequence[Address], peers: Iterable[int], limits: Limits
    ) -> None:
        self.door, self.round, self.me, self.addresses, self.limits = door, round, me, tuple(addresses), limits
        self.links: dict[int, Link] = {}
        self.closed = False
        try:
            self._connect(sorted(peers))
        except BaseException:
            self.close()
            raise

    def _connect(self, peers: list[int]) -> None:
        """Connect to earlier members, and wait for later ones."""
        for i in peers:
            if i < self.me:
                self.links[i] = Link(i, self._to(i))
        end = time.monotonic() + self.limits.step
        for i in peers:
            while i > self.me and i not in self.links:
                connection = self.door.take(self.round, i, time.monotonic() + self.limits.silence)
                if connection is not None:
                    self.links[i] = Link(i, connection)
                else:
                    self._ask([i], end)

    def _to(self, i: int) -> socket.socket:
        try:
            greeting = self.door.secrets, self.limits.answer, MEMBER, self.me, self.round
            return connect(self.addresses[i], *greeting)
        except OSError as error:
            member = None if isinstance(error, ConnectionError) else i  # refused: its host answers
            raise LostError(f"member {i} is not at {self.addresses[i]}: {error}", member) from None

    def exchange(
        self, step: int, sent: Iterable[Item], incoming: Iterable[Item], arrived: Callable[[int], None] = lambda _: None
    ) -> None:
        """Send arrays and fill others at the same time. Frames from and to one member keep their order.

        Parameters
            arrived: called with the index of an incoming array when it is complete, while others are still moved
        Raises
            LostError: somebody is gone, does not answer, takes too long, or sends something else
        """
        for i, tag, x in sent:
            self.links[i].send(tag, step, x)
        for index, (i, tag, x) in enumerate(incoming):
            self.links[i].want(tag, step, x, partial(arrived, index))
        busy = [link for link in self.links.values() if not link.is_done]
        end = time.monotonic() + self.limits.step
        while busy:
            moved = [link.move() for link in busy]
            busy = [link for link in busy if not link.is_done]
            if busy and not any(moved) and not self._ready(busy):
                self._ask([link.number for link in busy], end)
            if self.closed:
                raise LostError("the round was given up")

    def _ready(self, busy: list[Link]) -> bool:
        """Wait a short time until a connection can send or receive."""
        with selectors.DefaultSelector() as selector:
            for link in busy:
                selector.register(link.socket, link.events)
            return bool(selector.select(self.limits.silence))

    def _ask(self, silent: list[int], end: float) -> None:
        """Ask silent members whether they are alive. LostError if one is not, or if it takes too long."""
        if self.closed or self.door.closed:
            raise LostError("the round was given up")
        for i in silent:
            if not answers(self.addresses[i], self.door.secrets, self.limits.answer):
                raise LostError(f"member {i} at {self.addresses[i]} does not answer", i)
        if time.monotonic() > end:
            raise LostError(f"members {silent} sent nothing for {self.limits.step:g} s")

    def give_up(self) -> None:
        """Stop the exchange; may be called from any thread."""
        self.closed = True
        for link in list(self.links.values()):
            with suppress(OSError):
                link.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.closed = True
        for link in self.links.values():
            link.socket.close()
