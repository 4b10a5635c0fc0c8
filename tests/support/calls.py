"""Work as a count: which Python functions are called, how often. The same on every machine, under any load."""

import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any


def calls_during(run: Callable[[], object]) -> Counter[CodeType]:
    """Per function's code the calls of it while `run` runs; a generator counts each time it goes on."""
    found: Counter[CodeType] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            found[frame.f_code] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
    return found
