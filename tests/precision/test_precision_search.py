"""The search for layers to round, on errors that add up as squares."""

import math

import numpy as np
import pytest

from cgraph.precision.search import FEW, choose_rounding, largest


class Errors:
    """Measures outputs whose errors are the roots of sums of squares. Changes: it lists what was measured."""

    def __init__(self, alone: dict[str, float], floor: float = 0.0) -> None:
        self.alone, self.floor, self.trials = alone, floor, []

    def __call__(self, names, count):
        self.trials.append((names, count))
        return (self.floor, max(self.floor, math.hypot(*(self.alone[x] for x in names))))


def test_all_layers_round_after_one_trial_where_that_is_accepted():
    measure = Errors({"a": 3.0, "b": 4.0})
    choice = choose_rounding({"a": 1, "b": 1}, measure, 5.0)
    assert choice.names == {"a", "b"} and choice.errors == (0.0, 5.0) and not choice.alone
    assert measure.trials == [(frozenset("ab"), None)]


def test_layers_of_the_least_error_for_their_work_round():
    measure = Errors({"costly": 3.0, "large": 3.0, "cheap": 1.0})
    choice = choose_rounding({"costly": 1, "large": 100, "cheap": 10}, measure, 3.5)
    assert choice.names == {"large", "cheap"} and choice.errors == (0.0, math.hypot(3, 1))
    assert choice.alone == measure.alone
    assert [count for names, count in measure.trials if len(names) == 1][:3] == [FEW] * 3


@pytest.mark.parametrize("seed", range(5))
def test_the_choice_is_within_the_error_and_no_longer_beginning_is(seed):
    rng = np.random.default_rng(seed)
    alone = {f"layer{i}": float(x) for i, x in enumerate(np.exp(rng.normal(size=20)))}
    work = {name: int(n) for name, n in zip(alone, rng.integers(1, 100, 20))}
    accepted = 0.5 * math.hypot(*alone.values())
    measure = Errors(alone)
    choice = choose_rounding(work, measure, accepted)
    assert 0 < len(choice.names) < 20 and max(choice.errors) <= accepted
    order = sorted(work, key=lambda name: alone[name] ** 2 / work[name])
    assert math.hypot(*(alone[x] for x in order[: len(choice.names) + 1])) > accepted
    assert len(measure.trials) <= 1 + 20 + 5
    assert choose_rounding(work, Errors(alone), accepted) == choice


def test_nothing_rounds_where_every_layer_exceeds_the_error():
    choice = choose_rounding({"a": 1, "b": 1}, Errors({"a": 2.0, "b": math.inf}), 1.0)
    assert choice.names == frozenset() and choice.errors == (0.0, 0.0)


def test_the_error_of_float32_itself_is_reported():
    choice = choose_rounding({"a": 1}, Errors({"a": 2.0}, floor=1.5), 1.0)
    assert choice.names == frozenset() and choice.errors == (1.5, 1.5)


def test_a_graph_without_layers_has_the_empty_choice():
    assert choose_rounding({}, Errors({}), 1e-3).names == frozenset()


def test_an_error_that_equals_the_accepted_one_is_met_by_all_layers_and_by_a_beginning():
    measure = Errors({"a": 3.0, "b": 4.0, "c": 12.0})
    assert choose_rounding({"a": 1, "b": 1, "c": 1}, measure, 13.0).names == {"a", "b", "c"}
    assert choose_rounding({"a": 1, "b": 1, "c": 1}, measure, 5.0).names == {"a", "b"}
    assert choose_rounding({"a": 1, "b": 1, "c": 1}, measure, 4.999).names == {"a"}
    assert largest(()) == 0 and largest((1.0, 3.0, 2.0)) == 3


def test_a_layer_without_work_is_compared_as_one_of_one_multiply_add():
    """Squares for each multiply-add: 1 of "none", 4 of "costly", 0.25 of "cheap"."""
    measure = Errors({"none": 1.0, "costly": 4.0, "cheap": 2.0})
    work = {"none": 0, "costly": 4, "cheap": 16}
    names = [choose_rounding(work, measure, accepted).names for accepted in (2.1, 2.5)]
    assert names == [{"cheap"}, {"cheap", "none"}]
