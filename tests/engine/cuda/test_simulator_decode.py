"""Single PTX instructions on the simulator: operands in their order, carries, packed halves, parts of registers."""

import numpy as np
import pytest

from cgraph.engine.cuda.simulator.decode import Values, address, decode
from cgraph.engine.cuda.simulator.launch import bits
from cgraph.engine.cuda.simulator.text import Fault, instruction, kernel_of

THREADS = 32
MODULE = """
.visible .entry k(
	.param .align 8 .b8 k_param_0[16],
	.param .u64 k_param_1
)
.reqntid 32, 1, 1
{
	.reg .pred 	%p<9>;
	.reg .b16 	%rs<9>;
	.reg .b32 	%r<9>;
	.reg .f32 	%f<9>;
	.reg .b64 	%rd<9>;
	ret;

}
"""
KERNEL = kernel_of(MODULE, "k")
LANE = np.arange(THREADS, dtype=np.uint32)


class Registers:
    """The registers of a warp, and which threads are active. Changes: by every instruction."""

    def __init__(self, mask=True, **values):
        self.threads, self.mask, self.carry, self.prepared = THREADS, mask, np.zeros(THREADS, bool), {}
        self.param = np.arange(24, dtype=np.uint8)
        self.values = Values(KERNEL, THREADS, {"%tid.x": LANE}, KERNEL.symbols)
        for name, x in values.items():
            self.put(f"%{name}", np.asarray(x))

    def put(self, name, value):
        register = self.values.register(name)
        np.copyto(register, bits(value, register.dtype), where=self.mask, casting="unsafe")
        return self

    def does(self, *lines):
        for line in lines:
            decode(instruction(line), KERNEL)(self)
        return self

    def __getitem__(self, key):
        name, dtype = key
        return self.values[f"%{name}", np.dtype(dtype)]


def test_operands_keep_their_order_and_only_active_threads_change():
    run = Registers(r2=np.uint32(7), r3=np.uint32(9))
    run.mask = LANE < 3
    assert run.does("sub.s32 %r1, %r2, %r3;")["r1", "i4"].tolist() == [-2] * 3 + [0] * 29
    assert run.does("selp.b32 %r4, 5, %tid.x, %p1;")["r4", "u4"][:4].tolist() == [0, 1, 2, 0]
    run.does("setp.lt.u32 %p1, %tid.x, 1;", "selp.b32 %r4, 5, %tid.x, %p1;", "mov.b32 %r5, %r3;")
    assert run["r4", "u4"][:4].tolist() == [5, 1, 2, 0] and run["r5", "u4"][:4].tolist() == [9, 9, 9, 0]


