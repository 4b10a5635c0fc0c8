"""Keywords that do not exist: the nearest name is suggested, and calls with right ones pass unchanged."""

import pytest

from cgraph.errors import OptionError
from cgraph.system.keywords import checks_keywords, unknown_option


@checks_keywords()
def plain(first, /, threads=1, *rest, budget=None):
    """Documented."""
    return first, threads, rest, budget


@checks_keywords(["memory", "threads"], "compile")
def open_ended(threads=1, **options):
    return threads, options


class Model:
    """A class with a checked method."""

    @checks_keywords()
    def load(self, path, strict=True):
        return path, strict


def test_calls_pass_their_arguments():
    assert plain(1, 2, 3, budget=4) == (1, 2, (3,), 4) and plain(1) == (1, 1, (), None)
    assert open_ended(memory="auto") == (1, {"memory": "auto"}) and Model().load("x", strict=False) == ("x", False)
    assert (plain.__name__, plain.__doc__) == ("plain", "Documented.")


def test_a_keyword_of_another_name_is_refused_with_the_nearest():
    for call, text in [
        (lambda: plain(1, thread=2), "plain has no option 'thread'; did you mean 'threads'?"),
        (lambda: plain(1, q=2), "plain has no option 'q'. Use one of threads, budget"),
        (lambda: plain(1, budget=1, first=2), "plain has no option 'first'. Use one of threads, budget"),
        (lambda: open_ended(memmory=1), "compile has no option 'memmory'; did you mean 'memory'?"),
        (lambda: open_ended(zzz=1), "compile has no option 'zzz'. Use one of threads, memory"),
        (lambda: Model().load("x", q=1), "load has no option 'q'. Use one of path, strict"),
    ]:
        with pytest.raises(OptionError) as error:
            call()
        assert str(error.value) == text


def test_an_error_lists_all_names_where_none_is_near():
    assert str(unknown_option("f", "x", ["alpha", "beta"])) == "f has no option 'x'. Use one of alpha, beta"
    assert "did you mean 'alpha'" in str(unknown_option("f", "alphas", ["alpha", "beta"]))
