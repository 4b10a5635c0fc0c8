"""Targets of this machine by name, and the settings of LLVM's code generator for them."""

import pytest

from cgraph.kernels import target as target_module
from cgraph.kernels.host import host
from cgraph.kernels.isa.architectures import architecture, architecture_of
from cgraph.kernels.isa.arm import NEON
from cgraph.kernels.isa.records import CodeGeneration
from cgraph.kernels.isa.x86 import AVX2, AVX512, PORTABLE
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.store import symbol_of
from cgraph.kernels.target import (
    code_generation,
    host_target,
    new_target_machine,
    runnable_targets,
    target_machine,
    target_named,
    with_tiles,
)
from cgraph.record import replace


@pytest.mark.parametrize(
    ("triple", "model"), [("aarch64-unknown-linux-gnu", "small"), ("arm64-apple-darwin", "jitdefault")]
)
def test_code_of_this_process_has_relocations_that_our_linker_supports(monkeypatch, triple, model):
    """A code model for ELF object files; LLVM's own where it places the code."""
    monkeypatch.setattr(target_module, "host", lambda: replace(host(), triple=triple))
    assert code_generation(NEON) == CodeGeneration(triple, host().layout, code_model=model, jit=True)


def test_the_host_is_the_widest_target_and_has_a_name_of_its_own():
    own = host_target()
    assert target_named("host") is own and target_named(own.name) is own
    assert own == architecture_of(own).detect(target_module.host())


@pytest.mark.parametrize("own", [PORTABLE, AVX2, AVX512])
def test_a_machine_runs_its_own_target_and_the_narrower_ones(own, monkeypatch):
    here = replace(own, cpu="of this machine")
    monkeypatch.setattr(target_module, "host_target", lambda: here)
    order = [PORTABLE, AVX2, AVX512]
    assert target_named(own.name) is here is target_named("host")
    for other in order[: order.index(own)]:
        assert target_named(other.name) is other
    names = sorted(["host", *(x.name for x in order[: order.index(own) + 1])])
    for name in (*(x.name for x in order[order.index(own) + 1 :]), "neon", "avx3"):
        with pytest.raises(
            ValueError, match=f"^target '{name}' does not run on this machine. Use one of: {', '.join(names)}$"
        ):
            target_named(name)


def test_tiles_are_a_capability_of_the_widest_target_where_the_system_permits_them(monkeypatch):
    monkeypatch.setattr(target_module, "host_target", lambda: AVX512)
    monkeypatch.setattr(target_module, "tiles_state", lambda: "permitted")
    target = with_tiles(AVX512)
    assert target == replace(AVX512, tiles="amx") and target.multiplies_bfloat16
    kernel = Kernel("move.fills", (4,))
    assert len({symbol_of(kernel, x) for x in (AVX512, target, replace(AVX512, tiles="emulated"))}) == 3
    with pytest.raises(ValueError, match="the target 'avx2' has no tile registers. Use the target 'host'"):
        with_tiles(AVX2)


@pytest.mark.parametrize(("state", "words"), [("", "this processor has no"), ("refused", "the system refuses")])
def test_tiles_that_are_absent_or_refused_are_an_error(state, words, monkeypatch):
    monkeypatch.setattr(target_module, "tiles_state", lambda: state)
    with pytest.raises(ValueError, match=f"^{words} tile registers.*tiles=False$"):
        with_tiles(host_target())


def test_targets_are_listed_the_widest_first(monkeypatch):
    monkeypatch.setattr(target_module, "host_target", lambda: AVX512)
    assert list(runnable_targets()) == ["host", "avx512", "avx2", "portable"]
    assert list(runnable_targets().values()) == [AVX512, AVX512, AVX2, PORTABLE]


def test_a_processor_without_a_table_runs_its_own_target_alone(monkeypatch):
    own = architecture("generic").detect(replace(host(), cpu="power10"))
    monkeypatch.setattr(target_module, "host_target", lambda: own)
    assert runnable_targets() == {"host": own, "portable": own} and target_named("portable") is own
    with pytest.raises(ValueError, match="Use one of: host, portable$"):
        target_named("avx2")


def test_code_for_this_machine_runs_in_this_process_and_other_code_is_for_its_own_system():
    here = code_generation(host_target())
    assert here.jit and here.triple == host().triple and here.layout == host().layout
    other = next(x for x in (NEON, AVX2) if architecture_of(x) is not architecture_of(host_target()))
    assert code_generation(other) is architecture_of(other).objects and not code_generation(other).jit
    assert code_generation(replace(AVX2, architecture="generic")).jit
    assert code_generation(architecture("wasm").targets[0]).address_bits == 32


def test_other_systems_have_llvms_own_code_model(monkeypatch):
    monkeypatch.setattr(target_module, "host", lambda: replace(host(), triple="aarch64-unknown-linux-gnu"))
    assert code_generation(NEON).code_model == architecture("arm").code_model
    monkeypatch.setattr(target_module, "host", lambda: replace(host(), triple="arm64-apple-darwin24"))
    assert code_generation(NEON).code_model == "jitdefault"


def test_a_code_generator_is_shared_by_emitters_but_a_new_one_is_not():
    own = host_target()
    assert target_machine(own) is target_machine(own) is not target_machine(replace(own, registers=own.registers - 1))
    new = new_target_machine(own, code_generation(own))
    assert new is not target_machine(own) and new.triple == target_machine(own).triple


def test_a_generator_for_another_machine_has_its_triple():
    machine = new_target_machine(NEON, CodeGeneration("aarch64-unknown-linux-gnu", ""))
    assert machine.triple.startswith("aarch64") and str(machine.target_data)


@pytest.mark.parametrize("name", ["x86", "arm", "generic"])
def test_addresses_in_loops_are_searched_for_as_an_architecture_says(name, monkeypatch):
    """Of code of this process: on x86-64 instructions add and scale addresses anyway."""
    triple = {"x86": "x86_64-unknown-linux-gnu", "arm": "aarch64-unknown-linux-gnu", "generic": "s390x-linux"}[name]
    monkeypatch.setattr(target_module, "host", lambda: replace(host(), triple=triple))
    how = code_generation(replace(AVX2, architecture=name))
    assert how.jit and how.reduces_strength is (name != "x86")
