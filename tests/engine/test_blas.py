"""One thread for other libraries: during runs, until the last of several is over, and after failures as before."""

import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import threadpoolctl

import cgraph as cg
from cgraph.engine.cpu import blas
from cgraph.engine.cpu.blas import BlasLimit, with_one_thread
from tests.support.injection import Lines, events


class Library:
    """A library that has a number of threads. Changes: the number."""

    def __init__(self, count: int) -> None:
        self.num_threads = count

    def set_num_threads(self, count: int) -> None:
        self.num_threads = count


@pytest.fixture
def libraries(monkeypatch):
    own = [Library(3), Library(5), Library(1)]
    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", lambda: SimpleNamespace(lib_controllers=own))
    return own


def counts(libraries: list[Library]) -> list[int]:
    return [library.num_threads for library in libraries]


def test_every_library_has_one_thread_during_a_run_and_afterwards_as_many_as_before(libraries):
    limit = BlasLimit()
    for _ in range(2):
        assert limit.run(lambda: counts(libraries)) == [1, 1, 1]
        assert counts(libraries) == [3, 5, 1]
    libraries[0].num_threads = 2  # the user sets another
    limit.run(lambda: None)
    assert counts(libraries) == [2, 5, 1]


def test_libraries_have_one_thread_until_the_last_of_several_runs_is_over(libraries):
    limit, begun, may_end = BlasLimit(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(60)

    other = threading.Thread(target=limit.run, args=(work,))
    other.start()
    assert begun.wait(60)
    limit.run(lambda: None)
    assert counts(libraries) == [1, 1, 1]
    may_end.set()
    other.join(60)
    assert counts(libraries) == [3, 5, 1]


def test_libraries_have_as_many_threads_as_before_after_a_run_that_failed(libraries):
    def fail() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        BlasLimit().run(fail)
    assert counts(libraries) == [3, 5, 1]


def test_an_exception_at_any_line_leaves_libraries_that_the_next_run_restores(libraries):
    limit = BlasLimit()
    for at in range(1, len(events(lambda: BlasLimit().run(lambda: None))) + 1):
        Lines(at).during(lambda: limit.run(lambda: None))
        limit.run(lambda: None)
        assert counts(libraries) == [3, 5, 1], at


def test_libraries_are_searched_again_after_an_import_only(libraries, monkeypatch):
    limit, searches = BlasLimit(), []
    monkeypatch.setattr(
        threadpoolctl, "ThreadpoolController", lambda: searches.append(1) or SimpleNamespace(lib_controllers=libraries)
    )
    limit.run(lambda: None)
    limit.run(lambda: None)
    assert len(searches) == 1
    monkeypatch.setitem(sys.modules, "a module that is new", sys)
    limit.run(lambda: None)
    assert len(searches) == 2


def test_the_result_of_the_work_is_returned_and_a_run_inside_a_run_changes_nothing(libraries):
    limit = BlasLimit()
    assert limit.run(lambda: (limit.run(lambda: counts(libraries)), counts(libraries))) == ([1, 1, 1], [1, 1, 1])
    assert counts(libraries) == [3, 5, 1] and with_one_thread(lambda: 7) == 7


def test_runs_that_call_blas_have_one_thread_and_others_do_not_ask(monkeypatch):
    x, asked, one_thread = cg.Var((90, 90), "float64", name="x"), [], with_one_thread
    monkeypatch.setattr(blas, "with_one_thread", lambda work: asked.append(work) or one_thread(work))
    value = np.eye(90) * 2
    for y, want, is_asked in (
        (cg.inv(x), np.eye(90) / 2, True),
        (cg.cumsum(x, 0), np.cumsum(value, 0), False),
        (cg.delay(np.negative, x), -value, False),
    ):
        function = cg.compile(y, [x])
        for calls in (1, 2):
            np.testing.assert_array_equal(function(value), want)
            assert len(asked) == calls * is_asked
        asked.clear()
