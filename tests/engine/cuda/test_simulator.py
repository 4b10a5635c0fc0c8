"""What the simulator of GPUs finds, each fault planted in a few lines of PTX; and what it computes."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.engine.cuda.simulator import launch as launch_module
from cgraph.engine.cuda.simulator.launch import Simulator
from cgraph.engine.cuda.simulator.memory import DEVICE
from cgraph.engine.cuda.simulator.text import Fault

THREADS = 64
HEAD = """
.visible .entry k(
	.param .align 8 .b8 k_param_0[16],
	.param .u64 k_param_1
)
.reqntid 64, 1, 1
{
	.shared .align 16 .b8 room[256];
	.reg .pred 	%p<9>;
	.reg .b16 	%rs<9>;
	.reg .b32 	%r<19>;
	.reg .b64 	%rd<19>;
	ld.param.b64 	%rd1, [k_param_0];
	ld.param.b64 	%rd2, [k_param_0+8];
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r2, %ctaid.x;
	shl.b32 	%r3, %r1, 2;
	cvt.u64.u32 	%rd3, %r3;
	mov.b64 	%rd4, room;
	add.s64 	%rd5, %rd4, %rd3;
	add.s64 	%rd6, %rd2, %rd3;
"""


def run(body, x=None, blocks=1, nbytes=4 * THREADS, head=HEAD):
    """What a kernel leaves in memory: %rd1 is the address of `x`, %rd2 that of the result, whose bytes are given."""
    device = Simulator()
    x = np.zeros(1, np.uint32) if x is None else x
    source, out = device.memory.take(x.nbytes), device.memory.take(nbytes)
    device.memory.bytes_at(source, x.nbytes)[:] = x.view(np.uint8)
    kernel = device.load(f"{head}{body}\tret;\n\n}}\n", "k")
    device.launch(kernel, blocks, np.array([source, out], np.int64), 0)
    return device.memory.bytes_at(out, nbytes)


NEIGHBOUR = """
	xor.b32 	%r4, %r3, 4;
	cvt.u64.u32 	%rd7, %r4;
	add.s64 	%rd8, %rd4, %rd7;
	ld.shared.b32 	%r5, [%rd8];
	st.global.b32 	[%rd6], %r5;
"""


def test_threads_exchange_values_through_shared_memory():
    found = run(f"\tst.shared.b32 \t[%rd5], %r1;\n\tbar.sync \t0;\n{NEIGHBOUR}").view(np.uint32)
    assert found.tolist() == [i ^ 1 for i in range(THREADS)]


PLANTED = {
    "a race in a block": ("a race", f"\tst.shared.b32 \t[%rd5], %r1;\n{NEIGHBOUR}"),
    "a write after a read of another": (
        "a race",
        f"\tst.shared.b32 \t[%rd5], %r1;\n\tbar.sync \t0;\n{NEIGHBOUR}\tst.shared.b32 \t[%rd5], %r1;\n",
    ),
    "two threads write one shared word": ("two threads write", "\tst.shared.b32 \t[%rd4], %r1;\n"),
    "shared memory that was not written": ("nobody wrote", NEIGHBOUR),
    "a barrier that some threads pass by": (
        "a barrier",
        "\tsetp.lt.u32 \t%p1, %r1, 5;\n\t@%p1 bra \t$L_end;\n\tbar.sync \t0;\n$L_end:\n",
    ),
    "an element too many": ("outside every allocation", "\tst.global.b32 \t[%rd6+4], %r1;\n"),
    "an element before": ("outside every allocation", "\tst.global.b32 \t[%rd6+-4], %r1;\n"),
    "an address that is no multiple of the size": ("misaligned", "\tst.global.b32 \t[%rd6+2], %r1;\n"),
    "past the end of shared memory": ("outside every allocation", "\tst.shared.b32 \t[%rd5+4], %r1;\n"),
    "past the parameters": (
        "outside every allocation",
        "\tmov.b64 \t%rd9, k_param_0;\n\tld.param.b64 \t%rd7, [%rd9+24];\n",
    ),
    "two threads write one word": ("two threads write", "\tst.global.b32 \t[%rd2], %r1;\n"),
    "a shuffle with half a warp": (
        "without the whole warp",
        "\tsetp.lt.u32 \t%p1, %r1, 16;\n\t@%p1 bra \t$L_end;\n"
        "\tshfl.sync.bfly.b32 \t%r4, %r1, 16, 31, -1;\n$L_end:\n",
    ),
    "an instruction that is not known": ("does not know", "\tfrobnicate.b32 \t%r4, %r1;\n"),
    "a trap": ("gives up", "\ttrap;\n"),
}  # fmt: skip


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_fault_is_found(fault):
    text, body = PLANTED[fault]
    with pytest.raises(Fault, match=text):
        run(body)


EVEN = "\tand.b32 \t%r6, %r1, 1;\n\tsetp.ne.b32 \t%p1, %r6, 0;\n\t@%p1 bra \t$L_end;\n"


@pytest.mark.parametrize(
    "access", ["ld.{}.b64 \t%rd9, [{}]", "st.{}.b64 \t[{}], %rd3", "ld.{}.v2.b32 \t{{%r7, %r8}}, [{}]"]
)
@pytest.mark.parametrize(("space", "register"), [("shared", "%rd5"), ("global", "%rd6")])
def test_an_access_of_two_words_races_for_the_second_one_too(space, register, access):
    """Threads of even numbers read or write their own word and the next thread's."""
    own = f"\tst.{space}.b32 \t[{register}], %r1;\n"
    both = f"{EVEN}\t{access.format(space, register)};\n$L_end:\n"
    run(f"{own}\tbar.sync \t0;\n{both}")
    with pytest.raises(Fault, match="a race"):
        run(own + both)


@pytest.mark.parametrize("plus, text", [(2, "misaligned"), (4096, "outside every allocation")])
def test_a_fault_of_one_thread_is_found(plus, text):
    first = "\tsetp.ne.b32 \t%p1, %r1, 0;\n\t@%p1 bra \t$L_end;\n"
    run(f"{first}\tst.global.b32 \t[%rd6], %r1;\n$L_end:\n")
    with pytest.raises(Fault, match=text):
        run(f"{first}\tst.global.b32 \t[%rd6+{plus}], %r1;\n$L_end:\n")


@pytest.mark.parametrize("plus, text", [(2, "misaligned"), (4096, "outside every allocation")])
@pytest.mark.parametrize("which", [0, 1, 30, THREADS - 1])
def test_a_fault_of_any_thread_among_others_is_found(which, plus, text):
    body = (
        "\tsetp.eq.u32 \t%p1, %r1, {};\n\tselp.b32 \t%r4, {}, 0, %p1;\n\tcvt.u64.u32 \t%rd7, %r4;\n"
        "\tadd.s64 \t%rd8, %rd6, %rd7;\n\tst.global.b32 \t[%rd8], %r1;\n"
    )
    run(body.format(which, 0))
    with pytest.raises(Fault, match=text):
        run(body.format(which, plus))


def test_accesses_to_several_allocations_may_not_touch_what_lies_between():
    memory = Simulator().memory
    first, second, last = (memory.take(6) - DEVICE for _ in range(3))
    memory.check(np.array([first, last]), first, last, 4)
    memory.free(second + DEVICE)
    memory.check(np.array([last, first]), first, last, 4)
    for wrong in (second, first + 4, last - 4):  # given back; the last bytes, nobody's; before
        with pytest.raises(Fault, match="outside every allocation"):
            memory.check(np.array([first, wrong, last]), first, last, 4)
    for low, high in ((-4, last), (first, len(memory.owned) - 2)):
        with pytest.raises(Fault, match="outside every allocation"):
            memory.check(np.array([low, high]), low, high, 4)


def test_blocks_that_write_the_same_word_race():
    with pytest.raises(Fault, match="a race"):
        run("\tst.global.b32 \t[%rd6], %r1;\n", blocks=2)
    with pytest.raises(Fault, match="a race"):
        run("\tst.global.b32 \t[%rd6], %r1;\n", blocks=1000)  # too many to run together


def test_reading_what_another_block_writes_races():
    read = "\tsetp.eq.b32 \t%p1, %r2, 0;\n\t@%p1 bra \t$L_write;\n\tld.global.b32 \t%r4, [%rd6];\n\tbra.uni \t$L_end;\n"
    with pytest.raises(Fault, match="a race"):
        run(f"{read}$L_write:\n\tst.global.b32 \t[%rd6], %r1;\n$L_end:\n", blocks=2)


def test_many_blocks_may_read_one_word():
    run("\tld.global.b32 \t%r4, [%rd1];\n\tld.global.b32 \t%r4, [%rd1];\n", blocks=4)


def test_a_launch_is_not_taken_for_one_of_the_same_number_long_ago(monkeypatch):
    monkeypatch.setattr(launch_module, "LAUNCHES", 4)
    device = Simulator()
    out = device.memory.take(4 * THREADS)
    turned = "\tsub.u64 \t%rd6, %rd2, %rd3;\n\tadd.s64 \t%rd6, %rd6, 252;\n\tst.global.b32 \t[%rd6], %r1;\n"
    write = device.load(f"{HEAD}\tst.global.b32 \t[%rd6], %r1;\n\tret;\n\n}}\n", "k")
    write_turned = device.load(f"{HEAD}{turned}\tret;\n\n}}\n", "k")
    words = np.array([out, out], np.int64)
    for number in range(12):
        device.launch(write_turned if number % 2 else write, 1, words, 0)
        first = device.memory.bytes_at(out, 4).view(np.uint32)[0]
        assert first == (THREADS - 1 if number % 2 else 0)


def test_memory_that_was_given_back_is_nobodys():
    device = Simulator()
    at = device.memory.take(100)
    device.memory.free(at)
    with pytest.raises(Fault, match="outside every allocation"):
        device.memory.bytes_at(at, 100)


def test_threads_that_went_different_ways_meet_again():
    body = """
	mov.b32 	%r4, 0;
	mov.b32 	%r5, 0;
$L_loop:
	add.s32 	%r5, %r5, %r4;
	add.s32 	%r4, %r4, 1;
	setp.le.u32 	%p1, %r4, %r1;
	@%p1 bra 	$L_loop;
	bar.sync 	0;
	st.global.b32 	[%rd6], %r5;
"""
    assert run(body).view(np.uint32).tolist() == [n * (n + 1) // 2 for n in range(THREADS)]


INTEGERS = np.array([0, 1, 2, 3, 5, 7, 31, 32, 63, 64, 255, 1 << 31, (1 << 31) - 1, (1 << 32) - 1], np.uint32)
PAIRS = np.array([(a, b) for a in (0, 1, 7, 1 << 31, (1 << 32) - 1, 12345678) for b in INTEGERS], np.uint32)


def signed(x, bits=32):
    return x - (1 << bits) if x >> (bits - 1) else x


BINARY = {
    "add.s32": lambda a, b: a + b,
    "sub.s32": lambda a, b: a - b,
    "mul.lo.s32": lambda a, b: a * b,
    "mul.hi.u32": lambda a, b: a * b >> 32,
    "mul.hi.s32": lambda a, b: signed(a) * signed(b) >> 32,
    "div.u32": lambda a, b: a // b if b else -1,
    "div.s32": lambda a, b: int(math.trunc(signed(a) / signed(b))) if b else -1,
    "rem.s32": lambda a, b: signed(a) - int(math.trunc(signed(a) / signed(b))) * signed(b) if b else None,
    "shl.b32": lambda a, b: a << b if b < 32 else 0,
    "shr.u32": lambda a, b: a >> b if b < 32 else 0,
    "shr.s32": lambda a, b: signed(a) >> min(b, 31),
    "min.s32": lambda a, b: min(signed(a), signed(b)),
    "max.u32": max,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("op", BINARY)
def test_integer_instructions(op):
    load = "\tadd.s64 \t%rd7, %rd1, %rd3;\n\tld.global.b32 \t%r4, [%rd7];\n\tld.global.b32 \t%r5, [%rd7+256];\n"
    for start in range(0, len(PAIRS), THREADS):
        rows = np.resize(PAIRS[start : start + THREADS], (THREADS, 2))
        found = run(f"{load}\t{op} \t%r6, %r4, %r5;\n\tst.global.b32 \t[%rd6], %r6;\n", rows.T.ravel())
        for (a, b), got in zip(rows.tolist(), found.view(np.uint32).tolist()):
            want = BINARY[op](a, b)
            assert want is None or got == want % (1 << 32), (op, a, b)


def test_products_of_64_bits_have_their_upper_half():
    rng = np.random.default_rng(0)
    xs = rng.integers(0, 1 << 64, THREADS * 2, np.uint64)
    for op, own in (("mul.hi.u64", lambda x: x), ("mul.hi.s64", lambda x: signed(x, 64))):
        body = (
            "\tadd.s64 \t%rd7, %rd3, %rd3;\n\tadd.s64 \t%rd8, %rd1, %rd7;\n\tld.global.b64 \t%rd9, [%rd8];\n"
            f"\tld.global.b64 \t%rd10, [%rd8+512];\n\t{op} \t%rd11, %rd9, %rd10;\n"
            "\tadd.s64 \t%rd12, %rd2, %rd7;\n\tst.global.b64 \t[%rd12], %rd11;\n"
        )
        found = run(body, xs, nbytes=8 * THREADS).view(np.uint64).tolist()
        want = [own(a) * own(b) >> 64 for a, b in zip(xs[:THREADS].tolist(), xs[THREADS:].tolist())]
        assert found == [w % (1 << 64) for w in want]


LOCAL = HEAD.replace("\t.reg .pred", "\t.local .align 8 .b8 \tdepot[16];\n\t.reg .pred")
TABLE = f"\n.global .align 4 .b8 table[12] = {{1, 2, 3, 4, 5}};{HEAD}"


@pytest.mark.parametrize("at", [0, 4, 12])
def test_each_thread_has_local_memory(at):
    body = f"\tmov.b64 \t%rd9, depot;\n\tst.local.b32 \t[%rd9+{at}], %r1;\n\tld.local.b32 \t%r5, [%rd9+{at}];\n"
    found = run(f"{body}\tst.global.b32 \t[%rd6], %r5;\n", head=LOCAL)
    assert found.view(np.uint32).tolist() == list(range(THREADS))


@pytest.mark.parametrize(("at", "text"), [(16, "outside every allocation"), (13, "misaligned")])
def test_local_memory_has_its_bytes_and_no_more(at, text):
    with pytest.raises(Fault, match=text):
        run(f"\tmov.b64 \t%rd9, depot;\n\tst.local.b32 \t[%rd9+{at}], %r1;\n", head=LOCAL)


def test_constants_of_a_module_are_read_from_its_memory():
    body = "\tmov.b64 \t%rd9, table;\n\tld.global.v2.b32 \t{%r5, %r6}, [%rd9];\n\tld.global.b32 \t%r7, [%rd9+8];\n"
    total = "\tadd.s32 \t%r5, %r5, %r6;\n\tadd.s32 \t%r5, %r5, %r7;\n\tst.global.b32 \t[%rd6], %r5;\n"
    assert set(run(body + total, head=TABLE).view(np.uint32).tolist()) == {0x04030201 + 5}
    with pytest.raises(Fault, match="outside every allocation"):
        run("\tmov.b64 \t%rd9, table;\n\tld.global.b32 \t%r7, [%rd9+12];\n", head=TABLE)


def test_vectors_of_four_are_loaded_and_stored_in_their_order():
    x = np.arange(4 * THREADS, dtype=np.uint32)
    body = (
        "\tshl.b32 \t%r4, %r1, 4;\n\tcvt.u64.u32 \t%rd7, %r4;\n\tadd.s64 \t%rd8, %rd1, %rd7;\n"
        "\tadd.s64 \t%rd9, %rd2, %rd7;\n\tld.global.v4.b32 \t{%r5, %r6, %r7, %r8}, [%rd8];\n"
        "\tst.global.v4.b32 \t[%rd9], {%r8, %r7, %r6, %r5};\n"
    )
    found = run(body, x, nbytes=x.nbytes).view(np.uint32)
    np.testing.assert_array_equal(found.reshape(-1, 4), x.reshape(-1, 4)[:, ::-1])


def test_barriers_are_counted_up_to_those_that_stamps_tell_apart(monkeypatch):
    monkeypatch.setattr(launch_module, "EPOCHS", 3)
    run("\tbar.sync \t0;\n" * 2)
    with pytest.raises(Fault, match="more than 2 barriers; k"):
        run("\tbar.sync \t0;\n" * 3)


def test_blocks_have_fewer_threads_than_stamps_tell_apart():
    for threads, is_simulated in ((1022, True), (1023, False)):
        text = HEAD.replace(".reqntid 64", f".reqntid {threads}") + "\tret;\n\n}\n"
        if is_simulated:
            assert Simulator().load(text, "k").kernel.threads == threads
        else:
            with pytest.raises(Fault, match="1023 threads in a block; fewer than 1023 are simulated"):
                Simulator().load(text, "k")


SPECIAL = {
    "%tid.x": lambda block, thread: thread, "%ctaid.x": lambda block, thread: block,
    "%laneid": lambda block, thread: thread % 32, "%ntid.x": lambda block, thread: 0 * thread + THREADS,
    "%nctaid.x": lambda block, thread: 0 * thread + 300,
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_each_thread_knows_its_place_also_where_not_all_blocks_run_together(name):
    place = (
        "\tshl.b32 \t%r4, %r2, 8;\n\tadd.s32 \t%r4, %r4, %r3;\n\tcvt.u64.u32 \t%rd7, %r4;\n"
        "\tadd.s64 \t%rd8, %rd2, %rd7;\n"
    )
    found = run(f"{place}\tmov.u32 \t%r5, {name};\n\tst.global.b32 \t[%rd8], %r5;\n", None, 300, 4 * THREADS * 300)
    block, thread = np.divmod(np.arange(300 * THREADS), THREADS)
    np.testing.assert_array_equal(found.view(np.uint32), SPECIAL[name](block, thread))


@pytest.mark.parametrize(("guard", "is_low"), [("@%p1", False), ("@!%p1", True)])
def test_a_branch_is_taken_where_its_guard_says(guard, is_low):
    """Threads that do not take it store."""
    zero = "\tmov.b32 \t%r4, 0;\n\tst.global.b32 \t[%rd6], %r4;\n"
    body = f"\tsetp.lt.u32 \t%p1, %r1, 5;\n\t{guard} bra \t$L_end;\n\tst.global.b32 \t[%rd6], %r3;\n$L_end:\n"
    stored = [4 * i if (i < 5) == is_low else 0 for i in range(THREADS)]
    assert run(zero + body).view(np.uint32).tolist() == stored


@pytest.mark.parametrize(
    ("blocks", "ranges"), [(0, []), (4, [(0, 4)]), (5, [(0, 4), (4, 5)]), (9, [(0, 4), (4, 8), (8, 9)])]
)
def test_blocks_that_fit_run_together_with_the_arguments_and_then_the_number_of_tasks(monkeypatch, blocks, ranges):
    """When the numbers of launches begin anew, the accesses of earlier ones are forgotten."""
    device, ran, forgotten = Simulator(), [], []
    monkeypatch.setattr(launch_module, "MOST_THREADS", 4 * THREADS + 1)
    monkeypatch.setattr(device.memory.watch, "forget", lambda: forgotten.append(device.launches))

    def block_run(device, kernel, numbers, grid, param):
        ran.append((numbers.start, numbers.stop, grid, param.view(np.int64).tolist()))
        return SimpleNamespace(go=lambda: None)

    monkeypatch.setattr(launch_module, "BlockRun", block_run)
    kernel = SimpleNamespace(kernel=SimpleNamespace(param_nbytes=32, threads=THREADS))
    device.launches = launch_module.LAUNCHES - 3
    for launch in (launch_module.LAUNCHES - 2, launch_module.LAUNCHES - 1, 1, 2):
        device.launch(kernel, blocks, np.array([7, -8]), (1 << 40) + 5)
        assert device.launches == launch
    assert ran == 4 * [(*each, blocks, [7, -8, 0, (1 << 40) + 5]) for each in ranges] and forgotten == [1]


@pytest.mark.parametrize("unwritten", [0, 1])
def test_each_word_of_shared_memory_is_written_before_it_is_read(unwritten):
    block = object.__new__(launch_module.BlockRun)
    block.watch, block.stamp, block.lanes = launch_module.Watch(4), np.array([1 << 50]), launch_module.ALL
    block._watch_shared(np.array([8 + 4 * (1 - unwritten)]), 4, True)
    with pytest.raises(Fault, match="shared memory that nobody wrote"):
        block._watch_shared(np.array([8]), 8, False)
    block._watch_shared(np.array([8 + 4 * unwritten]), 4, True)
    block._watch_shared(np.array([8]), 8, False)


def test_parts_of_a_load_that_nobody_needs_are_left_out():
    x = np.arange(4 * THREADS, dtype=np.uint32)
    body = "\tmov.b32 \t%r5, 900;\n\tld.global.v4.b32 \t{_, %r5, _, %r6}, [%rd1];\n\tadd.s32 \t%r5, %r5, %r6;\n"
    found = run(f"{body}\tst.global.b32 \t[%rd6], %r5;\n", x)
    assert set(found.view(np.uint32).tolist()) == {1 + 3}


def test_every_constant_of_a_module_has_its_own_memory():
    head = f"\n.global .align 4 .b8 more[8] = {{9, 0, 0, 0, 7}};{TABLE}"
    body = (
        "\tmov.b64 \t%rd9, table;\n\tld.global.b32 \t%r5, [%rd9];\n"
        "\tmov.b64 \t%rd9, more;\n\tld.global.v2.b32 \t{%r6, %r7}, [%rd9];\n"
        "\tadd.s32 \t%r5, %r5, %r6;\n\tmad.lo.u32 \t%r5, %r7, 16, %r5;\n\tst.global.b32 \t[%rd6], %r5;\n"
    )
    assert set(run(body, head=head).view(np.uint32).tolist()) == {0x04030201 + 9 + 7 * 16}


def test_a_block_of_more_threads_than_run_together_runs_alone(monkeypatch):
    monkeypatch.setattr(launch_module, "MOST_THREADS", THREADS - 1)
    place = "\tshl.b32 \t%r4, %r2, 8;\n\tadd.s32 \t%r4, %r4, %r3;\n\tcvt.u64.u32 \t%rd7, %r4;\n"
    body = f"{place}\tadd.s64 \t%rd8, %rd2, %rd7;\n\tst.global.b32 \t[%rd8], %r4;\n"
    found = run(body, None, 3, 3 * 4 * THREADS).view(np.uint32)
    assert found.tolist() == list(range(0, 3 * 4 * THREADS, 4))
