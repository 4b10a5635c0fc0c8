"""The writer of LLVM's text: LLVM's parser accepts it, and constants and metadata are what they say."""

import math

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir as theirs

from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import INDEX, POINTER, VOID

WORD = ir.IntType(32)


def new_function(result=VOID, args=(INDEX, INDEX)):
    """A module and the builder of its one function."""
    module = ir.Module("m")
    function = ir.Function(module, ir.FunctionType(result, args), "f")
    return module, ir.IRBuilder(module, function, function.append_basic_block("entry"))


def parsed(module):
    """The module as LLVM reads it."""
    read = llvm.parse_assembly(str(module))
    read.verify()
    return read


NUMBERS = [0.0, -0.0, 1.0, 0.1, -1e-45, 1e-310, math.inf, -math.inf, math.nan, math.pi]


@pytest.mark.parametrize(("own", "other"), [(ir.FLOAT, theirs.FloatType()), (ir.DOUBLE, theirs.DoubleType())])
@pytest.mark.parametrize("number", NUMBERS)
def test_constants_have_the_bits_of_llvmlites(own, other, number):
    bits = theirs.Constant(other, number).get_reference()
    assert int(ir.Constant(own, number).ref, 16) == int(bits, 16)
    pair = ir.Constant(ir.VectorType(own, 2), [number, -number]).ref
    assert pair == f"<{own} {own.constant(number)}, {own} {own.constant(-number)}>"


def test_constants_of_each_kind():
    vector = ir.VectorType(WORD, 3)
    assert ir.Constant(vector, 7).operand == "<3 x i32> <i32 7, i32 7, i32 7>"
    assert ir.Constant(vector, ir.Undefined).ref == "undef"
    assert ir.Constant(POINTER, None).operand == "ptr null"
    assert ir.Constant(ir.BOOL, True).ref == "1"
    assert ir.Constant(ir.ArrayType(INDEX, 2), [5, -1]).operand == "[2 x i64] [i64 5, i64 -1]"


def test_equal_types_are_equal_and_others_are_not():
    assert ir.VectorType(WORD, 4) == ir.VectorType(ir.IntType(32), 4) and len({WORD, ir.IntType(32)}) == 1
    assert ir.IntType(8) != WORD and ir.HALF != ir.BFLOAT and ir.VectorType(WORD, 4) != ir.VectorType(WORD, 8)
    assert str(ir.VectorType(ir.BFLOAT, 2)) == "<2 x bfloat>" and str(ir.PointerType(3)) == "ptr addrspace(3)"


@pytest.mark.parametrize("name", "add sub mul sdiv udiv srem urem and_ or_ xor shl ashr lshr".split())
def test_integer_instructions(name):
    module, b = new_function(INDEX)
    b.ret(getattr(b, name)(*b.function.args))
    assert f"{name.strip('_')} i64 %.1, %.2" in str(module) and parsed(module)


SIGNED = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "==": "eq", "!=": "ne"}


@pytest.mark.parametrize("sign", SIGNED)
def test_comparisons(sign):
    module, b = new_function()
    x = b.sitofp(b.function.args[0], ir.DOUBLE)
    vector = b.insert_element(ir.Constant(ir.VectorType(INDEX, 2), 0), b.function.args[0], ir.Constant(WORD, 1))
    assert b.icmp_signed(sign, vector, vector).type == ir.VectorType(ir.BOOL, 2)
    assert b.icmp_unsigned(sign, *b.function.args).type == ir.BOOL
    b.fcmp_ordered(sign, x, x)
    b.fcmp_unordered(sign, x, x)
    b.fcmp_unordered("uno", x, x)
    b.ret_void()
    parsed(module)
    short = SIGNED[sign].removeprefix("s")
    names = [SIGNED[sign], SIGNED[sign].replace("s", "u", 1), f"o{short}", f"u{short}", "uno"]
    assert [line.split()[3] for line in str(module).splitlines() if "cmp" in line] == names


def test_a_conversion_to_the_own_type_is_left_out():
    _, b = new_function()
    (x, _) = b.function.args
    assert b.trunc(x, INDEX) is x and b.trunc(x, WORD).type == WORD


