"""x86-64: AVX-512, AVX2 and the 128 bits that each processor has.

Sources: Intel's Software Developer's Manual; LLVM's ``IntrinsicsX86.td``; System V ABI, AMD64 supplement, 1.0.
"""

from cgraph.dtypes.storage import BFLOAT16
from cgraph.kernels.isa.records import Architecture, CodeGeneration, Host, Intrinsic, Patch, Target
from cgraph.record import replace

AMD, INTEL = (
    "AuthenticAMD",
    "GenuineIntel",
)  # Intel's vdpbf16ps takes two cycles, four times as long as a multiply-add for twice the products

_AVX2 = "+sse4.2,+popcnt,+avx,+avx2,+fma,+bmi,+bmi2,+f16c,+lzcnt,+movbe"
PORTABLE = Target("portable", "x86-64", "", 4, 16, False, "x86", dot="pairs")
AVX2 = Target("avx2", "haswell", _AVX2, 8, 16, True, "x86", dot="pairs", converts_half=True)
AVX512 = Target("avx512", "x86-64-v4", "-prefer-256-bit", 16, 32, True, "x86", dot="pairs", converts_half=True)


FEATURES = {
    **{x: x for x in ("avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vbmi")},
    **{x: x.replace("_", "") for x in ("avx512_vnni", "avx512_vbmi2", "avx512_bf16", "avx_vnni")},
    **{x: x.replace("_", "-") for x in ("amx_tile", "amx_int8", "amx_bf16")},
}
BEYOND = ("avx512vnni", "avx512vbmi", "avx512vbmi2", "avx512bf16", "amx-tile", "amx-int8", "amx-bf16")
"""Features that kernels use where a processor with AVX-512 has them."""


def detect(host: Host) -> Target:
    """Return the widest target of a host.

    Its code runs on each processor with the same features of this list, so a table of kernels serves many.
    """
    if host.has("avx512f", "avx512bw", "avx512dq", "avx512vl"):
        return replace(
            AVX512,
            features=",".join([*(f"+{x}" for x in BEYOND if host.has(x)), AVX512.features]),
            tuning=tuning_of(host),
            dot="mixed" if host.has("avx512vnni") else "pairs",
            bf16="dot" if host.has("avx512bf16") and host.vendor != INTEL else "",
            selects_bytes=host.has("avx512vbmi"),
        )
    if host.has("avx2", "fma"):
        return replace(AVX2, features=f"{_AVX2},+avxvnni", dot="mixed") if host.has("avxvnni") else AVX2
    return PORTABLE


def tuning_of(host: Host) -> str:
    """Return a processor with AVX-512 that LLVM knows and whose instruction times are near the host's."""
    if host.vendor == AMD:
        return "znver5" if host.has("avxvnni") else "znver4"
    if host.has("amx-tile"):
        return "sapphirerapids"
    return "icelake-server" if host.has("avx512vbmi2") else "skylake-avx512"


LINUX = "x86_64-unknown-linux-gnu"
AVX2_HOST = ("avx2", "fma")
AVX512_HOST = (*AVX2_HOST, "avx512f", "avx512bw", "avx512dq", "avx512vl")
COMMON = tuple(
    Host("", ",".join(f"+{x}" for x in features), LINUX, "", "", vendor)
    for vendor, features in (
        (INTEL, AVX2_HOST),
        (INTEL, (*AVX2_HOST, "avxvnni")),
        (INTEL, AVX512_HOST),
        (INTEL, (*AVX512_HOST, "avx512vnni")),  # Cascade Lake
        (INTEL, (*AVX512_HOST, *BEYOND[:3], "avxvnni")),  # Ice Lake
        (INTEL, (*AVX512_HOST, *BEYOND, "avxvnni")),  # Sapphire Rapids
        (AMD, (*AVX512_HOST, *BEYOND[:4])),  # Zen 4
        (AMD, (*AVX512_HOST, *BEYOND[:4], "avxvnni")),  # Zen 5
    )
)

