"""Compile kernels, keep their machine code on disk, look them up.

A kernel's object code is kept in a file named by a hash of: its family and params, the text of every emitter, the
target, and the versions of LLVM and Python's llvmlite. The folder belongs to the user alone (mode 0700); a file that
is cut off, changed or foreign fails its checksum, is ignored and written anew; writing is by rename, so two processes
may compile at once. Loading needs no emitter: a warm process imports `llvmlite.binding` only.
"""

import hashlib
import os
import re
import stat
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from cgraph.kernels.kernel import Kernel
from cgraph.kernels.target import Target, host_target, new_target_machine

MAGIC = b"cgraph-kernel-1\n"


@dataclass
class KernelStore:
    """The kernels of this process. Changes: addresses and counters grow.

    Fields
        folder: where object code is kept; None keeps nothing on disk
        hits, misses: kernels loaded from disk; kernels compiled
        compile_seconds: time spent compiling
    """

    folder: Path | None
    hits: int = 0
    misses: int = 0
    compile_seconds: float = 0.0
    _addresses: dict[tuple[Kernel, Target], int] = field(default_factory=dict)
    _engines: dict[Target, Any] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def address(self, kernel: Kernel, target: Target | None = None) -> int:
        """The address of one kernel's machine code, compiled when it is nowhere yet."""
        return self.load([kernel], target)[kernel]

    def load(self, kernels: Iterable[Kernel], target: Target | None = None) -> dict[Kernel, int]:
        """The addresses of many kernels; those that are missing are compiled first."""
        target = target or host_target()
        wanted = list(dict.fromkeys(kernels))
        with self._lock:
            new = [k for k in wanted if (k, target) not in self._addresses]
            if new:
                self._add(new, target)
            return {k: self._addresses[k, target] for k in wanted}

    def _add(self, kernels: list[Kernel], target: Target) -> None:
        import llvmlite.binding as llvm

        engine = self._engine(target)
        symbols = {kernel: symbol_of(kernel, target) for kernel in kernels}
        for kernel, symbol in symbols.items():
            engine.add_object_file(llvm.ObjectFileRef.from_data(self._object_code(kernel, symbol, target)))
        engine.finalize_object()
        for kernel, symbol in symbols.items():
            self._addresses[kernel, target] = engine.get_function_address(symbol)

    def _engine(self, target: Target) -> Any:
        if target not in self._engines:
            import llvmlite.binding as llvm

            machine = new_target_machine(target)
            self._engines[target] = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        return self._engines[target]

    def _object_code(self, kernel: Kernel, symbol: str, target: Target) -> bytes:
        path = self.folder / f"{symbol}.o" if self.folder else None
        found = read_object(path) if path else None
        if found is not None:
            self.hits += 1
            return found
        made, seconds = import_module("cgraph.kernels.llvm.compile").compile_kernel(kernel, symbol, target)
        self.misses += 1
        self.compile_seconds += seconds
        if path:
            write_object(path, made)
        return made


@cache
def store() -> KernelStore:
    """The store of this process."""
    return KernelStore(cache_folder())


def symbol_of(kernel: Kernel, target: Target) -> str:
    """The name under which a kernel is kept: readable family, then a hash of all that shapes its code."""
    import llvmlite
    import llvmlite.binding as llvm

    emitter = emitter_hash(kernel.family.split(".")[0])
    parts = (kernel.family, kernel.params, target, llvmlite.__version__, llvm.llvm_version_info, emitter)
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:24]
    return f"{kernel.family.replace('.', '_')}_{digest}"


@cache
def emitter_hash(module: str) -> str:
    """A hash of the text of an emitter's file and of every file below `cgraph.kernels` that it imports, in turn.

    The text is read, not imported: a warm process needs no emitter.
    """
    folder = Path(__file__).parent
    seen: dict[Path, str] = {}
    todo = [folder / "llvm" / f"{name}.py" for name in ("compile", "build", module)]
    while todo:
        path = todo.pop()
        if path in seen or not path.exists():
            continue
        seen[path] = path.read_text()
        names = re.findall(r"from cgraph\.kernels\.([\w.]+) import", seen[path])
        todo += [folder / (name.replace(".", "/") + ".py") for name in names]
    return hashlib.sha256(repr(sorted(text for text in seen.values())).encode()).hexdigest()


def cache_folder() -> Path | None:
    """The user's own cache folder, made when missing; None when it is not theirs alone."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "cgraph" / "kernels"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        seen = folder.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid():
        return None
    if seen.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def read_object(path: Path) -> bytes | None:
    """The object code in a file, or None when the file is absent, cut off or changed."""
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    body = raw[len(MAGIC) + 32 :]
    if not raw.startswith(MAGIC) or hashlib.sha256(body).digest() != raw[len(MAGIC) : len(MAGIC) + 32]:
        return None
    return body


def write_object(path: Path, body: bytes) -> None:
    """Write by rename; a full or read-only disk costs the cache, not the run."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + hashlib.sha256(body).digest() + body)
        os.replace(temporary, path)
    except OSError:
        return
