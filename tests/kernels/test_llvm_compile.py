"""From an emitter to machine code: marks of emitters, foreign functions and what they may call, the head of PTX."""

import llvmlite.binding as llvm
import numpy as np
import pytest

from cgraph.errors import NoKernelError
from cgraph.kernels.isa.architectures import architecture
from cgraph.kernels.isa.records import CodeGeneration
from cgraph.kernels.isa.wasm import ARCHITECTURE
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.llvm import compile as compiler
from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import KERNEL_TYPE, POINTER, VOID, Builder
from cgraph.kernels.llvm.compile import ANYWHERE, KernelText, compile_kernel, emit_kernel, emitter_of
from cgraph.kernels.llvm.emitter import called_as, final
from cgraph.kernels.llvm.gpu_build import TASK_THREADS, block
from cgraph.kernels.llvm.own_mathematics import OwnMathematics
from cgraph.kernels.objects import link_objects
from cgraph.kernels.target import host_target, target_machine
from cgraph.record import replace
from tests.support.emitted import OWN, emitter_over, run_emitted
from tests.support.gpu import GPU

HOST = host_target()
DOUBLE = """
define double @double_it(double %x) {
  %y = fadd double %x, %x
  ret double %y
}"""


def text_of(emit, target=HOST, kernel=OWN):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "emitter_of", lambda _: emit)
        return emit_kernel(kernel, "own", target)


def test_an_emitters_marks_go_with_its_text():
    plain = text_of(lambda k: None)
    assert (plain.is_final, plain.is_narrow, dict(plain.linked)) == (False, False, {})
    assert text_of(final(lambda k: None)).is_final
    assert text_of(lambda k: setattr(k, "is_narrow", True)).is_narrow
    kind = ir.FunctionType(VOID, [POINTER])
    assert 'define void @"own"(ptr %.1)' in text_of(called_as(kind)(lambda k: None)).text
    assert f'target triple = "{target_machine(HOST).triple}"' in plain.text


def test_params_go_to_the_emitter_in_their_order_and_mathematics_follows_the_target():
    seen = []
    text_of(lambda k, *params: seen.append((type(k), params)), kernel=Kernel("tests.own", ("f4", 2, True)))
    text_of(lambda k, *params: seen.append((type(k), params)), replace(HOST, has_libc=False))
    assert seen == [(Builder, ("f4", 2, True)), (OwnMathematics, ())]


def test_the_emitter_of_a_family_is_in_its_folder():
    from cgraph.kernels.gemm.emit import tile
    from cgraph.kernels.gemm.gpu_emit import product

    assert emitter_of(Kernel("gemm.tile")) is tile and emitter_of(Kernel("gemm.gpu.product")) is product


def calling(name, definition):
    """An emitter that doubles a number by a foreign function."""

    def write(k, x, out):
        kind = ir.DOUBLE
        f = k.declare("double_it", kind, [kind])
        k.linked[name] = definition
        out.store(k.wrap(k.b.call(f, [x.load().v]), "f8"))

    return write


def test_a_foreign_function_is_linked_in_and_only_the_kernel_has_a_name():
    x, out = np.array([1.25]), np.zeros(1)
    run_emitted(calling("double", DOUBLE), HOST, x, out)
    assert out[0] == 2.5
    code = text_of(emitter_over(calling("double", DOUBLE), (x, out)))
    module = compiler.link_and_optimise("own", code, target_machine(HOST))
    assert [f.name for f in module.functions if not f.is_declaration] == ["own"]
    assert link_objects({"own": target_machine(HOST).emit_object(module)}).symbols == {"own": 0}


def test_a_foreign_function_that_calls_what_kernels_lack_is_refused_by_both_names():
    body = DOUBLE.replace("fadd double %x, %x", "call double @read_file(double %x)")
    body += "\ndeclare double @read_file(double)"
    with pytest.raises(NoKernelError, match="^my function calls read_file, which kernels lack. Use arithmetic"):
        run_emitted(calling("my function", body), HOST, np.ones(1), np.zeros(1))


@pytest.mark.parametrize("name", ["sin", "sinf", "llvm.sin.f64", "llvm.sqrt.v4f32", "llvm.memcpy.p0.p0.i64", "lgamma"])
def test_mathematics_and_intrinsics_are_anywhere(name):
    assert ANYWHERE.match(name)


@pytest.mark.parametrize(
    "name", ["sinus", "printf", "llvm.coro.begin", "powered", "llvm.x86.rdtsc", "cosine", "fabsolute"]
)
def test_other_functions_are_not(name):
    assert not ANYWHERE.match(name)


def test_final_text_goes_past_the_optimiser_and_other_text_through_it():
    def write(k, out):
        s = k.slot(1, "i8")
        s.value = s.value + 1
        out.store(s.value)

    code = text_of(emitter_over(write, (np.zeros(1, "i8"),)))
    for is_final in (False, True):
        module = compiler.link_and_optimise("own", replace(code, is_final=is_final), target_machine(HOST))
        assert ("alloca" in str(module)) is is_final


