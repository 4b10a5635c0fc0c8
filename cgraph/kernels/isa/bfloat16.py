"""Which processors gain from products of bfloat16 numbers, in words."""

from cgraph.kernels.isa.records import Target

PAIRS, TILES = "+avx512bf16", "+amx-bf16"
"""LLVM's names of the features with ``vdpbf16ps`` and ``tdpbf16ps``."""


def has_instruction(target: Target, feature: str) -> bool:
    """Return True if a target's processor has a feature."""
    return feature in target.features.split(",")


def reason_for_float32(target: Target) -> str:
    """Return why a target computes in float32 where it may round to bfloat16; empty if it rounds."""
    if target.multiplies_bfloat16:
        return ""
    if not has_instruction(target, PAIRS):
        return f"the target {target.name} has no instruction that multiplies bfloat16 numbers"
    slow = "vdpbf16ps is slower than float32 on this processor"
    return f"{slow}, and its tiles are not used: see `cgraph info`" if has_instruction(target, TILES) else slow
