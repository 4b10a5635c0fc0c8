"""This machine in LLVM's terms. Linux reports the processor's features; elsewhere LLVM does, and the cache folder keeps
its answer, so that a process that compiles nothing loads no LLVM.

The system's permission to use tiles is not cached on disk: a process asks for it when a target with tiles is requested.
"""

import hashlib
import json
import os
import platform
from functools import cache
from pathlib import Path

from cgraph.kernels.cache import cache_folder
from cgraph.kernels.isa.architectures import cpuinfo, host_architecture, host_features, vendor
from cgraph.kernels.isa.records import Host as Host
from cgraph.system.machine import is_linux
from cgraph.system.tiles import request_tiles

TILES = ("amx-tile", "amx-int8", "amx-bf16")


@cache
def host() -> Host:
    """Return this machine's description from Linux, from the cache folder, or from LLVM."""
    described = linux_host()
    if described:
        return described
    folder, key = cache_folder(), host_key()
    name = f"host_{key}" if folder and key else None
    raw = folder.read(name) if folder and name else None
    if raw is not None and (parts := read_parts(raw)) is not None:
        return Host(*parts)
    answer = detect_host()
    if folder and name:
        folder.write(name, json.dumps([getattr(answer, field) for field in Host._fields]).encode())
    return answer


@cache
def tiles_state() -> str:
    """Return ``permitted`` or ``refused`` if the processor has tiles, else an empty string."""
    if not host().has(*TILES):
        return ""
    return "permitted" if request_tiles() else "refused"


def read_parts(raw: bytes) -> list[str] | None:
    """Return the fields of a Host from its cache file, or None for any other content."""
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    is_host = isinstance(fields, list) and len(fields) == len(Host._fields) and all(isinstance(x, str) for x in fields)
    return fields if is_host else None


def linux_host() -> Host | None:
    """Return the description of a machine whose system reports all features that targets need, else None."""
    features = detected_features() if is_linux() else []
    if not features:
        return None
    import llvmlite

    library = library_status()
    version = f"llvmlite {llvmlite.__version__}, a library of {library.st_size if library else 0} bytes"
    return Host("", ",".join(features), f"{platform.machine()}-unknown-linux-gnu", "", version, vendor())


def detect_host() -> Host:
    """Return this machine's description from LLVM."""
    import llvmlite
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    version = f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, llvm.llvm_version_info))}"
    triple = llvm.get_process_triple()
    layout = str(llvm.Target.from_triple(triple).create_target_machine().target_data)
    features = [llvm.get_host_cpu_features().flatten(), *detected_features()]
    return Host(llvm.get_host_cpu_name(), ",".join(filter(None, features)), triple, layout, version, vendor())


def detected_features() -> list[str]:
    """Return the features that the system reports, in LLVM's form."""
    names, there = host_architecture().feature_names, host_features()
    return [f"+{name}" for linux_name, name in names.items() if linux_name in there]


def host_key() -> str | None:
    """Return a hash of the processor, LLVM's library and llvmlite's version; None where they cannot be read."""
    import llvmlite

    status = library_status()
    lines, names = cpuinfo(), host_architecture().cpuinfo
    if not status or not names or not lines.keys() >= set(names):
        return None
    processor = [*(lines[name] for name in names), *detected_features()]
    parts = (Host._fields, processor, llvmlite.__version__, llvmlite.__file__, status.st_size, status.st_mtime_ns)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def library_status() -> os.stat_result | None:
    """Return the size and times of LLVM's library; None if they cannot be read."""
    import llvmlite

    try:
        return (Path(llvmlite.__file__).parent / "binding" / "libllvmlite.so").stat()
    except OSError:
        return None
