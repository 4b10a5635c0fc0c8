"""Compile kernels, keep their machine code on disk, look them up.

A kernel's object code is kept in a file named by a hash of all that decides it: its family and params, the text of its
emitter and of all of ours that this imports, the target (processor, features, registers), how LLVM's code generator is
set up (triple, data layout, optimisation, relocation and code model), and the versions of LLVM and Python's llvmlite.
`cgraph.kernels.cache` says how it is kept. A process that compiles nothing imports neither emitters nor, where
`cgraph.kernels.objects` can place the code, LLVM. What is kept and is no code for this machine, or has relocations that
our kernels have not, is compiled anew and never run.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from cgraph.kernels.cache import CacheFolder, cache_folder
from cgraph.kernels.code_image import Image, UnknownCode, c_function, place_image
from cgraph.kernels.families import place_of
from cgraph.kernels.host import host
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.objects import MalformedCode, is_for, link_objects
from cgraph.kernels.target import Target, code_generation, new_target_machine
from cgraph.system.fair_lock import FairLock, Ticket

IMPORT = re.compile(r"^ *(?:from|import) cgraph\.([\w.]+)(?: import (\([^)]*\)|[^\n]*))?", re.MULTILINE)


@dataclass
class KernelStore:
    """The kernels of this process. Changes: addresses and counters grow.

    Fields
        folder: where object code is kept; None keeps nothing on disk
        hits, misses: kernels loaded from disk; kernels compiled
        compile_seconds: time spent compiling
    """

    folder: CacheFolder | None
    hits: int = 0
    misses: int = 0
    compile_seconds: float = 0.0
    _addresses: dict[tuple[Kernel, Target], int] = field(default_factory=dict)
    _memory: list[Any] = field(default_factory=list)
    _engines: dict[Target, Any] = field(default_factory=dict)
    _turns: FairLock = field(default_factory=FairLock)
    _fork: Ticket | None = None

    def address(self, kernel: Kernel, target: Target) -> int:
        """The address of one kernel's machine code, compiled when it is nowhere yet."""
        return self.load([kernel], target)[kernel]

    def load(self, kernels: Iterable[Kernel], target: Target) -> dict[Kernel, int]:
        """The addresses of many kernels; those that are missing are compiled first."""
        requests = list(dict.fromkeys(kernels))
        if any((k, target) not in self._addresses for k in requests):
            self._turns.run(lambda: self._add(requests, target))
        return {k: self._addresses[k, target] for k in requests}

    def _add(self, requests: list[Kernel], target: Target) -> None:
        is_warm = not self.misses
        kernels = [k for k in requests if (k, target) not in self._addresses]
        symbols = {kernel: symbol_of(kernel, target) for kernel in kernels}
        code, image = self._linked(symbols, target)
        try:
            addresses = self._placed(code, image, target)
        except (MalformedCode, RuntimeError):  # RuntimeError: what LLVM raises
            code = {symbol: self._compiled(kernel, symbol, target) for kernel, symbol in symbols.items()}
            addresses = self._placed(code, None, target)
        self._addresses.update(((kernel, target), addresses[symbol]) for kernel, symbol in symbols.items())
        if self.folder and is_warm and self.misses:  # the first time that this process compiles anything
            self.folder.prune()

    def _linked(self, symbols: dict[Kernel, str], target: Target) -> tuple[dict[str, bytes], Image | None]:
        """Object code by symbol; and as one image, None where only LLVM can place it.

        What is kept and does not fit, because of its machine, its relocations or what it calls, is compiled anew.
        """
        files = {symbol: self._stored_code(f"{symbol}.o") for symbol in symbols.values()}
        code = {symbol: files[symbol] or self._compiled(kernel, symbol, target) for kernel, symbol in symbols.items()}
        try:
            return code, image_of(code)
        except UnknownCode:
            for kernel, symbol in symbols.items():
                if files[symbol] and not fits(symbol, code[symbol]):
                    code[symbol] = self._compiled(kernel, symbol, target)
        try:
            return code, image_of(code)
        except UnknownCode:
            return code, None

    def _placed(self, code: dict[str, bytes], image: Image | None, target: Target) -> dict[str, int]:
        if image is not None:
            with suppress(UnknownCode):  # the system makes no memory executable for us
                memory, addresses = place_image(image)
                self._memory.append(memory)
                return addresses
        return self._placed_by_llvm(code, target)

    def _placed_by_llvm(self, code: dict[str, bytes], target: Target) -> dict[str, int]:
        import llvmlite.binding as llvm

        engine = self._engine(target)
        for raw in code.values():
            engine.add_object_file(llvm.ObjectFileRef.from_data(raw))
        engine.finalize_object()
        addresses = {symbol: engine.get_function_address(symbol) for symbol in code}
        if not all(addresses.values()):
            raise MalformedCode("an object file lacks its function")
        return addresses

    def _engine(self, target: Target) -> Any:
        if target not in self._engines:
            import llvmlite.binding as llvm

            machine = new_target_machine(target)
            self._engines[target] = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        return self._engines[target]

    def image(self, kernels: Iterable[Kernel], target: Target) -> tuple[Image, list[int]]:
        """The machine code of kernels for any processor of a target's kind as one image, and where each begins in it.

        Raises
            UnknownCode: code that only LLVM can place
        """
        symbols = {kernel: symbol_of(kernel, target) for kernel in kernels}
        code, image = self._turns.run(lambda: self._linked(symbols, target))
        if image is None:
            image = link_objects(code)  # which says why it cannot be
        return image, [image.symbols[symbol] for symbol in symbols.values()]

    def ptx(self, kernel: Kernel, words: int, target: Target) -> tuple[str, bytes]:
        """The symbol and the text of a kernel for a GPU that takes `words` arguments."""
        symbol = f"{symbol_of(kernel, target)}_{words}"
        args = (f"{symbol}.ptx", "compile_ptx", kernel, symbol, words, target)
        return symbol, self._turns.run(lambda: self._stored_code(f"{symbol}.ptx") or self._compile_and_store(*args))

    def _compiled(self, kernel: Kernel, symbol: str, target: Target) -> bytes:
        return self._compile_and_store(f"{symbol}.o", "compile_kernel", kernel, symbol, target)

    def _stored_code(self, file: str) -> bytes | None:
        code = self.folder.read(file) if self.folder else None
        self.hits += code is not None
        return code

    def _compile_and_store(self, file: str, compiler: str, *args: Any) -> bytes:
        code, seconds = getattr(import_module("cgraph.kernels.llvm.compile"), compiler)(*args)
        self.misses += 1
        self.compile_seconds += seconds
        if self.folder:
            self.folder.write(file, code)
        return code

    def pause(self) -> None:
        """Wait until nobody compiles, and let nobody begin: before a fork, so that the child's LLVM is whole."""
        self._fork = Ticket()
        self._turns.join(self._fork)

    def resume(self) -> None:
        if self._fork:
            self._fork.end()