def test_signs_decide_comparisons_shifts_and_wide_products():
    run = Registers(r1=np.int32(-8), r2=np.uint32(3))
    run.does("setp.lt.s32 %p1, %r1, %r2;", "setp.lt.u32 %p2, %r1, %r2;")
    assert run["p1", "?"].all() and not run["p2", "?"].any()
    assert (run.does("shr.s32 %r3, %r1, 1;")["r3", "i4"] == -4).all()
    assert (run.does("shr.u32 %r3, %r1, 1;")["r3", "u4"] == (2**32 - 8) // 2).all()
    assert (run.does("mul.wide.s32 %rd1, %r1, %r2;")["rd1", "i8"] == -24).all()
    assert (run.does("mul.wide.u32 %rd1, %r1, %r2;")["rd1", "u8"] == (2**32 - 8) * 3).all()
    assert (run.does("mad.lo.s32 %r3, %r1, %r2, 5;")["r3", "i4"] == -19).all()
    run.put("%rd2", np.int64(2**40))
    assert (run.does("mad.wide.s32 %rd1, %r1, %r2, %rd2;")["rd1", "i8"] == 2**40 - 24).all()
    run.put("%rs1", np.int16(-8)).put("%rs2", np.int16(3)).put("%r4", np.int32(2**20))
    assert (run.does("mad.wide.s16 %r3, %rs1, %rs2, %r4;")["r3", "i4"] == 2**20 - 24).all()
    assert (run.does("mad.wide.u16 %r3, %rs1, %rs2, %r4;")["r3", "u4"] == 2**20 + (2**16 - 8) * 3).all()
    assert (run.does("cvt.rzi.s32.f32 %r3, 0fC02CCCCD;")["r3", "i4"] == -2).all()  # -2.7
    assert (run.does("cvt.rni.s32.f32 %r3, 0fC02CCCCD;")["r3", "i4"] == -3).all()


@pytest.mark.parametrize("a, b", [(2**64 - 1, 1), (2**32 - 1, 2**32), (5, 7), (2**63, 2**63), (0, 2**64 - 1)])
def test_carries_and_borrows_go_from_word_to_word(a, b):
    words = {"r1": a, "r2": a >> 32, "r3": b, "r4": b >> 32}
    run = Registers(**{name: np.uint32(word & 0xFFFFFFFF) for name, word in words.items()})
    run.does("add.cc.u32 %r5, %r1, %r3;", "addc.cc.u32 %r6, %r2, %r4;", "addc.u32 %r7, 0, 0;")
    assert [int(run[f"r{i}", "u4"][0]) for i in (5, 6, 7)] == [a + b >> 32 * i & 0xFFFFFFFF for i in range(3)]
    run.does("sub.cc.u32 %r5, %r1, %r3;", "subc.cc.u32 %r6, %r2, %r4;", "subc.u32 %r7, 0, 0;")
    assert [int(run[f"r{i}", "u4"][0]) for i in (5, 6, 7)] == [a - b >> 32 * i & 0xFFFFFFFF for i in range(3)]


def test_wide_registers_split_and_join_with_the_low_part_first():
    run = Registers(rd1=LANE.astype(np.uint64) << 32 | 7)
    run.does("mov.b64 {%r1, %r2}, %rd1;", "mov.b64 {_, %r3}, %rd1;", "mov.b64 %rd2, {%r2, %r1};")
    assert (run["r1", "u4"] == 7).all() and np.array_equal(run["r2", "u4"], LANE)
    assert np.array_equal(run["r3", "u4"], LANE) and np.array_equal(run["rd2", "u8"], LANE | np.uint64(7 << 32))


def test_pairs_of_halves_are_two_numbers():
    low, high = np.array([1.5, -2], "f2"), np.array([0.25, 65504], "f2")
    run = Registers(r1=low.view("u4")[0], r2=high.view("u4")[0])
    got = run.does("sub.f16x2 %r3, %r1, %r2;")["r3", "u4"][:1].view("f2")
    assert got.tolist() == (low - high).tolist()


def test_fma_rounds_once():
    x = np.float32(1 + 2.0**-12)
    run = Registers(f1=x, f2=-np.float32(x * x))
    got = run.does("fma.rn.f32 %f3, %f1, %f1, %f2;")["f3", "f4"]
    assert (got == np.float32(np.float64(x) * np.float64(x) - np.float64(x * x))).all() and got[0] != 0
    run.put("%f2", np.float32(0))  # the second time, with another operand
    assert (run.does("fma.rn.f32 %f3, %f1, 0f40000000, %f2;")["f3", "f4"] == 2 * x).all()


def test_a_shuffle_reads_the_other_lane_and_needs_the_whole_warp():
    run = Registers(r1=LANE * 10)
    got = run.does("shfl.sync.bfly.b32 %r2|%p1, %r1, 4, 31, -1;")["r2", "u4"]
    assert np.array_equal(got, (LANE ^ 4) * 10)
    run.mask = LANE != 9
    with pytest.raises(Fault, match="without the whole warp"):
        run.does("shfl.sync.bfly.b32 %r2|%p1, %r1, 4, 31, -1;")


def test_parameters_load_from_their_own_offset():
    run = Registers().does("ld.param.v2.b32 {%r1, %r2}, [k_param_0+8];", "ld.param.b64 %rd1, [k_param_1];")
    assert run["r1", "u4"][0] == 0x0B0A0908 and run["r2", "u4"][0] == 0x0F0E0D0C
    assert run["rd1", "u8"][0] == 0x1716151413121110
    assert address("[%rd1+-8]") == (("%rd1", np.dtype("i8")), -8) and address("[room]")[1] == 0


@pytest.mark.parametrize(
    "line, message",
    [
        ("@%p1 add.s32 %r1, %r2, %r3;", "a guard"),
        ("mma.sync.f32 %r1, %r2, %r3;", "does not know"),
        ("setp.lt.and.s32 %p1, %r1, %r2, %p2;", "a comparison"),
        ("setp.lt.s32 %p1|%p2, %r1, %r2;", "a comparison"),
        ("shfl.sync.up.b32 %r1, %r2, 4, 0, -1;", "a shuffle"),
    ],
)
def test_what_is_not_simulated_is_refused_with_its_line(line, message):
    with pytest.raises(Fault, match=message) as caught:
        decode(instruction(line), KERNEL)
    assert line in str(caught.value)


def test_a_register_reads_as_a_narrower_type_but_not_as_a_wider_one():
    run = Registers(rd1=LANE.astype(np.uint64) << 32 | LANE)
    assert np.array_equal(run["rd1", "u4"], LANE)
    with pytest.raises(Fault, match="%rs1 is narrower"):
        run["rs1", "u4"]


WORDS = {
    "r1": np.int32(-7), "r2": np.uint32(3), "r4": np.uint32(0x12345678), "r5": np.uint32(0x9ABCDEF0),
    "f1": np.float32(2), "f2": np.float32(-3), "f4": LANE.astype("f4"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("line", "dtype", "value"),
    [
        ("div.s32 %r3, %r1, %r2;", "i4", -2),
        ("rem.s32 %r3, %r1, %r2;", "i4", -1),
        ("shl.b32 %r3, %r2, 5;", "u4", 96),
        ("shr.u32 %r3, %r4, %r2;", "u4", 0x12345678 >> 3),
        ("bfe.u32 %r3, %r4, 4, 8;", "u4", 0x67),
        ("prmt.b32 %r3, %r4, %r5, 0x7610;", "u4", 0x9ABC5678),
        ("min.s32 %r3, %r1, %r2;", "i4", -7),
        ("min.u32 %r3, %r1, %r2;", "u4", 3),
        ("max.s32 %r3, %r1, %r2;", "i4", 3),
        ("neg.s32 %r3, %r1;", "i4", 7),
        ("abs.s32 %r3, %r1;", "i4", 7),
        ("not.b32 %r3, %r2;", "i4", ~3),
        ("clz.b32 %r3, %r2;", "u4", 30),
        ("popc.b32 %r3, %r4;", "u4", 13),
        ("mad.hi.u32 %r3, %r4, %r5, 7;", "u4", (0x12345678 * 0x9ABCDEF0 >> 32) + 7),
        ("mad.lo.u32 %r3, %r2, 5, %r4;", "u4", 0x12345678 + 15),
        ("copysign.f32 %f3, %f2, %f1;", "f4", -2),
        ("sub.f32 %f3, %f1, %f2;", "f4", 5),
        ("div.rn.f32 %f3, %f1, 0f40800000;", "f4", 0.5),
        ("fma.rn.f32 %f3, %f1, %f2, 0f40A00000;", "f4", -1),
        ("fma.rn.f32 %f3, %f4, %f2, %f1;", "f4", 2 - 3.0 * LANE),
        ("fma.rn.f32 %f3, %f1, %f4, %f2;", "f4", 2.0 * LANE - 3),
        ("fma.rn.f32 %f3, %f1, %f2, %f4;", "f4", LANE - 6.0),
        ("cvt.s64.s32 %rd3, %r1;", "i8", -7),
        ("cvt.u64.u32 %rd3, %r1;", "u8", 2**32 - 7),
        ("cvt.u16.u32 %rs3, %r4;", "u2", 0x5678),
        ("cvt.rn.f32.s32 %f3, %r1;", "f4", -7),
        ("testp.infinite.f32 %p3, 0f7F800000;", "?", True),
        ("testp.infinite.f32 %p3, %f1;", "?", False),
        ("setp.ge.f32 %p3, %f2, %f1;", "?", False),
    ],
)
def test_each_operand_has_its_own_place(line, dtype, value):
    run = Registers(**WORDS).does(line)
    name = line.split()[1].strip("%,")
    assert run[name, dtype].tolist() == np.broadcast_to(np.asarray(value, dtype), THREADS).tolist()
