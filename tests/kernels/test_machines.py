"""The machines that code is exported for: systems, object formats, targets for bytes, what is not there."""

import pytest

from cgraph.kernels.isa.architectures import MACHINES, architecture, architecture_of, host_architecture
from cgraph.kernels.machines import SYSTEMS, freestanding, machine_named, machines
from cgraph.record import replace

ROWS = machines()


def test_every_target_of_an_architecture_with_objects_is_a_row_but_those_for_bytes():
    names = [x.name for name in MACHINES if architecture(name).objects for x in architecture(name).targets]
    systems = {
        f"{x.name}-{system}" for name, own in SYSTEMS.items() for system in own for x in architecture(name).targets
    }
    assert set(ROWS) == {x for x in names if not x.endswith("-bytes")} | {x for x in systems if "-bytes" not in x}
    assert all(row.name == name for name, row in ROWS.items())
    assert not any("gpu" in name for name in ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_graphs_of_bytes_have_the_target_of_that_name_where_there_is_one(name):
    row = machines()[name]
    by_name = {x.name: x for x in architecture_of(row.target).targets}
    own = by_name.get(f"{row.target.name}-bytes")
    assert row.bytes_target.name == (own or row.target).name
    assert row.bytes_target.lanes >= 4 or own is None


@pytest.mark.parametrize(
    ("name", "form", "suffix", "bits", "section", "begin"),
    [
        ("avx2", "elf", "o", 64, ".bss.net_arena", "x86_64-unknown-linux"),
        ("avx2-windows", "coff", "obj", 64, "", "x86_64-pc-windows"),
        ("avx512-macos", "mach-o", "o", 64, "", "x86_64-apple"),
        ("neon", "elf", "o", 64, ".bss.net_arena", "aarch64"),
        ("neon-macos", "mach-o", "o", 64, "", "arm64-apple"),
        ("neon-android", "elf", "o", 64, ".bss.net_arena", "aarch64-unknown-linux-android"),
        ("cortex-m7", "arm-elf", "o", 32, ".bss.net_arena", "thumbv7em"),
        ("wasm32", "wasm", "o", 32, "", "wasm32"),
        ("riscv64", "elf", "o", 64, ".bss.net_arena", "riscv64"),
    ],
)
def test_a_system_has_its_triple_its_form_of_files_and_its_sections(name, form, suffix, bits, section, begin):
    row = machine_named(name)
    assert (row.generation.form, row.suffix, row.bits) == (form, suffix, bits)
    assert row.arena_section("net") == section and row.generation.triple.startswith(begin)
    assert row.is_linked == (name == "wasm32")


@pytest.mark.parametrize("name", MACHINES)
def test_only_this_machines_own_targets_call_its_c_library(name):
    own = architecture(name)
    for target in own.targets:
        free = freestanding(target)
        assert free.has_libc is (own is host_architecture())
        assert free.name == target.name and free.features == target.features


def test_a_name_that_there_is_not_is_answered_with_all_names():
    with pytest.raises(ValueError, match="^there is no machine 'avx3'. Use one of .*avx2, .*neon-android.*wasm32"):
        machine_named("avx3")
    with pytest.raises(ValueError, match="there is no machine 'cortex-m7-bytes'"):
        machine_named("cortex-m7-bytes")
    with pytest.raises(ValueError, match="there is no machine 'x{59}\\. Use"):
        machine_named("x" * 500)


@pytest.mark.parametrize(
    ("name", "nbytes"), [("avx2", 64), ("avx512-windows", 64), ("neon-macos", 64), ("wasm32", 64), ("cortex-m4", 8)]
)
def test_constants_begin_with_a_cache_line_or_a_number_where_flash_is_scarce(name, nbytes):
    assert machine_named(name).constant_alignment == nbytes


def test_only_the_triple_and_the_form_of_files_differ_between_systems():
    for name, row in ROWS.items():
        plain = ROWS[row.target.name]
        same = replace(row.generation, triple=plain.generation.triple, form=plain.generation.form)
        assert same == plain.generation and row.target == plain.target and row.bytes_target == plain.bytes_target, name
