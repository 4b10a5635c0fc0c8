"""The kernel store: compiles kernels, caches their machine code on disk and returns their addresses.

The file name of a kernel's object code is a hash of everything that determines it: its family and params, the source of
its emitter and of all project files that this imports, the target (processor, features, registers), the settings of
LLVM's code generator (triple, data layout, optimisation, relocation and code model), and the versions of LLVM and
llvmlite. `cgraph.kernels.cache` describes the folder. Kernels that were built with the package come from a table
(`cgraph.kernels.prebuilt`), under a hash of the same facts without the version of LLVM. A process that compiles nothing
imports no emitter and, where `cgraph.kernels.objects` can link the code, no LLVM. Stored code that is not for this
machine, or has relocations that kernels never have, is compiled again and never run.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from os.path import abspath, dirname, isdir, isfile
from typing import Any

from cgraph.kernels.cache import CacheFolder, cache_folder
from cgraph.kernels.code_image import LAPACK, Image, UnknownCode, c_function, place_image
from cgraph.kernels.families import place_of
from cgraph.kernels.host import host
from cgraph.kernels.isa.architectures import architecture_of_machine
from cgraph.kernels.isa.records import Architecture
from cgraph.kernels.isa.systems import has_elf
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.objects import MalformedCode, is_for, link_objects
from cgraph.kernels.prebuilt.table import KernelTable, table_of
from cgraph.kernels.target import Target, code_generation, new_target_machine
from cgraph.system.fair_lock import FairLock, Ticket
from cgraph.system.machine import allowed_processors, at_fork

LAPACK_NAME = re.compile(rf"{LAPACK}[a-z]+".encode())
EACH, MOST_THREADS = 3, 4  # kernels that are worth a thread; threads that compile
KERNELS = dirname(abspath(__file__))
PROJECT = dirname(KERNELS)
Source = tuple[str, tuple[str, ...]]  # a file's digest, and the files that it may import
IMPORT = re.compile(r"^ *(?:from|import) cgraph\.([\w.]+)(?: import (\([^)]*\)|[^\n]*))?", re.MULTILINE)


@dataclass
class KernelStore:
    """The kernels of this process. Changes: addresses and counters grow.

    Fields
        folder: cache folder of object code; None caches nothing on disk
        table: returns the table of kernels that were built for a target, None if there is none
        built, hits, misses: kernels that were built with the package, were read from the folder, were compiled
        compile_seconds: time spent compiling
    """

    folder: CacheFolder | None
    table: Callable[[Target], KernelTable | None] = lambda target: None
    built: int = 0
    hits: int = 0
    misses: int = 0
    compile_seconds: float = 0.0
    _addresses: dict[tuple[Kernel, Target], int] = field(default_factory=dict)
    _memory: list[Any] = field(default_factory=list)
    _engines: dict[Target, Any] = field(default_factory=dict)
    _lock: FairLock = field(default_factory=FairLock)
    _fork: Ticket | None = None

    @property
    def loaded(self) -> int:
        """Kernels that needed no compilation."""
        return self.built + self.hits

    def address(self, kernel: Kernel, target: Target) -> int:
        """Return the address of one kernel, compiling it if necessary."""
        return self.load([kernel], target)[kernel]

    def load(self, kernels: Iterable[Kernel], target: Target) -> dict[Kernel, int]:
        """Return the addresses of kernels, compiling the missing ones first."""
        requests = list(dict.fromkeys(kernels))
        if any((k, target) not in self._addresses for k in requests):
            self._lock.run(lambda: self._add(requests, target))
        return {k: self._addresses[k, target] for k in requests}

    def _add(self, requests: list[Kernel], target: Target) -> None:
        is_warm = not self.misses
        kernels = [k for k in requests if (k, target) not in self._addresses]
        symbols, code, image = self._link(kernels, target)
        try:
            addresses = self._place(code, image, target)
        except (MalformedCode, RuntimeError):  # LLVM raises RuntimeError
            symbols = {kernel: symbol_of(kernel, target) for kernel in kernels}
            code = {symbol: self._compile(kernel, symbol, target) for kernel, symbol in symbols.items()}
            addresses = self._place(code, None, target)
        self._addresses.update(((kernel, target), addresses[symbol]) for kernel, symbol in symbols.items())
        if self.folder and is_warm and self.misses:  # once per process, after its first compilation
            self.folder.prune_hourly()

    def _link(
        self, kernels: Iterable[Kernel], target: Target
    ) -> tuple[dict[Kernel, str], dict[str, bytes], Image | None]:
        """Return the symbols of kernels, object code by symbol, and the linked image; None in place of the image where
        only LLVM can link.

        Stored code with an unsuitable machine, relocation or callee is compiled again.
        """
        built = self._built_code(kernels, target)
        symbols = {kernel: built[kernel][0] if kernel in built else symbol_of(kernel, target) for kernel in kernels}
        stored = dict(built.values())
        for symbol in symbols.values():
            if symbol not in stored and (raw := self._stored_code(f"{symbol}.o")):
                stored[symbol] = raw
        missing = {symbol: kernel for kernel, symbol in symbols.items() if symbol not in stored}
        code = stored | self._compile_all(missing, target)
        try:
            return symbols, code, image_of(code)
        except UnknownCode:
            for kernel, symbol in symbols.items():
                if symbol in stored and not fits(symbol, code[symbol]):
                    del code[symbol]
                    symbols[kernel] = symbol_of(kernel, target)
                    code[symbols[kernel]] = self._compile(kernel, symbols[kernel], target)
        try:
            return symbols, code, image_of(code)
        except UnknownCode:
            return symbols, code, None

    def _built_code(self, kernels: Iterable[Kernel], target: Target) -> dict[Kernel, tuple[str, bytes]]:
        """Return the names and object code of the kernels that were built with the package."""
        table = self.table(target)
        if table is None:
            return {}
        names = {kernel: prebuilt_name(kernel, target) for kernel in kernels}
        code = {kernel: (name, raw) for kernel, name in names.items() if (raw := table.read(name))}
        self.built += len(code)
        return code

    def _place(self, code: dict[str, bytes], image: Image | None, target: Target) -> dict[str, int]:
        if image is not None:
            with suppress(UnknownCode):  # the system refuses executable memory
                memory, addresses = place_image(image)
                self._memory.append(memory)
                return addresses
        return self._place_by_llvm(code, target)

    def _place_by_llvm(self, code: dict[str, bytes], target: Target) -> dict[str, int]:
        import llvmlite.binding as llvm

        engine = self._engine(target)
        for raw in code.values():
            for name in set(LAPACK_NAME.findall(raw)):
                llvm.add_symbol(name.decode(), c_function(name.decode()))
            engine.add_object_file(llvm.ObjectFileRef.from_data(raw))
        engine.finalize_object()
        addresses = {symbol: engine.get_function_address(symbol) for symbol in code}
        if not all(addresses.values()):
            raise MalformedCode(f"object files lack functions: {', '.join(x for x, at in addresses.items() if not at)}")
        return addresses

    def _engine(self, target: Target) -> Any:
        if target not in self._engines:
            import llvmlite.binding as llvm

            machine = new_target_machine(target, code_generation(target))
            self._engines[target] = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        return self._engines[target]

    def image(self, kernels: Iterable[Kernel], target: Target) -> tuple[Image, list[int]]:
        """Return the machine code of kernels as one image, and the offset of each kernel.

        It runs on any processor of the target's kind.

        Raises
            UnknownCode: only LLVM can link the code
        """
        if not has_elf(host().triple):
            raise UnknownCode("only LLVM links code for this system. Save the graph as ONNX, or use Linux")
        requests = list(dict.fromkeys(kernels))
        symbols, code, image = self._lock.run(lambda: self._link(requests, target))
        if image is None:
            image = link_objects(code)  # raises the reason
        return image, [image.symbols[symbols[kernel]] for kernel in requests]

    def ptx(self, kernel: Kernel, words: int, target: Target) -> tuple[str, bytes]:
        """Return the symbol and the PTX of a GPU kernel that takes `words` arguments."""
        symbol = f"{symbol_of(kernel, target)}_{words}"
        args = (f"{symbol}.ptx", "compile_ptx", kernel, symbol, words, target)
        return symbol, self._lock.run(lambda: self._stored_code(f"{symbol}.ptx") or self._compile_and_store(*args))

    def _compile_all(self, kernels: dict[str, Kernel], target: Target) -> dict[str, bytes]:
        """Return the object code of kernels by symbol, compiled on several threads if there are many."""
        threads = min(allowed_processors(), len(kernels) // EACH, MOST_THREADS)
        if threads < 2:
            return {symbol: self._compile(kernel, symbol, target) for symbol, kernel in kernels.items()}
        codes: dict[str, bytes] = {}

        def keep(symbol: str, code: bytes, seconds: float) -> None:
            codes[symbol] = self._store(f"{symbol}.o", code, seconds)

        module = import_module("cgraph.kernels.llvm.side_by_side")
        module.compile_side_by_side(kernels, target, threads, keep)
        return codes

    def _compile(self, kernel: Kernel, symbol: str, target: Target) -> bytes:
        return self._compile_and_store(f"{symbol}.o", "compile_kernel", kernel, symbol, target)

    def _stored_code(self, file: str) -> bytes | None:
        code = self.folder.read(file) if self.folder else None
        self.hits += code is not None
        return code

    def _compile_and_store(self, file: str, compiler: str, *args: Any) -> bytes:
        return self._store(file, *getattr(import_module("cgraph.kernels.llvm.compile"), compiler)(*args))

    def _store(self, file: str, code: bytes, seconds: float) -> bytes:
        self.misses += 1
        self.compile_seconds += seconds
        if self.folder:
            self.folder.write(file, code)
        return code

    def pause(self) -> None:
        """Wait for running compilations and block new ones: before a fork, so that the child's LLVM is consistent."""
        self._fork = Ticket()
        self._lock.join(self._fork)

    def resume(self) -> None:
        if self._fork:
            self._fork.end()


