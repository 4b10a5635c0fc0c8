"""Sums over members: the bits of the tree over shards, whoever has which; and every way in which a round ends."""

import socket
import threading
import time
from contextlib import ExitStack, closing, suppress
from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.dist import mesh, sockets
from cgraph.dist.limits import Limits
from cgraph.dist.mesh import FRAME, MAGIC, Link, Mesh
from cgraph.dist.sockets import (
    GREETING,
    MEMBER,
    MOST_STRANGERS,
    QUESTION,
    Door,
    LostError,
    Secrets,
    answers,
    connect,
)
from cgraph.dist.sums import is_even, sum_over_members
from cgraph.dist.tree import check_shards, deal_shards, parts_of
from cgraph.errors import InputError
from tests.dist.members import HASTY, SECRETS, STRICT, parts, shards_of, started, together, tree_sum
from tests.support.patience import PATIENCE


@pytest.mark.parametrize("n", [0, 3, 100_001])
@pytest.mark.parametrize("deal", [[8], [4, 4], [2, 2, 2, 2], [1] * 8, [3, 3, 2], [1, 7], [2, 1, 1, 3, 1], [5, 1, 2]])
def test_the_sum_has_the_bits_of_the_tree_whoever_has_which_shards(deal, n):
    x = shards_of(8, n)

    def work(mesh):
        first = sum(deal[: mesh.me])
        return [sum_over_members(mesh, step, deal, parts(x, first, deal[mesh.me])) for step in range(3)]

    want = tree_sum(x)
    for found in together(deal, work):
        assert len(found) == 3, found
        for one in found:
            np.testing.assert_array_equal(one.view(np.uint32), want.view(np.uint32))


def test_an_order_of_its_own_would_have_other_bits():
    x = shards_of(8, 1000)
    assert (np.add.reduce(x, axis=0) != tree_sum(x)).any()


@pytest.mark.parametrize("deal", [[1, 1], [2, 1, 1], [1, 1, 1, 1]])
def test_who_goes_away_ends_the_round_for_all_at_once(deal):
    def work(mesh):
        if mesh.me == 1:
            return None
        with pytest.raises(LostError) as error:
            for step in range(10):
                sum_over_members(
                    mesh, step, deal, parts(shards_of(sum(deal), 5000), sum(deal[: mesh.me]), deal[mesh.me])
                )
        return error.value

    found = together(deal, work)
    assert found.pop(1) is None and all(isinstance(x, LostError) for x in found), found


def test_who_is_busy_is_waited_for_and_who_takes_too_long_is_not():
    def work(mesh, seconds):
        if mesh.me == 1:
            time.sleep(seconds)
        return sum_over_members(mesh, 0, [1, 1], parts(shards_of(2, 10), mesh.me, 1))

    for found in together([1, 1], lambda mesh: work(mesh, 0.4)):
        np.testing.assert_array_equal(found, tree_sum(shards_of(2, 10)))
    first, _ = together([1, 1], lambda mesh: work(mesh, 1.0), Limits(silence=0.05, answer=10.0, step=0.2))
    assert isinstance(first, LostError) and "sent nothing for 0.2 s" in str(first)


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


def frame(tag, step, body, magic=MAGIC, nbytes=None):
    return FRAME.pack(magic, tag, step, len(body) if nbytes is None else nbytes) + body


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
        assert len(threads_of_doors()) == 1
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


def test_a_door_that_is_closed_keeps_nobody():
    door = Door("127.0.0.1", SECRETS, HASTY)
    with connect(door.address, SECRETS, 1, MEMBER, 1, 1) as member, socket.create_connection(door.address) as silent:
        deadline = time.monotonic() + PATIENCE
        while not door.waiting and time.monotonic() < deadline:
            time.sleep(0.01)
        door.close()
        assert left_alone(member) and left_alone(silent) and not door.waiting


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


def left_alone(link):
    """The other end has closed it."""
    try:
        link.settimeout(PATIENCE)
        return link.recv(1) == b""
    except ConnectionError:
        return True


def test_a_round_can_be_given_up_from_another_thread():
    with closing(Door("127.0.0.1", SECRETS, HASTY)) as door:
        other = connect(door.address, SECRETS, 1, MEMBER, 1, 1)
        with closing(other), closing(Mesh(door, 1, 0, [door.address] * 2, [1], HASTY)) as mesh:
            started(lambda: (time.sleep(0.1), mesh.give_up()))
            with pytest.raises(LostError):
                mesh.exchange(0, [], [(1, 0, np.empty(10, np.float32))])


@pytest.mark.parametrize(
    ("seconds", "want"),
    [
        ([0, 0, 0], [2, 3, 3]),
        ([1, 1.2, 1, 1], [2, 2, 2, 2]),
        ([1, 1, 1, 9], [3, 2, 2, 1]),
        ([4, 1], [1, 7]),
        ([1] * 8, [1] * 8),
    ],
)
def test_slow_members_get_fewer_shards(seconds, want):
    assert deal_shards(8, seconds) == want


def test_parts_are_whole_subtrees():
    assert parts_of(0, 8) == [(0, 8)]
    assert parts_of(3, 4) == [(3, 1), (4, 2), (6, 1)]
    assert is_even([2, 2]) and not is_even([3, 1]) and not is_even([2, 2, 2])


@pytest.mark.parametrize(("shards", "rows"), [(3, 9), (0, 4), (8, 12)])
def test_shards_are_a_power_of_two_and_equal(shards, rows):
    with pytest.raises(InputError, match="shards"):
        check_shards(shards, rows)
