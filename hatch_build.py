"""Build hook: compile the listed kernels into tables of machine code, which the wheel contains.

A release is built with ``CGRAPH_KERNELS=all``, for all common processors. Else the tables are those of the machine that
builds, also for an editable install. ``CGRAPH_KERNELS=none`` builds none; then each kernel is compiled at its first
use.
"""

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PrebuiltKernels(BuildHookInterface):
    """The hook that pyproject.toml names for wheels."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the tables and add them to the wheel."""
        which = os.environ.get("CGRAPH_KERNELS", "host")
        if which not in ("all", "host", "none"):
            raise ValueError(f"CGRAPH_KERNELS is {which!r}. Use all, host or none")
        if which == "none":
            return
        sys.path.insert(0, self.root)
        try:
            from cgraph.kernels.build_tables import build_tables

            paths = build_tables(is_for_all=which == "all")
        finally:
            sys.path.remove(self.root)
        build_data["artifacts"] += [path.relative_to(Path(self.root)).as_posix() for path in paths]
