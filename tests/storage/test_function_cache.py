"""A cache of Functions drops the least recently used ones, by number and by bytes, and never the latest."""

import numpy as np

import cgraph as cg
from cgraph.storage.function_cache import FUNCTION_NBYTES, STEP_NBYTES, FunctionCache, nbytes_of


def test_the_least_recently_used_is_dropped_first():
    cache = FunctionCache(2, 1000)
    for key in "ab":
        cache.keep(key, key.upper(), 10)
    assert cache.get("a") == "A" and len(cache) == 2 and cache.nbytes == 20
    cache.keep("c", "C", 10)
    assert cache.get("b") is None and cache.get("a") == "A" and cache.get("c") == "C"
    cache.keep("a", "A2", 30)
    assert cache.get("a") == "A2" and len(cache) == 2 and cache.nbytes == 40


class Interrupted:
    """A key during whose hash and comparison another thread adds an entry to the cache."""

    def __init__(self, name, work):
        self.name, self.work = name, work

    def other_thread(self):
        work, self.work = self.work, None
        if work is not None:
            work()
            self.work = work

    def __hash__(self):
        self.other_thread()
        return hash(self.name)

    def __eq__(self, other):
        self.other_thread()
        return isinstance(other, Interrupted) and self.name == other.name


def test_other_threads_may_add_entries_wherever_a_key_is_hashed_or_compared():
    cache, added = FunctionCache(6, 100), []

    def add():
        added.append(len(added))
        cache.keep(added[-1], "other", 9)

    for i in range(20):
        cache.keep(Interrupted(i % 5, add), i, 9)
        assert cache.get(Interrupted(i % 5, add)) in (i, None)
        assert len(cache) <= 6 and cache.nbytes == 9 * len(cache)
    assert len(added) > 40


def test_as_many_bytes_as_allowed_stay_and_the_latest_stays_whatever_its_size():
    cache = FunctionCache(9, 100)
    for key, nbytes in (("a", 40), ("b", 60)):
        cache.keep(key, key, nbytes)
    assert len(cache) == 2
    cache.keep("c", "c", 1)
    assert cache.get("a") is None and len(cache) == 2
    cache.keep("d", "d", 500)
    assert len(cache) == 1 and cache.get("d") == "d"


def test_bytes_are_those_of_the_arena_the_steps_and_every_leaf_but_inputs():
    x, w = cg.Var((10,), name="x"), cg.Var((20,), name="w").assign(np.zeros(20, "f4"))
    y = cg.concat([cg.sin(x), cg.cos(w), cg.Const(np.arange(30, dtype="f4"))])
    function = cg.compile(y, [x])
    steps = len(function.compiled.layout.steps)
    own = FUNCTION_NBYTES + STEP_NBYTES * steps + function.nbytes
    assert steps and nbytes_of(function) == own + 4 * 20 + 4 * 30
    other = cg.Var((7,), name="other")
    assert nbytes_of(function, [other * 2, w]) == nbytes_of(function) + 4 * 7 + 4  # the Var and the number 2
