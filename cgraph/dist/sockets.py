"""Connections among the members of a round: a door, greetings, and frames of a fixed form; nothing is unpickled.

A connection belongs to one round, so whatever comes late or twice belongs to a connection that is closed. In a round
members are in step with one another: each knows the next frame, its tag and its length, and anything else ends the
round. Whoever ends it closes its connections, which the others notice at once; somebody who has stopped without
closing them does not answer when asked.
"""

import hmac
import socket
import ssl
import struct
import threading
import time
from contextlib import suppress

from cgraph.dist.limits import Limits
from cgraph.errors import MemberError
from cgraph.record import Record

GREETING = struct.Struct("<8s32sBIQ")  # MAGIC, token, kind, sender, round
MAGIC, HERE = b"cgraph-1", b"here"
MEMBER, QUESTION = 1, 2  # kinds of greetings
TOKEN_BYTES = 32
POLL = 0.5  # seconds; how soon a door notices that it is closed

Address = tuple[str, int]


class LostError(MemberError):
    """A round is over: somebody is gone, does not answer, or sends what nobody expects.

    Fields
        member: who does not answer, and will not end the round either; None where that is nobody
    """

    def __init__(self, text: str, member: int | None = None) -> None:
        super().__init__(text)
        self.member = member


class Secrets(Record, eq=False):
    """What members know one another by.

    Fields
        token: of the job, which the scheduler has brought
        server, client: TLS of those who listen and who connect; None without
    """

    token: bytes
    server: ssl.SSLContext | None = None
    client: ssl.SSLContext | None = None


class Door:
    """Where a member is met: answers questions at once, and keeps connections until their round asks for them.

    Changes: with everybody who comes.
    """

    def __init__(self, host: str, secrets: Secrets, limits: Limits) -> None:
        self.secrets, self.limits = secrets, limits
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.create_server((host, 0), family=family, backlog=1024)
        self.listener.settimeout(POLL)
        self.address: Address = (host, self.listener.getsockname()[1])
        self.came = threading.Condition()
        self.waiting: dict[tuple[int, int], socket.socket] = {}
        self.closed = False
        threading.Thread(target=self._listen, name="cgraph door", daemon=True).start()

    def take(self, round: int, sender: int, until: float) -> socket.socket | None:
        """The connection that a member has made for a round; None when it has not come by then."""
        with self.came:
            while (round, sender) not in self.waiting:
                left = until - time.monotonic()
                if left <= 0 or self.closed:
                    return None
                self.came.wait(left)
            return self.waiting.pop((round, sender))

    def forget(self, before: int) -> None:
        """Close what has come for earlier rounds."""
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
        with self.listener:
            while not self.closed:
                with suppress(OSError):  # nobody came, or left again
                    link, _ = self.listener.accept()
                    threading.Thread(target=self._greet, args=(link,), name="cgraph greeting", daemon=True).start()

    def _greet(self, link: socket.socket) -> None:
        """Let in who knows the token."""
        try:
            link.settimeout(self.limits.answer)
            if self.secrets.server is not None:
                link = self.secrets.server.wrap_socket(link, server_side=True)
            magic, token, kind, sender, round = GREETING.unpack(exactly(link, GREETING.size))
            known = magic == MAGIC and hmac.compare_digest(token, self.secrets.token)
            if known and kind == QUESTION:
                link.sendall(HERE)
            if known and kind == MEMBER and not self.closed:
                self._keep(link, (round, sender))
                return
        except (OSError, EOFError):
            pass
        link.close()

    def _keep(self, link: socket.socket, key: tuple[int, int]) -> None:
        with self.came:
            old, self.waiting[key] = self.waiting.get(key), link
            self.came.notify_all()
        if old is not None:
            old.close()


def exactly(link: socket.socket, count: int) -> bytes:
    """So many bytes. EOFError when there are fewer."""
    found = b""
    while len(found) < count:
        more = link.recv(count - len(found))
        if not more:
            raise EOFError
        found += more
    return found


def connected(address: Address, secrets: Secrets, seconds: float, kind: int, sender: int, round: int) -> socket.socket:
    """A connection to somebody's door, greeted. OSError when there is nobody."""
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
    """Somebody's process is there and not stopped."""
    try:
        with connected(address, secrets, seconds, QUESTION, 0, 0) as link:
            return exactly(link, len(HERE)) == HERE
    except (OSError, EOFError):
        return False
