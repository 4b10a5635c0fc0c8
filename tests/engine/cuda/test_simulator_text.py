"""PTX text as the simulator reads it: constants by their bits, blocks at labels and branches, addresses of arrays."""

import numpy as np
import pytest

from cgraph.engine.cuda.simulator.text import (
    LOCAL,
    PARAM,
    SHARED,
    Fault,
    basic_blocks,
    constant_of,
    dtype_of,
    instruction,
    kernel_of,
    parts_of,
)

MODULE = """
.global .align 4 .b8 table[6] = {1, 2, 255};
.shared .align 4 .b8 outside[5];
.visible .entry other(
	.param .u64 other_param_0
)
.reqntid 32, 1, 1
{
	.reg .b32 	%r<3>;
	trap;
}
.visible .entry k(
	.param .align 8 .b8 k_param_0[20],
	.param .u64 k_param_1,
	.param .u32 k_param_2
)
.reqntid 96, 1, 1
{
	.local .align 8 .b8 	depot[12];
	.shared .align 16 .b8 room[40];
	.reg .pred 	%p<9>;
	.reg .b16 	%rs<9>;
	.reg .f64 	%fd<19>;
	ret;

}
"""


def test_a_kernel_of_a_module_has_its_own_sizes_and_addresses():
    kernel = kernel_of(MODULE, "k")
    assert (kernel.symbol, kernel.threads) == ("k", 96)
    assert kernel.param_nbytes == 24 + 8 + 8
    assert [kernel.parameter_offset(f"k_param_{i}") for i in range(3)] == [0, 24, 32]
    assert kernel.symbols["k_param_1"] == PARAM + 24
    assert (kernel.symbols["outside"], kernel.symbols["room"]) == (SHARED, SHARED + 16)
    assert (kernel.shared_nbytes, kernel.symbols["depot"], kernel.local_nbytes) == (64, LOCAL, 16)
    assert kernel.constants == {"table": bytes([1, 2, 255, 0, 0, 0])}
    assert [kernel.width(x) for x in ("%p12", "%rs3", "%fd0")] == [0, 2, 8]
    assert [[x.name for x in block] for block in kernel.blocks] == [["ret"], []]
    first = kernel_of(MODULE, "other")
    assert (first.threads, first.shared_nbytes, first.param_nbytes, first.width("%r2")) == (32, 16, 8, 4)


def test_blocks_end_at_branches_and_begin_at_labels():
    blocks, labels = basic_blocks(
        "\n$L_0:\n\tadd.s32 %r1, %r2, %r3; // a note: with ; and :\n$L_1:\n$L_2:\n\t@%p1 bra $L_1;\n"
        "\tbar.sync 0;\n\t.loc 1 2 3\n\tneg.s32 %r1, %r1;\n\tret;\n$L_3:\n"
    )
    assert [[x.name for x in block] for block in blocks] == [["add"], ["bra"], ["bar"], ["neg", "ret"], []]
    assert labels == {"$L_0": 0, "$L_1": 1, "$L_2": 1, "$L_3": 4}


def test_an_instruction_has_its_guard_modifiers_and_operands():
    i = instruction("@!%p3 ld.global.v2.b32\t{%r1, _}, [%rd4+-8];")
    assert (i.guard, i.name, i.modifiers, i.kind) == ("@!%p3", "ld", ("global", "v2", "b32"), "b32")
    assert i.operands == ("{%r1, _}", "[%rd4+-8]") and "\t" not in i.line
    assert parts_of(i.operands[0]) == ["%r1", "_"] and parts_of("%r7") == ["%r7"]
    plain = instruction("ret;")
    assert (plain.guard, plain.kind, plain.operands) == ("", "", ())
    with pytest.raises(Fault, match="does not know: add"):
        instruction("add.s32 %r1, %r2, %r3")


def test_types_keep_their_signs_and_widths():
    kinds = ("pred", "b16", "u8", "s64", "f32", "f64", "b32")
    assert [dtype_of(kind).str[1:] for kind in kinds] == ["b1", "u2", "u1", "i8", "f4", "f8", "u4"]


@pytest.mark.parametrize(
    "text, dtype, value",
    [
        ("0f3FC00000", "f4", 1.5),
        ("0fFF800000", "f4", -np.inf),
        ("0d8000000000000000", "f8", -0.0),
        ("0d3FF0000000000001", "f8", 1 + 2.0**-52),
        ("0f3F800000", "u4", 0x3F800000),
        ("0dBFF0000000000000", "u8", 0xBFF0000000000000),
        ("-1", "u2", 65535),
        ("65535", "i2", -1),
        ("-9223372036854775808", "i8", -(2**63)),
        ("18446744073709551615U", "u8", 2**64 - 1),
        ("0x80", "i1", -128),
        ("-1", "?", True),
        ("0", "?", False),
    ],
)
def test_constants_have_the_bits_of_their_text(text, dtype, value):
    got = constant_of(text, np.dtype(dtype))
    assert got.dtype == np.dtype(dtype) and got == value
    assert got.tobytes() == np.array(value, dtype).tobytes()
