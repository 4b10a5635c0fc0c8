"""Doors and greetings: who belongs to a round, who only asks, and strangers who cost nothing."""

import errno
import itertools
import selectors
import shutil
import socket
import ssl
import subprocess
import threading
import time
from contextlib import ExitStack, closing, suppress
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.dist import sockets
from cgraph.dist.limits import Limits
from cgraph.dist.mesh import Mesh
from cgraph.dist.sockets import (
    GREETING,
    MEMBER,
    MOST_STRANGERS,
    QUESTION,
    Door,
    LostError,
    Secrets,
    Strangers,
    answers,
    connect,
    exactly,
)
from tests.dist.hosts.page import commands
from tests.dist.members import HASTY, SECRETS, frame, left_alone, started
from tests.support.patience import PATIENCE


class Stopped:
    """A door that nobody looks after: connections come, and nothing is ever answered."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = self.socket.getsockname()

    def close(self):
        self.socket.close()


@pytest.mark.parametrize(
    ("host", "family"),
    [("127.0.0.1", "AF_INET"), ("localhost", "AF_INET"), ("::1", "AF_INET6"), ("fe80::1", "AF_INET6")],
)
def test_a_door_listens_at_addresses_of_its_hosts_family(monkeypatch, host, family):
    """A stand-in listens at 127.0.0.1, since a machine may be without IPv6."""
    asked, create_server = [], socket.create_server

    def listen(address, *, family=socket.AF_INET, **options):
        asked.append((address, family))
        return create_server(("127.0.0.1", 0), **options)

    monkeypatch.setattr(socket, "create_server", listen)
    with closing(Door(host, SECRETS, HASTY)) as door:
        assert asked == [((host, 0), getattr(socket, family))]
        assert door.address == (host, door.address[1]) and answers(("127.0.0.1", door.address[1]), SECRETS, PATIENCE)


def test_what_comes_late_twice_or_from_strangers_belongs_to_no_round():
    with closing(Door("127.0.0.1", SECRETS, HASTY)) as door:
        strangers = [connect(door.address, Secrets(b"x" * 32), 1, kind, 1, 2) for kind in (MEMBER, QUESTION)]
        strangers.append(socket.create_connection(door.address))
        strangers[-1].sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(100))
        for link in strangers:
            link.settimeout(PATIENCE)
            with closing(link):
                assert left_alone(link)
        late, first, second = (connect(door.address, SECRETS, 1, MEMBER, 1, round) for round in (1, 2, 2))
        deadline = time.monotonic() + PATIENCE
        while len(door.waiting) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        door.forget(2)
        assert left_alone(late) and left_alone(first)
        with closing(second), closing(Mesh(door, 2, 0, [door.address] * 2, [1], HASTY)) as mesh:
            second.sendall(frame(0, 0, np.arange(10, dtype="f4").tobytes()))
            found = np.empty(10, np.float32)
            mesh.exchange(0, [], [(1, 0, found)])
            np.testing.assert_array_equal(found, np.arange(10))


def threads_of_doors():
    return [x for x in threading.enumerate() if x.name.startswith("cgraph door")]


@pytest.mark.parametrize("talk", [b"", b"c", GREETING.pack(b"cgraph-1", b"x" * 32, MEMBER, 1, 2)[:-1]], ids=len)
def test_strangers_cost_no_thread_and_have_one_deadline_however_slowly_they_speak(talk):
    """Hundreds, silent or byte by byte; meanwhile members and questions come in."""
    before = set(threads_of_doors())  # of doors that were closed just now
    with closing(Door("127.0.0.1", SECRETS, Limits(answer=1.0))) as door, ExitStack() as stack:
        strangers = [stack.enter_context(socket.create_connection(door.address)) for _ in range(2 * MOST_STRANGERS)]
        for i in range(max(len(talk), 20)):
            for link in strangers:
                with suppress(OSError):
                    link.send(talk[i : i + 1] or talk[:1])
            if i < 2:
                assert answers(door.address, SECRETS, PATIENCE)
                with connect(door.address, SECRETS, 1, MEMBER, 1, 10 + i):
                    taken = door.take(10 + i, 1, time.monotonic() + PATIENCE)
                    assert taken is not None
                    taken.close()
            time.sleep(0.02)
        assert len(set(threads_of_doors()) - before) == 1
        for link in strangers:  # all are sent away, though some go on speaking
            assert left_alone(link)


@pytest.mark.parametrize("most", [1, 3])
def test_the_oldest_stranger_makes_way(most, monkeypatch):
    monkeypatch.setattr(sockets, "MOST_STRANGERS", most)
    with closing(Door("127.0.0.1", SECRETS, HASTY)) as door, ExitStack() as stack:
        strangers = [stack.enter_context(socket.create_connection(door.address)) for _ in range(most + 2)]
        assert all(left_alone(link) for link in strangers[:2])
        for link in strangers[2:]:
            link.setblocking(False)
            with pytest.raises(BlockingIOError):
                link.recv(1)


def test_a_greeting_in_pieces_is_one_and_what_comes_behind_it_is_of_the_round():
    with closing(Door("127.0.0.1", SECRETS, HASTY)) as door, socket.create_connection(door.address) as link:
        raw = GREETING.pack(b"cgraph-1", b"t" * 32, MEMBER, 1, 5) + frame(0, 0, np.arange(10, dtype="f4").tobytes())
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(0, len(raw), 7):
            link.sendall(raw[i : i + 7])
            time.sleep(0.001)
        with closing(Mesh(door, 5, 0, [door.address] * 2, [1], HASTY)) as mesh:
            found = np.empty(10, np.float32)
            mesh.exchange(0, [], [(1, 0, found)])
            np.testing.assert_array_equal(found, np.arange(10))


def test_who_answers_a_byte_at_a_time_does_not_answer():
    """One deadline for the whole answer: each byte alone would be in time."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def slow():
            link, _ = server.accept()
            with link, suppress(OSError):
                for byte in b"here":
                    time.sleep(0.15)
                    link.send(bytes([byte]))

        started(slow)
        assert not answers(server.getsockname(), SECRETS, 0.2)


