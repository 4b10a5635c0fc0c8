"""Changes to ELF files for ARM for which llvmlite has no option."""

import struct

ATTRIBUTES = 0x70000003  # the section type of ARM's build attributes
NUMBER_MODEL, VFP_ARGUMENTS, COMPATIBLE = 23, 28, 3
TEXTS = (4, 5, 32, 65, 67)  # tags whose value is a text
HEADER = 1 + 4 + len(b"aeabi\0") + 1 + 4  # bytes before the first tag


def with_any_float_abi(raw: bytes) -> bytes:
    """Return an ARM object with the attribute that its interface passes no floats in registers.

    The object then links with code of either float ABI. The attribute replaces ``Tag_ABI_FP_number_model``, which has
    the same value and which linkers do not compare. Source: Addenda to, and Errata in, the ABI for the Arm
    Architecture, section 3.3.6.
    """
    out = bytearray(raw)
    table = struct.unpack_from("<I", out, 32)[0]
    size, count = struct.unpack_from("<HH", out, 46)
    for i in range(count):
        _, kind, _, _, start, nbytes = struct.unpack_from("<6I", out, table + i * size)
        if kind == ATTRIBUTES:
            replace_tag(out, start + HEADER, start + nbytes)
    return bytes(out)


def replace_tag(out: bytearray, at: int, end: int) -> None:
    """Change the number model's tag between two positions."""
    while at < end:
        tag = out[at]
        if tag == NUMBER_MODEL and out[at + 1] == COMPATIBLE:
            out[at] = VFP_ARGUMENTS
            return
        at = out.index(0, at) + 1 if tag in TEXTS else at + 2