_AS_SET = ("i4", 4, 0)  # the rounding that the processor is set to: to the nearest
INSTRUCTIONS = {
    ("fence", 0): Intrinsic("llvm.x86.sse.sfence"),
    ("pause", 0): Intrinsic("llvm.x86.sse2.pause"),
    **{
        (f"tile {operation}", 0): Intrinsic(f"llvm.x86.{name}")
        for operation, name in (
            ("configure", "ldtilecfg"),
            ("release", "tilerelease"),
            ("zero", "tilezero"),
            ("load", "tileloadd64"),
            ("store", "tilestored64"),
            ("dot u1", "tdpbusd"),
            ("dot bf16", "tdpbf16ps"),
        )
    },
    ("scale f4", 16): Intrinsic(
        "llvm.x86.avx512.mask.scalef.ps.512", "f4", ("f4", "f4"), (("f4", 0, 16), ("i2", -1, 0), _AS_SET)
    ),
    ("scale f8", 8): Intrinsic(
        "llvm.x86.avx512.mask.scalef.pd.512", "f8", ("f8", "f8"), (("f8", 0, 8), ("u1", -1, 0), _AS_SET)
    ),
    ("nearest", 16): Intrinsic(
        "llvm.x86.avx512.mask.cvtps2dq.512", "i4", ("f4",), (("i4", 0, 16), ("i2", -1, 0), _AS_SET)
    ),
    ("nearest", 8): Intrinsic("llvm.x86.avx.cvt.ps2dq.256", "i4", ("f4",)),
    ("nearest", 4): Intrinsic("llvm.x86.sse2.cvtps2dq", "i4", ("f4",)),
    ("select bytes", 64): Intrinsic("llvm.x86.avx512.vpermi2var.qi.512", "u1", ("u1", "u1", "u1")),
    **{("mixed dot", n): Intrinsic(f"llvm.x86.avx512.vpdpbusd.{32 * n}", "i4", ("i4", "i4", "i4")) for n in (4, 8, 16)},
    **{
        ("bf16 dot", n): Intrinsic(f"llvm.x86.avx512bf16.dpbf16ps.{32 * n}", "f4", ("f4", BFLOAT16.code, BFLOAT16.code))
        for n in (4, 8, 16)
    },
    ("round to bf16", 32): Intrinsic("llvm.x86.avx512bf16.cvtne2ps2bf16.512", BFLOAT16.code, ("f4", "f4")),
    **{
        ("pair dot", n): Intrinsic(f"llvm.x86.{name}", "i4", ("i2", "i2"))
        for n, name in ((4, "sse2.pmadd.wd"), (8, "avx2.pmadd.wd"), (16, "avx512.pmaddw.d.512"))
    },
    **{
        ("pack i2", 2 * n): Intrinsic(f"llvm.x86.{name}", "i2", ("i4", "i4"))
        for n, name in ((4, "sse2.packssdw.128"), (8, "avx2.packssdw"), (16, "avx512.packssdw.512"))
    },
    **{
        ("pack u1", 4 * n): Intrinsic(f"llvm.x86.{name}", "u1", ("i2", "i2"))
        for n, name in ((4, "sse2.packuswb.128"), (8, "avx2.packuswb"), (16, "avx512.packuswb.512"))
    },
}

_NEEDS_AVX2 = ("avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "movbe", "popcnt", "sse4_2")
_NEEDS_AVX512 = (*_NEEDS_AVX2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")

ARCHITECTURE = Architecture(
    "x86",
    (PORTABLE, AVX2, AVX512),
    INSTRUCTIONS,
    CodeGeneration(LINUX, "", relocation="pic", code_model="small"),
    detect,
    needs={PORTABLE.name: (), AVX2.name: _NEEDS_AVX2, AVX512.name: _NEEDS_AVX512},
    cpuinfo=("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
    feature_names=FEATURES,
    common=COMMON,
    elf=62,
    mach_o=0x01000007,
    relocations={1: Patch("address")},
    reduces_strength=False,
    futex=202,
)