@cache
def store() -> KernelStore:
    """Return the store of this process."""
    new_store = KernelStore(cache_folder(), table_of)
    at_fork(new_store.pause, new_store.resume, new_store.resume)
    return new_store


def symbol_of(kernel: Kernel, target: Target) -> str:
    """Return the cache name of a kernel: its family, then a hash of everything that determines its code."""
    return name_of(kernel, target, host().version)


def prebuilt_name(kernel: Kernel, target: Target) -> str:
    """Return the name of a kernel in a table, which records the version of LLVM itself."""
    return name_of(kernel, target, "prebuilt")


def name_of(kernel: Kernel, target: Target, version: str) -> str:
    emitter = emitter_hash(kernel.family.rpartition(".")[0])
    instructions = instructions_hash(target.architecture)
    parts = (kernel.family, kernel.params, target, code_generation(target), version, emitter, instructions)
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:24]
    return f"{kernel.family.replace('.', '_')}_{digest}"


def image_of(code: Mapping[str, bytes], own: Architecture | None = None) -> Image:
    """Return object files as one image.

    Raises
        UnknownCode: the code is not supported, or calls a C function that this system lacks
    """
    image = link_objects(code, own)
    for name, _, _ in image.outer:
        c_function(name)
    return image


def fits(symbol: str, raw: bytes) -> bool:
    """Return True for object code that this machine may run; where our linker places it, it must support all parts."""
    triple = host().triple
    own = architecture_of_machine(triple)
    if not own.relocations or not has_elf(triple):
        return is_for(raw, triple)
    try:
        return bool(image_of({symbol: raw}, own).symbols)
    except UnknownCode:
        return False