def test_only_own_kernels_that_run_here_are_simplified_instead_of_optimised(monkeypatch):
    passes, own = [], compiler.optimise
    monkeypatch.setattr(compiler, "simplify", lambda *args: passes.append("simplify"))
    monkeypatch.setattr(compiler, "optimise", lambda *args, **named: passes.append("optimise") or own(*args, **named))
    monkeypatch.setattr(compiler, "emitter_of", lambda _: lambda k: None)
    compile_kernel(OWN, "own", HOST)
    compile_kernel(OWN, "own", ARCHITECTURE.targets[0])
    monkeypatch.setattr(compiler, "emitter_of", lambda _: lambda k: k.linked.update(f=DOUBLE))
    compile_kernel(OWN, "own", HOST)
    monkeypatch.setattr(compiler, "emitter_of", lambda _: final(lambda k: None))
    compile_kernel(OWN, "own", HOST)
    assert passes == ["simplify", "optimise", "optimise"]


def test_simplified_code_has_no_slots():
    def write(k, out):
        s = k.slot(1, "i8")
        s.value = s.value + 1
        out.store(s.value)

    code = text_of(emitter_over(write, (np.zeros(1, "i8"),)))
    module = compiler.link_and_optimise("own", code, target_machine(HOST), quick=True)
    assert "alloca" not in str(module) and "store i64 2" in str(module)


def test_a_narrow_kernel_has_code_of_the_narrow_target(monkeypatch):
    asked = []
    own = compiler.target_machine
    monkeypatch.setattr(compiler, "target_machine", lambda target: asked.append(target) or own(target))
    wide = replace(HOST, features="-prefer-256-bit")
    for is_narrow in (False, True):
        monkeypatch.setattr(compiler, "emitter_of", lambda _, flag=is_narrow: lambda k: setattr(k, "is_narrow", flag))
        code, seconds = compile_kernel(OWN, "own", wide)
        assert code and seconds > 0
        assert asked[-1].features == ("+prefer-256-bit" if is_narrow else "-prefer-256-bit")


def test_llvms_options_hold_while_code_is_generated_and_no_longer(monkeypatch):
    given = []
    monkeypatch.setattr(llvm, "set_option", lambda name, text: given.append(text))
    with compiler.options_of(CodeGeneration("", "", reduces_strength=True)):
        pass
    assert given == []
    with pytest.raises(KeyError), compiler.options_of(CodeGeneration("", "", reduces_strength=False)):
        assert given == ["-disable-lsr"]
        raise KeyError
    assert given == ["-disable-lsr", "-disable-lsr=0"]


def test_code_that_others_generate_later_is_what_it_was_before():
    text = """define i64 @f(ptr %p, i64 %n, i64 %step) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%j, %loop]
  %s = phi i64 [0, %entry], [%t, %loop]
  %k = mul i64 %i, %step
  %at = getelementptr i64, ptr %p, i64 %k
  %x = load i64, ptr %at
  %t = add i64 %s, %x
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %end
end:
  ret i64 %t
}"""
    machine = target_machine(HOST)
    before = machine.emit_assembly(llvm.parse_assembly(text))
    with compiler.options_of(CodeGeneration("", "", reduces_strength=False)):
        assert machine.emit_assembly(llvm.parse_assembly(text)) != before
    assert machine.emit_assembly(llvm.parse_assembly(text)) == before


def test_broken_text_is_refused():
    module = ir.Module("own")
    ir.Function(module, KERNEL_TYPE, "own").append_basic_block("entry")
    with pytest.raises(RuntimeError):
        compiler.link_and_optimise("own", KernelText(str(module), {}), target_machine(HOST))


@pytest.mark.parametrize("words", [8, 24])
def test_the_head_of_a_gpus_kernel_has_its_words_its_threads_and_its_resident_blocks(words, monkeypatch):
    monkeypatch.setattr(compiler, "emitter_of", lambda _: block(96, resident=3)(lambda k: None))
    text, _ = compiler.compile_ptx(Kernel("tests.gpu.own"), "own", words, GPU)
    assert f"own_param_0[{8 * words}]" in text.decode()
    assert ".reqntid 96" in text.decode() and ".minnctapersm 3" in text.decode()
    monkeypatch.setattr(compiler, "emitter_of", lambda _: lambda k: None)
    text, _ = compiler.compile_ptx(OWN, "own", words, GPU)
    assert f".reqntid {TASK_THREADS}" in text.decode() and ".minnctapersm 1" in text.decode()


def test_targets_of_other_architectures_have_code_of_their_own():
    arm = architecture("arm")
    target = next(x for x in arm.targets if not x.name.endswith("bytes"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "emitter_of", lambda _: lambda k: None)
        code, _ = compile_kernel(OWN, "own", replace(target, has_libc=False))
    assert int.from_bytes(code[18:20], "little") == arm.elf
