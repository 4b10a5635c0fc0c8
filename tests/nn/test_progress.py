import io

import pytest

from nn.progress import PlainBar, SilentBar, numbers, progress_bar, seconds_left


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
