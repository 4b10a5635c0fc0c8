"""Tracebacks: the library's own frames are hidden, the user's stay, and one environment variable shows them all."""

import os
import subprocess
import sys
from traceback import TracebackException

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import ShapeError
from cgraph.tracebacks import VARIABLE, chain_of, hide_frames, is_hidden, lines_of, short_tracebacks


def caught(act):
    try:
        act()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def users_line():
    return cg.Var((2,)) + cg.Var((3,))


def test_the_users_lines_stay_and_the_librarys_are_counted(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    lines = lines_of(caught(users_line))
    text = "\n".join(lines)
    assert lines[0] == "Traceback (most recent call last):" and "in users_line" in text and "in caught" in text
    assert os.path.join("cgraph", "") + "ir" not in text and "family.py" not in text
    assert lines[-2].startswith("cgraph.errors.ShapeError: add at test_tracebacks.py:")
    count = int(lines[-1].split()[0].strip("("))
    assert count >= 2 and lines[-1] == f"({count} frames of the library are hidden; CGRAPH_TRACEBACK=full shows them)"


def test_a_variable_shows_every_frame(monkeypatch):
    monkeypatch.setenv(VARIABLE, "full")
    full = lines_of(caught(users_line))
    assert any("graph.py" in line for line in full) and not full[-1].startswith("(")
    monkeypatch.setenv(VARIABLE, "short")
    assert len(lines_of(caught(users_line))) < len(full)


def test_frames_of_numpy_between_are_hidden_too():
    def act():
        return np.add.outer(cg.Var((2,)), "text")

    text = "\n".join(lines_of(caught(act)))
    assert os.path.dirname(np.__file__) not in text and "in act" in text


def test_a_traceback_with_library_frames_only_keeps_them():
    error = caught(users_line)
    inner = error.__traceback__
    while inner.tb_next is not None and not is_hidden(inner.tb_frame.f_code.co_filename):
        inner = inner.tb_next
    text = TracebackException(type(error), error, inner, compact=True)
    before = len(text.stack)
    assert before and hide_frames(text) == 0 and len(text.stack) == before


def test_the_chain_has_causes_contexts_and_ends_at_what_is_suppressed():
    def chained(suppress):
        try:
            try:
                raise KeyError("first")
            except KeyError:
                raise ValueError("second")  # noqa: B904 - a context
        except ValueError as error:
            raise TypeError("third") from (None if suppress else error)

    for suppress, kinds in ((False, ["TypeError", "ValueError", "KeyError"]), (True, ["TypeError"])):
        error = caught(lambda s=suppress: chained(s))
        for compact in (False, True):  # only a compact one leaves out what is suppressed by itself
            links = chain_of(TracebackException.from_exception(error, compact=compact))
            assert [link.exc_type.__name__ for link in links] == kinds


def test_own_files_are_the_librarys_and_nns_and_numpys():
    import nn

    assert is_hidden(cg.__file__) and is_hidden(nn.__file__) and is_hidden(np.__file__)
    assert not is_hidden(__file__) and not is_hidden(os.path.dirname(cg.__file__) + "_other.py")
    assert not is_hidden("<stdin>")


def test_the_hook_prints_errors_of_the_library_and_leaves_others_to_the_one_before(capsys):
    seen = []
    hook = short_tracebacks(lambda *args: seen.append(args))
    other = KeyError("x")
    hook(KeyError, other, None)
    assert seen == [(KeyError, other, None)] and capsys.readouterr().err == ""
    error = caught(users_line)
    assert isinstance(error, ShapeError)
    hook(type(error), error, error.__traceback__)
    said = capsys.readouterr().err
    assert len(seen) == 1 and "in users_line" in said and "shapes do not broadcast together" in said


def test_importing_the_library_sets_the_hook():
    code = "import cgraph, sys; print(sys.excepthook.__module__); import cgraph as cg; cg.Var((2,)) + cg.Var((3,))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout == "cgraph.tracebacks\n" and run.returncode == 1
    assert "frames of the library are hidden" in run.stderr and "graph.py" not in run.stderr


@pytest.mark.parametrize(("package", "hidden"), [(cg, True), (nn, True), (np, True), (pytest, False)])
def test_files_of_a_package_are_hidden_and_those_beside_it_are_not(package, hidden):
    """A folder whose name only begins like the package's, a file that is named like it, and the folder above."""
    folder = os.path.dirname(package.__file__)
    for inside in ("a.py", os.path.join("deep", "down", "b.py"), "__init__.py"):
        assert is_hidden(os.path.join(folder, inside)) == hidden
    for beside in ("_more", "x", ".libs", ""):
        assert not is_hidden(os.path.join(folder + beside + ("" if beside else ".py")))
        assert not is_hidden(os.path.join(folder + (beside or "2"), "a.py"))
    assert not is_hidden(os.path.join(os.path.dirname(folder), "a.py")) and not is_hidden("<string>")


def test_frames_are_hidden_in_the_cause_of_an_error_too(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)

    def caused():
        try:
            users_line()
        except ShapeError as error:
            raise KeyError("another") from error

    alone, lines = lines_of(caught(users_line)), lines_of(caught(caused))
    assert lines[-1] == alone[-1] and "frames of the library are hidden" in lines[-1]
    assert sum("in users_line" in line for line in lines) == 1 and not any("family.py" in line for line in lines)