@cache
def emitter_hash(module: str) -> str:
    """Return a hash of an emitter's file, its signatures and all project files that they import, recursively.

    The files are read, not imported: a warm process loads no emitter.
    """
    digests = sorted(digest for digest, _ in sources_of(module).values())
    return hashlib.sha256(repr(digests).encode()).hexdigest()


@cache
def instructions_hash(architecture: str) -> str:
    """Return a hash of the module that names an architecture's instructions."""
    return hashlib.sha256(content(f"{KERNELS}/isa/{architecture}.py")).hexdigest()


def sources_of(module: str) -> dict[str, Source]:
    """Return the project files that determine an emitter's code, by their paths."""
    todo = [f"{KERNELS}/llvm/{name}.py" for name in ("compile", "build")]
    places = (place_of(f"{module}.any", part)[0] for part in ("emit", "signature"))
    todo += [f"{dirname(PROJECT)}/{place.replace('.', '/')}.py" for place in places]
    sources: dict[str, Source] = {}
    while todo:
        path = todo.pop()
        source = None if path in sources else source_of(path)
        if source is not None:
            sources[path] = source
            todo += source[1]
    return sources


@cache
def source_of(path: str) -> Source | None:
    """Return a file's digest, and the project files that it may import; None if there is no such file.

    Emitters share most files, so each is read once in a process.
    """
    if not isfile(path):
        return None
    text = content(path)
    return hashlib.sha256(text).hexdigest(), tuple(imported_by(text.decode(), PROJECT))


def content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def imported_by(text: str, root: str) -> Iterator[str]:
    """Yield the possible paths of the project modules that a file imports: ``from package import module`` has two."""
    for module, names in IMPORT.findall(text):
        path = f"{root}/{module.replace('.', '/')}"
        yield f"{path}.py"
        if isdir(path):
            yield from (f"{path}/{name}.py" for name in re.findall(r"\w+", names))
