"""The CPU engine: kernel calls from placed nodes, over one arena."""

import os
from collections.abc import Sequence

from cgraph.alignment import ALIGNMENT
from cgraph.engine.cpu.program import CpuProgram, code_of_calls
from cgraph.engine.cpu.threads import cores
from cgraph.engine.engine import Step
from cgraph.kernels.calls.move import fill_calls
from cgraph.kernels.kernel import Call
from cgraph.kernels.target import target_named
from cgraph.record import Record


class CpuEngine(Record):
    """Kernels of one target on some threads.

    Fields
        target: ``host`` (the widest here), ``avx512``, ``avx2`` or ``portable``
        threads: 0 is all the cores this process may use
        poison: fill dead bytes with a pattern that shows (NaN in floats): a test that nothing reads them
    """

    target: str = "host"
    threads: int = 0
    poison: bool = False
    name = "cpu"
    alignment = ALIGNMENT

    def program(self, steps: Sequence[Step], nbytes: int) -> "CpuCode":
        """The code of these steps, from which instances are made."""
        calls = [self._calls(step) for step in steps]
        labels = [f"{step.node.name} at {step.node.where}" for step in steps]
        writes = (t for t, step in enumerate(steps) if step.node.op.writes)
        code = code_of_calls(calls, labels, target_named(self.target), next(writes, len(steps)))
        return CpuCode(code, nbytes, self.threads or cores(), self.poison)

    def _calls(self, step: Step) -> list[Call]:
        calls = step.node.op.cpu(step.out, *step.xs, **({"scratch": step.scratch} if step.scratch else {}))
        if self.poison:
            calls = calls + [call for view in step.dead for call in fill_calls(view, POISON)]
        return calls


class CpuCode(Record):
    """What all instances of a function share."""

    code: object
    nbytes: int
    threads: int
    poison: bool

    def instance(self) -> CpuProgram:
        """A program with an arena of its own."""
        made = CpuProgram(self.code, self.nbytes, self.threads)  # type: ignore[arg-type]
        if self.poison:
            made.arena[...] = POISON
        return made


POISON = 0xFF


def cpu_name() -> str:
    """The processor's name, as the system tells it."""
    try:
        with open("/proc/cpuinfo") as file:
            lines = [line for line in file if line.startswith("model name")]
        return lines[0].split(":", 1)[1].strip()
    except (OSError, IndexError):
        return os.uname().machine
