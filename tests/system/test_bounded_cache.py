"""Bounded caches: the oldest entry makes way, and large entries are few."""

from cgraph.system.bounded_cache import LEAST_ENTRIES, MOST_ENTRIES, MOST_ITEMS, Bounded, most_of


def test_the_oldest_entries_make_way():
    cache: Bounded[str, int] = Bounded(3)
    assert [cache.keep(key, i) for i, key in enumerate("abcd")] == [0, 1, 2, 3]
    assert list(cache.items()) == [("b", 1), ("c", 2), ("d", 3)] and cache.most == 3
    assert Bounded().most == MOST_ENTRIES


def test_a_cache_of_one_has_the_latest():
    cache: Bounded[str, int] = Bounded(1)
    for i, key in enumerate("abc"):
        cache.keep(key, i)
    assert dict(cache) == {"c": 2}


def test_more_entries_than_allowed_are_all_dropped_down_to_the_bound():
    """Threads may have added entries at once."""
    cache: Bounded[int, int] = Bounded(2)
    for i in range(5):
        cache[i] = i
    cache.keep(9, 9)
    assert list(cache) == [4, 9]


def test_the_larger_the_entries_the_fewer():
    assert most_of(0) == most_of(1) == most_of(MOST_ITEMS // MOST_ENTRIES) == MOST_ENTRIES == 256
    assert most_of(MOST_ITEMS // 100) == 100
    assert most_of(MOST_ITEMS) == most_of(10**9) == LEAST_ENTRIES == 4
