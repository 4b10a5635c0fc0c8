"""The number of cores for this process: affinity and the quotas of its control groups, versions 1 and 2."""

import os
from collections.abc import Iterator
from functools import cache

from cgraph.errors import GraphError
from cgraph.system.machine import allowed_processors

MOUNT = "/sys/fs/cgroup"
GROUPS = "/proc/self/cgroup"
Path = str | os.PathLike[str]  # pathlib takes longer to load than all of this


def check_threads(threads: int) -> None:
    """Raise GraphError unless `threads` is an integer >= 0."""
    is_number = hasattr(type(threads), "__index__") and not isinstance(threads, bool)
    if not is_number or getattr(threads, "shape", None) or threads < 0:
        raise GraphError(
            f"threads is {threads!r:.60}: it must be an integer >= 0. Pass 0 for all the cores this process may use"
        )


@cache
def cores() -> int:
    """Return the cores that this process may keep busy, >= 1; read once."""
    allowed, quota = allowed_processors(), quota_of(GROUPS, MOUNT)
    return allowed if quota is None else max(1, min(allowed, int(quota)))


def quota_of(groups: Path, mount: Path) -> float | None:
    """Return the smallest quota, in cores, of the groups listed in the file `groups` and of their parents; None: no
    limit.

    Source: Linux, Documentation/admin-guide/cgroup-v2.rst (``cpu.max``), cgroup-v1 (``cpu.cfs_quota_us``).
    """
    quotas = [q for folder in groups_of(groups, mount, "cpu") if (q := folder_quota(folder)) is not None]
    return min(quotas, default=None)


def groups_of(groups: Path, mount: Path, controller: str) -> Iterator[str]:
    """Yield the folders of the groups listed in the file `groups`, and of their parents, that a controller limits."""
    for line in (content(groups) or "").splitlines():
        yield from folders_of(line, mount, controller)


def folders_of(line: str, mount: Path, controller: str) -> Iterator[str]:
    """Yield the existing folders of one line ``number:controllers:path`` and of all its parents."""
    number, controllers, path = line.split(":", 2)
    if number != "0" and controller not in controllers.split(","):
        return
    root = os.fspath(mount) if number == "0" else os.path.join(mount, controllers)
    if not os.path.isdir(root):
        root = os.path.join(mount, controller)
    inside = path.strip("/")
    while inside:
        yield os.path.join(root, inside)
        inside = os.path.dirname(inside)
    yield root


def folder_quota(folder: Path) -> float | None:
    """Return the quota that one group sets itself."""
    text = content(os.path.join(folder, "cpu.max"))
    if text is not None:
        quota, period = text.split()
        return None if quota == "max" else int(quota) / int(period)
    limit, interval = (content(os.path.join(folder, f"cpu.cfs_{name}_us")) for name in ("quota", "period"))
    if limit is None or interval is None or int(limit) <= 0:
        return None
    return int(limit) / int(interval)


def content(path: Path) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None
