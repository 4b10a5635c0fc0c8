"""x86-64: the target of a host by its features, what saved code needs, instructions of every width."""

import pytest

from cgraph.kernels.isa.records import Host
from cgraph.kernels.isa.x86 import AMD, ARCHITECTURE, AVX2, AVX512, FEATURES, INSTRUCTIONS, INTEL, PORTABLE, detect
from cgraph.record import replace

LINUX = {"bmi": "bmi1", "lzcnt": "abm", "sse4.2": "sse4_2"}  # what /proc/cpuinfo calls LLVM's features


@pytest.mark.parametrize("target", ARCHITECTURE.targets, ids=lambda target: target.name)
def test_a_saved_function_asks_for_every_feature_that_its_code_is_made_with(target):
    features = {LINUX.get(x[1:], x[1:]) for x in target.features.split(",") if x.startswith("+")}
    assert features <= set(ARCHITECTURE.needs[target.name])
    assert set(ARCHITECTURE.needs[AVX2.name]) <= set(ARCHITECTURE.needs[AVX512.name])
    v4 = {f"avx512{x}" for x in ("f", "bw", "cd", "dq", "vl")}  # System V ABI, x86-64-v4
    assert target is not AVX512 or v4 <= set(ARCHITECTURE.needs[target.name])


WIDE = "avx512f avx512bw avx512dq avx512vl"


def detected(features, vendor=""):
    return detect(Host("some-cpu", ",".join(f"+{x}" for x in features.split()), "x86_64-linux", "", "", vendor))


@pytest.mark.parametrize(
    ("features", "name", "dot"),
    [
        ("", "portable", "pairs"),
        ("sse4.2 avx", "portable", "pairs"),
        ("avx2", "portable", "pairs"),  # without fma
        ("fma avx", "portable", "pairs"),
        ("avx2 fma", "avx2", "pairs"),
        ("avx2 fma avxvnni", "avx2", "mixed"),
        (f"avx2 fma {WIDE}", "avx512", "pairs"),
        (f"avx2 fma {WIDE} avx512vnni", "avx512", "mixed"),
        (f"avx2 fma {WIDE} avxvnni", "avx512", "pairs"),
        *((f"avx2 fma {WIDE.replace(x, '')}", "avx2", "pairs") for x in WIDE.split()),  # one is missing
    ],
)
def test_the_widest_target_whose_features_are_all_there(features, name, dot):
    target = detected(features)
    assert (target.name, target.dot) == (name, dot)


def test_a_wide_target_has_those_features_of_its_host_that_kernels_use():
    plain, rich = detected(f"avx2 fma {WIDE}"), detected(f"avx2 fma {WIDE} avx512bf16 avx512vbmi")
    assert plain == replace(AVX512, tuning="skylake-avx512")
    assert rich.features == "+avx512vbmi,+avx512bf16,-prefer-256-bit" and rich.cpu == AVX512.cpu
    assert (plain.bf16, plain.selects_bytes) == ("", False) and (rich.bf16, rich.selects_bytes) == ("dot", True)
    assert detected("avx2 fma avxvnni").features == f"{AVX2.features},+avxvnni"
    assert detected("avx2 fma").cpu == "haswell" and detected("") is PORTABLE


@pytest.mark.parametrize(
    ("vendor", "bf16"), [("AuthenticAMD", "dot"), ("GenuineIntel", ""), ("HygonGenuine", "dot"), ("", "dot")]
)
def test_pairs_of_bfloat16_are_multiplied_where_that_is_faster(vendor, bf16):
    """Intel's instruction takes four times as long as a multiply-add of floats."""
    assert detected(f"avx2 fma {WIDE} avx512bf16", vendor).bf16 == bf16
    assert detected(f"avx2 fma {WIDE}", vendor).bf16 == ""
    assert not detected(f"avx2 fma {WIDE}", vendor).multiplies_bfloat16


@pytest.mark.parametrize(
    ("vendor", "features", "tuning"),
    [
        (AMD, "avx512vnni avx512vbmi2", "znver4"),
        (AMD, "avx512vnni avx512vbmi2 avxvnni", "znver5"),
        (INTEL, "", "skylake-avx512"),
        (INTEL, "avx512vnni", "skylake-avx512"),
        (INTEL, "avx512vnni avx512vbmi avx512vbmi2", "icelake-server"),
        (INTEL, "avx512vnni avx512vbmi avx512vbmi2 amx-tile", "sapphirerapids"),
        ("", "avx512vbmi2", "icelake-server"),
    ],
)
def test_instructions_are_ordered_for_a_processor_like_the_host(vendor, features, tuning):
    assert detected(f"avx2 fma {WIDE} {features}", vendor).tuning == tuning
    assert detected(f"avx2 fma {features}", vendor).tuning == ""


def test_every_common_processor_has_a_target_of_its_own():
    targets = [detect(x) for x in ARCHITECTURE.common]
    assert len(set(targets)) == len(targets)
    for host, target in zip(ARCHITECTURE.common, targets):
        assert {x[1:] for x in host.features.split(",")} <= set(FEATURES.values())
        assert target.cpu in (AVX2.cpu, AVX512.cpu) and bool(target.tuning) == (target.cpu == AVX512.cpu)


def test_tiles_are_not_used_unless_requested():
    target = detected(f"avx2 fma {WIDE} amx-tile amx-int8 amx-bf16")
    assert target.tiles == "" and "+amx-tile" in target.features and not target.multiplies_bfloat16
    assert [x.tiles for x in ARCHITECTURE.targets] == ["", "", ""]  # the targets of saved functions


def test_registers_double_with_avx512_alone():
    assert [(x.lanes, x.registers, x.fma) for x in ARCHITECTURE.targets] == [
        (4, 16, False), (8, 16, True), (16, 32, True),
    ]  # fmt: skip


@pytest.mark.parametrize("operation", ["mixed dot", "bf16 dot", "pair dot", "nearest"])
def test_each_width_has_an_instruction_of_its_own(operation):
    names = [INSTRUCTIONS[operation, lanes].name for lanes in (4, 8, 16)]
    assert len(set(names)) == 3
    assert all(
        ("512" in name) == (lanes == 16) or "512bf16" in name or "512.vpd" in name
        for name, lanes in zip(names, (4, 8, 16))
    )


@pytest.mark.parametrize(("operation", "each"), [("pack i2", 2), ("pack u1", 4)])
def test_packs_have_a_whole_registers_results(operation, each):
    assert {lanes for name, lanes in INSTRUCTIONS if name == operation} == {4 * each, 8 * each, 16 * each}


def test_only_addresses_of_64_bits_are_linked_by_us():
    """System V ABI, AMD64: R_X86_64_64 is 1; ELF's number of the machine is 62; Linux's futex is call 202."""
    assert {number: patch.value for number, patch in ARCHITECTURE.relocations.items()} == {1: "address"}
    assert (ARCHITECTURE.elf, ARCHITECTURE.mach_o, ARCHITECTURE.futex) == (62, 0x01000007, 202)
