"""Which instructions kernels may use: one record per machine width, chosen at run time.

The emitters read nothing else of the machine, so AVX-512, AVX2 and a portable width come from one source.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from cgraph.kernels.host import host
from cgraph.record import Record, replace


class Target(Record):
    """A processor as the emitters see it.

    Fields
        name: ``avx512``, ``avx2``, ``portable``, ``gpu`` or ``gpu-blocks``
        cpu, features: as LLVM names them
        lanes: float32 values in one vector register
        registers: vector registers
        fma: fused multiply-add is one instruction; without it the emitters multiply, then add
        dot: how four products of bytes are added up: ``vnni`` in one instruction, ``pairs`` by sums of two products of
            16 bits, ``plain`` by whole numbers
        bf16: two products of bfloat16 numbers are added up by one instruction
        vbmi: bytes are picked from 128 others by one instruction
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
        """Kernels are PTX: a task is a thread, or a block of them."""
        return self.name.startswith("gpu")

    @property
    def has_half(self) -> bool:
        """float16 is widened and rounded by one instruction."""
        return self.name in ("avx512", "avx2")

    @property
    def has_blocks(self) -> bool:
        """Families that have kernels written for blocks of threads use them; the others give each thread a task."""
        return self.name == "gpu-blocks"

    @property
    def narrow(self) -> "Target":
        """The same, with vectors of 256 bits at most where LLVM makes them of a loop."""
        return replace(self, features=self.features.replace("-prefer-256-bit", "+prefer-256-bit"))

    @property
    def task_elements(self) -> int:
        """Elements of one task: many for a thread of a processor, few for one of the thousands of a GPU."""
        return 64 if self.is_gpu else 32768

    def lanes_of(self, dtype: str) -> int:
        """Values of `dtype` (``f4``, ``i8``…) in one vector register; complex numbers whose real parts fill one."""
        return max(1, self.lanes * 4 // (int(dtype[1:]) // (2 if dtype[0] == "c" else 1)))

    def channels_of(self, dtype: str) -> int:
        """Channels of an image that lie side by side: a register of them, and as many bytes as float32 numbers."""
        return self.lanes if dtype == "u1" else self.lanes_of(dtype)


def gpu_target(major: int, minor: int) -> Target:
    """A GPU of this compute capability."""
    features = "+ptx80" if major <= 9 else ""  # PTX 8.0 runs on drivers since CUDA 12.0; newer devices need newer text
    return Target("gpu", f"sm_{major}{minor}", features, 1, 255, True)


_AVX2 = "+sse4.2,+popcnt,+avx,+avx2,+fma,+bmi,+bmi2,+f16c,+lzcnt,+movbe"
PORTABLE = Target("portable", "x86-64", "", 4, 16, False, "pairs")
AVX2 = Target("avx2", "haswell", _AVX2, 8, 16, True, "pairs")
AVX512 = Target("avx512", "x86-64-v4", "-prefer-256-bit", 16, 32, True, "pairs")


KINDS = (PORTABLE, AVX2, AVX512)  # a processor that runs one runs those before it


def generic_target(target: Target) -> Target:
    """The target that every processor of its kind runs, not this one alone: what is saved."""
    return next((x for x in KINDS if x.name == target.name), target)


def narrowest(names: Iterable[str]) -> str:
    """Of targets of processors by name the one that all these processors run."""
    return min(names, key=[x.name for x in KINDS].index)


@cache
def host_target() -> Target:
    """The widest target that this machine runs."""
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
    """The target `name`; ``host`` is the widest one here. ValueError when this machine does not run it."""
    host = host_target()
    runnable = {"host": host, host.name: host}
    if host.name in ("avx512", "avx2"):
        runnable |= {"avx2": AVX2, "portable": PORTABLE}
    if name not in runnable:
        raise ValueError(f"target {name!r} does not run on this machine; these do: {', '.join(sorted(runnable))}")
    return runnable[name]


class CodeGeneration(Record):
    """How LLVM's code generator is set up: all that decides machine code beside the target and LLVM's version.

    Fields
        triple, layout: the system, and how data lie in memory, as LLVM calls them; without a layout the triple's own
        optimisation: LLVM's level, 0 to 3
        relocation, code_model: how addresses are written; ``jitdefault`` is 64 bits wherever code may lie anywhere
        jit: for code that is run in this process
    """

    triple: str
    layout: str
    optimisation: int = 3
    relocation: str = "default"
    code_model: str = "jitdefault"
    jit: bool = False


def code_generation(target: Target) -> CodeGeneration:
    """Return how code for a target is generated; part of the names of kernels in the cache."""
    if target.is_gpu:
        return CodeGeneration("nvptx64-nvidia-cuda", "")
    return CodeGeneration(host().triple, host().layout, jit=True)


@cache
def target_machine(target: Target) -> Any:
    """LLVM's code generator for `target`, one for all emitters."""
    return new_target_machine(target)


def new_target_machine(target: Target) -> Any:
    """A code generator of its own, for an engine that takes it over and frees it."""
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
