"""Python's collector runs rarely while modules are loaded and graphs are compiled."""

import gc

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
