"""The reference engine: NumPy's values, freed as they go, and update edges that are written once and all."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine import reference
from cgraph.engine.reference import ReferenceEngine, ReferenceInstance, evaluate, value_of
from cgraph.errors import UnassignedError
from cgraph.planning.options import Request
from cgraph.storage.cell import CellValue

ONES = np.ones(3, "f4")


def test_values_are_those_of_numpy_and_repeated_outputs_are_all_returned():
    x = cg.Var((3,), name="x")
    y = cg.cumsum(x, 0)
    value = np.array([1, 2, 4], "f4")
    got = evaluate([y * 2, y, x, y], {x: value})
    for a, b in zip(got, (np.cumsum(value) * 2, np.cumsum(value), value, np.cumsum(value)), strict=True):
        np.testing.assert_array_equal(a, b)
    assert evaluate([]) == []


def test_a_var_is_read_from_its_cell_unless_a_value_is_passed():
    x = cg.Var((3,), name="x").assign(ONES)
    (from_cell,), (passed,) = evaluate([x]), evaluate([x], {x: 2 * ONES})
    assert from_cell.tolist() == [1, 1, 1] and passed.tolist() == [2, 2, 2]
    from_cell[:] = 9
    assert x.value.tolist() == [1, 1, 1], "the cell's bytes are not shown"
    with pytest.raises(UnassignedError, match="other"):
        evaluate([cg.Var((3,), name="other") + 1])


def test_results_have_the_dtype_of_their_node_and_faults_of_arithmetic_are_silent(recwarn):
    x = cg.Var((2,), "float32", name="x")
    (got,) = evaluate([x / 0], {x: np.array([1, 0], "f4")})
    assert got.dtype == np.float32 and np.isinf(got[0]) and np.isnan(got[1]) and not recwarn.list
    (whole,) = evaluate([cg.sum(x)], {x: np.ones(2, "f4")})
    assert isinstance(whole, np.ndarray) and whole.shape == ()


def instance() -> tuple[ReferenceInstance, tuple[cg.Var, ...], dict[cg.Var, CellValue], np.ndarray]:
    """Two Vars that swap, a sum that is shown, and the word that is set when both are written."""
    a, b = cg.Var((3,), name="a"), cg.Var((3,), name="b")
    request = Request((a + b,), (), {a: b, b: a})
    values, done = {a: CellValue(ONES.copy()), b: CellValue(5 * ONES)}, np.zeros(1, np.int64)
    run = ReferenceEngine().program(request).instance()
    run.bind({}, values, done)
    return run, (a, b), values, done


def test_update_edges_read_the_values_of_before():
    run, (a, b), values, done = instance()
    run.run()
    assert values[a].array.tolist() == [5] * 3 and values[b].array.tolist() == [1] * 3 and done[0] == 1
    assert run.read(run.request.outputs[0]).tolist() == [6] * 3


def test_a_run_without_writing_leaves_vars_and_word_alone():
    run, (a, b), values, done = instance()
    run.run(write=False)
    assert run.recorded() == () and done[0] == 0
    assert values[a].array.tolist() == [1] * 3 and values[b].array.tolist() == [5] * 3
    assert run.makes(a) and run.owns(b) and run.waited == 0


def test_an_output_that_is_a_var_shows_its_value_of_before_the_update():
    v, x = cg.Var((3,), name="v").assign(ONES), cg.Var((3,), name="x")
    f = cg.compile([v, v + x], [x], {v: v * 3}, engine="reference")
    before, total = f(ONES)
    assert before.tolist() == [1] * 3 and total.tolist() == [2] * 3 and v.value.tolist() == [3] * 3


def test_an_op_that_fails_writes_nothing():
    def refuse(value: np.ndarray) -> np.ndarray:
        raise ValueError("no")

    x, v = cg.Var((3,), name="x"), cg.Var((3,), name="v").assign(ONES)
    f = cg.compile([cg.delay(refuse, x)], [x], {v: v + 1}, engine="reference")
    with pytest.raises(ValueError, match="no"):
        f(ONES)
    assert v.value.tolist() == [1] * 3


def test_values_go_behind_their_last_reader(monkeypatch):
    """Of a chain one is there at a time; one that is read again, or is an output, stays."""
    counts = []

    def counted(node, values, operand_values):
        counts.append(len(operand_values))
        return value_of(node, values, operand_values)

    monkeypatch.setattr(reference, "value_of", counted)
    x = cg.Var((3,), name="x")
    first = cg.cumsum(x, 0)
    chain = cg.sort(cg.cumprod(cg.sort(first)))
    for outputs, expected in (
        ([chain], [0, 1, 1, 1, 1]),
        ([chain, first], [0, 1, 1, 2, 2]),
        ([first * first], [0, 1, 1]),
        ([cg.sort(first) + first], [0, 1, 1, 2]),
    ):
        counts.clear()
        evaluate(outputs, {x: ONES})
        assert counts == expected
