"""Values of which a run decides dtype or number of axes: cases, what a condition leaves of them, which are refused."""

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx.dynamic.bounds import LengthBounds, Size
from cgraph.formats.onnx.dynamic.value import Ragged, with_lengths
from cgraph.formats.onnx.either import Either, Selector, build_both, cases_of, map_cases, resolve, select
from cgraph.formats.unspecified import UnknownError
from cgraph.ops.leaf import Var

ROW, TABLE, OTHER = Var((3,), "float32", "row"), Var((1, 3), "float32", "table"), Var((2,), "float32", "other")
P, Q = (Selector(Var((), "bool", name), f"if {name}", name) for name in "pq")


def limits():
    return LengthBounds({}, Allowance(0))


def shapes(x):
    return [value.shape for _, value in cases_of(x)]


def test_values_of_one_number_of_axes_become_one_array():
    x = select(limits(), P, ROW, OTHER)
    assert isinstance(x, Ragged) and x.text == "float32[≤3]"
    for holds in (True, False):
        values = {ROW: np.ones(3, "f4"), OTHER: np.zeros(2, "f4"), P.condition: np.array(holds)}
        node, length = evaluate([x.node, x.counts[0].node], values)
        assert length == (3 if holds else 2) and node[:length].all() == holds


def test_a_condition_leaves_one_of_two_values():
    x = select(limits(), P, ROW, TABLE)
    assert isinstance(x, Either) and x.text == "float32[3] or float32[1,3]"
    assert resolve(x, P, True) is ROW and resolve(x, P, False) is TABLE
    assert resolve(x, Q, True).then is ROW and resolve(ROW, P, True) is ROW
    assert select(limits(), P, x, TABLE).then is ROW and select(limits(), P, x, ROW) is ROW


def test_cases_are_listed_in_order_with_the_conditions_that_they_need():
    x = select(limits(), Q, select(limits(), P, ROW, TABLE), None)
    assert [value for _, value in cases_of(x)] == [ROW, TABLE, None]
    assert [len(conditions) for conditions, _ in cases_of(x)] == [2, 2, 1]
    assert shapes(map_cases(lambda v: v if v is None else v[..., :2], Either(P, ROW, TABLE))) == [(2,), (1, 2)]


def test_the_values_of_one_outcome_remain_if_the_other_is_refused():
    bounds = limits()

    def build(holds):
        bounds.check(P.condition, "inside")
        if holds:
            raise ValueError("no such axis")
        return [TABLE]

    assert build_both(bounds, P, build, lambda error: f"in Kind: {error}") == [TABLE]
    assert [x.text.partition(", ")[0] for x in bounds.checks] == ["inside", "If 'if p' takes then_branch"]
    assert evaluate([bounds.checks[1].holds], {P.condition: np.array(False)})[0]
    assert not evaluate([bounds.checks[1].holds], {P.condition: np.array(True)})[0]


@pytest.mark.parametrize(
    ("error", "text"), [(FormatError("no"), "neither branch of If 'if p'"), (UnknownError("n"), "n")]
)
def test_two_refusals_and_a_lack_of_a_value_are_raised(error, text):
    def build(_):
        raise error

    with pytest.raises(FormatError, match=text):
        build_both(limits(), P, build, str)


def test_arrays_of_an_open_length_sequences_and_nothing_are_told_apart():
    bounds = limits()
    opened = with_lengths(ROW, {0: Size(Var((), "int64", "n"), 0, 3)})
    assert select(bounds, P, opened, TABLE).text == "float32[≤3] or float32[1,3]"
    assert select(bounds, P, ROW, opened).text == "float32[≤3]"
    for other in ([ROW], None):
        for then, otherwise in ((ROW, other), (other, ROW)):
            x = select(bounds, P, then, otherwise)
            parts = ["float32[3]", "a sequence or nothing"]
            assert isinstance(x, Either) and x.text == " or ".join(parts if then is ROW else parts[::-1])
            assert resolve(x, P, True) is then and resolve(x, P, False) is otherwise
    integers = Var((3,), "int64", "integers")
    assert select(bounds, P, ROW, integers).text == "float32[3] or int64[3]" and bounds.choices == 6
