"""Python's collector runs rarely while modules are loaded and graphs are compiled."""

import gc
import sys
import weakref

import pytest

import cgraph as cg
from cgraph.collector import RARE, rare_collections
from cgraph.function import compile_request


@pytest.fixture(autouse=True)
def thresholds():
    before = gc.get_threshold()
    gc.set_threshold(500, 9, 8)
    yield
    gc.set_threshold(*before)


def test_the_setting_is_restored_also_after_an_error():
    with rare_collections():
        assert gc.get_threshold()[0] == RARE
    assert gc.get_threshold() == (500, 9, 8)
    with pytest.raises(KeyError), rare_collections():
        raise KeyError
    assert gc.get_threshold() == (500, 9, 8)


def test_of_contexts_that_overlap_the_first_to_end_restores():
    first, second = rare_collections(), rare_collections()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() == (500, 9, 8)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (500, 9, 8)


@pytest.mark.parametrize("setting", [(0, 9, 8), (RARE + 1, 9, 8)])
def test_a_process_that_collects_less_often_keeps_its_setting(setting):
    gc.set_threshold(*setting)
    with rare_collections():
        assert gc.get_threshold() == setting
    gc.set_threshold(*setting)
    assert gc.get_threshold() == setting


def test_a_setting_of_the_body_is_kept():
    with rare_collections():
        gc.set_threshold(300, 9, 8)
    assert gc.get_threshold() == (300, 9, 8)


def test_a_compile_collects_rarely(monkeypatch):
    thresholds = []

    def observed(*args):
        thresholds.append(gc.get_threshold()[0])
        return compile_request(*args)

    monkeypatch.setattr("cgraph.function.compile_request", observed)
    x = cg.Var((3,), "f4")
    cg.compile(x + 1, x)
    assert thresholds == [RARE] and gc.get_threshold() == (500, 9, 8)


@pytest.fixture
def no_collections():
    """No object is frozen, as in a user's process; `conftest.py` freezes those of the tests."""
    gc.unfreeze()
    gc.disable()
    yield
    gc.enable()
    gc.freeze()


class Cycle:
    def __init__(self):
        self.own = self


@pytest.fixture
def new_module(monkeypatch):
    """Return a function that loads a module, as far as the context can tell."""
    return lambda: monkeypatch.setitem(sys.modules, "cgraph_collector_test", gc)


def young():
    return {id(x) for generation in (0, 1) for x in gc.get_objects(generation)}


def test_what_a_context_creates_beside_loaded_modules_is_old_at_its_end(no_collections, new_module):
    with rare_collections():
        new_module()
        kept = [[] for _ in range(1000)]
    assert not young() & {id(x) for x in kept}


def test_what_a_context_creates_without_loading_stays_young(no_collections):
    with rare_collections():
        kept = [[] for _ in range(1000)]
    assert {id(x) for x in kept} <= young()


def test_full_collections_find_cycles_of_before_and_of_a_context(no_collections, new_module):
    before = Cycle()
    with rare_collections():
        new_module()
        within = Cycle()
    ends = [weakref.ref(before), weakref.ref(within)]
    del before, within
    assert all(end() for end in ends)
    gc.collect()
    assert not any(end() for end in ends)


def test_frozen_objects_stay_frozen(no_collections, new_module):
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        with rare_collections():
            new_module()
        assert gc.get_freeze_count() == count > 0
    finally:
        gc.unfreeze()
    assert gc.get_freeze_count() == 0


def test_no_object_is_frozen_after_an_error(no_collections, new_module):
    with pytest.raises(KeyError), rare_collections():
        new_module()
        raise KeyError
    assert gc.get_freeze_count() == 0


def test_an_interrupt_while_objects_are_moved_leaves_none_frozen_and_the_setting_restored(
    no_collections, new_module, monkeypatch
):
    freeze = gc.freeze

    def interrupted():
        freeze()
        raise KeyboardInterrupt

    monkeypatch.setattr("cgraph.collector.gc.freeze", interrupted)
    with pytest.raises(KeyboardInterrupt), rare_collections():
        new_module()
    monkeypatch.undo()
    assert gc.get_freeze_count() == 0 and gc.get_threshold() == (500, 9, 8)
