"""The table of architectures: which machine is of which, what their targets are asked, Linux's description."""

import builtins
import io

import pytest

from cgraph.kernels.isa import architectures as module
from cgraph.kernels.isa.architectures import (
    MACHINES,
    address_bits,
    architecture,
    architecture_of,
    architecture_of_machine,
    cpuinfo,
    generic_target,
    host_architecture,
    host_features,
    instruction_of,
    narrowest,
    needs_of,
)
from cgraph.kernels.isa.arm import DOT, NEON
from cgraph.kernels.isa.x86 import AVX2, AVX512, PORTABLE
from cgraph.record import replace


@pytest.mark.parametrize("name", MACHINES)
def test_the_targets_of_an_architecture_name_it_and_have_names_of_their_own(name):
    own = architecture(name)
    assert own.name == name and all(x.architecture == name for x in own.targets)
    assert len({x.name for x in own.targets}) == len(own.targets)
    assert set(own.needs) <= {x.name for x in own.targets}
    assert [x.lanes for x in own.targets] == sorted(x.lanes for x in own.targets)


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        ("x86_64", "x86"),
        ("x86_64-unknown-linux-gnu", "x86"),
        ("AMD64", "x86"),
        ("aarch64-unknown-linux-gnu", "arm"),
        ("arm64-apple-darwin24", "arm"),
        ("thumbv7em-unknown-none-gnueabihf", "thumb"),
        ("thumbv8.1m.main-unknown-none-gnueabihf", "thumb_mve"),
        ("riscv64-unknown-linux-gnu", "riscv"),
        ("wasm32-unknown-unknown", "wasm"),
        ("powerpc64le-unknown-linux-gnu", "generic"),
        ("x86_64h", "generic"),  # the whole name, not its beginning
        ("", "generic"),
    ],
)
def test_a_machine_is_of_the_architecture_that_its_triple_begins_with(machine, name):
    assert architecture_of_machine(machine) is architecture(name)


def test_a_target_is_of_its_architecture_and_asks_it_for_instructions_and_addresses():
    assert architecture_of(NEON) is architecture("arm") and architecture_of(AVX2) is architecture("x86")
    assert instruction_of(AVX2, "pair dot", 8).name == "llvm.x86.avx2.pmadd.wd"
    assert instruction_of(AVX2, "fence").name == "llvm.x86.sse.sfence"
    assert instruction_of(AVX2, "pair dot") is None and instruction_of(NEON, "pair dot", 4) is None
    bits = {name: {address_bits(x) for x in architecture(name).targets} for name in MACHINES}
    assert bits["x86"] == bits["arm"] == bits["riscv"] == {64} and bits["thumb"] == bits["wasm"] == {32}
    assert address_bits(replace(AVX2, architecture="generic")) == 64


def test_saved_code_is_of_the_target_that_every_processor_of_its_kind_runs():
    here = replace(AVX512, cpu="znver5", features="+much", dot="mixed", bf16="dot", tiles="amx")
    assert generic_target(here) == AVX512
    unknown = replace(AVX512, name="other")
    assert generic_target(unknown) is unknown
    assert needs_of(here) == needs_of(AVX512) and "avx512vl" in needs_of(here)
    assert needs_of(PORTABLE) == () and needs_of(unknown) is None


def test_the_narrowest_of_some_targets_is_that_which_all_of_them_run():
    own = architecture("x86")
    assert narrowest(own, ["avx512", "avx2"]) == "avx2"
    assert narrowest(own, ["avx2", "portable", "avx512"]) == "portable"
    assert narrowest(architecture("arm"), {DOT.name, NEON.name}) == NEON.name


TEXT = b"""processor\t: 0
vendor_id\t: GenuineIntel
model name\t: A : B
flags\t\t: fpu avx2 \xff

processor\t: 1
vendor_id\t: Other
"""


def described(monkeypatch, text):
    def opened(path, *args, **kwargs):
        assert path == "/proc/cpuinfo"
        if text is None:
            raise FileNotFoundError(path)
        return io.BytesIO(text)

    monkeypatch.setattr(builtins, "open", opened)


def test_linux_describes_the_first_processor(monkeypatch):
    monkeypatch.setattr(module, "host_architecture", lambda: architecture("x86"))
    described(monkeypatch, TEXT)
    lines, features = cpuinfo(), host_features()
    monkeypatch.undo()
    assert lines["vendor_id"] == "GenuineIntel" and lines["processor"] == "0" and lines["model name"] == "A : B"
    assert {"fpu", "avx2"} <= features and len(features) == 3


def test_a_system_without_that_file_describes_nothing(monkeypatch):
    described(monkeypatch, None)
    lines, features = cpuinfo(), host_features()
    monkeypatch.undo()
    assert (lines, features) == ({}, frozenset())


def test_a_processor_of_no_table_has_no_features(monkeypatch):
    monkeypatch.setattr(module, "host_architecture", lambda: architecture("generic"))
    assert host_features() == frozenset()


def test_this_machine_is_what_the_system_calls_it(monkeypatch):
    monkeypatch.setattr(module.platform, "machine", lambda: "arm64")
    assert host_architecture() is architecture("arm")
    monkeypatch.setattr(module.platform, "machine", lambda: "s390x")
    assert host_architecture() is architecture("generic")


@pytest.mark.parametrize(
    ("lines", "processor", "name"),
    [
        ({"vendor_id": "AuthenticAMD"}, "Intel64 Family 6, GenuineIntel", "AuthenticAMD"),
        ({"vendor_id": ""}, "Intel64 Family 6, Model 85, GenuineIntel", "GenuineIntel"),
        ({}, "arm", "arm"),
        ({"model name": "A"}, "", ""),
    ],
)
def test_the_vendor_is_that_of_linux_or_the_last_word_of_the_processors_name(lines, processor, name, monkeypatch):
    monkeypatch.setattr(module, "cpuinfo", lambda: lines)
    monkeypatch.setattr(module.platform, "processor", lambda: processor)
    assert module.vendor() == name


@pytest.mark.parametrize(("name", "features"), [("x86", {"avx2", "fma"}), ("arm", {"asimd"}), ("generic", set())])
def test_features_are_those_of_the_architectures_own_line_and_of_macos(name, features, monkeypatch):
    """The last name of a table is that of the line with features."""
    monkeypatch.setattr(module, "host_architecture", lambda: architecture(name))
    monkeypatch.setattr(module, "cpuinfo", lambda: {"flags": "avx2 fma", "Features": "asimd", "model name": "other"})
    for mac in (frozenset(), frozenset({"i8mm"})):
        monkeypatch.setattr(module, "mac_features", lambda mac=mac: mac)
        assert host_features() == mac | features