def test_a_loop_with_a_phi_runs_as_written():
    """The sum of the numbers below n, by LLVM's interpreter of constants: its optimiser."""
    module, b = new_function(INDEX, ())
    blocks = [b.function.append_basic_block(name) for name in ("loop", "body", "end")]
    start = b.block
    b.branch(blocks[0])
    b.position_at_end(blocks[0])
    i, total = b.phi(INDEX), b.phi(INDEX)
    for x in (i, total):
        x.add_incoming(ir.Constant(INDEX, 0), start)
    b.cbranch(b.icmp_signed("<", i, ir.Constant(INDEX, 5)), blocks[1], blocks[2], likely=True)
    b.position_at_end(blocks[1])
    total.add_incoming(b.add(total, i), b.block)
    i.add_incoming(b.add(i, ir.Constant(INDEX, 1)), b.block)
    b.branch(blocks[0])
    b.position_at_end(blocks[2])
    b.ret(total)
    assert '!{!"branch_weights", i32 99, i32 1}' in str(module)
    assert "ret i64 10" in optimised(module)


def optimised(module):
    """The text of a module after all of LLVM's passes."""
    from cgraph.kernels.llvm.compile import optimise
    from cgraph.kernels.target import host_target, target_machine

    machine = target_machine(host_target())
    module.triple = machine.triple
    read = parsed(module)
    optimise(read, machine, vectors=True)
    return str(read)


def test_conditions_join_and_keep_blocks_that_have_ended():
    module, b = new_function(INDEX)
    x, y = b.function.args
    with b.if_then(b.icmp_signed("<", x, y)):
        b.ret(x)
    place = ir.IRBuilder(module, b.function, b.function.blocks[0])
    assert place.block.is_terminated
    with b.if_else(b.icmp_signed("==", x, y)) as (then, otherwise):
        with then:
            b.ret(ir.Constant(INDEX, 1))
        with otherwise:
            last = b.sub(x, y)
    b.ret(last)
    parsed(module)
    with pytest.raises(AssertionError, match="has ended"):
        b.ret_void()


def test_memory_atomics_and_calls():
    module, b = new_function(VOID, (POINTER, INDEX))
    at, x = b.function.args
    place = b.alloca(ir.ArrayType(INDEX, 4), 64)
    b.store(b.load(b.gep(at, x, INDEX), INDEX, align=8), place, align=8)
    b.store(x, at, align=8).set_metadata("nontemporal", module.add_metadata([ir.Constant(WORD, 1)]))
    b.atomic_rmw("add", at, b.load_atomic(at, "seq_cst", 8, INDEX), "seq_cst")
    assert b.cmpxchg(at, x, x, "acq_rel", "acquire").type == ir.BOOL
    memcpy = ir.Function(module, ir.FunctionType(POINTER, [POINTER, POINTER, INDEX]), "memcpy")
    assert b.call(memcpy, [place, at, x]).type == POINTER
    b.call(b.inttoptr(x, POINTER), [at, x], VOID)
    b.call(ir.InlineAsm(ir.FunctionType(VOID, []), "pause", "", side_effect=True), [])
    b.ret_void()
    parsed(module)
    text = str(module)
    assert 'declare ptr @"memcpy"(ptr, ptr, i64)' in text and 'call void asm sideeffect "pause", ""()' in text
    assert "align 8, !nontemporal !0" in text and "!0 = !{i32 1}" in text


def test_variables_and_unique_names():
    module, b = new_function()
    words = ir.GlobalVariable(module, ir.ArrayType(INDEX, 2), module.get_unique_name("words"))
    words.is_constant, words.initializer = True, ir.Constant(words.kind, [1, 2])
    shared = ir.GlobalVariable(module, ir.ArrayType(INDEX, 2), module.get_unique_name("words"), 3)
    shared.align = 16
    b.ret_void()
    parsed(module)
    assert words.ref != shared.ref and str(shared.type) == "ptr addrspace(3)"
    assert f"{words.ref} = internal  constant [2 x i64] [i64 1, i64 2]" in str(module)
    assert f"{shared.ref} = internal addrspace(3) global [2 x i64] undef, align 16" in str(module)


def test_equal_metadata_are_one():
    module, _ = new_function()
    domain = module.add_metadata(["operands"])
    assert module.add_metadata(["operands"]) is domain
    assert module.add_metadata(["elements", domain]).ref == "!1" and module.add_metadata([]).ref == "!2"
    assert '!1 = !{!"elements", !0}' in str(module) and "!2 = !{}" in str(module)


def test_vectors_are_taken_apart_and_put_together():
    module, b = new_function()
    kind = ir.VectorType(INDEX, 2)
    x = b.insert_element(ir.Constant(kind, ir.Undefined), b.function.args[0], ir.Constant(WORD, 0))
    mask = ir.Constant(ir.VectorType(WORD, 4), np.arange(4).tolist())
    wide = b.shuffle_vector(x, b.neg(b.not_(x)), mask)
    assert wide.type == ir.VectorType(INDEX, 4) and b.extract_element(wide, ir.Constant(WORD, 3)).type == INDEX
    b.ret_void()
    parsed(module)
