"""The bound of the stack: frames by processor, alignment, and the deepest chain of calls."""

import pytest

from cgraph.standalone.stack import frame_size, frame_sizes, register_count, saved_by, stack_bound


def function(name: str, *lines: str) -> str:
    return "\n".join([f"\t.type {name},@function", f"{name}:", *(f"\t{line}" for line in lines), ""])


@pytest.mark.parametrize(("lines", "nbytes"), [
    ([], 0),
    (["pushq %rbp", ".cfi_def_cfa_offset 16", "movq %rsp, %rbp", ".cfi_def_cfa %rbp, 16"], 16),
    (["pushq %rbp", "pushq %rbx", "subq $40, %rsp"], 8 + 8 + 40 + 8),
    (["subq $24, %rsp", ".cfi_def_cfa_offset 32", "addq $24, %rsp", ".cfi_def_cfa_offset 8"], 32),
    (["andq $-64, %rsp", "subq $192, %rsp"], 192 + 8 + 64),
    ([".save {r4, r5, r7, lr}", "push {r4, r5, r7, lr}", ".pad #24", "sub sp, #24"], 16 + 24 + 8),
    ([".vsave {d8, d9}", "vpush {d8, d9}"], 16 + 8),
    (["push.w {r4-r11, lr}"], 9 * 4 + 8),
    (["sub sp, sp, #2, lsl #12", "sub sp, sp, #16"], 8192 + 16 + 8),
    (["stp x29, x30, [sp, #-32]!", ".cfi_def_cfa_offset 32"], 32 + 8),
    (["addi sp, sp, -48", "sd ra, 40(sp)"], 48 + 8),
    ([".cfi_def_cfa_offset 32", ".cfi_def_cfa_offset 8"], 32),
    (["sub x9, sp, #32", "and sp, x9, #0xffffffffffffffc0"], 64),
    (["sub x9, sp, #32", "and sp, x9, #0xfffffffffffffff0"], 16),
    (["andq $-64, %rsp", "andq $-32, %rsp"], 64),
    (["andq $-32, %rsp", "andq $-64, %rsp"], 64),
    ([".cfi_def_cfa_offset 16", ".cfi_def_cfa_offset 48", ".cfi_def_cfa_offset 16"], 48),
    (["push {r4, lr}", "sub sp, #8", "push {r0-r3}"], 8 + 8 + 16 + 8),
    (["addi sp, sp, 48", "addq $8, %rsp", "subq $8, %rax"], 0),
])  # fmt: skip
def test_a_frame_is_what_its_lines_state_or_add_up_to(lines, nbytes):
    assert frame_size(lines) == nbytes


def test_bits_of_another_register_align_no_stack():
    assert frame_size(["bfc r4, #0, #5", "mov sp, r4"]) == 0
    assert frame_size(["mov r4, sp", "bfc r4, #0, #5"]) == 32


def test_lists_of_registers_count_ranges_and_halves():
    assert [register_count(x) for x in ("r4", " lr", "r4-r7", "d8-d15")] == [1, 1, 4, 8]
    assert [saved_by(x) for x in (".save {r4, lr}", ".vsave {d8-d9}", "push {r0-r3}", "pop {r4}", "vpush {d8}")] == [
        8, 16, 16, 0, 8,
    ]  # fmt: skip


def test_functions_are_told_apart_by_their_labels():
    text = function("f", "pushq %rbp", ".LBB0_1:", "subq $16, %rsp") + function('"g.1"', "subq $8, %rsp")
    assert frame_sizes(text) == {"f": 8 + 16 + 8, "g.1": 8 + 8}


def test_the_deepest_chain_counts_and_unknown_functions_do_not():
    sizes = {"entry": 16, "a": 32, "b": 64, "c": 128, "alone": 4096}
    text = "".join(function(name, f".cfi_def_cfa_offset {n}") for name, n in sizes.items())
    calls = {"entry": ["a", "b", "memcpy"], "a": ["c"], "b": [], "memcpy": ["alone"]}
    assert stack_bound(text, calls, "entry") == 16 + 32 + 128
    assert stack_bound(text, {}, "entry") == 16 and stack_bound(text, {"b": ["a"], "a": ["c"]}, "b") == 64 + 32 + 128
    assert stack_bound(text, calls, "nothing") is None and stack_bound("", {}, "entry") is None


def test_only_labels_of_functions_begin_one():
    inside = "\n.LBB0_1:\nloop:\n\tsubq $16, %rsp\n"
    text = function("f", "pushq %rbp") + inside + function("g", "subq $8, %rsp")
    assert frame_sizes(text) == {"f": 8 + 16 + 8, "g": 8 + 8}
