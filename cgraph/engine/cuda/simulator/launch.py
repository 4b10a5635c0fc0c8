"""Launches of PTX text on the CPU, all threads in step: the same text that a GPU's driver receives.

Where threads diverge, those at the earliest basic block run first, so that they meet again after a branch. The
simulator raises `Fault` with the PTX line for: accesses outside every allocation or misaligned; races within a block
and between blocks; reads of shared memory before any write; barriers that not all threads of a block reach; shuffles
without the whole warp; unsupported instructions. Not simulated: time, caches, fences, asynchronous copies, mma.
"""

from typing import Any

import numpy as np

from cgraph.engine.cuda.simulator.decode import Do, Values, decode
from cgraph.engine.cuda.simulator.memory import (
    BLOCK_AT,
    DEVICE,
    EPOCHS,
    LAUNCH_AT,
    LAUNCHES,
    SEVERAL_THREADS,
    THREAD_BITS,
    WORD,
    Memory,
    Watch,
)
from cgraph.engine.cuda.simulator.text import BRANCHES, LOCAL, PARAM, SHARED, Fault, Instruction, kernel_of

MOST_THREADS = 1 << 14  # that run together
ALL = slice(None)


class SimulatedKernel:
    """A kernel that can be launched."""

    def __init__(self, text: str, symbol: str, memory: Memory) -> None:
        self.kernel = kernel_of(text, symbol)
        if self.kernel.threads >= SEVERAL_THREADS:
            raise Fault(f"{self.kernel.threads} threads in a block; fewer than {SEVERAL_THREADS} are simulated")
        self.steps = [self._steps(block) for block in self.kernel.blocks]
        self.symbols = dict(self.kernel.symbols)
        for name, raw in self.kernel.constants.items():
            self.symbols[name] = memory.take(len(raw))
            memory.bytes_at(self.symbols[name], len(raw))[:] = np.frombuffer(raw, np.uint8)

    def _steps(self, block: tuple[Instruction, ...]) -> list[tuple[Do, str]]:
        return [(decode(i, self.kernel), i.line) for i in block if i.name not in BRANCHES]


