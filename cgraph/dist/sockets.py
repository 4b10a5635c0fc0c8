"""Connections among the members of a round: a door, greetings, and frames of a fixed form; nothing is unpickled.

A connection belongs to one round, so late or repeated messages belong to a closed connection. In a round members run in
step: each expects the next frame, its tag and its length, and anything else ends the round. A member that ends it
closes its connections, which the others notice at once; a member that was stopped without closing them does not answer
when asked.
"""

import hmac
import ipaddress
import selectors
import socket
import ssl
import struct
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

from cgraph.dist.limits import Limits
from cgraph.errors import MemberError
from cgraph.record import Record

GREETING = struct.Struct("<8s32sBIQ")  # MAGIC, token, kind, sender, round
MAGIC, HERE = b"cgraph-1", b"here"
MEMBER, QUESTION = 1, 2  # kinds of greetings
TOKEN_BYTES = 32
POLL = 0.5  # seconds in which a door notices that it is closed, or that a connection took too long
PAUSE = 0.02  # seconds to wait when no connection can be accepted
MOST_STRANGERS = 256  # maximum number of connections without a greeting
LATER = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

Address = tuple[str, int]


def is_private(address: str) -> bool:
    """Return True if no stranger reads what is sent to dask's address: it has TLS, or is on this machine."""
    parts = urlsplit(address)
    return parts.scheme in ("tls", "inproc") or is_loopback(parts.hostname or "")


def is_loopback(host: str) -> bool:
    """Return True for an address of this machine that others do not reach."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def door_host(address: str) -> str:
    """Return where a worker with dask's address opens its door; workers of one process need no network."""
    parts = urlsplit(address)
    return "127.0.0.1" if parts.scheme == "inproc" else parts.hostname or ""


class LostError(MemberError):
    """The end of a round: a member is gone, does not answer, or sends something unexpected.

    Fields
        member: the member that does not answer and will not end the round; None if there is none
    """

    def __init__(self, text: str, member: int | None = None) -> None:
        super().__init__(text)
        self.member = member


class Secrets(Record, eq=False):
    """Credentials by which members recognise one another.

    Fields
        token: token of the job, which the scheduler distributes
        server, client: TLS contexts for listening and connecting; None without TLS
    """

    token: bytes
    server: ssl.SSLContext | None = None
    client: ssl.SSLContext | None = None


class Door:
    """The listening socket of a member: it answers questions at once, and stores connections until their round starts.
    Changes: with every connection.
    """

    def __init__(self, host: str, secrets: Secrets, limits: Limits) -> None:
        self.secrets, self.limits = secrets, limits
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.create_server((host, 0), family=family, backlog=1024)
        self.listener.setblocking(False)
        self.address: Address = (host, self.listener.getsockname()[1])
        self.came = threading.Condition()
        self.waiting: dict[tuple[int, int], socket.socket] = {}
        self.closed = False
        threading.Thread(target=self._listen, name="cgraph door", daemon=True).start()

    def take(self, round: int, sender: int, until: float) -> socket.socket | None:
        """Return the connection from a member for a round; None if it has not come by `until`."""
        with self.came:
            while (round, sender) not in self.waiting:
                left = until - time.monotonic()
                if left <= 0 or self.closed:
                    return None
                self.came.wait(left)
            return self.waiting.pop((round, sender))

    def forget(self, before: int) -> None:
        """Close the connections for earlier rounds."""
        with self.came:
            for key in [key for key in self.waiting if key[0] < before]:
                self.waiting.pop(key).close()

    def close(self) -> None:
        with self.came:
            self.closed = True
            for link in self.waiting.values():
                link.close()
            self.waiting.clear()
            self.came.notify_all()

    def _listen(self) -> None:
        """Answer all connections in one thread until the door is closed."""
        with self.listener, Strangers(self.secrets, self.limits.answer) as strangers:
            strangers.selector.register(self.listener, selectors.EVENT_READ)
            while not self.closed:
                for link in strangers.ready(POLL):
                    if link is self.listener:
                        strangers.accept(self.listener)
                    else:
                        self._answer(strangers, link)
                strangers.expire()

    def _answer(self, strangers: "Strangers", link: socket.socket) -> None:
        """Accept a connection that sends the token."""
        greeting = strangers.greeting_of(link)
        if greeting is None:
            return
        magic, token, kind, sender, round = GREETING.unpack(greeting)
        is_known = magic == MAGIC and hmac.compare_digest(token, self.secrets.token)
        if is_known and kind == MEMBER:
            self._keep(link, (round, sender))
            return
        with suppress(OSError):
            if is_known and kind == QUESTION:
                link.send(HERE)
        link.close()

    def _keep(self, link: socket.socket, key: tuple[int, int]) -> None:
        with self.came:
            old = link if self.closed else self.waiting.get(key)
            if not self.closed:
                self.waiting[key] = link
            self.came.notify_all()
        if old is not None:
            old.close()


