"""The table of architectures, and this machine's. Each architecture is loaded when it is first used."""

import platform
from collections.abc import Iterable
from functools import cache
from importlib import import_module

from cgraph.kernels.isa.records import Architecture, Intrinsic, Target
from cgraph.system.machine import mac_features

MACHINES: dict[str, tuple[str, ...]] = {
    "x86": ("x86_64", "AMD64"),
    "arm": ("aarch64", "arm64"),
    "thumb": ("thumbv7em",),
    "thumb_mve": ("thumbv8.1m.main",),
    "wasm": ("wasm32",),
    "riscv": ("riscv64",),
    "ptx": (),
    "generic": (),
}
"""Modules beside this one, each with an ``ARCHITECTURE``, and how triples and systems call machines of it."""


@cache
def architecture(name: str) -> Architecture:
    """Return an architecture by its name in the table."""
    row: Architecture = import_module(f"cgraph.kernels.isa.{name}").ARCHITECTURE
    return row


def architecture_of(target: Target) -> Architecture:
    """Return a target's architecture."""
    return architecture(target.architecture)


def architecture_of_machine(machine: str) -> Architecture:
    """Return the architecture of a machine by its name, or by an LLVM triple, which begins with the name."""
    first = machine.partition("-")[0]
    return architecture(next((name for name, machines in MACHINES.items() if first in machines), "generic"))


def address_bits(target: Target) -> int:
    """Return the bits of an address on a target."""
    objects = architecture_of(target).objects
    return objects.address_bits if objects else 64


def instruction_of(target: Target, operation: str, lanes: int = 0) -> Intrinsic | None:
    """Return the instruction for an operation whose result has `lanes` lanes; None if the target has none."""
    return architecture_of(target).instructions.get((operation, lanes))


def generic_target(target: Target) -> Target:
    """Return the target of the same name that every processor of its kind runs, for saved code."""
    return {x.name: x for x in architecture_of(target).targets}.get(target.name, target)


def narrowest(own: Architecture, names: Iterable[str]) -> str:
    """Return the name of the narrowest target of an architecture: processors of all these targets run it."""
    order = [x.name for x in own.targets]
    return min(names, key=order.index)


def needs_of(target: Target) -> tuple[str, ...] | None:
    """Return the features that saved code of a target needs, None if it cannot be saved."""
    return architecture_of(target).needs.get(target.name)


def host_architecture() -> Architecture:
    """Return this machine's architecture, without LLVM."""
    return architecture_of_machine(platform.machine())


def cpuinfo() -> dict[str, str]:
    """Return Linux's description of the first processor, by name; empty on other systems."""
    try:
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            text = file.read(1 << 14).decode(errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def vendor() -> str:
    """Return the processor's vendor, such as ``AuthenticAMD``; empty if the system does not report it."""
    return cpuinfo().get("vendor_id") or platform.processor().rpartition(", ")[2]  # Windows: "…, GenuineIntel"


def host_features() -> frozenset[str]:
    """Return this processor's features, as Linux names them: all of them there, some on macOS, none elsewhere."""
    names = host_architecture().cpuinfo
    return mac_features().union(cpuinfo().get(names[-1], "").split() if names else ())
