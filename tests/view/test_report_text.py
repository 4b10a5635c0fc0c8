"""A report as plain text: each line whole, what is left out of long tables, and words for bounds and times."""

import pytest

from cgraph.record import replace
from cgraph.view.figures import Alive, Kernels, PieceRow, StepRow
from cgraph.view.report_text import (
    against_bounds,
    proof_text,
    region_lines,
    region_text,
    report_text,
    saving_text,
    seconds_text,
    table_rows,
    weights_lines,
)
from tests.view.test_figures import PLAIN, REGION, STEPS, WEIGHTS


def test_the_whole_text():
    alive = Alive(8, "exp", "a.py:1"), Alive(16, "x", "")
    figures = replace(PLAIN, alive=alive, kernels=Kernels(1, 2, 3, 4, 0.5), on_host=(("sort", 2048),))
    assert report_text(figures, None).splitlines() == [
        "arena     30 B (30 bytes) by greedy, not proved the smallest; order depth_first",
        "bound     24 B (24 bytes); the arena is 1.2500 × that; 32 B if nothing overwrote",
        "unshared  40 B (40 bytes); sharing saves 25.0 %",
        "outside   16 B in Vars, 4 B in Consts",
        "kernels   1 in 2 calls; this process loaded 3 and compiled 4 in 0.50 s",
        "on the host  sort, 2 KiB carried",
        "",
        "peak      at step 0 24 B are in use:",
        "         8 B  exp  a.py:1",
        "        16 B  x",
        "",
        "  step  op   result          writes      in use                where",
        "     0  exp  float32[2]         8 B        24 B  ████████████  a.py:1",
        "     1  sum  float32[]          4 B        12 B  ██████        a.py:2",
    ]


def test_times_have_a_column_and_a_sum():
    timed = replace(PLAIN, steps=(replace(STEPS[0], seconds=0.25), replace(STEPS[1], seconds=0.5e-3)))
    lines = report_text(timed, None).splitlines()
    assert lines[4] == "time      250 ms in 2 steps"
    assert lines[-3].endswith("      time  where")
    assert lines[-2].endswith("████████████    250 ms  a.py:1") and lines[-1].endswith("      500 µs  a.py:2")


def rows(*numbers):
    return tuple(StepRow(i, "op", "", "", 0, n, t) for i, (n, t) in enumerate(numbers))


def test_of_many_steps_those_with_the_longest_times_or_the_most_bytes_are_left_in_their_order():
    by_bytes = replace(PLAIN, steps=rows((1, None), (9, None), (5, None), (9, None)))
    assert [x.step for x in table_rows(by_bytes, 2)] == [1, 3]
    assert [x.step for x in table_rows(by_bytes, 3)] == [1, 2, 3]
    assert [x.step for x in table_rows(by_bytes, 1)] == [1]
    by_time = replace(PLAIN, steps=rows((9, 0.1), (1, 0.4), (5, 0.4), (2, 0.2)))
    assert [x.step for x in table_rows(by_time, 2)] == [1, 2] and [x.step for x in table_rows(by_time, 1)] == [2]
    for most in (4, 5, None):
        assert len(table_rows(by_time, most)) == 4


@pytest.mark.parametrize(("seconds", "by"), [(None, "bytes in use"), (0.5, "time")])
def test_what_is_left_out_is_counted(seconds, by):
    figures = replace(PLAIN, steps=rows((1, seconds), (9, seconds), (5, seconds)))
    assert report_text(figures, 2).splitlines()[-1] == f"(1 of 3 steps with less {by} are left out)"
    assert "left out" not in report_text(figures, 3)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0.0, "0 µs"),
        (1.0, "1 s"),
        (0.0123, "12.3 ms"),
        (0.001, "1 ms"),
        (0.000999, "999 µs"),
        (125.0, "125 s"),
        (4e-9, "0.004 µs"),
    ],
)
def test_times_have_three_digits_and_a_unit(seconds, text):
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.9996, "1 s"), (0.9994, "999 ms"), (0.0009996, "1 ms"), (1234.5, "1234 s"), (86400.0, "86400 s")],
)
def test_no_time_has_an_exponent(seconds, text):
    assert seconds_text(seconds) == text


def test_words_for_bounds_and_savings():
    assert proof_text(PLAIN) == "not proved the smallest"
    assert proof_text(replace(PLAIN, proved=True)) == "proved the smallest of its kind"
    assert proof_text(replace(PLAIN, nbytes=24, proved=False)) == "which no plan beats"
    assert against_bounds(replace(PLAIN, plain_lower_bound=24)) == "the arena is 1.2500 × that"
    assert saving_text(replace(PLAIN, unshared_nbytes=0)) == "nothing to share"
    assert saving_text(replace(PLAIN, nbytes=40)) == saving_text(replace(PLAIN, nbytes=64)) == "sharing saves nothing"