class Simulator:
    """A simulated device. Mutable: memory; launches are counted from 1 to `LAUNCHES` - 1, again and again."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.launches = 0

    def load(self, text: str, symbol: str) -> SimulatedKernel:
        """Return the kernel `symbol` of a PTX module."""
        return SimulatedKernel(text, symbol, self.memory)

    def launch(self, loaded: SimulatedKernel, blocks: int, words: np.ndarray, tasks: int) -> None:
        """Run `blocks` blocks of a kernel with the int64 `words` by value, then the number of tasks."""
        kernel = loaded.kernel
        param = np.zeros(kernel.param_nbytes, np.uint8)
        param[: words.nbytes] = words.view(np.uint8)
        param[-8:].view(np.int64)[0] = tasks
        self.launches = self.launches % (LAUNCHES - 1) + 1
        if self.launches == 1:
            self.memory.watch.forget()
        together = max(1, MOST_THREADS // kernel.threads)
        with np.errstate(all="ignore"):
            for first in range(0, blocks, together):
                BlockRun(self, loaded, range(first, min(blocks, first + together)), blocks, param).go()


class BlockRun:
    """Some blocks of a launch in progress. Mutable: registers, arrays, and the position of each thread.

    Fields
        threads: their number
        mask: the threads that execute the present instruction; True means all
        values: registers and constants
        carry: the carry of each thread
        epoch: barriers that all threads have passed
        prepared: state that instructions reuse between executions
    """

    def __init__(
        self, device: Simulator, loaded: SimulatedKernel, numbers: range, grid: int, param: np.ndarray
    ) -> None:
        kernel = loaded.kernel
        self.memory, self.loaded, self.param = device.memory, loaded, param
        n = self.threads = len(numbers) * kernel.threads
        lane = np.arange(n)
        self.block = lane // kernel.threads
        thread, number = lane % kernel.threads, self.block + numbers.start
        special = {"%tid.x": thread, "%ctaid.x": number, "%laneid": thread % 32}
        special |= {"%ntid.x": np.full(n, kernel.threads), "%nctaid.x": np.full(n, grid)}
        special = {name: x.astype(np.uint32) for name, x in special.items()}
        self.values = Values(kernel, n, special, loaded.symbols)
        self.carry = np.zeros(n, bool)
        self.prepared: dict[Instruction, Any] = {}
        self.local = np.full(n * kernel.local_nbytes, 0xFF, np.uint8)
        self.shared = np.full(len(numbers) * kernel.shared_nbytes, 0xFF, np.uint8)
        self.watch = Watch(len(self.shared) // WORD)
        self.stamp = (device.launches << LAUNCH_AT) | number << BLOCK_AT | thread
        self.epoch = 0
        self.mask: Any = True
        self.lanes: Any = ALL
        self.at, self.waiting = np.zeros(n, np.int64), np.zeros(n, bool)
        self.end = len(kernel.blocks)

    def go(self) -> None:
        """Run until every thread has returned."""
        while self._next_threads():
            number = int(self.at[self.lanes][0])
            for do, line in self.loaded.steps[number]:
                try:
                    do(self)
                except Fault as fault:
                    raise Fault(f"{fault}; {self.loaded.kernel.symbol}: {line}") from None
            self._leave(number)

    # -- which threads go on --------------------------------------------------------------------------------------
    def _next_threads(self) -> bool:
        """Select the threads at the earliest block; return False if all have returned."""
        at = np.where(self.waiting, self.end, self.at)
        first = np.minimum.reduce(at)
        if first == self.end:
            if not self.waiting.any():
                return False
            self._pass_barrier()
            return self._next_threads()
        mask = at == first
        self.mask, self.lanes = (True, ALL) if np.logical_and.reduce(mask) else (mask, mask.nonzero()[0])
        return True

    def _pass_barrier(self) -> None:
        """Release all blocks if all threads of each wait at one barrier."""
        at = self.at.reshape(-1, self.loaded.kernel.threads)
        if (at != at[:, :1]).any():
            raise Fault(f"a barrier that not all threads of a block reach; {self.loaded.kernel.symbol}")
        self.epoch += 1
        if self.epoch == EPOCHS:
            raise Fault(f"more than {EPOCHS - 1:,} barriers; {self.loaded.kernel.symbol}")
        self.stamp[self.waiting] += 1 << THREAD_BITS
        self.waiting[:] = False

    def _leave(self, number: int) -> None:
        """Move the threads from the end of a basic block to the next one."""
        block = self.loaded.kernel.blocks[number]
        last = block[-1] if block and block[-1].name in BRANCHES else None
        to: Any = number + 1
        if last is not None and last.name == "bra":
            to = self.loaded.kernel.labels[last.operands[0]]
            if last.guard:
                is_taken = self.values[last.guard.lstrip("@!"), np.dtype(bool)] ^ ("!" in last.guard)
                to = np.where(self.active(is_taken), to, number + 1)
        elif last is not None and last.name in ("ret", "exit"):
            to = self.end
        elif last is not None and last.name in ("bar", "barrier"):
            self.waiting[self.lanes] = True
        elif last is not None:
            raise Fault(f"a kernel gives up: {last.line}; {self.loaded.kernel.symbol}")
        self.at[self.lanes] = to

    # -- registers and memory -------------------------------------------------------------------------------------
    def put(self, name: str, value: Any) -> None:
        """Write a register of the threads in `mask`; `value` has an element for each thread, or one for all."""
        register = self.values.register(name)
        np.copyto(register, bits(value, register.dtype), where=self.mask, casting="unsafe")

    def put_active(self, name: str, value: np.ndarray) -> None:
        """Write a register; `value` has an element for each active thread."""
        register = self.values.register(name)
        register[self.lanes] = bits(value, register.dtype)

    def active(self, x: Any) -> Any:
        """Return the elements of the active threads."""
        return x[self.lanes] if np.ndim(x) else x

    def places(self, base: tuple, plus: int, nbytes: int, write: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the memory that addresses lie in, and the byte offset for each active thread. Fault outside of all
        memory.
        """
        addresses = self.values[base]
        at = (self.active(addresses) if addresses.ndim else np.full(self.threads, addresses)[self.lanes]) + plus
        low, high, either = bounds(at)
        if either & (nbytes - 1):
            raise Fault("misaligned")
        if low >= DEVICE:
            at = at - DEVICE
            self.memory.check(at, low - DEVICE, high - DEVICE, nbytes)
            self.memory.touch(at, nbytes, self.stamp[self.lanes], write)
            return self.memory.data, at
        start = low >> 32 << 32
        memory, row = self._own_memory(start)
        if high - start + nbytes > row:
            raise Fault("outside every allocation")
        if start == PARAM:
            return memory, at - start
        at = at - start + row * (self.block if start == SHARED else np.arange(self.threads))[self.lanes]
        if start == SHARED:
            self._watch_shared(at, nbytes, write)
        return memory, at

    def _own_memory(self, start: int) -> tuple[np.ndarray, int]:
        """Return a kernel's own memory by its first address, and the bytes that one thread can address."""
        kernel = self.loaded.kernel
        if start == SHARED:
            return self.shared, kernel.shared_nbytes
        if start == LOCAL:
            return self.local, kernel.local_nbytes
        return self.param, kernel.param_nbytes if start == PARAM else 0

    def _watch_shared(self, at: np.ndarray, nbytes: int, write: bool) -> None:
        """Check shared memory for races, and for reads before any write."""
        if nbytes < WORD:
            return
        stamps = self.stamp[self.lanes]
        for i in range(nbytes // WORD):
            words = at // WORD + i
            if write:
                self.watch.stored(words, stamps)
                continue
            if not self.watch.written[words].all():
                raise Fault("shared memory that nobody wrote")
            self.watch.loaded(words, stamps)


def bounds(at: np.ndarray) -> tuple[int, int, int]:
    """Return the least and the greatest address, and the bits that any of them has. One thread is the usual case in
    kernels that copy: Python's integers are faster there.
    """
    if len(at) == 1:
        one = int(at[0])
        return one, one, one
    return int(np.minimum.reduce(at)), int(np.maximum.reduce(at)), int(np.bitwise_or.reduce(at))


def bits(value: Any, dtype: np.dtype) -> Any:
    """Return a value as the bits of a register: floats by their bits, narrower integers by value."""
    if value.dtype.itemsize == dtype.itemsize and value.dtype != dtype:
        return value.view(dtype)
    return value
