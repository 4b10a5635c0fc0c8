"""The entry as LLVM text: tables of words, memory by its layout, late addresses, jumps and returns."""

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

import cgraph as cg
from cgraph.kernels.control import BEGIN, BETWEEN, REPEAT, SKIP
from cgraph.record import replace
from cgraph.standalone.entry import EntryWriter, entry_text, llvm_bytes
from cgraph.standalone.memory import caller_layout, static_layout
from cgraph.standalone.program import Address, Moving, RowJump
from tests.support.exports import counter, exported

PROGRAM = counter(keeps_start=True)


def writer(program=PROGRAM, caller: bool = False, bits: int = 64, **options) -> EntryWriter:
    layout = caller_layout(program.interface, program.arena_nbytes) if caller else static_layout()
    return EntryWriter(program, layout, bits, **options)


def test_bytes_are_written_in_hexadecimal():
    assert llvm_bytes(b'\x00a\xff"') == 'c"\\00\\61\\ff\\22"' and llvm_bytes(b"") == 'c""'


@pytest.mark.parametrize("caller", [False, True])
@pytest.mark.parametrize("bits", [32, 64])
def test_the_text_is_a_module_with_the_functions_of_its_layout(caller, bits):
    module = llvm.parse_assembly(writer(caller=caller, bits=bits, has_reset=True).text())
    module.verify()
    defined = {f.name for f in module.functions if not f.is_declaration}
    assert defined == {"m_run", "m_begin" if caller else "m_reset"}
    arguments = [x.name for x in module.get_function("m_run").arguments]
    assert arguments == [*(["memory"] if caller else []), "in_x", "in_at", "out_total", "out_some"]
    names = {x.name for x in module.global_variables}
    assert {"m_constants"} | {f"m_a{n}" for n in range(len(PROGRAM.rows))} <= names
    assert ({"m_arena", "m_stop", "m_done", "m_mean"} <= names) is not caller


def test_memory_has_its_bytes_section_and_alignment():
    lines = list(writer(section="fast").declarations())
    assert f"@m_constants = external constant [{len(PROGRAM.constants)} x i8], align 64" in lines
    assert (
        f'@m_arena = internal global [{PROGRAM.arena_nbytes} x i8] zeroinitializer, section "fast", align 64' in lines
    )
    assert "@m_mean = external global [1200 x i8], align 16" in lines
    assert "section" not in "".join(writer().declarations())
    assert sum(x.startswith("declare void @m_k") for x in lines) == len(PROGRAM.kernels)


def test_words_are_numbers_addresses_or_zero_until_they_are_known():
    one, other = writer(), writer(bits=32)
    assert one.constant(7, 8) == ("i64", "i64 7") and one.constant(Address("in:x", 8), 8) == ("i64", "i64 0")
    assert one.constant(Address("arena", 8), 8) == ("ptr", "ptr getelementptr (i8, ptr @m_arena, i64 8)")
    assert one.constant(Address("state:mean", 0), 8)[1] == "ptr getelementptr (i8, ptr @m_mean, i64 0)"
    kind, value = other.constant(Address("arena", 8), 8)
    assert kind == "<{ ptr, i32 }>" and "i32 8), i32 0 }>" in value
    assert other.constant(Address("arena", 8), 4) == ("ptr", "ptr getelementptr (i8, ptr @m_arena, i32 8)")
    assert other.constant(-7, 4) == ("i32", "i32 -7") and other.constant(Address("in:x", 8), 4) == ("i32", "i32 0")
    assert writer(caller=True).constant(Address("arena", 8), 8) == ("i64", "i64 0")
    assert writer(caller=True).constant(Address("constants", 8), 8)[0] == "ptr"
    late = [Address("in:x", 0), Address("out:total", 0), Moving(Address("constants", 0), 1, 4)]
    assert all(map(one.is_late, late)) and not one.is_late(Address("arena", 0)) and not one.is_late(3)


def test_late_addresses_are_computed_from_parameters_memory_and_rounds():
    entry = writer(caller=True)
    start = entry.layout.start_of("state:mean")
    assert entry.late_pointer(Address("state:mean", 12)) == "%v0"
    assert entry.body == [f"  %v0 = getelementptr i8, ptr %memory, i64 {start + 12}"]
    entry = writer()
    entry.late_pointer(Moving(Address("in:at", 4), 3, 16))
    assert [x.split(" = ")[1] for x in entry.body] == [
        "getelementptr i8, ptr %in_at, i64 4", "load i64, ptr %round3, align 8", "mul i64 %v1, 16",
        "getelementptr i8, ptr %v0, i64 %v2",
    ]  # fmt: skip


