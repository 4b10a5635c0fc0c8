"""Reports and what is compared for them: every line with its numbers, and answers by hand."""

import numpy as np

from cgraph.quantiser.report import MOST_DECIBELS, Answers, Likeness, Report, Sensitivity, places
from tests.support.tolerance import near

TABLE = (
    Sensitivity("stem", Likeness(12.34, 0.5, 0.25), True),
    Sensitivity("scores", Likeness(123.45, 1.0)),
)
REPORT = Report(0.75, Likeness(31.26, 0.875, 0.625), (4096, 1024), (3000, 2400), 7, ("stem", "head"), TABLE)


def test_every_line_of_a_report_has_its_numbers_in_their_order():
    assert str(REPORT).splitlines() == [
        "     dB     same  layer, quantised alone",
        "   12.3    50.0%  stem  (stays float)",
        "  123.5   100.0%  scores",
        "7 layers quantised; floats: stem, head",
        "outputs 31.3 dB, same answer for 87.5% of the samples",
        "right answers: floats 75.0%, quantised 62.5%",
        "weights: 4 KiB -> 1 KiB (0.250)",
        "plan: 2.93 KiB -> 2.34 KiB (0.800)",
    ]


def test_a_report_without_labels_layers_that_stay_float_or_a_table_is_shorter():
    report = Report(None, Likeness(31.26, 0.875), (0, 0), (64, 32), 1)
    assert str(report).splitlines() == [
        "1 layers quantised",
        "outputs 31.3 dB, same answer for 87.5% of the samples",
        "weights: 0 B -> 0 B (0.000)",
        "plan: 64 B -> 32 B (0.500)",
    ]


def test_no_right_answer_at_all_is_reported_as_a_share_of_none():
    report = Report(0.0, Likeness(31.26, 0.0, 0.0), (0, 0), (64, 32), 1)
    assert str(report).splitlines()[1:3] == [
        "outputs 31.3 dB, same answer for 0.0% of the samples",
        "right answers: floats 0.0%, quantised 0.0%",
    ]


def test_facts_are_plain_and_nested():
    assert REPORT.facts() == {
        "float_right": 0.75,
        "likeness": {"decibels": 31.26, "agreement": 0.875, "right": 0.625},
        "weights": [4096, 1024],
        "plan": [3000, 2400],
        "layers": 7,
        "skipped": ["stem", "head"],
        "table": [
            {"layer": "stem", "likeness": {"decibels": 12.34, "agreement": 0.5, "right": 0.25}, "skipped": True},
            {"layer": "scores", "likeness": {"decibels": 123.45, "agreement": 1.0, "right": None}, "skipped": False},
        ],
    }


RUNS = (
    [np.array([[1, 0, 2], [5, 4, 3]], "f4"), np.array([10], "f4"), np.array([100], "i4")],
    [np.array([[0, 1, 0], [0, 0, 3]], "f4"), np.array([-20], "f4"), np.array([200], "i4")],
)
"""Outputs of two runs of two samples: scores, a number that counts, and an integer that does not."""


def test_the_power_of_all_floats_of_all_runs_is_over_that_of_their_differences():
    answers = Answers(RUNS, np.array([2, 1, 1, 2]))
    others = {0: [RUNS[0][0] + 1, RUNS[0][1], RUNS[0][2] * 0], 1: [RUNS[1][0][:, ::-1], RUNS[1][1] + 4, RUNS[1][2]]}
    found = answers.like(lambda i: others[int(i)], [(np.array(0),), (np.array(1),)])
    power = 1 + 4 + 25 + 16 + 9 + 100 + 1 + 9 + 400
    noise = 6 + (0 + 0 + 0 + 9 + 0 + 9) + 16
    assert found.decibels == near(10 * np.log10(power / noise), "float32 formulas")
    assert places(RUNS).tolist() == [2, 0, 1, 2]
    assert (found.agreement, found.right, answers.right) == (3 / 4, 2 / 4, 3 / 4)


def test_equal_outputs_and_outputs_of_nothing_have_the_most_decibels_and_no_labels_no_right_answers():
    zeros = tuple([np.zeros_like(x) for x in run] for run in RUNS)
    for runs, others in ((RUNS, RUNS), (zeros, RUNS)):
        found = Answers(runs).like(lambda i, others=others: others[int(i)], [(np.array(0),), (np.array(1),)])
        assert found.decibels == MOST_DECIBELS and found.right is None
    assert Answers(RUNS).right is None


def test_the_answer_of_a_sample_is_the_place_of_its_largest_number_in_all_of_its_axes():
    scores = np.zeros((2, 3, 4), "f4")
    scores[0, 1, 2], scores[1, 2, 3] = 5, 7
    assert places([[scores], [scores[::-1]], [np.float32(3).reshape(())]]).tolist() == [6, 11, 11, 6, 0]
