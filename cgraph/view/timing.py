"""Times of the steps of a Function, and the number of its kernels.

Steps run one by one, so each time includes one start of the interpreter (some microseconds). A step finds in the
processor's caches what the previous step left, as in a whole run.
"""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from cgraph.engine.instance import Instance, Share
from cgraph.errors import GraphError
from cgraph.function import Function, RowsFunction
from cgraph.view.planned import compiled_of


def step_seconds(function: Function, args: tuple, named: Mapping[str, Any], repeats: int) -> list[float]:
    """Return seconds of each step, the shortest of `repeats` runs after an uncounted one. No update edge is written.

    The time in which a step waits for weights from a file does not count.

    Raises
        GraphError: there is no program, as on the reference engine; `repeats` is less than 1; inputs are streamed by
            rows
        InputError, UnassignedError: as when the Function is called
    """
    if repeats < 1:
        raise GraphError(f"a timed report repeats at least once, not {repeats} times. Pass repeats=1 or more")
    if isinstance(function, RowsFunction):
        raise GraphError(
            f"timing runs the steps {repeats} times, but streamed rows arrive once. Compile without rows= for times"
        )
    steps = range(len(compiled_of(function).layout.steps))
    with function.instance_for(args, named) as instance:
        runs = [[_seconds(instance, t) for t in steps] for _ in range(repeats + 1)]
    return [min(times) for times in zip(*runs[1:])]


def record_run(function: Function, args: tuple, named: Mapping[str, Any], repeats: int = 3) -> tuple[Share, ...]:
    """Return a record of the tasks of each thread, for the shortest of `repeats` runs. Updates are not written.

    Empty if the engine does not record them. Raises the errors of `step_seconds`.
    """
    with function.instance_for(args, named) as instance:
        instance.run(write=False)
        return min((instance.recorded() for _ in range(repeats)), key=run_nanoseconds)


def run_nanoseconds(shares: Sequence[Share]) -> int:
    """Return the nanoseconds from the first beginning to the last end."""
    return max((x.end for x in shares), default=0) - min((x.begin for x in shares), default=0)


def program_size(function: Function) -> tuple[int, int] | None:
    """Return the numbers of different kernels and of kernel calls of the program; None if there is no program."""
    if function.compiled is None:
        return None
    code = function.program.code
    return len(code.compiled_kernels), len(code.table)


def _seconds(instance: Instance, step: int) -> float:
    waited, start = instance.waited, perf_counter()
    instance.run((step,), write=False)
    return max(perf_counter() - start - (instance.waited - waited), 0.0)
