import io
import sys
from importlib.util import find_spec

import pytest

from nn.progress import PlainBar, SilentBar, numbers, progress_bar, rich_bar, seconds_left


@pytest.mark.parametrize(
    ("elapsed", "done", "left", "text"),
    [
        (10.0, 0, 5, "?"),
        (10.0, 5, 5, "10 s"),
        (60.0, 1, 2, "2 min 00 s"),
        (1.0, 1, 125, "2 min 05 s"),
        (1.0, 1, 0, "0 s"),
    ],
)
def test_the_remaining_time_follows_the_speed_so_far(elapsed, done, left, text):
    assert seconds_left(elapsed, done, left) == text


def test_numbers_are_empty_without_a_loss():
    assert numbers(None, 0.1) == "" and numbers(0.25, 0.001) == "loss 0.2500  rate 1.00e-03  "


def test_off_a_terminal_the_last_step_is_always_shown():
    stream = io.StringIO()
    bar = PlainBar(0, 3, stream)
    for step in (1, 2, 3):
        bar.show(step, 0.5, 0.1)
    bar.close()
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("step 1/3") and lines[-1].startswith("step 3/3") and "\r" not in stream.getvalue()


def test_a_bar_that_is_off_shows_nothing(capsys):
    bar = progress_bar(0, 3, False)
    bar.show(1, 0.5), bar.close()
    assert isinstance(bar, SilentBar) and capsys.readouterr() == ("", "")


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("out", [io.StringIO, Screen])
@pytest.mark.parametrize("error", [io.StringIO, Screen])
def test_a_bar_moves_where_the_error_stream_is_a_terminal_wherever_output_goes(out, error, monkeypatch):
    monkeypatch.setattr("sys.stdout", out())
    monkeypatch.setattr("sys.stderr", error())
    bar = progress_bar(0, 3, True)
    bar.close()
    assert isinstance(bar, PlainBar) == (error is io.StringIO or find_spec("rich") is None)


@pytest.mark.parametrize(("first", "text"), [(0, "10 s left"), (10, "20 s left"), (19, "3 min 20 s left")])
def test_the_time_left_counts_the_steps_of_this_run(first, text, monkeypatch):
    """20 of 30 steps are done, those from the first on in 20 seconds."""
    clock = iter([100.0, 120.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    stream = io.StringIO()
    PlainBar(first, 30, stream).show(20, 0.5, 0.1)
    assert stream.getvalue().strip().endswith(text)


@pytest.mark.parametrize(("kind", "pause"), [(Screen, 0.2), (io.StringIO, 5.0)])
def test_a_bar_is_drawn_anew_after_a_pause_and_at_the_last_step(kind, pause, monkeypatch):
    """Over itself on a terminal, which gets a new line at the end, else line after line."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    stream = kind()
    bar = PlainBar(0, 9, stream)
    for step, after in ((1, 0.0), (2, 0.75 * pause), (3, pause), (4, 1.9 * pause), (5, 2.5 * pause), (9, 2.6 * pause)):
        now[0] = 100.0 + after
        bar.show(step)
    bar.close()
    text = stream.getvalue()
    assert [int(x.split("/")[0]) for x in text.split("step ")[1:]] == [1, 3, 5, 9]
    assert text.count("\r") == (4 if kind is Screen else 0) and text.count("\n") == (1 if kind is Screen else 4)


@pytest.mark.parametrize("error", [io.StringIO, Screen])
def test_without_rich_a_plain_bar_goes_from_the_first_step_to_the_last(error, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr("sys.stderr", error())
    bar = progress_bar(2, 9, True)
    assert type(bar) is PlainBar and (bar.first, bar.total, bar.over) == (2, 9, error is Screen)


def test_a_bar_by_rich_begins_at_the_first_step():
    console = pytest.importorskip("rich.console").Console(file=io.StringIO(), force_terminal=True, width=100)
    rich_bar(2, 10, console).close()
    assert "2/10" in console.file.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"), [(59, "59 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (60, "1 min 00 s"), (3661, "61 min 01 s")]
)
def test_a_minute_is_sixty_seconds(seconds, text):
    assert seconds_left(seconds, 1, 1) == text


def test_a_bar_by_rich_stops_when_it_is_closed_and_shows_control_characters_as_marks():
    console = pytest.importorskip("rich.console").Console(file=io.StringIO(), force_terminal=True, width=100)
    bar = rich_bar(0, 10, console)
    assert bar.progress.live.is_started
    bar.show(3, 0.25, 0.5, "valid \a[b] 0.5  ")
    bar.close()
    assert not bar.progress.live.is_started
    assert "loss 0.2500  rate 5.00e-01  valid ?[b] 0.5" in console.file.getvalue()


def test_a_shorter_line_covers_the_one_before_it_on_a_terminal(monkeypatch):
    clock = iter(range(0, 100, 10))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    stream = Screen()
    bar = PlainBar(0, 9, stream)
    bar.show(3, 0.5, 0.1, "valid accuracy 0.5  ")
    bar.show(4)
    first, second = stream.getvalue().split("\r")[1:]
    assert len(first) == len(second) == 78 and second.startswith("step 4/9")


def test_a_bar_by_rich_is_on_the_error_stream(monkeypatch):
    pytest.importorskip("rich.console")
    monkeypatch.setattr("sys.stdout", Screen())
    monkeypatch.setattr("sys.stderr", Screen())
    bar = progress_bar(0, 3, True)
    bar.show(3, 0.25, 0.5)
    bar.close()
    assert sys.stdout.getvalue() == "" and "3/3" in sys.stderr.getvalue()


def test_a_bar_by_rich_shows_steps_alone_or_with_their_numbers():
    console = pytest.importorskip("rich.console").Console(file=io.StringIO(), force_terminal=True, width=100)
    bar = rich_bar(2, 9, console)
    (task,) = bar.progress.tasks
    for arguments, text in (((5,), ""), ((6, 0.25), "loss 0.2500  rate 0.00e+00  "), ((7, 0.5, 0.01, "top 1"), None)):
        bar.show(*arguments)
        assert task.completed == arguments[0] and task.total == 9
        assert task.fields["numbers"] == ("loss 0.5000  rate 1.00e-02  top 1" if text is None else text)
    bar.close()