@pytest.mark.parametrize("answer", [b"here", b"gone", b"her", b"\0\0\0\0", b""])
def test_only_the_answer_of_a_member_is_one(answer):
    """Another program may listen at the port of a member that died."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def other():
            link, _ = server.accept()
            with link:
                link.sendall(answer)
                link.shutdown(socket.SHUT_WR)
                while link.recv(1000):
                    pass

        started(other)
        assert answers(server.getsockname(), SECRETS, PATIENCE) == (answer == b"here")


def test_a_door_that_is_closed_keeps_nobody():
    door = Door("127.0.0.1", SECRETS, HASTY)
    with connect(door.address, SECRETS, 1, MEMBER, 1, 1) as member, socket.create_connection(door.address) as silent:
        deadline = time.monotonic() + PATIENCE
        while not door.waiting and time.monotonic() < deadline:
            time.sleep(0.01)
        door.close()
        assert left_alone(member) and left_alone(silent) and not door.waiting
        while door.listener.fileno() >= 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert door.listener.fileno() == -1, "others would still connect to it, and wait"


@pytest.mark.parametrize("closed_before", [True, False])
def test_who_waits_at_a_door_that_closes_waits_no_longer(closed_before, monkeypatch):
    """The time until which somebody may wait is far away; the door closes before, or while somebody waits."""
    with closing(Door("127.0.0.1", SECRETS, HASTY)) as door:
        waits = []

        def wait(left):
            assert not door.closed, "waits at a closed door"
            waits.append(left)
            door.close()

        monkeypatch.setattr(door.came, "wait", wait)
        if closed_before:
            door.close()
        assert door.take(1, 1, time.monotonic() + PATIENCE) is None
        assert len(waits) == (not closed_before) and all(0 < left <= PATIENCE for left in waits)


@pytest.mark.parametrize(("address", "private", "host"), [
    ("tls://10.0.0.7:8786", True, "10.0.0.7"), ("tcp://127.0.0.1:1", True, "127.0.0.1"),
    ("tcp://localhost:1", True, "localhost"), ("tcp://[::1]:1", True, "::1"),
    ("inproc://10.0.0.7/1/2", True, "127.0.0.1"),
    ("tcp://10.0.0.7:8786", False, "10.0.0.7"), ("tcp://host.of.others:1", False, "host.of.others"), ("", False, ""),
])  # fmt: skip
def test_an_address_is_private_with_tls_or_on_this_machine(address, private, host):
    assert sockets.is_private(address) is private and sockets.door_host(address) == host


def test_hosts_of_this_machine_are_told_by_address_and_not_by_a_name_that_resolves():
    assert all(map(sockets.is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(sockets.is_loopback, ("10.0.0.1", "0.0.0.0", "::", "localhost.example", "")))


def test_a_lost_member_is_named_where_there_is_one():
    assert (LostError("x", 3).member, LostError("x").member, str(LostError("x", 3))) == (3, None, "x")


def test_connections_of_earlier_rounds_are_closed_and_later_ones_stay():
    with closing(Door("127.0.0.1", SECRETS, HASTY)) as door:
        links = [connect(door.address, SECRETS, 1, MEMBER, 1, round) for round in (1, 2, 3)]
        with ExitStack() as stack:
            for link in links:
                stack.enter_context(closing(link))
            taken = door.take(3, 1, time.monotonic() + PATIENCE)
            for round in (1, 2):
                again = door.take(round, 1, time.monotonic() + PATIENCE)
                door._keep(again, (round, 1))
            stack.enter_context(closing(taken))
            door.forget(2)
            assert list(door.waiting) == [(2, 1)] and links[0].recv(1) == b""
            assert door.take(1, 1, time.monotonic()) is None


@pytest.mark.parametrize("said", [b"", b"half of a greeting"])
def test_a_stranger_that_hangs_up_before_the_end_of_its_greeting_is_dropped(said):
    with socket.create_server(("127.0.0.1", 0)) as server, Strangers(SECRETS, PATIENCE) as strangers:
        with socket.create_connection(server.getsockname()) as stranger:
            strangers.accept(server)
            stranger.sendall(said)
        (link,) = strangers.came
        end = time.monotonic() + PATIENCE
        while link in strangers.came and time.monotonic() < end:
            assert [strangers.greeting_of(x) for x in strangers.ready(1)] in ([], [None])
        assert link.fileno() == -1 and not strangers.came and not strangers.until


def test_a_connection_that_fails_in_its_greeting_is_closed(monkeypatch):
    opened = []

    class Link:
        closed = False

        def setsockopt(self, *_):
            opened.append(self)

        def sendall(self, _):
            raise KeyboardInterrupt

        def close(self):
            self.closed = True

    monkeypatch.setattr(sockets.socket, "create_connection", lambda *_, **__: Link())
    with pytest.raises(KeyboardInterrupt):
        connect(("127.0.0.1", 1), SECRETS, 1, MEMBER, 1, 1)
    assert [link.closed for link in opened] == [True]


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    """Secrets of two jobs with a certificate each: the token is the same."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    secrets = []
    for i in range(2):
        folder = tmp_path_factory.mktemp(f"certificate{i}")
        subprocess.run(["sh", "-ec", commands()[0]], cwd=folder, check=True, capture_output=True)
        contexts = [ssl.SSLContext(x) for x in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT)]
        for context in contexts:
            context.check_hostname, context.verify_mode = False, ssl.CERT_REQUIRED
            context.load_verify_locations(folder / "cert.pem")
            context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        secrets.append(Secrets(SECRETS.token, *contexts))
    return secrets


