"""Calls as one table with symbolic bases: words, places of addresses, loops that run as they say, update edges last."""

import struct

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.code import RowLoop
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.cpu.make_code import UpdateTarget, _Maker, code_of, output_view, update_calls
from cgraph.ir.work import Part
from cgraph.kernels.control import BEGIN, REPEAT, SKIP
from cgraph.kernels.kernel import (
    ARENA,
    STOP,
    Between,
    Call,
    End,
    Jump,
    Kernel,
    Pointer,
    Repeat,
    Skip,
    Slot,
    contiguous,
    marker_call,
)
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import host_target
from tests.support.planned import planned

ONE, TWO = Kernel("one"), Kernel("two", (3,))
X = cg.Var((6, 4), name="x")
PLAN = planned(X + 1)


def places(code):
    """The positions and offsets of addresses, by symbol."""
    return {str(r.symbol): list(zip(r.positions.tolist(), r.offsets.tolist())) for r in code.relocations}


def test_calls_are_rows_whose_addresses_are_symbols():
    array, other, w = np.zeros(3), np.ones(3), cg.Var((2,))
    calls = [
        Call(ONE, (5, Pointer(array, 8), -1.5), 7, 2),
        Call(TWO, (Pointer(X, 16), Pointer(ARENA, 64), Pointer(STOP)), 1, 0),
        Call(ONE, (Pointer(other), Pointer(array, 24), Pointer(w)), 3),
    ]
    code = code_of([[Part("a", calls[:2])], [], [Part("b", []), Part("a", calls[2:])]], PLAN)
    assert code.kernels == (ONE, TWO)
    assert code.table.tolist() == [[0, 0, 7, 2], [1, 3, 1, 1], [0, 6, 3, 1]]
    bits = struct.unpack("q", struct.pack("d", -1.5))[0]
    assert code.args.tolist() == [5, 0, bits, 0, 0, 0, 0, 0, 0]
    assert places(code) == {
        "constant0": [(1, 8), (7, 24)],
        "variable0": [(3, 16)],
        "arena": [(4, 64)],
        "stop": [(5, 0)],
        "constant1": [(6, 0)],
        "variable1": [(8, 0)],
    }
    assert code.variables == (X, w) and code.constants[0] is array and code.constants[1] is other
    assert code.first_row.tolist() == [0, 2, 2, 3] and code.first_write == len(PLAN.layout.steps) == 1
    assert (code.labels, code.label_of.tolist()) == (("a",), [0, 0, 0]) and code.again is None


def test_shared_calls_have_the_addresses_of_each_step():
    shared = [Call(ONE, (Pointer(Slot(1), 4), 9), 1), Call(ONE, (Pointer(Slot(0)), Pointer(X, 12)), 1)]
    one = Part("one", shared, (), (Pointer(ARENA, 64), Pointer(X, 8)))
    two = Part("two", shared, (), (Pointer(ARENA, 128), Pointer(ARENA, 256)))
    code = code_of([[one], [two]], PLAN)
    assert code.table[:, 1].tolist() == [0, 2, 4, 6] and code.args.tolist() == [0, 9, 0, 0, 0, 9, 0, 0]
    assert places(code) == {"variable0": [(0, 12), (3, 12), (7, 12)], "arena": [(2, 64), (4, 260), (6, 128)]}
    assert code.label_of.tolist() == [0, 0, 1, 1] and code.labels == ("one", "two")


def test_adjacent_parts_that_run_again_are_one_loop():
    again = [Part("again", [Call(ONE, (i,), 1)], times=4) for i in range(2)]
    code = code_of([[Part("before", [Call(TWO, (), 1)])], [*again, Part("behind", [Call(TWO, (), 1)])]], PLAN)
    assert code.again == RowLoop(1, 3, 4)


def copied(parts, value):
    """What rows leave in the arena, of which the result is the first part."""
    engine = CpuEngine(threads=1)
    instance = engine.program(code_of([parts, []], PLAN)).instance()
    instance.arena[:] = 0
    instance.bind({X: value}, {}, np.zeros(1, np.int64))
    instance.run()
    return instance.read(PLAN.outputs[0])


def row(base, offset, n=4):
    return contiguous(Pointer(base, offset), (n,), "f4")


VALUE = np.random.default_rng(0).standard_normal((6, 4), "f4")


@pytest.mark.parametrize("rounds", [0, 1, 6])
def test_a_loop_moves_each_address_by_its_own_stride(rounds):
    to, source = object(), object()
    loop = Repeat(rounds, (to, source), (16, -16))
    calls = copy_calls(host_target(), row(to, 4, 3), row(source, 0, 3))
    parts = [
        Part("loop", [marker_call(loop, Pointer(ARENA), Pointer(X, 5 * 16))]),
        Part("copy", calls),
        Part("loop", [marker_call(End(loop))]),
    ]
    want = np.zeros((6, 4), "f4")
    want[:rounds, 1:] = VALUE[::-1][:rounds, :3]
    np.testing.assert_array_equal(copied(parts, VALUE), want)


def test_a_loop_inside_a_loop_begins_where_the_outer_one_is():
    outer_to, outer_from, to, source = (object() for _ in range(4))
    outer, inner = Repeat(2, (outer_to, outer_from), (48, 16)), Repeat(3, (to, source), (16, 32))
    parts = [
        Part("outer", [marker_call(outer, Pointer(ARENA), Pointer(X))]),
        Part("inner", [marker_call(inner, Pointer(outer_to), Pointer(outer_from))]),
        Part("copy", copy_calls(host_target(), row(to, 0), row(source, 0))),
        Part("inner", [marker_call(End(inner))]),
        Part("outer", [marker_call(End(outer))]),
    ]
    np.testing.assert_array_equal(copied(parts, VALUE), VALUE[[0, 2, 4, 1, 3, 5]])