class Strangers:
    """Connections before their greeting: at most `MOST_STRANGERS`, each with one deadline for the whole greeting.
    Changes: as they connect and send. Only one thread uses it.
    """

    def __init__(self, secrets: Secrets, seconds: float) -> None:
        self.secrets, self.seconds = secrets, seconds
        self.selector = selectors.DefaultSelector()
        self.came: dict[socket.socket, bytearray] = {}  # the oldest first
        self.until: dict[socket.socket, float] = {}

    def __enter__(self) -> "Strangers":
        return self

    def __exit__(self, *error: object) -> None:
        for link in list(self.came):
            self._drop(link)
        self.selector.close()

    def ready(self, seconds: float) -> list[socket.socket]:
        """Return the connections that become readable within `seconds`."""
        return [key.fileobj for key, _ in self.selector.select(seconds) if isinstance(key.fileobj, socket.socket)]

    def expire(self) -> None:
        """Drop the connections that took too long."""
        now = time.monotonic()
        for link in [link for link, until in self.until.items() if until <= now]:
            self._drop(link)

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection. If there are too many, or no descriptors are left, drop the oldest."""
        try:
            link, _ = listener.accept()
        except BlockingIOError:
            return
        except OSError:
            self._drop_oldest()
            time.sleep(PAUSE)  # the listener stays ready
            return
        if len(self.came) >= MOST_STRANGERS:
            self._drop_oldest()
        link.setblocking(False)
        if self.secrets.server is not None:
            try:
                link = self.secrets.server.wrap_socket(link, server_side=True, do_handshake_on_connect=False)
            except OSError:
                link.close()
                return
        self.came[link], self.until[link] = bytearray(), time.monotonic() + self.seconds
        self.selector.register(link, selectors.EVENT_READ)

    def greeting_of(self, link: socket.socket) -> bytes | None:
        """Return the complete greeting and release the connection; None while bytes are missing."""
        if link not in self.came:
            return None
        came = self.came[link]
        try:
            if isinstance(link, ssl.SSLSocket):
                link.do_handshake()  # no effect once it has completed
            while len(came) < GREETING.size:
                more = link.recv(GREETING.size - len(came))
                if not more:
                    raise EOFError
                came += more
        except LATER as error:
            wants_room = isinstance(error, ssl.SSLWantWriteError)
            self.selector.modify(link, selectors.EVENT_WRITE if wants_room else selectors.EVENT_READ)
            return None
        except (OSError, EOFError):
            self._drop(link)
            return None
        self._forget(link)
        return bytes(came)

    def _drop_oldest(self) -> None:
        if self.came:
            self._drop(next(iter(self.came)))

    def _drop(self, link: socket.socket) -> None:
        self._forget(link)
        link.close()

    def _forget(self, link: socket.socket) -> None:
        self.selector.unregister(link)
        del self.came[link], self.until[link]


def exactly(link: socket.socket, count: int, seconds: float) -> bytes:
    """Receive `count` bytes within `seconds`. EOFError if there are fewer, TimeoutError if they come too slowly."""
    end, received = time.monotonic() + seconds, b""
    while len(received) < count:
        link.settimeout(max(end - time.monotonic(), 1e-3))
        more = link.recv(count - len(received))
        if not more:
            raise EOFError
        received += more
        if time.monotonic() > end:
            raise TimeoutError(f"{len(received)} of {count} bytes came in {seconds:g} s")
    return received


def connect(address: Address, secrets: Secrets, seconds: float, kind: int, sender: int, round: int) -> socket.socket:
    """Connect to a member's door and greet. OSError if no process listens."""
    link = socket.create_connection(address, timeout=seconds)
    try:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if secrets.client is not None:
            link = secrets.client.wrap_socket(link)
        link.sendall(GREETING.pack(MAGIC, secrets.token, kind, sender, round))
    except BaseException:
        link.close()
        raise
    return link


def answers(address: Address, secrets: Secrets, seconds: float) -> bool:
    """Return True if the process at an address is alive and not stopped."""
    try:
        with connect(address, secrets, seconds, QUESTION, 0, 0) as link:
            return exactly(link, len(HERE), seconds) == HERE
    except (OSError, EOFError):
        return False
