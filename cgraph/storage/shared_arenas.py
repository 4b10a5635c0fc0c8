"""Arenas shared by several programs: as large as the largest needs, one for each concurrent run."""

from typing import Any
from weakref import ref

import numpy as np

from cgraph.system.alignment import aligned_memory


class SharedArena:
    """One arena, with an instance of each program in it. Mutable: the program that ran last owns the values there.

    Fields
        memory: bytes of the arena
        instances: the instance of each program
        last: the program that ran last
    """

    def __init__(self, nbytes: int) -> None:
        self.memory: np.ndarray = aligned_memory(nbytes)
        self.instances: dict[ref[Any], Any] = {}
        self.last: ref[Any] | None = None

    def sweep(self) -> None:
        """Drop the instances of programs that no longer exist. A weak-reference callback instead could swallow an
        interrupt."""
        for program in list(self.instances):
            if program() is None:
                self.instances.pop(program, None)


class SharedArenas:
    """Arenas for several programs. Mutable: new ones are allocated when none is idle, larger ones when a program needs
    more.

    Fields
        nbytes: bytes of an arena: the need of the largest program
    """

    def __init__(self) -> None:
        self.nbytes = 0
        self._idle: list[SharedArena] = []

    def need(self, nbytes: int) -> None:
        """Add a program that needs this many bytes."""
        if nbytes > self.nbytes:
            self.nbytes = nbytes
            self._idle = []

    def take(self) -> SharedArena:
        """Return an idle arena, or a new one."""
        while True:
            try:
                arena = self._idle.pop()
            except IndexError:
                return SharedArena(self.nbytes)
            if arena.memory.nbytes >= self.nbytes:
                return arena

    def give(self, room: SharedArena) -> None:
        if len(room.instances) > 1:  # the instance of the program that ran belongs to one that exists
            room.sweep()
        self._idle.append(room)

    def sweep(self) -> None:
        """Drop the instances of programs that no longer exist. A weak-reference callback instead could swallow an
        interrupt."""
        for room in list(self._idle):
            room.sweep()
