"""The settings of an export: which processor, folder, names and form."""

import os
from collections.abc import Sequence
from pathlib import Path

from cgraph.errors import FormatError
from cgraph.kernels.machines import machine_named, machines
from cgraph.record import Record
from cgraph.standalone.folder import check_folder
from cgraph.standalone.names import c_name, check_prefix

FORMS = ("whole", "small", "shared", "c")
MEMORY = ("static", "caller")


class Settings(Record, eq=False):
    """Checked arguments of `cgraph.export`.

    Fields
        folder: path of the new folder
        machine: the name of the processor
        prefix: prefix of all C names
        names: names of the outputs; empty for those of the graph
        form, memory, reset: as for `cgraph.export`
    """

    folder: Path
    machine: str
    prefix: str
    names: Sequence[str]
    form: str
    memory: str
    reset: bool

    @property
    def keeps_start(self) -> bool:
        """True if the constants contain the initial state."""
        return self.reset or self.memory == "caller"


def settings_of(
    folder: str | os.PathLike,
    machine: str,
    *,
    name: str | None = None,
    names: Sequence[str] = (),
    form: str = "whole",
    memory: str = "static",
    reset: bool = False,
) -> Settings:
    """Return the settings of an export. FormatError for unknown ones, and for ones that exclude each other."""
    path = check_folder(folder)
    prefix = check_prefix(c_name(path.name) if name is None else name)
    if machine not in machines():
        raise FormatError(f"there is no target {machine!r:.60}. Use one of {', '.join(machines())}")
    check_choice("form", form, FORMS)
    check_choice("memory", memory, MEMORY)
    if form == "c" and memory == "caller":
        raise FormatError("the form 'c' has static memory. Use form='whole' for memory of the caller")
    if machine_named(machine).is_linked and (form == "c" or memory == "caller"):
        raise FormatError(f"{machine} is a linked module with static memory. Use form='whole' and memory='static'")
    return Settings(path, machine, prefix, names, form, memory, reset)


def check_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Raise FormatError unless a value is one of the choices."""
    if value not in choices:
        raise FormatError(f"{option} is {value!r:.60}. Use one of {', '.join(choices)}")
