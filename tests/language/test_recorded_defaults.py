"""What a public function or class means by each argument that is left out, compared with a record.

Users do not see that a default has changed, and few tests leave every argument out. After a change that is meant:
``python -m tests.language.test_recorded_defaults`` writes the record anew.
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cgraph as cg
import nn
from cgraph.formats import FORMATS
from cgraph.planning.options import CompileOptions

RECORD = Path(__file__).with_name("recorded_defaults.txt")
PLACES = (
    *(nn, nn.init, nn.layers, nn.losses, nn.metrics, nn.models, nn.optim, cg, cg.quantiser, cg.dist),
    *(getattr(cg.formats, name) for name in FORMATS),
)


def public() -> Iterator[tuple[str, Any]]:
    """Names and what they stand for, once each."""
    seen: dict[int, Any] = {}  # by id; held, so that no other object gets its id
    for place in PLACES:
        for name in getattr(place, "__all__", None) or [x for x in dir(place) if x[0] != "_"]:
            value = getattr(place, name)
            if callable(value) and id(value) not in seen:
                seen[id(value)] = value
                yield f"{place.__name__}.{name}", value
    yield "CompileOptions", CompileOptions


def told(default: Any) -> str:
    name = getattr(default, "__qualname__", None)
    return name if name and not isinstance(default, type) else re.sub(r" at 0x\w+", "", repr(default))


def recorded() -> list[str]:
    """A line for each name that has defaults."""
    lines = []
    for name, value in public():
        try:
            parameters = inspect.signature(value).parameters.values()
        except (TypeError, ValueError):  # a class of C tells no arguments
            continue
        defaults = [f"{p.name}={told(p.default)}" for p in parameters if p.default is not p.empty]
        if defaults:
            lines.append(f"{name} {' '.join(defaults)}")
    return sorted(lines)


def test_defaults_are_those_of_the_record():
    assert recorded() == RECORD.read_text().splitlines()


if __name__ == "__main__":
    RECORD.write_text("\n".join(recorded()) + "\n")