def test_a_call_that_stops_returns_its_number_and_clears_the_word():
    text = "\n".join(writer().run())
    stops = [(n, row) for n, row in enumerate(PROGRAM.rows) if row.can_stop]
    assert stops
    for n, row in stops:
        part = text[text.index(f"stopped{n}:") : text.index(f"go{n}:")]
        assert "store i64 0, ptr @m_stop" in part and f"ret i32 {1 + row.label}" in part
    assert text.count("ret i32 0") == 1 and len(re.findall(r"call void @m_k", text)) == len(PROGRAM.rows)


def test_jumps_go_to_their_rows():
    entry = writer()
    entry.jump(4, RowJump(BEGIN, 9, 4, 5))
    entry.jump(8, RowJump(REPEAT, 5, 4, 5))
    entry.jump(2, RowJump(SKIP, 7, at=Address("in:x", 3), value=1))
    branches = [x.strip() for x in entry.body if " br " in x or x.startswith("  br")]
    assert [re.sub(r"%v\d+", "%v", x) for x in branches] == [
        "br i1 %v, label %on4, label %row9", "br i1 %v, label %row5, label %on8", "br i1 %v, label %on2, label %row7",
    ]  # fmt: skip
    assert any("icmp slt i64 0, 5" in x for x in entry.body) and any("icmp eq i8" in x for x in entry.body)


def test_a_state_begins_with_its_exported_value():
    assert writer().helpers() == []
    reset, begin = ("\n".join(writer(caller=caller, has_reset=True).helpers()) for caller in (False, True))
    source = f"getelementptr (i8, ptr @m_constants, i64 {PROGRAM.start_state['mean']})"
    assert f"(ptr @m_mean, ptr {source}, i64 1200, i1 false)" in reset
    assert f"ptr {source}, i64 1200, i1 false)" in begin and begin.count("store i64 0") == 2
    assert "and i64 %v0, 63" in begin and "ret i32 1" in begin


def test_without_state_or_constants_there_is_still_a_byte_of_each():
    x = cg.Var((3,), name="x")
    text = writer(exported([cg.cumsum(x, 0)], [x], names=["y"])).text()
    assert "@m_constants = external constant [1 x i8]" in text and "m_reset" not in text
    llvm.parse_assembly(text).verify()


def test_a_jump_between_two_numbers_reads_a_count_and_goes_on_above_one_and_up_to_the_other():
    entry = writer()
    entry.jump(3, RowJump(BETWEEN, 6, at=Address("in:x", 16), value=2, high=5))
    first, count, above, below, both = (x.strip().split(" = ")[1] for x in entry.body[:5])
    assert first == "getelementptr i8, ptr %in_x, i64 16" and count == "load i64, ptr %v0, align 8"
    assert (above, below, both) == ("icmp sgt i64 %v1, 2", "icmp sle i64 %v1, 5", "and i1 %v2, %v3")
    assert [x.strip() for x in entry.body[5:]] == ["br i1 %v4, label %on3, label %row6", "on3:"]


def test_a_state_of_nothing_has_a_byte_and_copies_none():
    x, e = cg.Var((3,), name="x"), cg.Var((0, 4), name="e").assign(np.zeros((0, 4), "f4"))
    program = exported([cg.cumsum(x, 0)], [x], {e: e * 2}, keeps_start=True, names=["y"])
    for caller in (False, True):
        entry = writer(program, caller=caller, has_reset=True)
        text = entry.text()
        assert ("@m_e = external global [1 x i8], align 16" in text) is not caller
        assert "i64 0, i1 false)" in "\n".join(entry.helpers())
        llvm.parse_assembly(text).verify()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_runs_of_one_module_share_the_largest_arena(order):
    sizes = [64, 640, 128]
    writers = [writer(replace(PROGRAM, suffix=f"_{i}", arena_nbytes=sizes[i])) for i in order]
    text = entry_text(writers)
    assert "@m_arena = internal global [640 x i8]" in text and text.count("@m_arena =") == 1
    module = llvm.parse_assembly(text)
    module.verify()
    assert [f.name for f in module.functions if not f.is_declaration] == [f"m_run_{i}" for i in order]
