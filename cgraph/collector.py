"""Rare collections: Python's cyclic garbage collector while modules are loaded and graphs are compiled.

Both create many objects that live on. The collector visits them again and again: a sixth of a small network's start.
They leave few cycles: 25 of the 50,000 objects that a start of BERT creates.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

RARE = 500_000  # new objects for each collection


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let the collector run after `RARE` new objects, and as before at the end.

    A process that has turned it off, or runs it less often, keeps its setting. Of contexts that overlap, the first one
    that ends restores it.
    """
    before, modules = gc.get_threshold(), len(sys.modules)
    if not 0 < before[0] < RARE:
        yield
        return
    try:
        gc.set_threshold(RARE, *before[1:])
        yield
    finally:
        if gc.get_threshold()[0] == RARE:
            try:
                if len(sys.modules) > modules:
                    age_objects()
            finally:
                gc.set_threshold(*before)


def age_objects() -> None:
    """Move all objects to the oldest generation, which only full collections visit.

    Otherwise the next two collections would visit all that the loaded modules created. Only contexts that load modules
    call this. If each compile did, a loop of compiles would never collect young objects. A process that has frozen
    objects keeps them frozen: there, nothing is moved.
    """
    if gc.get_freeze_count() == 0:
        try:
            gc.freeze()
        finally:  # an interrupt may come in between
            gc.unfreeze()