@pytest.mark.parametrize("value", [0, 3])
def test_rows_are_skipped_unless_the_byte_has_the_value(value):
    flag, skip = np.array([9, 3], np.uint8), Skip(value)
    parts = [
        Part("skip", [marker_call(skip, Pointer(flag, 1))]),
        Part("copy", copy_calls(host_target(), row(ARENA, 0), row(X, 16))),
        Part("skip", [marker_call(End(skip))]),
        Part("copy", copy_calls(host_target(), row(ARENA, 16), row(X, 0))),
    ]
    got = copied(parts, VALUE)
    np.testing.assert_array_equal(got[0], VALUE[1] if value == 3 else 0)
    np.testing.assert_array_equal(got[1], VALUE[0])


def test_jumps_go_behind_the_beginning_and_behind_the_end():
    loop, skip = Repeat(3), Skip(1)
    marks = [marker_call(loop), marker_call(skip, Pointer(ARENA)), marker_call(End(skip)), marker_call(End(loop))]
    body = Part("body", [Call(ONE, (), 1), Call(ONE, (), 1)])
    code = code_of([[Part("m", marks[:2]), body, Part("m", marks[2:]), body]], PLAN)
    assert code.jumps() == [(BEGIN, 0, 5), (SKIP, 1, 4), (REPEAT, 4, 1)]
    assert code.kernels == (Jump(BEGIN), Jump(SKIP), ONE, Jump(REPEAT))


def test_update_edges_copy_what_no_kernel_wrote_and_then_say_so():
    v, w, u = cg.Var((3,), name="v"), cg.Var((24,), name="w"), cg.Var((3,), name="u")
    plan = planned(v * 2, updates={v: v + 1, w: X.reshape(24), u: v})  # the kernel of v + 1 writes v in place
    code = code_of([[Part("update edges", update_calls(host_target(), plan))]], plan)
    assert code.targets == (w, u) and code.updated == (v, w, u) and code.written == {v}
    at = places(code)
    assert [len(at[name]) for name in ("target0", "target1", "done")] == [1, 1, 1]
    assert at["target0"][0] < at["target1"][0] < at["done"][0]
    assert update_calls(host_target(), PLAN) == []


def test_an_output_that_is_a_constant_needs_no_graph():
    c = cg.Const(np.arange(100, dtype="f4"))
    view = contiguous(Pointer(c, 8), (3,), "f4")
    assert output_view(view).at.base is c.op.array and output_view(view).at.offset == 8
    kept = contiguous(Pointer(ARENA, 8), (3,), "f4")
    assert output_view(kept) == kept


@pytest.mark.parametrize("number", [1, 2, 3, 5, 6])
def test_rows_run_for_a_number_above_the_low_and_up_to_the_high_one(number):
    """The address is that of the second of the part's slots."""
    case, count = Between(2, 5), np.array([9, number, 9])
    parts = [
        Part("case", [marker_call(case, Pointer(Slot(1), 8))], (), (Pointer(ARENA), Pointer(count))),
        Part("copy", copy_calls(host_target(), row(ARENA, 0), row(X, 16))),
        Part("case", [marker_call(End(case))]),
        Part("copy", copy_calls(host_target(), row(ARENA, 16), row(X, 0))),
    ]
    got = copied(parts, VALUE)
    np.testing.assert_array_equal(got[0], VALUE[1] if 2 < number <= 5 else 0)
    np.testing.assert_array_equal(got[1], VALUE[0])


def test_memory_of_a_step_that_is_gone_is_not_taken_for_that_of_a_later_step():
    """Python gives the number of an object that nobody has to the next one."""
    variables = [cg.Var((2,)) for _ in range(40)]

    def steps():
        for i, x in enumerate(variables):
            yield [Part("copy", [Call(ONE, (Pointer(UpdateTarget(x)), Pointer(cg.Const(np.full(300, i)))), 1)])]

    code = code_of(steps(), PLAN)
    assert code.targets == tuple(variables) and [x[0] for x in code.constants] == list(range(40))


def test_a_value_that_a_kernel_writes_into_its_var_is_copied_into_a_second_one():
    v, u = cg.Var((3,), name="v"), cg.Var((3,), name="u")
    new = v + 1
    plan = planned(updates={v: new, u: new})
    code = code_of([[Part("update edges", update_calls(host_target(), plan))]], plan)
    assert code.written | set(code.targets) == {v, u} and len(places(code)["done"]) == 1
    assert "target0" in places(code)


def test_the_word_is_set_also_where_kernels_write_all_vars_and_from_the_first_of_them_on():
    v, w = cg.Var((3,), name="v"), cg.Var((3,), name="w")
    plan = planned(cg.sin(v * w), updates={v: v + 1, w: w * 2})
    calls = update_calls(host_target(), plan)
    code = code_of([*([] for _ in plan.layout.steps), [Part("update edges", calls)]], plan)
    assert len(calls) == 1 and "done" in places(code)
    writers = [t for t, node in enumerate(plan.layout.steps) if node.op.writes]
    assert len(writers) == 2 and code.first_write == writers[0]


def test_addresses_move_only_inside_their_loop():
    maker, loops = _Maker(), [Repeat(2, (object(), object()), (16, 16)) for _ in range(2)]
    for loop in loops:
        maker.add(Part("loop", [marker_call(loop, Pointer(ARENA), Pointer(X))]))
    assert len(maker.moving) == 4 and list(maker.open) == loops
    for loop in loops[::-1]:
        maker.add(Part("loop", [marker_call(End(loop))]))
    assert maker.moving == {} and maker.open == {}
