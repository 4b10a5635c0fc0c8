"""A mesh: frames of one form in both directions, members that are gone, and rounds that end."""

import re
import selectors
import socket
import ssl
import time
from collections import deque
from contextlib import closing
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.dist import mesh
from cgraph.dist.limits import Limits
from cgraph.dist.mesh import FRAME, MAGIC, Link, Mesh
from cgraph.dist.sockets import (
    MEMBER,
    Door,
    LostError,
    answers,
    connect,
)
from cgraph.dist.sums import sum_over_members
from tests.dist.members import HASTY, SECRETS, STRICT, frame, left_alone, parts, shards_of, started
from tests.support.patience import PATIENCE


class Stopped:
    """A door that nobody looks after: connections come, and nothing is ever answered."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = self.socket.getsockname()

    def close(self):
        self.socket.close()


def test_who_has_stopped_without_closing_does_not_answer():
    with closing(Stopped()) as stopped, closing(Door("127.0.0.1", SECRETS, STRICT)) as door:
        assert not answers(stopped.address, SECRETS, 0.2)
        with (
            closing(Mesh(door, 1, 1, [stopped.address, door.address], [0], STRICT)) as mesh,
            pytest.raises(LostError, match="member 0 at .* does not answer"),
        ):
            sum_over_members(mesh, 0, [1, 1], parts(shards_of(2, 10), 1, 1))
        with pytest.raises(LostError, match="does not answer"):
            Mesh(door, 1, 0, [door.address, stopped.address], [1], STRICT)


def test_who_is_not_there_is_said():
    with closing(Stopped()) as gone:
        address = gone.address
    with closing(Door("127.0.0.1", SECRETS, HASTY)) as door, pytest.raises(LostError, match="member 0 is not at"):
        Mesh(door, 1, 1, [address, door.address], [0], HASTY)


def test_each_array_is_told_when_it_is_complete_and_before_the_next_comes():
    with closing(Door("127.0.0.1", SECRETS, HASTY)) as door:
        other = connect(door.address, SECRETS, 1, MEMBER, 1, 1)
        with closing(other), closing(Mesh(door, 1, 0, [door.address] * 2, [1], HASTY)) as mesh:
            arrays, order = np.zeros((3, 10), np.float32), []

            def arrived(index):
                order.append((index, arrays[:, 0].tolist()))
                if index < 2:
                    other.sendall(frame(7, 0, np.full(10, index + 2, np.float32).tobytes()))

            other.sendall(frame(7, 0, np.full(10, 1, np.float32).tobytes()))
            mesh.exchange(0, [], [(1, 7, x) for x in arrays], arrived)
            assert order == [(0, [1, 0, 0]), (1, [1, 2, 0]), (2, [1, 2, 3])]


BODY = bytes(40)


WRONG = {
    "another tag": frame(1, 0, BODY),
    "a late step": frame(0, 7, BODY),
    "a longer message": frame(0, 0, BODY + b"more"),
    "a shorter message": frame(0, 0, BODY[:-4]),
    "another program": frame(0, 0, BODY, b"GET "),
    "a false length": frame(0, 0, BODY, nbytes=2**60),
}


@pytest.mark.parametrize("sent", WRONG.values(), ids=WRONG)
def test_a_frame_that_nobody_expects_ends_the_round(sent):
    with closing(Door("127.0.0.1", SECRETS, HASTY)) as door:
        other = connect(door.address, SECRETS, 1, MEMBER, 1, 1)
        with closing(other), closing(Mesh(door, 1, 0, [door.address] * 2, [1], HASTY)) as mesh:
            other.sendall(sent)
            with pytest.raises(LostError, match="sent a frame .* where 40 bytes of tag 0 in step 0 were expected"):
                mesh.exchange(0, [], [(1, 0, np.empty(10, np.float32))])


@pytest.mark.parametrize("cut", [0, 1, FRAME.size, FRAME.size + 17])
def test_a_frame_that_is_cut_ends_the_round(cut):
    with closing(Door("127.0.0.1", SECRETS, HASTY)) as door:
        other = connect(door.address, SECRETS, 1, MEMBER, 1, 1)
        with closing(Mesh(door, 1, 0, [door.address] * 2, [1], HASTY)) as mesh:
            other.sendall(frame(0, 0, BODY)[:cut])
            other.close()
            with pytest.raises(LostError, match="member 1 has closed its connection"):
                mesh.exchange(0, [], [(1, 0, np.empty(10, np.float32))])


@pytest.mark.parametrize("me", [0, 1])
def test_when_a_mesh_cannot_be_made_its_connections_are_closed(me, monkeypatch):
    """The others notice at once: of three members the second is met, by going there or by its coming, the third not."""
    links: list[Link] = []

    class NotedLink(Link):
        def __init__(self, *args):
            super().__init__(*args)
            links.append(self)

    monkeypatch.setattr(mesh, "Link", NotedLink)
    with closing(Door("127.0.0.1", SECRETS, STRICT)) as door, closing(Door("127.0.0.1", SECRETS, HASTY)) as other:
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            absent = nobody.getsockname()
        addresses = [other.address, other.address, absent]
        came = None if me else connect(door.address, SECRETS, PATIENCE, MEMBER, 1, 1)
        with pytest.raises(LostError) as raised:
            Mesh(door, 1, me, addresses, [1 - me, 2], STRICT)
        assert [link.socket.fileno() for link in links] == [-1]  # asked here, since the other end would wait for it
        link = came or other.take(1, 1, time.monotonic() + PATIENCE)
        assert link is not None
        with closing(link):
            assert left_alone(link) and raised.value.member == 2  # which still refers to the mesh


def test_members_have_the_time_of_a_step_to_come(monkeypatch):
    """One that answers may be silent many times; the clock goes on by a silence for each."""
    clock, limits = [0.0], Limits(silence=0.05, answer=PATIENCE, step=60.0)
    with closing(Door("127.0.0.1", SECRETS, HASTY)) as door, closing(Door("127.0.0.1", SECRETS, HASTY)) as other:

        def take(round, sender, until):
            clock[0] = until
            return other_end if until > 1.0 else None

        one_end, other_end = socket.socketpair()
        monkeypatch.setattr(mesh, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        monkeypatch.setattr(Link, "__init__", lambda link, *args: vars(link).update(number=args[0], socket=args[1]))
        monkeypatch.setattr(door, "take", take)
        with one_end, closing(Mesh(door, 1, 0, [door.address, other.address], [1], limits)) as made:
            assert list(made.links) == [1]
        clock[0], limits = 0.0, Limits(silence=0.05, answer=PATIENCE, step=0.5)
        with pytest.raises(LostError, match="sent nothing for 0.5 s"):
            Mesh(door, 1, 0, [door.address, other.address], [1], limits)


def test_members_that_come_one_after_another_share_the_time_of_a_step(monkeypatch):
    """The clock goes on by a silence for each wait; the first comes late, the second never."""
    clock, limits = [0.0], Limits(silence=0.05, answer=PATIENCE, step=0.5)
    with closing(Door("127.0.0.1", SECRETS, HASTY)) as door, closing(Door("127.0.0.1", SECRETS, HASTY)) as other:

        def take(round, sender, until):
            clock[0] = until
            return other_end if sender == 1 and until > 0.4 else None

        one_end, other_end = socket.socketpair()
        monkeypatch.setattr(mesh, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        monkeypatch.setattr(Link, "__init__", lambda link, *args: vars(link).update(number=args[0], socket=args[1]))
        monkeypatch.setattr(door, "take", take)
        with one_end, pytest.raises(LostError, match=r"members \[2\] sent nothing for 0.5 s"):
            Mesh(door, 1, 0, [door.address, other.address, other.address], [1, 2], limits)
        assert 0.5 < clock[0] < 0.6


def test_a_round_can_be_given_up_from_another_thread():
    with closing(Door("127.0.0.1", SECRETS, HASTY)) as door:
        other = connect(door.address, SECRETS, 1, MEMBER, 1, 1)
        with closing(other), closing(Mesh(door, 1, 0, [door.address] * 2, [1], HASTY)) as mesh:
            started(lambda: (time.sleep(0.1), mesh.give_up()))
            with pytest.raises(LostError):
                mesh.exchange(0, [], [(1, 0, np.empty(10, np.float32))])


def pair() -> tuple[Link, socket.socket]:
    one, other = socket.socketpair(socket.AF_UNIX)
    link = object.__new__(Link)
    one.setblocking(False)
    link.number, link.socket, link.out, link.incoming = 1, one, deque(), deque()
    return link, other


def test_a_link_sends_a_head_and_all_bytes_and_is_done_then():
    link, other = pair()
    with closing(link.socket), closing(other):
        x = np.arange(6, dtype="f4").reshape(2, 3)
        assert link.is_done and link.events == 0 and not link.move()
        link.send(7, 2**40, x)
        assert not link.is_done and link.events == selectors.EVENT_WRITE
        assert link.move() and link.is_done
        assert other.recv(1000) == FRAME.pack(MAGIC, 7, 2**40, 24) + x.tobytes()


def test_a_link_fills_an_array_in_pieces_and_empty_arrays_have_a_head_alone():
    link, other = pair()
    with closing(link.socket), closing(other):
        room, nothing = np.zeros(3, "f8"), np.zeros((0, 4), "f4")
        arrived = []
        link.want(1, 2, room, lambda: arrived.append(room.tolist()))
        link.want(3, 2, nothing, lambda: arrived.append("nothing"))
        assert link.events == selectors.EVENT_READ and not link.move()
        raw = FRAME.pack(MAGIC, 1, 2, 24) + np.arange(3.0).tobytes() + FRAME.pack(MAGIC, 3, 2, 0)
        for at in range(0, len(raw), 5):
            other.sendall(raw[at : at + 5])
            link.move()
        assert link.is_done and arrived == [[0, 1, 2], "nothing"]


def test_bytes_of_an_array_are_its_own():
    x = np.arange(4, dtype="i2").reshape(2, 2)
    mesh.raw(x)[0] = 9
    assert x[0, 0] == 9 and len(mesh.raw(np.zeros((2, 0)))) == 0


class Narrow:
    """A socket that takes a few bytes at a time, and none at every second call."""

    def __init__(self, most):
        self.most, self.taken, self.calls = most, b"", 0

    def setblocking(self, value):
        pass

    def setsockopt(self, *values):
        pass

    def send(self, view):
        self.calls += 1
        if self.calls % 2 == 0:
            raise BlockingIOError
        self.taken += bytes(view[: self.most])
        return min(len(view), self.most)


@pytest.mark.parametrize("most", [1, FRAME.size - 1, FRAME.size, 1000])
def test_each_byte_is_sent_once_however_few_are_taken_at_a_time(most):
    narrow = Narrow(most)
    link, x = Link(1, narrow), np.arange(10, dtype=np.float32)
    link.send(7, 3, x)
    for _ in range(1000):
        link.move()
    assert narrow.taken == frame(7, 3, x.tobytes()) and link.is_done


def unconnected(limits=HASTY, count=4) -> Mesh:
    """The mesh of member 0 without its connections; other members have the addresses of numbered hosts."""
    made = object.__new__(Mesh)
    made.door = SimpleNamespace(secrets=SECRETS, closed=False)
    made.round, made.me, made.limits = 5, 0, limits
    made.addresses = tuple((f"host{i}", 100 + i) for i in range(count))
    made.links, made.closed = {}, False
    return made


@pytest.mark.parametrize("gone", [1, 2, 3, None])
def test_every_silent_member_is_asked_and_the_one_that_is_gone_is_named(gone, monkeypatch):
    asked = []
    made = unconnected(Limits(answer=7.5, step=0.25))
    monkeypatch.setattr(
        mesh, "answers", lambda *args: asked.append(args) or args[0] != (f"host{gone}", 100 + (gone or 0))
    )
    monkeypatch.setattr(mesh, "time", SimpleNamespace(monotonic=lambda: 10.0))
    if gone is None:
        made._ask([1, 2, 3], 10.0)  # just in time
        with pytest.raises(LostError, match=r"members \[1, 2, 3\] sent nothing for 0.25 s") as raised:
            made._ask([1, 2, 3], 9.9)
        assert raised.value.member is None and len(asked) == 6
        return
    with pytest.raises(LostError, match=f"member {gone} at .*host{gone}.* does not answer") as raised:
        made._ask([1, 2, 3], 9.9)
    assert raised.value.member == gone
    assert asked == [((f"host{i}", 100 + i), SECRETS, 7.5) for i in range(1, gone + 1)]


@pytest.mark.parametrize("silent", [[1], [3], [2, 3], [1, 3], [1, 2, 3]])
def test_of_several_members_those_whose_frames_are_complete_are_not_asked(silent, monkeypatch):
    """The others have sent all that they should; the clock goes on by a second whenever somebody looks."""
    asked, clock = [], count(1)
    made = unconnected(Limits(silence=0.01, answer=7.5, step=0.5))
    pairs, arrays = {i: pair() for i in (1, 2, 3)}, np.zeros((4, 5), "f4")
    for i, (link, other) in pairs.items():
        link.number, made.links[i] = i, link
        if i not in silent:
            other.sendall(frame(7, 0, np.full(5, i, "f4").tobytes()))
    monkeypatch.setattr(mesh, "answers", lambda address, *_: asked.append(address) or True)
    monkeypatch.setattr(mesh, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    with pytest.raises(LostError, match=re.escape(f"members {silent} sent nothing for 0.5 s")):
        made.exchange(0, [], [(i, 7, arrays[i]) for i in pairs])
    assert asked == [made.addresses[i] for i in silent]
    assert arrays[:, 0].tolist() == [0 if i in silent else i for i in range(4)]
    for link, other in pairs.values():
        link.socket.close()
        other.close()


@pytest.mark.parametrize("what", ["mesh", "door"])
def test_a_round_that_was_given_up_asks_nobody(what, monkeypatch):
    made = unconnected()
    monkeypatch.setattr(mesh, "answers", lambda *_: pytest.fail("somebody was asked"))
    (made if what == "mesh" else made.door).closed = True
    with pytest.raises(LostError, match="the round was given up"):
        made._ask([1], time.monotonic() + PATIENCE)


@pytest.mark.parametrize(
    ("error", "member"),
    [(ConnectionRefusedError(), None), (ConnectionResetError(), None), (TimeoutError(), 2), (OSError("no route"), 2)],
)
def test_a_host_that_refuses_answers_and_one_that_is_silent_is_lost(error, member, monkeypatch):
    """Where the host answers, the process is gone, which the others notice by themselves."""
    asked = []

    def connected(*args):
        asked.append(args)
        raise error

    monkeypatch.setattr(mesh, "connect", connected)
    with pytest.raises(LostError, match="member 2 is not at .*host2") as raised:
        unconnected(Limits(silence=1.5, answer=7.5, step=0.25))._to(2)
    assert raised.value.member == member
    assert asked == [(("host2", 102), SECRETS, 7.5, MEMBER, 0, 5)]


def test_giving_up_ends_all_connections_and_closing_closes_them():
    made = unconnected()
    pairs = {i: pair() for i in (1, 2, 3)}
    made.links = {i: link for i, (link, _) in pairs.items()}
    made.give_up()
    assert made.closed
    for link, other in pairs.values():
        other.setblocking(False)
        assert other.recv(1) == b"" and link.socket.fileno() >= 0, "still open, since another thread may use it"
    made.give_up()  # a second time
    made.close()
    for link, other in pairs.values():
        assert link.socket.fileno() == -1
        other.close()


@pytest.mark.parametrize("broken", [1, 2, 3])
def test_giving_up_ends_all_connections_but_the_one_that_is_broken(broken):
    made = unconnected()
    pairs = {i: pair() for i in (1, 2, 3)}
    made.links = {i: link for i, (link, _) in pairs.items()}
    made.links[broken].socket.close()
    made.give_up()
    for link, other in pairs.values():
        other.setblocking(False)
        assert other.recv(1) == b""
        link.socket.close()
        other.close()


@pytest.mark.parametrize("count", [1, 3])
def test_a_connection_that_takes_nothing_has_not_moved(count):
    """So its member is asked whether it is alive, however much is waiting."""

    def later(view):
        raise BlockingIOError

    link = Link(1, SimpleNamespace(setblocking=lambda flag: None, setsockopt=lambda *args: None, send=later))
    for step in range(count):
        link.send(7, step, np.ones(4, "f4"))
    assert not link.move() and not link.move()
    link.socket.send = len
    assert link.move() and link.is_done


@pytest.mark.parametrize(
    "error", [ssl.SSLError("bad record"), TimeoutError("timed out"), ConnectionResetError("reset")]
)
@pytest.mark.parametrize("call", ["send", "recv_into"])
def test_a_connection_that_breaks_in_any_way_is_a_lost_member(call, error):
    def broken(*args):
        raise error

    calls = {"send": len, "recv_into": len, call: broken}
    link = Link(3, SimpleNamespace(setblocking=lambda flag: None, setsockopt=lambda *args: None, **calls))
    if call == "send":
        link.send(0, 0, np.zeros(2, "f4"))
    else:
        link.want(0, 0, np.zeros(2, "f4"), lambda: None)
    with pytest.raises(LostError, match="the connection to member 3 broke"):
        link.move()


class Scripted:
    """A link that moves something in a turn or not, and is done after the last."""

    def __init__(self, number: int, *turns: bool) -> None:
        self.number, self.turns = number, list(turns)

    @property
    def is_done(self) -> bool:
        return not self.turns

    def move(self) -> bool:
        return self.turns.pop(0)


@pytest.mark.parametrize(
    ("turns", "waits"),
    [
        (([True], [True]), []),
        (([True, True], [False, True]), []),
        (([True, False, True], [False, False, True]), [[1, 2]]),
        (([True], [False, False, True]), [[2]]),
        (([False, True], [True]), []),
        (([False], [False]), []),
    ],
    ids=str,
)
def test_a_member_waits_only_when_no_connection_has_moved(turns, waits, monkeypatch):
    found: list[list[int]] = []
    exchange = Mesh.__new__(Mesh)
    exchange.links = {i: Scripted(i, *own) for i, own in enumerate(turns, 1)}
    exchange.limits, exchange.closed = HASTY, False
    monkeypatch.setattr(Mesh, "_ready", lambda self, busy: found.append([x.number for x in busy]) or True)
    exchange.exchange(0, [], [])
    assert found == waits


def test_a_link_sends_and_receives_in_one_turn():
    x, y, sent = np.arange(3, dtype="f4"), np.zeros(2, "f4"), bytearray()
    came = bytearray(frame(8, 1, np.float32([4, 5]).tobytes()))

    def recv_into(view):
        count = min(len(view), len(came))
        view[:count] = came[:count]
        del came[:count]
        return count

    calls = {"send": lambda view: sent.extend(view) or len(view), "recv_into": recv_into}
    link = Link(1, SimpleNamespace(setblocking=lambda flag: None, setsockopt=lambda *args: None, **calls))
    link.send(7, 1, x)
    link.want(8, 1, y, lambda: None)
    assert link.move() and link.is_done and y.tolist() == [4, 5] and sent == frame(7, 1, x.tobytes())
    assert not link.move()
