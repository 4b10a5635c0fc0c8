"""PTX instructions as Python functions of a run; operands are resolved once, when a kernel is loaded.

All threads of a run execute an instruction together, as NumPy operations over arrays with one element for each thread;
`run.mask` selects the active threads.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cgraph.engine.cuda.simulator import meaning
from cgraph.engine.cuda.simulator.text import Fault, Instruction, PtxKernel, constant_of, dtype_of, parts_of
from cgraph.kernels.bound import Bound
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.simulate.signature import FMA
from cgraph.kernels.target import host_target

Do = Callable[[Any], None]
U4, U8, PREDICATE = np.dtype("u4"), np.dtype("u8"), np.dtype(bool)


def decode(i: Instruction, kernel: PtxKernel) -> Do:
    """Return the effect of an instruction that is not a branch. Fault if the simulator does not know it."""
    if i.guard:
        raise Fault(f"a guard before an instruction that is not a branch: {i.line}")
    if i.name in MAKERS:
        return MAKERS[i.name](i, kernel)
    if i.name in meaning.UFUNCS:
        return one_ufunc(i, kernel)
    if i.name in meaning.FUNCTIONS:
        return one_function(i, kernel)
    raise Fault(f"an instruction that the simulator does not know: {i.line}")


def one_ufunc(i: Instruction, kernel: PtxKernel) -> Do:
    if "cc" in i.modifiers:
        return with_carry(i, kernel)
    if i.kind.endswith("x2"):
        return on_pairs(i)
    f, dtype = meaning.UFUNCS[i.name], dtype_of(i.kind)
    out, *xs = ((x, dtype) for x in i.operands)

    def do(run: Any) -> None:
        values = run.values
        f(*(values[x] for x in xs), out=values[out], where=run.mask)

    return do


def on_pairs(i: Instruction) -> Do:
    """Apply an operation to two 16-bit numbers in each register."""
    f, half = meaning.UFUNCS[i.name], dtype_of(i.kind.removesuffix("x2"))
    out, *xs = i.operands

    def do(run: Any) -> None:
        pairs = (np.broadcast_to(run.values[x, U4], run.threads).copy().view(half) for x in xs)
        run.put(out, f(*pairs).view(U4))

    return do


def one_function(i: Instruction, kernel: PtxKernel) -> Do:
    f, dtype = meaning.FUNCTIONS[i.name], dtype_of(i.kind)
    return apply(i.operands[0], f, [(x, dtype) for x in i.operands[1:]])


def apply(out: str, f: Callable, xs: list[tuple[str, np.dtype]]) -> Do:
    """Return ``out = f(*xs)``, with the dtype that `f` returns."""

    def do(run: Any) -> None:
        run.put(out, f(*(run.values[x] for x in xs)))

    return do


def with_carry(i: Instruction, kernel: PtxKernel) -> Do:
    """Return a sum or difference of long integers, word by word."""
    out, *xs = i.operands
    dtype = np.dtype(f"u{int(i.kind[1:]) // 8}")
    takes, down = i.name.endswith("c"), i.name.startswith("sub")

    def do(run: Any) -> None:
        a, b = (run.values[x, dtype] for x in xs)
        carry = run.carry.astype(dtype) if takes else dtype.type(0)
        total = a - b - carry if down else a + b + carry
        over = (a < b) | ((a == b) & (carry > 0)) if down else (total < a) | ((total == a) & (carry > 0))
        run.put(out, total)
        if "cc" in i.modifiers:
            np.copyto(run.carry, over, where=run.mask)

    return do


def move(i: Instruction, kernel: PtxKernel) -> Do:
    """Return a move, also from and to the parts of a wide register."""
    out, x = i.operands
    dtype = dtype_of(i.kind)
    if out[0] == "{":
        outs = parts_of(out)
        part = np.dtype(f"u{dtype.itemsize // len(outs)}")

        def split(run: Any) -> None:
            wide = np.array(np.broadcast_to(run.values[x, dtype], run.threads)).view(part).reshape(run.threads, -1)
            for j, name in enumerate(outs):
                if name != "_":
                    run.put(name, wide[:, j])

        return split
    if x[0] == "{":
        xs = parts_of(x)
        part = np.dtype(f"u{dtype.itemsize // len(xs)}")

        def join(run: Any) -> None:
            parts = [np.broadcast_to(run.values[y, part], run.threads) for y in xs]
            run.put(out, np.stack(parts, 1).view(dtype).reshape(-1))

        return join
    return apply(out, lambda value: value, [(x, dtype)])


def compare(i: Instruction, kernel: PtxKernel) -> Do:
    if len(i.modifiers) > 2 or "|" in i.operands[0]:
        raise Fault(f"a comparison that is not simulated: {i.line}")
    dtype = dtype_of(i.kind)
    return apply(i.operands[0], meaning.COMPARE[i.modifiers[0]], [(x, dtype) for x in i.operands[1:]])


def select(i: Instruction, kernel: PtxKernel) -> Do:
    out, x, y, condition = i.operands
    dtype = dtype_of(i.kind)
    return apply(out, lambda c, a, b: np.where(c, a, b), [(condition, PREDICATE), (x, dtype), (y, dtype)])


def convert(i: Instruction, kernel: PtxKernel) -> Do:
    to, source = (dtype_of(kind) for kind in i.modifiers[-2:])
    how = i.modifiers[0] if len(i.modifiers) > 2 else ""
    return apply(i.operands[0], lambda x: meaning.convert(x, to, how), [(i.operands[1], source)])


def shift(i: Instruction, kernel: PtxKernel) -> Do:
    out, x, by = i.operands
    return apply(out, meaning.SHIFT[i.name], [(x, dtype_of(i.kind)), (by, U4)])


def product(i: Instruction, kernel: PtxKernel) -> Do:
    """Return ``mul`` or ``mad``."""
    out, *xs = i.operands
    dtype = dtype_of(i.kind)
    f = meaning.PRODUCT[i.modifiers[0]]
    if len(xs) == 2:
        return apply(out, f, [(x, dtype) for x in xs])
    last = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}") if i.modifiers[0] == "wide" else dtype
    return apply(out, lambda a, b, c: f(a, b) + c, [(xs[0], dtype), (xs[1], dtype), (xs[2], last)])


def fused_multiply_add(i: Instruction, kernel: PtxKernel) -> Do:
    """Return ``fma``, which rounds once."""
    out, *xs = i.operands
    dtype = dtype_of(i.kind)

    def prepared(run: Any) -> tuple[Any, ...]:
        arrays = [np.asarray(run.values[x, dtype]) for x in xs]
        products = np.empty(run.threads, dtype)
        named = {name: Pointer(a) for name, a in zip("xyz", arrays)}
        steps = {f"{name}_step": a.strides[0] if a.ndim else 0 for name, a in zip("xyz", arrays)}
        call = FMA.call((f"f{dtype.itemsize}",), run.threads, **named, **steps, out=Pointer(products))
        return Bound(call, host_target()), products

    def do(run: Any) -> None:
        if i not in run.prepared:
            run.prepared[i] = prepared(run)
        multiply, products = run.prepared[i]
        multiply(0, run.threads)
        run.put(out, products)

    return do


def test_class(i: Instruction, kernel: PtxKernel) -> Do:
    return apply(i.operands[0], meaning.CLASS[i.modifiers[0]], [(i.operands[1], dtype_of(i.kind))])


def bit_field(i: Instruction, kernel: PtxKernel) -> Do:
    out, x, at, count = i.operands
    return apply(out, meaning.bit_field, [(x, dtype_of(i.kind)), (at, U4), (count, U4)])


def permute(i: Instruction, kernel: PtxKernel) -> Do:
    out, *xs = i.operands
    return apply(out, meaning.permute_bytes, [(x, U4) for x in xs])


def shuffle(i: Instruction, kernel: PtxKernel) -> Do:
    """Return ``shfl.sync``: read a register of another lane of the warp."""
    if i.modifiers[1] != "bfly":
        raise Fault(f"a shuffle that is not simulated: {i.line}")
    out, x, mask = i.operands[0].split("|")[0], i.operands[1], int(i.operands[2])

    def do(run: Any) -> None:
        there = np.broadcast_to(run.mask, run.threads).reshape(-1, 32)
        if (there.any(1) != there.all(1)).any():
            raise Fault("a shuffle without the whole warp")
        run.put(out, np.broadcast_to(run.values[x, U4], run.threads)[np.arange(run.threads) ^ mask])

    return do


# -- memory -----------------------------------------------------------------------------------------------------------


def address(operand: str) -> tuple[tuple[str, np.dtype], int]:
    """Return the register or symbol of an operand in brackets, and the byte offset from it."""
    name, _, plus = operand[1:-1].partition("+")
    return (name, np.dtype("i8")), int(plus or 0)


def access(i: Instruction, operand: str, count: int, writes: bool) -> Callable[[Any], tuple[np.ndarray, Any]]:
    """Return a function of a run: the memory as items of the instruction's type, and each thread's first item."""
    dtype, (base, plus) = dtype_of(i.kind), address(operand)

    def items_of(run: Any) -> tuple[np.ndarray, Any]:
        memory, at = run.places(base, plus, dtype.itemsize * count, writes)
        return memory.view(dtype), at // dtype.itemsize

    return items_of


def load(i: Instruction, kernel: PtxKernel) -> Do:
    names = parts_of(i.operands[0])
    items_of = access(i, i.operands[1], len(names), False)

    def do(run: Any) -> None:
        items, first = items_of(run)
        for j, name in enumerate(names):
            if name != "_":
                run.put_active(name, items[first + j])

    return do


def parameter(i: Instruction, kernel: PtxKernel) -> Do:
    """Return a load from a fixed address: the same value for all threads."""
    (name, _), plus = address(i.operands[1])
    if name not in kernel.symbols:
        return load(i, kernel)
    dtype, names = dtype_of(i.kind), parts_of(i.operands[0])
    start = kernel.parameter_offset(name) + plus

    def do(run: Any) -> None:
        for j, out in enumerate(names):
            at = start + j * dtype.itemsize
            run.put(out, run.param[at : at + dtype.itemsize].view(dtype)[0])

    return do


def load_any(i: Instruction, kernel: PtxKernel) -> Do:
    return parameter(i, kernel) if i.modifiers[0] == "param" else load(i, kernel)


def store_any(i: Instruction, kernel: PtxKernel) -> Do:
    dtype, names = dtype_of(i.kind), parts_of(i.operands[1])
    items_of = access(i, i.operands[0], len(names), True)

    def do(run: Any) -> None:
        items, first = items_of(run)
        for j, name in enumerate(names):
            items[first + j] = run.active(run.values[name, dtype])

    return do


class Values(dict):
    """Registers, symbols and constants as arrays by (text, dtype). Mutable: entries are created at first use."""

    def __init__(
        self, kernel: PtxKernel, threads: int, special: dict[str, np.ndarray], symbols: dict[str, int]
    ) -> None:
        self.kernel, self.threads, self.special, self.symbols = kernel, threads, special, symbols
        self.registers: dict[str, np.ndarray] = {}

    def __missing__(self, key: tuple[str, np.dtype]) -> Any:
        text, dtype = key
        if text in self.symbols:
            value: Any = np.array(self.symbols[text], np.uint64).view(dtype)
        elif text[0] != "%":
            value = constant_of(text, dtype)
        else:
            value = self.register(text)
            if value.dtype.itemsize < dtype.itemsize:
                raise Fault(f"{text} is narrower than the type it is read as")
            step = value.dtype.itemsize // dtype.itemsize
            value = value.view(dtype)[::step] if step > 1 else value.view(dtype)
        self[key] = value
        return value

    def register(self, name: str) -> np.ndarray:
        """Return the bits of a register, one element for each thread."""
        if name in self.special:
            return self.special[name]
        if name not in self.registers:
            width = self.kernel.width(name)
            self.registers[name] = np.zeros(self.threads, f"u{width}" if width else bool)
        return self.registers[name]


MAKERS: dict[str, Callable[[Instruction, PtxKernel], Do]] = {
    "mov": move, "cvta": move, "setp": compare, "selp": select, "cvt": convert, "shl": shift, "shr": shift,
    "mul": product, "mad": product, "fma": fused_multiply_add, "testp": test_class, "bfe": bit_field, "prmt": permute,
    "shfl": shuffle, "ld": load_any, "st": store_any, "addc": with_carry, "subc": with_carry,
}  # fmt: skip
