"""The CPU engine: kernels for one target, on several threads, over one arena."""

import os
import platform
import warnings
from functools import partial
from itertools import chain

from cgraph.budget.refusal import needs_text
from cgraph.engine.cpu.code import Code
from cgraph.engine.cpu.cores import check_threads, cores
from cgraph.engine.cpu.make_code import code_of, update_calls
from cgraph.engine.cpu.memory import memory_nbytes
from cgraph.engine.cpu.program import CpuProgram
from cgraph.engine.cpu.results import with_result_places
from cgraph.engine.cpu.ring import ring_of
from cgraph.errors import MemoryWarning, bytes_text
from cgraph.ir.graph import Node
from cgraph.ir.origin import user_line
from cgraph.ir.work import Part
from cgraph.kernels.huge_pages import HugePages
from cgraph.kernels.isa.architectures import cpuinfo, host_architecture
from cgraph.kernels.mapped import Keep
from cgraph.kernels.move.calls import fill_calls
from cgraph.kernels.store import store
from cgraph.kernels.target import Target, target_named, with_tiles
from cgraph.late import LateModule
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import lower_graph
from cgraph.memory.calls import CallsOfSteps
from cgraph.ops.leaf import HASHED_NBYTES
from cgraph.planning.compiled import Compiled
from cgraph.planning.options import CompileOptions, Request
from cgraph.planning.plan import plan_request
from cgraph.record import Record, replace
from cgraph.storage.weight_file import Spool
from cgraph.system.alignment import ALIGNMENT

split = LateModule("cgraph.engine.cpu.split")
POISON = 0xFF
LEAST_GAIN = 4096  # bytes of a page: a process that saves less still takes as many pages


class CpuEngine(Record):
    """Kernels for one target on several threads.

    Fields
        target: ``host`` (the widest vectors of this machine); on x86-64 also ``avx512``, ``avx2`` or ``portable``, on
            AArch64 ``neon-i8mm``, ``neon-dot`` or ``neon``
        threads: 0 uses all cores that this process may use
        poison: fill dead bytes with a pattern (NaN in floats), to test that nothing reads them
        tiles: compute products and convolutions of bytes, and with ``precision="bf16"`` those of floats, on this
            processor's tile registers (Intel AMX). None: `cgraph.compile` uses them on a machine where a trial had
            the right bits; such functions are compiled again without tiles when they are saved. True: always;
            compiling raises ValueError if the processor has none, or if the system refuses them, and saving a
            FormatError
    """

    target: str = "host"
    threads: int = 0
    poison: bool = False
    tiles: bool | None = None
    name = "cpu"
    feeds_rows = True
    exceeds_budget = False
    refuses = ()
    alignment = ALIGNMENT

    def __post_init__(self) -> None:
        check_threads(self.threads)

    @property
    def kernel_target(self) -> Target:
        """The target whose kernels run."""
        target = target_named(self.target)
        return with_tiles(target) if self.tiles else target

    def lower(self, roots: tuple[Node, ...], options: CompileOptions) -> tuple[Node, ...]:
        """Run all passes, then choose the layouts on which this target's kernels are fastest."""
        how = LoweringOptions(
            options.passes,
            options.winograd,
            keep_for(options),
            options.storage_dtype,
            options.in_pairs,
            options.rounded_layers,
        )
        return lower_graph(roots, self.kernel_target, how)

    def plan(self, request: Request, options: CompileOptions) -> Compiled:
        """Plan memory with this target's workspaces, at multiples of a cache line. Warn if this machine has too little
        memory.
        """
        target = self.kernel_target
        if options.weights is None:
            compiled = plan_request(
                request,
                target,
                self.alignment,
                options,
                best_effort=self.exceeds_budget,
                moves_results=True,
                least_gain=LEAST_GAIN,
            )
        else:
            compiled = split.plan_streamed(
                request,
                options,
                lambda cut, trial_options: plan_request(cut, target, self.alignment, trial_options, best_effort=True),
                self.code_in_memory,
                keep_for(options),
            )
        limit = memory_nbytes()
        if compiled.nbytes > limit:
            there = f"this machine has {bytes_text(limit)}"
            text, place = needs_text(compiled.plan, compiled.lower_bound, there), user_line()
            warnings.warn_explicit(text, MemoryWarning, place.file, place.line)
        return compiled

    def code(self, request: Request, compiled: Compiled) -> Code:
        """Return the kernel calls of all steps, by name and over symbolic addresses."""
        code = self.code_in_memory(compiled)
        return replace(code, ring=ring_of(code))

    def code_in_memory(self, compiled: Compiled) -> Code:
        """Return the same code with all constants in memory."""
        target = self.kernel_target
        calls = CallsOfSteps(partial(fill_calls, target, value=POISON) if self.poison else None)
        placed = with_result_places(compiled)
        updates = Part("update edges", update_calls(target, placed))
        return code_of(chain((calls.parts(step) for step in placed.steps), [[updates]]), compiled)

    def program(self, code: Code) -> CpuProgram:
        """Return the code with its kernels; compile those that are not cached."""
        target = self.kernel_target
        loaded = store().load(code.compiled_kernels, target)
        addresses = code.addresses(loaded[k] for k in code.compiled_kernels)
        return CpuProgram(code, addresses, self.threads or cores(), POISON if self.poison else None, target)


def keep_for(options: CompileOptions) -> Keep:
    """Return the function that stores packed constants: in huge pages, or in a file if runs read them from one."""
    if options.weights is None:
        return HugePages().keep
    return Spool(os.path.dirname(options.weights.path) or os.curdir, HASHED_NBYTES).keep


def cpu_name() -> str:
    """Return the processor's name as the system reports it."""
    facts, names = cpuinfo(), host_architecture().cpuinfo
    if "model name" in facts:
        return facts["model name"]
    return ", ".join(f"{name} {facts[name]}" for name in names[:-1] if name in facts) or platform.machine()
