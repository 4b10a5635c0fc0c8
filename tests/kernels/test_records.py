"""Records of processors: features of a host, values in a register, tasks, targets by name."""

import pytest

from cgraph.kernels.isa.ptx import gpu_target
from cgraph.kernels.isa.records import Host
from cgraph.kernels.isa.x86 import ARCHITECTURE, AVX2, AVX512, PORTABLE
from cgraph.record import replace


def test_a_host_has_features_that_are_switched_on_all_of_them():
    host = Host("cpu", "+sse4.2,-avx512f,+avx,+fma4", "triple", "layout", "version")
    assert host.has() and host.has("avx") and host.has("sse4.2", "avx")
    assert not host.has("avx512f") and not host.has("avx", "fma") and not host.has("fma")


@pytest.mark.parametrize(
    ("target", "dtype", "lanes", "channels"),
    [
        (AVX512, "f4", 16, 16),
        (AVX512, "f8", 8, 8),
        (AVX512, "u1", 64, 16),
        (AVX512, "i2", 32, 32),
        (AVX512, "c8", 16, 16),
        (AVX512, "c16", 8, 8),
        (AVX2, "i8", 4, 4),
        (PORTABLE, "c16", 2, 2),
        (gpu_target(9, 0), "f8", 1, 1),
        (gpu_target(9, 0), "u1", 4, 1),
        (AVX512, "V2", 32, 32),
        (AVX2, "V2", 16, 32),
        (PORTABLE, "V2", 8, 32),
    ],
)
def test_lanes_are_values_of_a_register_and_of_bytes_a_block_has_as_many_channels_as_of_floats(
    target, dtype, lanes, channels
):
    assert (target.lanes_of(dtype), target.channels_of(dtype)) == (lanes, channels)


def test_a_task_of_a_gpus_thread_is_small():
    assert gpu_target(9, 0).task_elements == 64 and AVX2.task_elements == 32768


def test_the_narrow_target_differs_in_what_llvm_prefers_alone():
    assert AVX512.features == "-prefer-256-bit" and AVX512.narrow.features == "+prefer-256-bit"
    assert AVX512.narrow.lanes == 16 and AVX512.narrow.name == AVX512.name and AVX2.narrow == AVX2


def test_a_target_is_found_by_its_name():
    assert ARCHITECTURE.target("avx2") is AVX2
    with pytest.raises(KeyError, match="avx3"):
        ARCHITECTURE.target("avx3")


def test_capabilities_follow_from_what_a_target_multiplies():
    for dot, is_small in (("halves", True), ("across", True), ("pairs", False), ("mixed", False), ("plain", False)):
        assert replace(AVX2, dot=dot).is_small is is_small
    for changes, multiplies in (({}, False), ({"bf16": "dot"}, True), ({"tiles": "amx"}, True)):
        assert replace(AVX2, **changes).multiplies_bfloat16 is multiplies