def test_a_wrong_certificate_is_refused_by_the_end_that_sees_it(certified):
    """A member that goes to a door of others says which member is not there; at a door it is a stranger."""
    own, other = certified
    strict = Limits(silence=0.05, answer=5.0, step=PATIENCE)
    with closing(Door("127.0.0.1", own, HASTY)) as door, closing(Door("127.0.0.1", other, strict)) as stranger:
        with pytest.raises(LostError, match=r"member 0 is not at .*certificate verify failed") as raised:
            Mesh(stranger, 1, 1, [door.address, stranger.address], [0], strict)
        assert raised.value.member == 0 and not door.waiting
        assert not answers(door.address, other, 5.0) and answers(door.address, own, PATIENCE)
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which does not look at the door's certificate
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        with suppress(OSError), connect(door.address, Secrets(own.token, None, trusting), 5.0, QUESTION, 1, 1) as link:
            assert left_alone(link)
        assert not door.waiting


def test_a_door_with_tls_refuses_a_member_without(certified):
    own, _ = certified
    with closing(Door("127.0.0.1", own, HASTY)) as door:
        with connect(door.address, SECRETS, 5.0, MEMBER, 1, 1) as plain:
            plain.settimeout(PATIENCE)
            with suppress(ConnectionError):
                while plain.recv(100):  # an alert of TLS
                    pass
        assert not door.waiting
        with closing(connect(door.address, own, PATIENCE, MEMBER, 1, 1)):
            taken = door.take(1, 1, time.monotonic() + PATIENCE)
            assert taken is not None
            taken.close()