@cache
def store() -> KernelStore:
    """The store of this process."""
    new_store = KernelStore(cache_folder())
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=new_store.pause, after_in_parent=new_store.resume, after_in_child=new_store.resume)
    return new_store


def symbol_of(kernel: Kernel, target: Target) -> str:
    """The name under which a kernel is kept: readable family, then a hash of all that shapes its code."""
    emitter = emitter_hash(kernel.family.rpartition(".")[0])
    parts = (kernel.family, kernel.params, target, code_generation(target), host().version, emitter)
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:24]
    return f"{kernel.family.replace('.', '_')}_{digest}"


def image_of(code: Mapping[str, bytes]) -> Image:
    """Return object files as one image. UnknownCode also where it calls what this system has not."""
    image = link_objects(code)
    for name, _, _ in image.outer:
        c_function(name)
    return image


def fits(symbol: str, raw: bytes) -> bool:
    """Return True for object code that this machine may run: what emitters' code consists of, where that is known."""
    triple = host().triple
    if not (triple.startswith("x86_64") and "linux" in triple):
        return is_for(raw, triple)
    try:
        return bool(image_of({symbol: raw}).symbols)
    except UnknownCode:
        return False


@cache
def emitter_hash(module: str) -> str:
    """A hash of the text of an emitter's file, its signatures, and all files of ours that they import, in turn.

    The text is read, not imported: a warm process needs no emitter.
    """
    return hashlib.sha256(repr(sorted(texts_of(module).values())).encode()).hexdigest()


def texts_of(module: str) -> dict[Path, str]:
    """Return the files of ours that shape an emitter's code, with their text."""
    kernels = Path(__file__).parent
    todo = [kernels / "llvm" / f"{name}.py" for name in ("compile", "build")]
    places = (place_of(f"{module}.any", part)[0] for part in ("emit", "signature"))
    todo += [kernels.parents[1] / f"{place.replace('.', '/')}.py" for place in places]
    texts: dict[Path, str] = {}
    while todo:
        path = todo.pop()
        if path not in texts and path.is_file():
            texts[path] = path.read_text()
            todo += imported_by(texts[path], kernels.parent)
    return texts


def imported_by(text: str, root: Path) -> Iterator[Path]:
    """Where the modules of ours may lie that a file imports: ``from package import module`` names two."""
    for module, names in IMPORT.findall(text):
        path = root / module.replace(".", "/")
        yield path.with_suffix(".py")
        yield from (path / f"{name}.py" for name in re.findall(r"\w+", names))
