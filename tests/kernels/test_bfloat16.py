"""Why a processor computes in float32 where it may round to bfloat16."""

import pytest

from cgraph.kernels.isa.bfloat16 import PAIRS, TILES, has_instruction, reason_for_float32
from cgraph.kernels.isa.x86 import AVX512
from cgraph.record import replace


@pytest.mark.parametrize("target", [replace(AVX512, bf16="dot"), replace(AVX512, tiles="amx")])
def test_a_processor_that_rounds_has_no_reason(target):
    assert reason_for_float32(target) == ""


@pytest.mark.parametrize(
    ("features", "words", "others"),
    [
        ("", "avx512 has no instruction", "vdpbf16ps"),
        (f",{PAIRS}", "vdpbf16ps is slower than float32", "tiles"),
        (f",{PAIRS},{TILES}", "its tiles are not used", "no instruction"),
    ],
)
def test_the_reason_is_that_of_its_instructions(features, words, others):
    target = replace(AVX512, features=AVX512.features + features)
    assert words in reason_for_float32(target) and others not in reason_for_float32(target)
    assert has_instruction(target, PAIRS) == (PAIRS in features)