@pytest.mark.parametrize(
    ("error", "left"), [(OSError(errno.EMFILE, "too many"), [1, 2]), (BlockingIOError(), [0, 1, 2])]
)
def test_where_no_descriptor_is_left_the_oldest_stranger_makes_way(error, left, monkeypatch):
    """Not where nobody has come."""

    class Listener:
        def accept(self):
            raise error

    monkeypatch.setattr(sockets, "PAUSE", 0)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        Strangers(SECRETS, PATIENCE) as strangers,
        ExitStack() as stack,
    ):
        for _ in range(3):
            stack.enter_context(socket.create_connection(server.getsockname()))
            strangers.accept(server)
        came = list(strangers.came)
        strangers.accept(Listener())
        assert list(strangers.came) == list(strangers.until) == [came[i] for i in left]
        assert [link.fileno() == -1 for link in came] == [i not in left for i in range(3)]
    assert all(link.fileno() == -1 for link in came)


def test_a_connection_that_comes_when_its_door_is_closed_is_closed():
    door = Door("127.0.0.1", SECRETS, HASTY)
    door.close()
    own, other = socket.socketpair()
    with own, other:
        door._keep(own, (1, 1))
        assert own.fileno() == -1 and left_alone(other) and not door.waiting


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (ssl.SSLWantWriteError(), selectors.EVENT_WRITE),
        (ssl.SSLWantReadError(), selectors.EVENT_READ),
        (BlockingIOError(), selectors.EVENT_READ),
    ],
    ids=lambda x: type(x).__name__,
)
def test_a_greeting_goes_on_when_its_connection_can_do_what_it_waits_for(error, event):
    class Waiting(socket.socket):
        def recv(self, *_):
            raise error

    own, other = socket.socketpair()
    with other, Waiting(own.family, own.type, fileno=own.detach()) as link, Strangers(SECRETS, PATIENCE) as strangers:
        for before in (selectors.EVENT_READ, selectors.EVENT_WRITE):
            strangers.came[link], strangers.until[link] = bytearray(b"half"), 0.0
            strangers.selector.register(link, before)
            assert strangers.greeting_of(link) is None and strangers.came[link] == b"half"
            assert strangers.selector.get_key(link).events == event
            strangers._forget(link)


@pytest.mark.parametrize(("seconds", "waits"), [(5, [4, 2, 1e-3]), (6, [5, 3, 1, 1e-3])])
def test_bytes_that_come_one_by_one_have_one_deadline_together(seconds, waits, monkeypatch):
    """A clock that moves by a second each time that somebody looks at it."""
    found: list[float] = []
    link = SimpleNamespace(settimeout=found.append, recv=lambda most: b"x" if most else b"")
    monkeypatch.setattr(sockets, "time", SimpleNamespace(monotonic=partial(next, itertools.count())))
    with pytest.raises(TimeoutError, match=f"^{len(waits)} of 10 bytes came in {seconds} s$"):
        exactly(link, 10, seconds)
    assert found == waits
    monkeypatch.setattr(sockets, "time", SimpleNamespace(monotonic=partial(next, itertools.count())))
    assert exactly(link, len(waits) - 1, seconds) == b"x" * (len(waits) - 1)
