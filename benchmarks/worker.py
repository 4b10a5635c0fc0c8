"""One engine's process, as `benchmarks.runner` starts it: it prepares a case, then times runs on request.

Requests and answers are lines of JSON; the first answer is the time of a run, or the reason why there is none. Seconds
are those of a clock of the module `time`: ``perf_counter``, or ``process_time`` for the processor time of all threads.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.runner import Absent


def work(module: str, engine: str, case: str, threads: int, result: str, clock: str) -> None:
    """Prepare, report the time of a run, then answer requests until the parent closes."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries must not print into the answers

    def answer(value: dict) -> None:
        print(json.dumps(value), file=answers, flush=True)

    try:
        run = import_module(module).prepare(engine, case, threads)
        found = run()
    except (Absent, ImportError) as error:
        answer({"absent": str(error).splitlines()[0]})
        return
    np.savez(result, *(np.asarray(x) for x in (found if isinstance(found, list | tuple) else [found])))
    run()
    now = getattr(time, clock)
    answer({"seconds": min(seconds_of(run, now) for _ in range(3))})
    for line in sys.stdin:
        answer({"seconds": [seconds_of(run, now) for _ in range(json.loads(line)["runs"])]})


def seconds_of(run: Callable[[], Any], now: Callable[[], float]) -> float:
    start = now()
    run()
    return max(now() - start, 1e-7)


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5], sys.argv[6])
