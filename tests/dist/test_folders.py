"""Functions that travel: as files under a key, as factories, checked before they go, and opened once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cgraph as cg
from cgraph.dist import folders
from cgraph.errors import FormatError, InputError


@pytest.fixture(scope="module")
def one() -> cg.Function:
    x = cg.Var((3,), name="x")
    return cg.compile(cg.cumsum(x * np.arange(3, dtype="f4"), 0), [x])


def test_few_functions_are_kept():
    opened = folders.Opened()
    x = cg.Var((1,), name="x")
    made = [cg.compile(x + i, x) for i in range(folders.MOST_KEPT + 2)]
    ways = [folders.ship(lambda f=f: f) for f in made]
    assert [opened.get(way, 1) for way in ways] == made
    assert len(opened._runners) == folders.MOST_KEPT
    assert opened.get(ways[-1], 1) is made[-1]


def test_the_function_that_was_used_last_stays_and_each_number_of_threads_has_its_own():
    opened = folders.Opened()
    x = cg.Var((1,), name="x")
    ways = [folders.ship(lambda i=i: cg.compile(x + i, x)) for i in range(folders.MOST_KEPT + 1)]
    first, *others = [opened.get(way, 1) for way in ways[:-1]]
    assert opened.get(ways[0], 1) is first  # so it is not the oldest any more
    opened.get(ways[-1], 1)
    assert opened.get(ways[0], 1) is first and opened.get(ways[2], 1) is others[1]
    assert opened.get(ways[1], 1) is not others[0]
    assert opened.get(ways[0], 2) is not first


def test_equal_functions_travel_under_one_key(one):
    assert folders.ship(one).key == folders.ship(one).key


def test_damage_on_the_way_is_noticed(one):
    travels = folders.ship(one)
    name = next(name for name in travels.files if name.startswith("constants"))
    raw = bytearray(travels.files[name])
    raw[5] ^= 1
    with pytest.raises(FormatError, match="is not what was saved"):
        folders.Shipped("key", {**travels.files, name: bytes(raw)}).opened(1)


def test_a_function_and_its_folder_travel_as_the_same_files(one, tmp_path):
    one.save(tmp_path / "saved")
    for source in (one, tmp_path / "saved", str(tmp_path / "saved")):
        travels = folders.ship(source)
        assert travels.make is None and travels.key == folders.ship(one).key
        got = travels.opened(1)
        assert got.program.threads == 1 and got(np.ones(3, "f4")).tolist() == [0, 1, 3]
    assert folders.ship(tmp_path / "saved").files == {p.name: p.read_bytes() for p in (tmp_path / "saved").iterdir()}


def test_keys_tell_names_and_borders_of_files_apart():
    cases = [{"a": b"xy", "b": b""}, {"a": b"x", "b": b"y"}, {"ab": b"xy"}, {"b": b"xy", "a": b""}, {}]
    assert len({folders.of_files(files).key for files in cases}) == len(cases)
    assert folders.of_files(dict(reversed(cases[1].items()))).key == folders.of_files(cases[1]).key


def test_each_factory_is_one_of_its_own_and_gives_a_function(one):
    make = folders.ship(lambda: one)
    assert make.files == {} and make.opened(1) is one and folders.ship(lambda: one).key != make.key
    factory = lambda: one  # noqa: E731 - it may give another function each time, so each message has its own key
    assert len({folders.ship(factory).key for _ in range(10)}) == 10
    with pytest.raises(InputError, match="the factory gave 3, not a compiled function"):
        folders.ship(lambda: 3).opened(1)
    with pytest.raises(InputError, match="3 is not a compiled function, a saved folder or a factory"):
        folders.ship(3)


def test_a_folder_that_others_write_is_sent_only_if_it_is_trusted(one, tmp_path):
    one.save(tmp_path / "saved")
    (tmp_path / "saved").chmod(0o777)
    with pytest.raises(FormatError, match="may have been written by others"):
        folders.ship(tmp_path / "saved")
    assert folders.ship(tmp_path / "saved", trust=True).key == folders.ship(one).key


def test_one_thread_opens_a_function_and_after_a_failure_the_next_one_tries_again(one):
    opened, calls, gate, together = folders.Opened(), [], threading.Barrier(4), threading.Event()

    def make() -> cg.Function:
        calls.append(1)
        if len(calls) == 1:
            raise OSError("no memory")
        if len(calls) > 2:
            together.set()
        together.wait(0.3)  # time for another thread to come in
        return one

    travels = folders.ship(make)
    with pytest.raises(OSError, match="no memory"):
        opened.get(travels, 1)

    def get(_: int) -> cg.Runner:
        gate.wait()
        return opened.get(travels, 1)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(get, range(4))) == [one] * 4
    assert len(calls) == 2


def test_of_many_functions_those_that_were_used_last_stay_for_each_number_of_threads(one, monkeypatch):
    monkeypatch.setattr(folders, "MOST_KEPT", 3)
    opened, loaded = folders.Opened(), []
    made = {name: folders.ship(lambda name=name: loaded.append(name) or one) for name in "abcd"}
    for name, threads in [("a", 1), ("b", 1), ("c", 1), ("a", 1), ("d", 1), ("a", 1), ("c", 1), ("b", 1)]:
        assert opened.get(made[name], threads) is one
    assert "".join(loaded) == "abcdb"  # b was used longest ago when d came
    assert opened.get(made["c"], 1) is opened.get(made["c"], 2) is one and "".join(loaded) == "abcdbc"


@pytest.mark.parametrize("error", [None, OSError("the disk is gone")], ids=repr)
@pytest.mark.parametrize("trust", [False, True])
def test_a_folder_is_closed_after_its_files_were_read_or_not(error, trust, monkeypatch):
    opened = []

    class Noted(dict):
        def __init__(self, path, trusted):
            super().__init__(b=np.arange(2, dtype="u1"), a=np.arange(3, dtype="u1"))
            self.arguments, self.closed = (path, trusted), 0
            opened.append(self)

        def __getitem__(self, name):
            if error is not None and name == "b":
                raise error
            return super().__getitem__(name)

        def close(self):
            self.closed += 1

    monkeypatch.setattr(folders, "Folder", Noted)
    if error is None:
        assert list(folders.ship("somewhere", trust).files.items()) == [("a", b"\0\1\2"), ("b", b"\0\1")]
    else:
        with pytest.raises(OSError, match="the disk is gone"):
            folders.ship("somewhere", trust)
    (folder,) = opened
    assert folder.arguments == ("somewhere", trust) and folder.closed == 1


def test_a_key_tells_names_contents_and_where_files_end_apart_but_no_order():
    same = [{"a": b"x", "b": b"yz"}, {"b": b"yz", "a": b"x"}]
    others = [{"a": b"xy", "b": b"z"}, {"a": b"x", "c": b"yz"}, {"a": b"yz", "b": b"x"}, {"a": b"x"}, {}]
    keys = [folders.of_files(files).key for files in (*same, *others)]
    assert keys[0] == keys[1] and len(set(keys)) == 1 + len(others)
    assert folders.of_files(same[0]).files is same[0]
    assert folders.of_files({"a": b"xb\ny"}).key != folders.of_files({"a": b"x", "b": b"y"}).key
    assert folders.of_files({"a": b"xb 1\ny"}).key != folders.of_files({"a": b"x", "b": b"y"}).key
