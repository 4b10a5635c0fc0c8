"""The memory limit of this process: the machine's memory and the limits of its control groups."""

import os

from cgraph.engine.cpu.cores import GROUPS, MOUNT, Path, content, groups_of
from cgraph.system.machine import machine_nbytes

LIMITS = ("memory.max", "memory.limit_in_bytes")  # of control groups, versions 2 and 1


def memory_nbytes(groups: Path = GROUPS, mount: Path = MOUNT) -> int:
    """Return the bytes of memory available to this process, without swap space.

    Source: Linux, Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst.
    """
    limits = [machine_nbytes()]
    for folder in groups_of(groups, mount, "memory"):
        limits += [
            int(text) for name in LIMITS if (text := content(os.path.join(folder, name))) and text.strip().isdigit()
        ]
    return min(limits)
