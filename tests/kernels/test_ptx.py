"""Targets of GPUs: the name of the capability, and text that drivers since CUDA 12.0 read."""

import pytest

from cgraph.kernels.isa.ptx import ARCHITECTURE, gpu_target


@pytest.mark.parametrize(
    ("capability", "cpu", "features"),
    [((7, 0), "sm_70", "+ptx80"), ((8, 6), "sm_86", "+ptx80"), ((9, 0), "sm_90", "+ptx80"), ((10, 0), "sm_100", "")]
    + [((12, 1), "sm_121", "")],
)
def test_a_capability_is_a_target_with_the_oldest_text_that_suffices(capability, cpu, features):
    target = gpu_target(*capability)
    assert (target.cpu, target.features) == (cpu, features)
    assert (target.lanes, target.fma, target.code, target.architecture) == (1, True, "ptx", ARCHITECTURE.name)
    assert not target.has_blocks and target.has_libc  # the first is the engine's to say