def test_long_names_are_cut_and_do_not_move_columns():
    steps = StepRow(0, "o" * 50, "s" * 40, "w", 1, 1), StepRow(1, "b", "c", "w", 1, 1)
    head, one, other = report_text(replace(PLAIN, steps=steps), None).splitlines()[-3:]
    assert head.index("result") == one.index("s") == other.index("c") == len("  step  ") + 40 + 2
    assert one.index("1 B") == len("  step  ") + 40 + 2 + 28 + 2 + len("       ")
    assert "o" * 40 in one and "o" * 41 not in one and "s" * 28 in one and "s" * 29 not in one
    assert one.index("█") == other.index("█")


def test_names_are_visible():
    figures = replace(PLAIN, alive=(Alive(8, "a\x1bb", "c\nd"),), on_host=(("e\u202ef", 1),))
    text = report_text(figures, None)
    assert "a?b  c?d" in text and "on the host  e?f, 1 B carried" in text


def test_a_graph_without_steps_has_a_table_of_its_head():
    lines = report_text(replace(PLAIN, steps=(), alive=()), None).splitlines()
    assert lines[-1].split() == ["step", "op", "result", "writes", "in", "use", "where"]


def test_weights_without_times_are_one_line():
    assert weights_lines(WEIGHTS, None) == ["weights   80 B in 2 pieces from w through a ring of 100 B"]


def test_weights_with_times_have_those_of_each_piece_and_the_longest_waits():
    pieces = PieceRow("a", 30, 0.5, 0.001, 2.0), PieceRow("b", 50, 1.5, 0.25, 4.0), PieceRow("c", 20, 2.0, 0.5, 3.0)
    timed = replace(WEIGHTS, pieces=pieces, kernels=0.125, predicted=10.0, measured=11.0)
    assert weights_lines(timed, 2) == [
        "weights   100 B in 3 pieces from w through a ring of 100 B",
        "          kernels 125 ms, reading 4 s (25 B a second), each alone",
        "          a run 11 s, of which 9 s waiting; predicted 10 s, of which 751 ms",
        "       bytes      read  waits: predicted  measured  step",
        "        50 B     1.5 s            250 ms       4 s  b",
        "        20 B       2 s            500 ms       3 s  c",
        "(1 of 3 pieces with less waiting are left out)",
    ]
    assert [line.split()[-1] for line in weights_lines(timed, None)[4:]] == ["a", "b", "c"]


def test_a_region_has_its_saving_and_the_rows_of_each_value():
    assert region_lines(REGION) == [
        "region    step 1, conv2d: 3 values in 5 bands, 64 B in place of 400 B; 2 slides copy 40 B; calls take about "
        "500 ms more",
        "        10 B of      100 B  x",
        "        20 B of      300 B  y",
    ]
    assert region_text(replace(REGION, seconds=0.0)).endswith("calls take about 0 µs more")


def test_parts_follow_one_another():
    text = report_text(replace(PLAIN, weights=WEIGHTS, regions=(REGION,), inner=(("loop at a.py:3", PLAIN),)), None)
    assert text.index("weights  ") < text.index("region  ") < text.index("inside    loop at a.py:3, in its workspace:")
    assert text.endswith(report_text(PLAIN, None))


def test_a_bound_without_overwriting_is_told_where_it_differs_either_way():
    for plain in (23, 25):
        assert against_bounds(replace(PLAIN, plain_lower_bound=plain)).endswith(f"{plain} B if nothing overwrote")


def test_tables_of_plans_inside_steps_and_of_weights_are_as_short_as_the_first():
    inner = replace(PLAIN, steps=rows((1, None), (9, None), (5, None)))
    pieces = PieceRow("a", 30, 0.5, 0.001, 2.0), PieceRow("b", 50, 1.5, 0.25, 4.0)
    weights = replace(WEIGHTS, pieces=pieces, kernels=0.125, predicted=10.0, measured=11.0)
    text = report_text(replace(PLAIN, inner=(("loop", inner),), weights=weights), 1)
    left_out = [line for line in text.splitlines() if "left out" in line]
    assert left_out == [
        "(1 of 2 steps with less bytes in use are left out)",
        "(1 of 2 pieces with less waiting are left out)",
        "(2 of 3 steps with less bytes in use are left out)",
    ]


@pytest.mark.parametrize("read", [0.0, None])
def test_reads_that_took_no_time_have_no_rate(read):
    timed = replace(
        WEIGHTS, pieces=(PieceRow("a", 30, read, 0.001, 2.0),), kernels=0.125, predicted=10.0, measured=11.0
    )
    line = weights_lines(timed, None)[1]
    assert line.split()[:3] == ["kernels", "125", "ms,"] and "a second" not in line and line.endswith(", each alone")
