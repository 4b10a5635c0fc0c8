"""`Builder` for a GPU: threads and blocks instead of tasks, shared memory, barriers, warps.

A kernel is ``ptx_kernel void k(ptr byval([words x i64]) args, i64 tasks)``: the int64 arguments of a CPU call, by
value. Pointers stay generic in the language; `pointer` and `shared` cast from address spaces 1 and 3, and LLVM turns
every access into ``ld.global`` or ``ld.shared`` again.

An emitter of a CPU kernel works here, too: each thread runs one task. Emitters marked `block` are written for
GPUs: their task is a block of threads.
"""

from collections.abc import Callable

from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import INDEX, POINTER, VOID
from cgraph.kernels.llvm.own_mathematics import OwnMathematics
from cgraph.kernels.llvm.values import Ptr, Val, scalar_type

GPU_KERNEL_TYPE = ir.FunctionType(VOID, [POINTER, INDEX])
WORD = ir.IntType(32)
TASK_THREADS = 32  # threads of a block whose tasks are single threads
GLOBAL, SHARED = 1, 3  # address spaces


def block(threads: int, resident: int = 1) -> Callable[[Callable], Callable]:
    """Mark an emitter whose tasks are blocks of `threads` threads; `resident` blocks fit on a multiprocessor."""

    def mark(emit: Callable) -> Callable:
        emit.block_threads, emit.resident = threads, resident  # type: ignore[attr-defined]
        return emit

    return mark


class GpuBuilder(OwnMathematics):
    """The function under construction, for a GPU. Changes as it is used."""

    def pointer(self, address: Val, dtype: str) -> Ptr:
        at = self.b.inttoptr(address.v, ir.PointerType(GLOBAL))
        return Ptr(self, self.b.addrspacecast(at, POINTER), dtype)

    def tasks(self) -> tuple[Val, Val]:
        """Return the one task of this thread."""
        task = self.task()
        return task, task + 1

    def task(self) -> Val:
        return self.block() * self.cast(self.special("ntid.x"), "i8") + self.thread()

    def leave_beyond_tasks(self) -> None:
        """Return at once from threads of the last block that have no task."""
        with self.if_(self.task() >= self.wrap(self.function.args[1], "i8")):
            self.b.ret_void()

    def copy_bytes(self, out: Ptr, x: Ptr, nbytes: Val) -> None:
        """Copy in a loop, since there is no C library."""
        out, x = out.as_dtype("u1"), x.as_dtype("u1")
        with self.loop(0, nbytes) as i:
            out.store(x.load(i), i)

    # -- threads --------------------------------------------------------------------------------------------------
    def thread(self, anew: bool = False) -> Val:
        """The number of this thread in its block."""
        return self.cast(self.special("tid.x", anew), "i8")

    def block(self) -> Val:
        """The number of this block."""
        return self.cast(self.special("ctaid.x"), "i8")

    def block_digits(self, *sizes: Val, anew: bool = False) -> list[Val]:
        """Return the number of this block as several digits, the last one fastest; an unbounded first digit precedes
        them.
        """
        return self.digits(self.special("ctaid.x", anew), *sizes)

    def digits(self, x: Val, *sizes: Val) -> list[Val]:
        """Return a number below 2**32 as digits below `sizes`, the last one fastest, after an unbounded first digit."""
        rest, digits = self.cast(x, "u4"), []
        for size in reversed(sizes):
            size = self.cast(size, "u4")
            digits.append(self.cast(rest % size, "i8"))
            rest = rest // size
        return [self.cast(rest, "i8"), *digits[::-1]]

    def vector(self, values: list[Val]) -> Val:
        """Return values of one dtype as one vector, for one access."""
        vector = self.const(0, values[0].dtype, len(values))
        for j, x in enumerate(values):
            vector = self.wrap(self.b.insert_element(vector.v, x.v, self.const(j, "i4").v), x.dtype, len(values))
        return vector

    def special(self, name: str, anew: bool = False) -> Val:
        """Return a special register: ``tid.x``, ``ctaid.x``, ``ntid.x`` …

        `anew`: read again, so that nothing derived from it occupies registers during a long loop.
        """
        if anew:
            read = ir.InlineAsm(ir.FunctionType(WORD, []), f"mov.u32 $0, %{name};", "=r", side_effect=True)
            return self.wrap(self.b.call(read, []), "u4")
        return self.wrap(self.b.call(self.declare(f"llvm.nvvm.read.ptx.sreg.{name}", WORD, []), []), "u4")

    def shared(self, dtype: str, count: int) -> Ptr:
        """Return an array that the threads of a block share, 16-byte aligned; undefined until written."""
        name = self.module.get_unique_name("shared")
        array = ir.GlobalVariable(self.module, ir.ArrayType(scalar_type(dtype), count), name, SHARED)
        array.align = 16
        return Ptr(self, self.b.addrspacecast(array, POINTER), dtype)

    def barrier(self) -> None:
        """Wait until all threads of the block reach this line; not in divergent code."""
        self.b.call(self.declare("llvm.nvvm.barrier.cta.sync.aligned.all", VOID, [WORD]), [ir.Constant(WORD, 0)])

    def from_lane(self, x: Val, mask: int) -> Val:
        """Return the value of lane ``own ^ mask`` of the warp, 4 or 8 bytes; all 32 lanes must reach this line."""
        if x.dtype[1] == "8":
            halves = self.b.bitcast(self.bits(x, "u8").v, ir.VectorType(WORD, 2))
            parts = [self.wrap(self.b.extract_element(halves, ir.Constant(WORD, i)), "u4") for i in range(2)]
            for i, part in enumerate(parts):
                halves = self.b.insert_element(halves, self.from_lane(part, mask).v, ir.Constant(WORD, i))
            return self.bits(self.wrap(self.b.bitcast(halves, INDEX), "u8"), x.dtype)
        number = [ir.Constant(WORD, i) for i in (-1, mask, 31)]
        shuffle = self.declare("llvm.nvvm.shfl.sync.bfly.i32", WORD, [WORD] * 4)
        word = self.b.call(shuffle, [number[0], self.bits(x, "u4").v, *number[1:]])
        return self.bits(self.wrap(word, "u4"), x.dtype)
