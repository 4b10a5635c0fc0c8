"""Measurements in fresh processes: each has a process of its own, and processes that are compared take turns.

A module has ``measure(case, way) -> dict of numbers`` and calls `child` first in its `main`; `compared` starts
``python -m MODULE --child CASE WAY`` and takes medians. A measurement that is impossible raises
`benchmarks.runner.Absent`.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.runner import Absent

Figures = dict[str, float]


def child(measure: Callable[[str, str], Figures]) -> bool:
    """Return True in a measuring process, after printing its result."""
    if sys.argv[1:2] != ["--child"]:
        return False
    try:
        found: dict[str, Any] = dict(measure(*sys.argv[2:4]))
    except (Absent, ImportError) as error:
        found = {"absent": str(error).splitlines()[0]}
    print(json.dumps(found))
    return True


def compared(module: str, case: str, ways: Sequence[str], rounds: int) -> dict[str, Figures]:
    """Return medians by way, of those that can be measured; print why others cannot."""
    found: dict[str, list[Figures]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in [way for way in ways if way in found]:
            command = [sys.executable, "-m", module, "--child", case, way]
            output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            figures = json.loads(output.splitlines()[-1])
            if "absent" in figures:
                print(f"{case}: without {way}: {figures['absent']}")
                del found[way]
            else:
                found[way].append(figures)
    return {way: {key: statistics.median(r[key] for r in rows) for key in rows[0]} for way, rows in found.items()}


def seconds_of(run: Callable[[], Any], most: int, limit: float) -> Figures:
    """Return medians of `most` runs, or of as many as fit in `limit` seconds, after an uncounted one.

    Returns
        seconds, and processor: those of all threads
    """
    times: list[tuple[float, float]] = []
    run()
    while len(times) < most and sum(wall for wall, _ in times) < limit:
        start = time.perf_counter(), time.process_time()
        run()
        times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    seconds, processor = map(statistics.median, zip(*times))
    return {"seconds": seconds, "processor": processor}
