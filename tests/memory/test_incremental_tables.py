"""Tables for incremental evaluation: what depends on what, which bytes a value has, and what lasts."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.memory.incremental_tables import depends_of, tables_of
from cgraph.memory.strategies.one_each import one_each
from cgraph.memory.tables import Lists
from tests.support.planned import planned


@pytest.mark.parametrize(("count", "nbytes"), [(1, 1), (7, 1), (8, 2), (15, 2), (16, 3)])
def test_a_step_has_a_bit_for_each_var_that_it_depends_on(count, nbytes):
    """One more than the Vars is for impure ops."""
    leaves = [cg.Var((8,), name=f"x{i}") for i in range(count)]
    sums = [cg.cumsum(x, 0) for x in leaves]
    compiled = planned(*sums, cg.cumsum(sums[0] + sums[-1], 0))
    bits = depends_of(compiled.layout, leaves)
    assert bits.shape == (len(compiled.layout.steps), nbytes) and bits.dtype == np.uint8
    sets = {node: int.from_bytes(row.tobytes(), "little") for node, row in zip(compiled.layout.steps, bits)}
    assert [sets[x] for x in sums] == [1 << i for i in range(count)]
    assert sets[compiled.outputs[-1]] == 1 | 1 << count - 1
    without = depends_of(compiled.layout, leaves[1:])
    assert [row.any() for x, row in zip(compiled.layout.steps, without) if x is sums[0]] == [False]


def test_what_follows_an_impure_op_depends_on_it():
    x = cg.Var((8,), name="x")
    v = cg.Var((8,), name="v")
    compiled = planned(cg.cumsum(x, 0), updates={v: cg.cumsum(v, 0)})
    layout, impure = compiled.layout, 1 << 2
    bits = [int(row[0]) for row in depends_of(layout, [x, v])]
    for node, mask in zip(layout.steps, bits):
        assert bool(mask & impure) == (not node.op.pure or any(not y.op.pure for y in node.operands))
    assert any(mask & impure for mask in bits) and 1 in bits


def test_values_have_the_segments_between_addresses_and_read_each_value_once():
    x = cg.Var((64,), name="x")
    y = cg.cumsum(x, 0)
    z = cg.cumsum(y * y, 0)
    compiled = planned(z, y, strategy=one_each)
    steps, tables = compiled.layout.steps, tables_of(compiled, [x])
    reads = tables.reads.tolist()
    assert [[steps[i] for i in reads[t]] for t in range(3)] == [[], [y], [steps[1]]]
    assert {steps[i] for i in tables.lasting.tolist()} == {y, z} and tables.workspace.shape == (3,)
    starts = [compiled.usage.offset(compiled.plan, i) for i in range(len(compiled.layout.values))]
    edges = sorted({e for s, v in zip(starts, compiled.layout.values) for e in (s, s + v.nbytes)})
    for start, value, (low, high) in zip(starts, compiled.layout.values, tables.segments.tolist()):
        assert (edges[low], edges[high]) == (start, start + value.nbytes)


def test_parts_are_those_computed_inside_a_value():
    x, w = cg.Var((64,), name="x"), cg.Var((32,), name="w")
    one, other = cg.cumsum(x, 0), cg.cumsum(w, 0)
    compiled = planned(cg.concat([one, other]))
    steps, parts = compiled.layout.steps, tables_of(compiled, [x, w]).parts.tolist()
    (whole,) = (i for i, x in enumerate(steps) if x is compiled.outputs[0])
    assert {steps[i] for i in parts[whole]} == {one, other}
    assert all(not inside for i, inside in enumerate(parts) if i != whole)


def test_lists_of_any_number_and_length_come_back():
    for lists in ([], [[]], [[3], [], [1, 2]], [[], [5]]):
        assert Lists.of(lists).tolist() == lists
    assert Lists.of([]).starts.tolist() == [0]
