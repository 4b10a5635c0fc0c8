"""A small language for writing kernels: values with Python operators that append LLVM instructions.

`Builder` is the function under construction; its values are in `cgraph.kernels.llvm.values`. Ops and nodes do not
appear here.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from cgraph.kernels.families import signature_of
from cgraph.kernels.isa.architectures import address_bits
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.llvm import ir, storage
from cgraph.kernels.llvm.rounding import ROUNDINGS, round_by_sums
from cgraph.kernels.llvm.values import MutableValue, Ptr, Val, nbytes_of, scalar_type, vector_type
from cgraph.kernels.llvm.vcomplex import arithmetic
from cgraph.kernels.llvm.word_list import WordList
from cgraph.kernels.signature import NARROW, Words, WordTable
from cgraph.kernels.target import Target

INDEX, VOID, POINTER = ir.IntType(64), ir.VOID, ir.POINTER
KERNEL_TYPE = ir.FunctionType(VOID, [POINTER, INDEX, INDEX])


ENDLESS = 1 << 30


class Builder:
    """The function under construction, and the instructions that are not operators. Changes as it is used."""

    def __init__(
        self,
        module: ir.Module,
        function: ir.Function,
        kernel: Kernel,
        target: Target,
        word_table: WordTable | None = None,
    ) -> None:
        self.word_table = word_table
        self.module, self.function, self.kernel, self.target = module, function, kernel, target
        self.linked: dict[str, str] = {}  # LLVM text of foreign functions that this one calls, by name
        self.is_narrow = False  # limits vectors that LLVM creates to 256 bits
        self.entry = ir.IRBuilder(module, function, function.append_basic_block("entry"))
        self.b = ir.IRBuilder(module, function, function.append_basic_block("body"))

    def finish(self) -> None:
        """End the function; slots live in the entry block, which falls through to the body."""
        if not self.b.block.is_terminated:
            self.b.ret_void()
        self.entry.branch(self.function.blocks[1])

    # -- arguments ------------------------------------------------------------------------------------------------
    def tasks(self) -> tuple[Val, Val]:
        """Return the first and last task (excluded) of this call."""
        return self.wrap(self.function.args[1], "i8"), self.wrap(self.function.args[2], "i8")

    def task_loop(self) -> AbstractContextManager[Val]:
        """Return a loop over the tasks of this call."""
        return self.loop(*self.tasks())

    def args(self) -> SimpleNamespace:
        """Return the arguments by the names of the family's signature; for a list, the address of its first word."""
        signature = signature_of(self.kernel.family)
        params = signature.scope(self.kernel.params)
        scope, args = SimpleNamespace(**vars(params)), SimpleNamespace()
        at: Any = 0
        for name, kind in signature.args.items():
            value = self.word_list(at) if isinstance(kind, Words) else self.word(at, kind, params)
            at = at + (kind.size(scope) if isinstance(kind, Words) else 1)
            setattr(scope, name, value)
            setattr(args, name, value)
        return args

    @property
    def words(self) -> Ptr:
        """The address of the first argument."""
        return Ptr(self, self.function.args[0], "i8")

    def word(self, at: Any, kind: str, params: SimpleNamespace) -> Val | Ptr:
        """Return the argument of this kind and number."""
        value = self.load_word(at)
        if kind.endswith("*"):
            return self.pointer(value, getattr(params, kind[:-1], kind[:-1]))
        return self.bits(value, "f8") if kind == "f8" else value

    def load_word(self, at: Any) -> Val:
        """Return the argument with a number, as int64."""
        table = self.word_table
        if table is not None and isinstance(at, int) and at in table.constants:
            return self.const(table.constants[at], "i8")
        return self.cast(self.word_address(at).load(), "i8")

    def word_address(self, at: Any) -> Ptr:
        """Return the address of the argument with a number, which is not a constant."""
        table = self.word_table
        if table is None:
            return self.words + at
        return self.words.as_dtype("i4" if table.width == NARROW else "i8") + table.place(at)

    def word_list(self, at: Any) -> Ptr:
        """Return the list of words from the one with a number on."""
        return self.words + at if self.word_table is None else WordList(self, at)

    def number(self, name: str) -> Val:
        """Return a numeric argument, loaded here instead of at the beginning; no list precedes it."""
        args = signature_of(self.kernel.family).args
        return self.word(list(args).index(name), args[name], SimpleNamespace())  # type: ignore[arg-type, return-value]

    # -- values ---------------------------------------------------------------------------------------------------
    def wrap(self, v: ir.Value, dtype: str, lanes: int = 0) -> Val:
        return Val(self, v, dtype, lanes)

    def const(self, x, dtype: str, lanes: int = 0) -> Val:
        if dtype[0] == "f":
            x = float(x)
        elif dtype[0] == "c":
            x = int.from_bytes(np.array(x, dtype).tobytes(), "little")
        else:
            x = int(bool(x)) if dtype == "b1" else int(x)
        kind = vector_type(dtype, lanes)
        return Val(self, ir.Constant(kind, [x] * lanes if lanes else x), dtype, lanes)

    def val(self, x, dtype: str, lanes: int = 0) -> Val:
        """Return `x` as a Val: Python numbers become constants, scalars are broadcast to `lanes`."""
        if not isinstance(x, Val):
            return self.const(x, dtype, lanes)
        return self.splat(x, lanes) if lanes and not x.lanes else x

    def splat(self, x: Val, lanes: int) -> Val:
        """Return a scalar in every lane."""
        kind = vector_type(x.dtype, lanes)
        undef = ir.Constant(kind, ir.Undefined)
        one = self.b.insert_element(undef, x.v, ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
        return Val(self, self.b.shuffle_vector(one, undef, mask), x.dtype, lanes)

    def lane(self, x: Val, i) -> Val:
        """Return one lane of a vector."""
        return Val(self, self.b.extract_element(x.v, self.val(i, "i8").v), x.dtype, 0)

    def with_lane(self, x: Val, i: int, y: Val) -> Val:
        """A vector with another number in one lane."""
        return Val(self, self.b.insert_element(x.v, y.v, self.val(i, "i8").v), x.dtype, x.lanes)

    def slice(self, x: Val, start: int, count: int) -> Val:
        """Return `count` neighbouring lanes of a vector."""
        mask = ir.Constant(ir.VectorType(ir.IntType(32), count), list(range(start, start + count)))
        return Val(self, self.b.shuffle_vector(x.v, ir.Constant(x.v.type, ir.Undefined), mask), x.dtype, count)

    def join(self, x: Val, y: Val) -> Val:
        """Return the lanes of `x`, then those of `y`."""
        mask = ir.Constant(ir.VectorType(ir.IntType(32), 2 * x.lanes), list(range(2 * x.lanes)))
        return Val(self, self.b.shuffle_vector(x.v, y.v, mask), x.dtype, 2 * x.lanes)

    def iota(self, dtype: str, lanes: int) -> Val:
        """Return the vector 0, 1, 2 … (the scalar 0 without lanes)."""
        kind = vector_type(dtype, lanes)
        return Val(self, ir.Constant(kind, list(range(lanes)) if lanes else 0), dtype, lanes)

    def pair(self, x, y) -> tuple[Val, Val]:
        """Return both sides with one dtype and one number of lanes."""
        dtype = x.dtype if isinstance(x, Val) else y.dtype
        lanes = max(x.lanes if isinstance(x, Val) else 0, y.lanes if isinstance(y, Val) else 0)
        return self.val(x, dtype, lanes), self.val(y, dtype, lanes)

    # -- arithmetic -----------------------------------------------------------------------------------------------
    def binary(self, name: str, x, y) -> Val:
        x, y = self.pair(x, y)
        b, d = self.b, x.dtype
        if d[0] == "c":
            return arithmetic(self, name, x, y)
        if name in ("and_", "or_", "xor", "shl"):
            return self.wrap(getattr(b, name)(x.v, y.v), d, x.lanes)
        if name == "shr":
            return self.wrap((b.ashr if d[0] == "i" else b.lshr)(x.v, y.v), d, x.lanes)
        if d[0] == "f" and name == "rem":
            return self.float_remainder(x, y)
        if d[0] == "f":
            return self.wrap(getattr(b, "f" + name)(x.v, y.v), d, x.lanes)
        if name in ("div", "rem"):
            name = ("s" if d[0] == "i" else "u") + name
        return self.wrap(getattr(b, name)(x.v, y.v), d, x.lanes)

    def neg(self, x: Val) -> Val:
        return self.wrap(self.b.fneg(x.v) if x.is_float else self.b.neg(x.v), x.dtype, x.lanes)

    def compare(self, sign: str, x, y) -> Val:
        """Return an ordered comparison: false with a NaN, but ``!=`` is true with one."""
        x, y = self.pair(x, y)
        if x.is_float:
            how = self.b.fcmp_unordered if sign == "!=" else self.b.fcmp_ordered
        else:
            how = self.b.icmp_signed if x.dtype[0] == "i" else self.b.icmp_unsigned
        return self.wrap(how(sign, x.v, y.v), "b1", x.lanes)

    def select(self, condition: Val, x, y) -> Val:
        x, y = self.pair(x, y)
        if condition.lanes and not x.lanes:
            x, y = self.splat(x, condition.lanes), self.splat(y, condition.lanes)
        return self.wrap(self.b.select(condition.v, x.v, y.v), x.dtype, x.lanes)

    def is_nan(self, x: Val) -> Val:
        return self.wrap(self.b.fcmp_unordered("uno", x.v, x.v), "b1", x.lanes)

    def smaller(self, x, y) -> Val:
        """Return the minimum without NaN care: `y` when either is NaN."""
        x, y = self.pair(x, y)
        return self.select(x < y, x, y)

    def larger(self, x, y) -> Val:
        """Return the maximum without NaN care: `y` when either is NaN."""
        x, y = self.pair(x, y)
        return self.select(x > y, x, y)

    def fma(self, x, y, z) -> Val:
        """Return x * y + z, in one rounding if the target can, else in two."""
        lanes = max(v.lanes for v in (x, y, z) if isinstance(v, Val))
        dtype = next(v.dtype for v in (x, y, z) if isinstance(v, Val))
        x, y, z = (self.val(v, dtype, lanes) for v in (x, y, z))
        return self.intrinsic("fma", x, y, z) if self.target.fma else x * y + z

    def intrinsic(self, name: str, *xs: Val) -> Val:
        """An LLVM intrinsic whose operands and result have one type, such as ``sqrt`` or ``floor``."""
        if name in ROUNDINGS and not self.target.rounds:
            return round_by_sums(self, name, xs[0])
        kind = vector_type(xs[0].dtype, xs[0].lanes)
        suffix = f"{xs[0].dtype[0]}{8 * nbytes_of(xs[0].dtype)}".replace("u", "i")
        full = f"llvm.{name}." + (f"v{xs[0].lanes}" if xs[0].lanes else "") + suffix
        return self.wrap(
            self.b.call(self.declare(full, kind, [kind] * len(xs)), [x.v for x in xs]),
            xs[0].dtype,
            xs[0].lanes,
        )

    def cast(self, x: Val, dtype: str) -> Val:
        """To another dtype: ints wrap, floats to ints truncate (undefined outside the range), to b1 is != 0; to a
        storage dtype it is the rounded float32."""
        if x.dtype == dtype:
            return x
        if dtype == "b1":
            return x != 0
        if dtype in storage.BY_CODE:
            return storage.round_to_storage(self, x, dtype)
        kind, b, v = vector_type(dtype, x.lanes), self.b, x.v
        if x.is_float:
            if dtype[0] == "f":
                v = (b.fpext if dtype == "f8" else b.fptrunc)(v, kind)
            else:
                v = (b.fptosi if dtype[0] == "i" else b.fptoui)(v, kind)
        elif dtype[0] == "f":
            v = (b.sitofp if x.dtype[0] == "i" else b.uitofp)(v, kind)
        else:
            have, want = (1 if x.dtype == "b1" else 8 * nbytes_of(x.dtype)), 8 * nbytes_of(dtype)
            if want > have:
                v = (b.sext if x.dtype[0] == "i" else b.zext)(v, kind)
            elif want < have:
                v = b.trunc(v, kind)
        return self.wrap(v, dtype, x.lanes)

    def bits(self, x: Val, dtype: str) -> Val:
        """Return the same bits as another dtype of the same size."""
        return self.wrap(self.b.bitcast(x.v, vector_type(dtype, x.lanes)), dtype, x.lanes)

    def pointer(self, address: Val, dtype: str) -> Ptr:
        return Ptr(self, self.b.inttoptr(address.v, POINTER), dtype)

    # -- functions ------------------------------------------------------------------------------------------------
    def copy_bytes(self, out: Ptr, x: Ptr, nbytes: Val) -> None:
        """Call libc's memcpy."""
        self.copy_by("memcpy", out, x, nbytes)

    def move_bytes(self, out: Ptr, x: Ptr, nbytes: Val) -> None:
        """Call libc's memmove: the two ranges may overlap."""
        self.copy_by("memmove", out, x, nbytes)

    def copy_by(self, name: str, out: Ptr, x: Ptr, nbytes: Val) -> None:
        size = ir.IntType(address_bits(self.target))
        count = self.b.trunc(nbytes.v, size) if size.width < 64 else nbytes.v
        self.b.call(self.declare(name, POINTER, [POINTER, POINTER, size]), [out.v, x.v, count])

    def c_function(self, name: str, *xs: Val) -> Val:
        """A function of float64 numbers in the C library that is thread-safe and returns one."""
        kind = scalar_type("f8")
        return self.wrap(self.b.call(self.declare(name, kind, [kind] * len(xs)), [x.v for x in xs]), "f8")

    def declare(self, name: str, result: ir.Type, operands: list[ir.Type]) -> ir.Function:
        """A function of this module, of libc or of LLVM, by name."""
        function = self.module.globals.get(name)
        return function or ir.Function(self.module, ir.FunctionType(result, operands), name)

    def float_remainder(self, x: Val, y: Val) -> Val:
        """Return fmod, for which LLVM calls the C library."""
        return self.wrap(self.b.frem(x.v, y.v), x.dtype, x.lanes)

    def lgamma(self, x: Val) -> Val:
        """Call libc's lgamma_r, since lgamma writes the sign to a variable that threads share."""
        kind = scalar_type("f8")
        f = self.declare("lgamma_r", kind, [kind, POINTER])
        return self.wrap(self.b.call(f, [x.v, self.stack("i4", 0, 2)]), "f8")

    # -- control --------------------------------------------------------------------------------------------------
    def slot(self, init, dtype: str | None = None, lanes: int = 0) -> MutableValue:
        """A variable, set to `init`."""
        if isinstance(init, Val):
            dtype, lanes = init.dtype, max(lanes, init.lanes)
        assert dtype is not None
        slot = MutableValue(self, self.stack(dtype, lanes), dtype, lanes)
        slot.value = init
        return slot

    def stack(self, dtype: str, lanes: int = 0, count: int = 1, align: int = 64) -> ir.Value:
        """Return memory for `count` values on the stack, allocated once per call of the kernel."""
        dtype = "u1" if dtype == "b1" and count > 1 else storage.memory_dtype(dtype)
        kind = vector_type(dtype, lanes)
        return self.entry.alloca(kind if count == 1 else ir.ArrayType(kind, count), align)

    def stack_ptr(self, dtype: str, count: int) -> Ptr:
        """A small array on the stack."""
        return Ptr(self, self.stack(dtype, 0, count), dtype)

    def counter(self, x) -> ir.Value:
        """A loop's bound as an integer of an address's width: 64-bit arithmetic is slow where addresses have 32.

        A step that no loop survives stays one: memory there has less than ENDLESS elements.
        """
        kind = ir.IntType(address_bits(self.target))
        if kind.width == 64:
            return self.val(x, "i8").v
        if isinstance(x, int):
            return ir.Constant(kind, min(x, ENDLESS))
        return self.b.trunc(self.val(x, "i8").v, kind)

    def count(self, x: Val) -> Val:
        """Return an index as a number of an address's width."""
        return self.wrap(self.counter(x), "i4" if address_bits(self.target) == 32 else "i8")

    def index(self, i: ir.Value) -> Val:
        """A loop's counter as an index."""
        return self.wrap(self.b.sext(i, INDEX), "i8")

    @contextmanager
    def loop(self, low, high, step=1) -> Iterator[Val]:
        """Emit ``for i in range(low, high, step)``, with `step` > 0."""
        low, high, step = (self.counter(x) for x in (low, high, step))
        before = self.b.block
        head, body, end = (self.function.append_basic_block(n) for n in ("loop", "loop_body", "loop_end"))
        self.b.branch(head)
        self.b.position_at_end(head)
        i = self.b.phi(low.type)
        i.add_incoming(low, before)
        self.b.cbranch(self.b.icmp_signed("<", i, high), body, end)
        self.b.position_at_end(body)
        yield self.index(i)
        i.add_incoming(self.b.add(i, step), self.b.block)
        self.b.branch(head)
        self.b.position_at_end(end)

    @contextmanager
    def loop_while(self) -> Iterator[SimpleNamespace]:
        """Emit an endless loop; ``w.until(condition)`` leaves it."""
        body, end = (self.function.append_basic_block(n) for n in ("while", "while_end"))
        self.b.branch(body)
        self.b.position_at_end(body)

        def until(condition: Val) -> None:
            after = self.function.append_basic_block("go_on")
            self.b.cbranch(condition.v, end, after)
            self.b.position_at_end(after)

        yield SimpleNamespace(until=until)
        self.b.branch(body)
        self.b.position_at_end(end)

    @contextmanager
    def if_(self, condition: Val, likely: bool | None = None) -> Iterator[None]:
        with self.b.if_then(condition.v, likely):
            yield

    @contextmanager
    def if_else(self, condition: Val):
        """``with k.if_else(c) as (then, otherwise): with then: … with otherwise: …``"""
        with self.b.if_else(condition.v) as branches:
            yield branches

    def tail_loop(self, count, lanes: int, body) -> None:
        """Emit ``body(i, lanes)`` over `count` elements: whole vectors first, then single elements (lanes 0)."""
        count = self.val(count, "i8")
        whole = count - count % lanes if lanes > 1 else count * 0
        if lanes > 1:
            with self.loop(0, whole, lanes) as i:
                body(i, lanes)
        with self.loop(whole, count) as i:
            body(i, 0)
