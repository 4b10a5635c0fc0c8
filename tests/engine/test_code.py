"""Symbolic code: the text of each row, entries of a table, jumps and where they go, pieces of a ring that overlap."""

from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.code import DONE, Code, Piece, Symbol
from cgraph.engine.cpu.instance import CpuInstance, LoadedCode
from cgraph.engine.cpu.make_code import UpdateTarget, code_of
from cgraph.ir.work import Part
from cgraph.kernels.control import BEGIN, BETWEEN, SKIP
from cgraph.kernels.kernel import ARENA, Between, Call, Callback, End, Jump, Kernel, Pointer, Skip, marker_call
from cgraph.kernels.move.signature import OVERLAPPING
from tests.support.planned import planned

X = cg.Var((6, 4), name="x")
PLAN = planned(X + 1)


def callback(blas: bool = False) -> Callback:
    return Callback(lambda args: None, blas, (), 0)


def test_each_symbol_has_its_own_name():
    singles = [str(Symbol(kind)) for kind in ("arena", "stop", "done", "args")]
    assert singles == ["arena", "stop", "done", "args"]
    numbered = [str(Symbol(kind, i)) for kind in ("variable", "target", "constant", "result") for i in (0, 12)]
    assert numbered == [
        "variable0", "variable12", "target0", "target12", "constant0", "constant12", "result0", "result12",
    ]  # fmt: skip


def test_the_text_of_a_row_has_its_own_arguments_and_the_memory_of_each_address():
    w, array = cg.Var((2,), name="w"), np.zeros(3)
    bases = [Pointer(X, 4), Pointer(array, 16), Pointer(UpdateTarget(w), 8), Pointer(ARENA, 192), Pointer(DONE)]
    places = ["variable0+4", "constant0+16", "target0+8", "arena+192", "done+0"]
    calls = [OVERLAPPING.call((), n, out=at, x=at + 1, nbytes=10 * n) for n, at in enumerate(bases, 1)]
    code = code_of([[Part("first", calls[:2])], [Part("second", calls[2:4])], [Part("first", calls[4:])]], PLAN)
    others = [f"{place[:-1]}{int(place[-1]) + 1}" for place in places]
    assert code.text().splitlines() == [
        f"{label}: move.overlapping() out={at} x={x} nbytes={n}0 in {n} tasks"
        for n, (label, at, x) in enumerate(zip(["first", "first", "second", "second", "first"], places, others), 1)
    ]


def test_entries_of_kernels_python_functions_and_jumps_stand_in_the_order_of_the_kernels():
    kernels = (Kernel("one"), callback(), Kernel("two", (1,)), Jump(SKIP), callback(), Kernel("three"), Jump(BEGIN))
    code = SimpleNamespace(kernels=kernels)
    assert Code.addresses(code, [1000, 2000, 3000]).tolist() == [1000, 0, 2000, SKIP, 0, 3000, BEGIN]
    assert Code.compiled_kernels.fget(code) == [kernels[0], kernels[2], kernels[5]]
    assert Code.callbacks.fget(code) == [kernels[1], kernels[4]]


@pytest.mark.parametrize("lapack", [False, True])
@pytest.mark.parametrize("blas", [(), (False,), (True,), (False, True), (True, False)])
def test_code_calls_blas_if_any_kernel_or_function_does(blas, lapack):
    kernels = (Kernel("lapack.solve"), Kernel("one")) if lapack else (Kernel("one"),)
    code = SimpleNamespace(compiled_kernels=kernels, callbacks=[callback(x) for x in blas])
    assert Code.calls_blas.fget(code) == (lapack or any(blas))


def test_jumps_in_a_row_each_go_to_their_own_end():
    first, second = Skip(1), Between(0, 3)
    call = Call(Kernel("one"), (), 1)
    body, flag = Part("body", [call]), Pointer(ARENA)
    parts = [
        body, Part("m", [marker_call(first, flag)]), body, body, Part("m", [marker_call(End(first))]), body,
        Part("m", [marker_call(second, flag)]), body, Part("m", [marker_call(End(second))]), body,
    ]  # fmt: skip
    assert code_of([parts], PLAN).jumps() == [(SKIP, 1, 4), (BETWEEN, 5, 7)]
    assert code_of([[body]], PLAN).jumps() == []


@pytest.mark.parametrize("at", range(12))
def test_two_pieces_meet_if_they_have_a_byte_in_common(at):
    fixed, other = Piece(0, 0, 3, 0, 0, at=5), Piece(1, 0, 2, 0, 0, at=at)
    expected = bool(set(range(5, 8)) & set(range(at, at + 2)))
    assert fixed.meets(other) == expected == other.meets(fixed)


def test_kernels_write_the_updated_vars_that_are_no_targets():
    code = SimpleNamespace(updated=("a", "b", "c"), targets=("b",))
    assert Code.written.fget(code) == {"a", "c"}


def test_the_text_of_code_has_no_characters_of_a_terminal():
    call = OVERLAPPING.call((), 1, out=Pointer(ARENA), x=Pointer(X), nbytes=8)
    text = code_of([[Part("one\x1b[2J", [call])], [Part("two", [call])]], PLAN).text()
    assert text.isprintable() is False and text.replace("\n", "").isprintable()
    assert [line.partition(":")[0] for line in text.split("\n")] == ["one?[2J", "two"]


def test_the_text_of_jumps_and_python_functions_has_their_own_words():
    skip, called = Skip(7), callback()
    parts = [
        Part("m", [marker_call(skip, Pointer(ARENA, 8))]),
        Part("f", [Call(called, (Pointer(ARENA, 16), 5), 1), Call(called, (6,), 1), Call(called, (), 1)]),
        Part("m", [marker_call(End(skip))]),
        Part("f", [Call(called, (Pointer(ARENA, 24), Pointer(ARENA), 9), 1)]),
    ]
    lines = code_of([parts], PLAN).text().splitlines()
    words = ["['arena+8', 7]", "['arena+16', 5]", "[6]", "[]", "['arena+24', 'arena+0', 9]"]
    assert [line[line.rindex("[") :] for line in lines] == [f"{own} in 1 tasks" for own in words]
    assert [line.partition(":")[0] for line in lines] == ["m", "f", "f", "f", "f"]


@pytest.mark.parametrize(("shares", "threads"), [([(4, 8), (1, 1)], 1), ([(8, 8)], 1), ([(8, 8), (9, 8)], 3), ([], 1)])
def test_an_instance_has_threads_if_some_call_has_more_tasks_than_one_share(shares, threads):
    calls = [Call(Kernel("one"), (Pointer(ARENA),), tasks, chunk) for tasks, chunk in shares]
    code = code_of([[Part("p", calls)]] if calls else [[]], PLAN)
    program = LoadedCode(code, np.full(len(code.kernels), 1 << 20), 3)
    assert CpuInstance(program).threads == threads
