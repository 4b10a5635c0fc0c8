"""Compiled functions in a cache: keyed by all sources beside them, and Numba's own setting is put back."""

import numba
import pytest

from cgraph.memory.search import cached
from cgraph.memory.search.cached import compile_cached, sources_hash


def test_any_change_of_a_source_in_the_folder_changes_the_key(tmp_path):
    def key() -> str:
        return sources_hash(tmp_path)

    keys = [key()]
    for name, text in (("a.py", "x"), ("b.py", ""), ("a.py", "y"), ("b.py", "y")):
        (tmp_path / name).write_text(text)
        keys.append(key())
    assert len(set(keys)) == len(keys) and all(len(x) == 24 for x in keys)
    (tmp_path / "notes.txt").write_text("z")
    assert key() == keys[-1]


def plus(x):
    return x + 1


@pytest.mark.parametrize("fails", [False, True])
def test_the_setting_of_numba_is_what_it_was(tmp_path, monkeypatch, fails):
    class Folder:
        path = tmp_path

    folders = []

    def njit(function, cache, **options):
        folders.append(numba.config.CACHE_DIR)
        if fails:
            raise ValueError
        return function

    monkeypatch.setattr(cached, "cache_folder", lambda kind: Folder)
    monkeypatch.setattr(numba, "njit", njit)
    before = numba.config.CACHE_DIR
    if fails:
        with pytest.raises(ValueError):
            compile_cached(plus)
    else:
        assert compile_cached(plus) is plus
    assert before == numba.config.CACHE_DIR and [x.startswith(f"{tmp_path}/") for x in folders] == [True]


def test_without_a_folder_nothing_is_stored(monkeypatch):
    calls = []
    monkeypatch.setattr(cached, "cache_folder", lambda kind: None)
    monkeypatch.setattr(numba, "njit", lambda function, **options: calls.append(options) or function)
    assert compile_cached(plus) is plus and calls == [{"nogil": True, "_nrt": False}]
