"""Targets: the instructions and registers that kernels may use, selected at run time.

One source of emitters serves AVX-512, AVX2, a portable width and GPUs.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from cgraph.kernels.host import host
from cgraph.record import Record, replace


class Target(Record):
    """A processor or GPU as emitters see it.

    Fields
        name: ``avx512``, ``avx2``, ``portable``, ``gpu`` or ``gpu-blocks``
        cpu, features: as LLVM names them
        lanes: float32 values in one vector register
        registers: vector registers
        fma: fused multiply-add is one instruction; without it emitters multiply, then add
        dot: sum of four products of bytes: ``vnni`` in one instruction, ``pairs`` by sums of two 16-bit products,
            ``plain`` in integer arithmetic
        bf16: one instruction adds up two products of bfloat16 numbers
        vbmi: one instruction selects bytes from 128 others
    """

    name: str
    cpu: str
    features: str
    lanes: int
    registers: int
    fma: bool
    dot: str = "plain"
    bf16: bool = False
    vbmi: bool = False

    @property
    def is_gpu(self) -> bool:
        """True if kernels are PTX: a task is a thread or a block of threads."""
        return self.name.startswith("gpu")

    @property
    def has_half(self) -> bool:
        """True if one instruction widens or rounds float16."""
        return self.name in ("avx512", "avx2")

    @property
    def has_blocks(self) -> bool:
        """True if families use kernels for blocks of threads; families without them run a task in each thread."""
        return self.name == "gpu-blocks"

    @property
    def narrow(self) -> "Target":
        """The same target with loops vectorised by LLVM to at most 256 bits."""
        return replace(self, features=self.features.replace("-prefer-256-bit", "+prefer-256-bit"))

    @property
    def task_elements(self) -> int:
        """Elements of one task: many for a CPU thread, few for one of a GPU's thousands of threads."""
        return 64 if self.is_gpu else 32768

    def lanes_of(self, dtype: str) -> int:
        """Return the values of `dtype` (``f4``, ``i8``…) in one vector register; of complex numbers, the real parts."""
        return max(1, self.lanes * 4 // (int(dtype[1:]) // (2 if dtype[0] == "c" else 1)))

    def channels_of(self, dtype: str) -> int:
        """Return the channels of a block of a channel-blocked image: one register; of bytes as many as of float32."""
        return self.lanes if dtype == "u1" else self.lanes_of(dtype)


def gpu_target(major: int, minor: int) -> Target:
    """Return the target of a GPU of this compute capability."""
    features = "+ptx80" if major <= 9 else ""  # PTX 8.0 runs on drivers since CUDA 12.0; newer devices need newer text
    return Target("gpu", f"sm_{major}{minor}", features, 1, 255, True)


_AVX2 = "+sse4.2,+popcnt,+avx,+avx2,+fma,+bmi,+bmi2,+f16c,+lzcnt,+movbe"
PORTABLE = Target("portable", "x86-64", "", 4, 16, False, "pairs")
AVX2 = Target("avx2", "haswell", _AVX2, 8, 16, True, "pairs")
AVX512 = Target("avx512", "x86-64-v4", "-prefer-256-bit", 16, 32, True, "pairs")


KINDS = (PORTABLE, AVX2, AVX512)  # a processor that runs one runs those before it


def generic_target(target: Target) -> Target:
    """Return the target that every processor of its kind runs, for saved code."""
    return next((x for x in KINDS if x.name == target.name), target)


def narrowest(names: Iterable[str]) -> str:
    """Return the name of the narrowest target: processors of all these targets run it."""
    return min(names, key=[x.name for x in KINDS].index)


@cache
def host_target() -> Target:
    """Return the widest target that this machine runs."""
    x = host()
    if not x.triple.startswith("x86_64"):
        return Target("portable", x.cpu, x.features, 4, 32, True)
    if x.has("avx512f", "avx512bw", "avx512dq", "avx512vl"):
        dot = "vnni" if x.has("avx512vnni") else "pairs"
        more = x.has("avx512bf16"), x.has("avx512vbmi")
        return Target("avx512", x.cpu, f"{x.features},-prefer-256-bit", 16, 32, True, dot, *more)
    if x.has("avx2", "fma"):
        return replace(AVX2, features=f"{_AVX2},+avxvnni", dot="vnni") if x.has("avxvnni") else AVX2
    return PORTABLE


def target_named(name: str) -> Target:
    """Return the target `name`; ``host`` is the widest one here.

    Raises
        ValueError: this machine does not run it
    """
    host = host_target()
    runnable = {"host": host, host.name: host}
    if host.name in ("avx512", "avx2"):
        runnable |= {"avx2": AVX2, "portable": PORTABLE}
    if name not in runnable:
        raise ValueError(f"target {name!r} does not run on this machine. Use one of: {', '.join(sorted(runnable))}")
    return runnable[name]


class CodeGeneration(Record):
    """The settings of LLVM's code generator that, beside the target and LLVM's version, determine machine code.

    Fields
        triple, layout: LLVM's names of the system and the data layout; an empty layout is the triple's own
        optimisation: LLVM's level, 0 to 3
        relocation, code_model: form of addresses; ``jitdefault`` is 64 bits wherever code may lie anywhere
        jit: True for code that runs in this process
    """

    triple: str
    layout: str
    optimisation: int = 3
    relocation: str = "default"
    code_model: str = "jitdefault"
    jit: bool = False


def code_generation(target: Target) -> CodeGeneration:
    """Return the code generator's settings for a target; they are part of a kernel's cache name."""
    if target.is_gpu:
        return CodeGeneration("nvptx64-nvidia-cuda", "")
    return CodeGeneration(host().triple, host().layout, jit=True)


@cache
def target_machine(target: Target) -> Any:
    """Return LLVM's code generator for `target`, shared by all emitters."""
    return new_target_machine(target)


def new_target_machine(target: Target) -> Any:
    """Return a new code generator, for an engine that takes ownership of it."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if target.is_gpu:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    how = code_generation(target)
    return llvm.Target.from_triple(how.triple).create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=how.optimisation,
        reloc=how.relocation,
        codemodel=how.code_model,
        jit=how.jit,
    )
