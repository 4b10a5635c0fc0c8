"""A writer of LLVM's text: types, values, functions, and a builder that appends instructions as lines.

It has the names of the parts of llvmlite.ir that emitters use. An instruction is written once, when it is appended: a
kernel's text takes a fifth of the time that llvmlite's objects take. Types are not checked here; LLVM's parser checks
them.
Source: llvm.org/docs/LangRef.html.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

SIGNS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


class Type:
    """An LLVM type, by its text."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def constant(self, value: Any) -> str:
        """Return the text of a constant of this type: of a number, or of one for each element."""
        return str(int(value))


class IntType(Type):
    """An integer of `width` bits."""

    __slots__ = ("width",)

    def __init__(self, width: int) -> None:
        super().__init__(f"i{width}")
        self.width = width


class FloatType(Type):
    """A float32; its constants are written as the bits of a float64."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("float")

    def constant(self, value: Any) -> str:
        return DOUBLE.constant(struct.unpack("f", struct.pack("f", value))[0])


class DoubleType(Type):
    """A float64; its constants are written as their bits."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("double")

    def constant(self, value: Any) -> str:
        return f"0x{struct.unpack('Q', struct.pack('d', value))[0]:016x}"


class VectorType(Type):
    """A vector of `count` elements."""

    __slots__ = ("count", "element")

    def __init__(self, element: Type, count: int) -> None:
        super().__init__(f"<{count} x {element.text}>")
        self.element, self.count = element, count

    def constant(self, value: Any) -> str:
        values = value if isinstance(value, list | tuple) else [value] * self.count
        return f"<{items(self.element, values)}>"


class ArrayType(Type):
    """An array of `count` elements."""

    __slots__ = ("element",)

    def __init__(self, element: Type, count: int) -> None:
        super().__init__(f"[{count} x {element.text}]")
        self.element = element

    def constant(self, value: Any) -> str:
        return f"[{items(self.element, value)}]"


class PointerType(Type):
    """An untyped address in an address space."""

    __slots__ = ()

    def __init__(self, addrspace: int = 0) -> None:
        super().__init__(f"ptr addrspace({addrspace})" if addrspace else "ptr")


class FunctionType(Type):
    """The type of a function: of its result, and of its operands."""

    __slots__ = ("args", "result")

    def __init__(self, result: Type, args: Sequence[Type]) -> None:
        super().__init__(f"{result.text} ({', '.join(x.text for x in args)})")
        self.result, self.args = result, tuple(args)


BOOL, FLOAT, DOUBLE, HALF, BFLOAT = IntType(1), FloatType(), DoubleType(), Type("half"), Type("bfloat")
VOID, POINTER = Type("void"), PointerType()
Undefined = object()  # the value of a constant without a value


def items(kind: Type, values: Sequence[Any]) -> str:
    """Return the text of the elements of a constant; equal neighbours are formatted once."""
    texts, before, text = [], object(), ""
    for value in values:
        if value is not before:
            before, text = value, f"{kind.text} {kind.constant(value)}"
        texts.append(text)
    return ", ".join(texts)


class Value:
    """A value by its name in the text."""

    __slots__ = ("ref", "type")

    def __init__(self, type: Type, ref: str) -> None:
        self.type, self.ref = type, ref

    @property
    def operand(self) -> str:
        """The value with its type, as an operand."""
        return f"{self.type.text} {self.ref}"


class Constant(Value):
    """A number, a list of numbers, None for a null address, or `Undefined`."""

    __slots__ = ()

    def __init__(self, type: Type, value: Any) -> None:
        self.type = type
        self.ref = "undef" if value is Undefined else "null" if value is None else type.constant(value)


class Instruction(Value):
    """A line of a block, and its value. Changes: metadata are added."""

    __slots__ = ("at", "lines")

    def __init__(self, type: Type, ref: str, lines: list[Any]) -> None:
        self.type, self.ref, self.lines, self.at = type, ref, lines, len(lines)

    def set_metadata(self, name: str, data: Value) -> None:
        """Append metadata to the line."""
        self.lines[self.at] += f", !{name} {data.ref}"


class Phi(Value):
    """A value that depends on the block from which its block is reached. Changes: those blocks are added."""

    __slots__ = ("ways",)

    def __init__(self, type: Type, ref: str) -> None:
        self.type, self.ref = type, ref
        self.ways: list[str] = []

    def add_incoming(self, value: Value, block: "Block") -> None:
        """Set the value of one way into the block."""
        self.ways.append(f"[{value.ref}, {block.ref}]")

    def __str__(self) -> str:
        return f"{self.ref} = phi {self.type.text} {', '.join(self.ways)}"


class InlineAsm(Value):
    """Assembler text that is called like a function."""

    __slots__ = ("result",)

    def __init__(self, kind: FunctionType, text: str, constraints: str, side_effect: bool) -> None:
        self.type, self.result = kind, kind.result
        self.ref = f'asm {"sideeffect " if side_effect else ""}"{text}", "{constraints}"'


class Block:
    """A basic block of a function. Changes: lines are appended; the last one ends it."""

    __slots__ = ("is_terminated", "label", "lines", "ref")

    def __init__(self, label: str) -> None:
        self.label, self.ref, self.is_terminated = label, f"%{label}", False
        self.lines: list[Any] = []

    def __str__(self) -> str:
        return "\n  ".join([f"{self.label}:", *map(str, self.lines)])


class Module:
    """Everything that one kernel's text holds. Changes: functions, variables and metadata are added."""

    def __init__(self, name: str) -> None:
        self.name, self.triple = name, ""
        self.globals: dict[str, Any] = {}
        self.metadata: dict[str, Value] = {}  # by their text

    def get_unique_name(self, name: str) -> str:
        """Return a name that no function or variable has."""
        return f"{name}.{len(self.globals)}"

    def add_metadata(self, operands: Sequence[Value | str]) -> Value:
        """Return metadata with these constants, texts and metadata; equal ones are the same."""
        parts = (f'!"{x}"' if isinstance(x, str) else x.operand.strip() for x in operands)
        text = f"!{{{', '.join(parts)}}}"
        return self.metadata.setdefault(text, Value(Type(""), f"!{len(self.metadata)}"))

    def __str__(self) -> str:
        lines = [f'target triple = "{self.triple}"', *map(str, self.globals.values())]
        return "\n".join([*lines, *(f"{x.ref} = {text}" for text, x in self.metadata.items()), ""])


class Function(Value):
    """A function of a module; without blocks it is a declaration. Changes: blocks are appended.

    Fields
        head: what precedes the blocks, in place of the usual line
        attributes: words that follow it
    """

    __slots__ = ("args", "attributes", "blocks", "count", "head", "name", "result")

    def __init__(self, module: Module, kind: FunctionType, name: str) -> None:
        self.type, self.ref, self.name, self.result = POINTER, f'@"{name}"', name, kind.result
        self.args = [Value(x, f"%.{i + 1}") for i, x in enumerate(kind.args)]
        self.blocks: list[Block] = []
        self.count, self.head, self.attributes = len(kind.args), "", list[str]()
        module.globals[name] = self

    def append_basic_block(self, name: str) -> Block:
        """Return a new last block."""
        self.blocks.append(Block(f"{name}.{len(self.blocks)}"))
        return self.blocks[-1]

    def __str__(self) -> str:
        if not self.blocks:
            return f"declare {self.result} {self.ref}({', '.join(x.type.text for x in self.args)})"
        head = self.head or f"define {self.result} {self.ref}({', '.join(x.operand for x in self.args)})"
        return "\n".join([f"{' '.join((head, *self.attributes))} {{", *map(str, self.blocks), "}"])


class GlobalVariable(Value):
    """A variable or constant of a module.

    Fields
        kind: type of its value
        initializer: its constant
    """

    __slots__ = ("align", "initializer", "is_constant", "kind")

    def __init__(self, module: Module, kind: Type, name: str, addrspace: int = 0) -> None:
        super().__init__(PointerType(addrspace), f'@"{name}"')
        self.kind, self.is_constant, self.align = kind, False, 0
        self.initializer = Constant(kind, Undefined)
        module.globals[name] = self

    def __str__(self) -> str:
        space = self.type.text.removeprefix("ptr").strip()
        word = "constant" if self.is_constant else "global"
        align = f", align {self.align}" if self.align else ""
        return f"{self.ref} = internal {space} {word} {self.initializer.operand}{align}"


def two_operands(name: str) -> Callable[..., Instruction]:
    """Return a method that appends an instruction of two operands of one type."""

    def append(self: "IRBuilder", x: Value, y: Value) -> Instruction:
        return self.append(x.type, f"{name} {x.type.text} {x.ref}, {y.ref}")

    return append


def conversion(name: str) -> Callable[..., Value]:
    """Return a method that appends a conversion to a type, except to its own."""

    def append(self: "IRBuilder", x: Value, kind: Type) -> Value:
        return x if x.type == kind else self.append(kind, f"{name} {x.type.text} {x.ref} to {kind.text}")

    return append


def comparison(instruction: str, order: str) -> Callable[..., Instruction]:
    """Return a method that appends a comparison by a sign; `order` precedes those that have one."""

    def append(self: "IRBuilder", sign: str, x: Value, y: Value) -> Instruction:
        name = SIGNS.get(sign, sign)
        prefix = "" if sign not in SIGNS or (instruction == "icmp" and name in ("eq", "ne")) else order
        kind = VectorType(BOOL, x.type.count) if isinstance(x.type, VectorType) else BOOL
        return self.append(kind, f"{instruction} {prefix}{name} {x.type.text} {x.ref}, {y.ref}")

    return append


class IRBuilder:
    """Appends instructions to a block. Changes: the block, and which one it is."""

    add, sub, mul = map(two_operands, ("add", "sub", "mul"))
    sdiv, udiv, srem, urem = map(two_operands, ("sdiv", "udiv", "srem", "urem"))
    fadd, fsub, fmul, fdiv, frem = map(two_operands, ("fadd", "fsub", "fmul", "fdiv", "frem"))
    and_, or_, xor, shl, ashr, lshr = map(two_operands, ("and", "or", "xor", "shl", "ashr", "lshr"))
    trunc, zext, sext, bitcast = map(conversion, ("trunc", "zext", "sext", "bitcast"))
    fptrunc, fpext, fptosi, fptoui = map(conversion, ("fptrunc", "fpext", "fptosi", "fptoui"))
    sitofp, uitofp, ptrtoint, inttoptr = map(conversion, ("sitofp", "uitofp", "ptrtoint", "inttoptr"))
    addrspacecast = conversion("addrspacecast")
    icmp_signed, icmp_unsigned = comparison("icmp", "s"), comparison("icmp", "u")
    fcmp_ordered, fcmp_unordered = comparison("fcmp", "o"), comparison("fcmp", "u")

    def __init__(self, module: Module, function: Function, block: Block) -> None:
        self.module, self.function, self.block = module, function, block

    def append(self, kind: Type, text: str) -> Instruction:
        """Append an instruction, and return its result."""
        self.function.count = number = self.function.count + 1
        instruction = Instruction(kind, f"%.{number}", self.block.lines)
        self.block.lines.append(f"{instruction.ref} = {text}")
        return instruction

    def append_void(self, text: str) -> Instruction:
        """Append an instruction without a result."""
        instruction = Instruction(VOID, "", self.block.lines)
        self.block.lines.append(text)
        return instruction

    # -- arithmetic -----------------------------------------------------------------------------------------------
    def neg(self, x: Value) -> Instruction:
        return self.sub(Constant(x.type, 0), x)

    def fneg(self, x: Value) -> Instruction:
        return self.append(x.type, f"fneg {x.operand}")

    def not_(self, x: Value) -> Instruction:
        return self.xor(x, Constant(x.type, -1))

    def select(self, condition: Value, x: Value, y: Value) -> Instruction:
        return self.append(x.type, f"select {condition.operand}, {x.operand}, {y.operand}")

    # -- vectors --------------------------------------------------------------------------------------------------
    def insert_element(self, vector: Value, x: Value, at: Value) -> Instruction:
        return self.append(vector.type, f"insertelement {vector.operand}, {x.operand}, {at.operand}")

    def extract_element(self, vector: Value, at: Value) -> Instruction:
        assert isinstance(vector.type, VectorType), vector.operand
        return self.append(vector.type.element, f"extractelement {vector.operand}, {at.operand}")

    def shuffle_vector(self, x: Value, y: Value, mask: Value) -> Instruction:
        assert isinstance(x.type, VectorType) and isinstance(mask.type, VectorType), x.operand
        kind = VectorType(x.type.element, mask.type.count)
        return self.append(kind, f"shufflevector {x.operand}, {y.operand}, {mask.operand}")

    # -- memory ---------------------------------------------------------------------------------------------------
    def alloca(self, kind: Type, align: int) -> Instruction:
        return self.append(POINTER, f"alloca {kind.text}, align {align}")

    def load(self, at: Value, typ: Type, align: int = 0, volatile: bool = False) -> Instruction:
        kind = "load volatile" if volatile else "load"
        return self.append(typ, f"{kind} {typ.text}, {at.operand}{f', align {align}' if align else ''}")

    def store(self, x: Value, at: Value, align: int = 0, volatile: bool = False) -> Instruction:
        kind = "store volatile" if volatile else "store"
        return self.append_void(f"{kind} {x.operand}, {at.operand}{f', align {align}' if align else ''}")

    def gep(self, at: Value, index: Value, source_etype: Type) -> Instruction:
        return self.append(at.type, f"getelementptr {source_etype.text}, {at.operand}, {index.operand}")

    def load_atomic(self, at: Value, ordering: str, align: int, typ: Type) -> Instruction:
        return self.append(typ, f"load atomic {typ.text}, {at.operand} {ordering}, align {align}")

    def atomic_rmw(self, name: str, at: Value, x: Value, ordering: str) -> Instruction:
        return self.append(x.type, f"atomicrmw {name} {at.operand}, {x.operand} {ordering}")

    def cmpxchg(self, at: Value, old: Value, new: Value, ordering: str, failed: str) -> Instruction:
        """Write `new` if the word is `old`; return whether it was."""
        text = f"cmpxchg {at.operand}, {old.operand}, {new.operand} {ordering} {failed}"
        both = self.append(Type(f"{{{old.type.text}, i1}}"), text)
        return self.append(BOOL, f"extractvalue {both.operand}, 1")

    # -- control --------------------------------------------------------------------------------------------------
    def call(self, function: Any, operands: Sequence[Value], result: Type | None = None) -> Instruction:
        """Call a function; one at an address needs the type of its `result`."""
        kind = function.result if result is None else result
        text = f"call {kind.text} {function.ref}({', '.join([f'{x.type.text} {x.ref}' for x in operands])})"
        return self.append_void(text) if kind.text == "void" else self.append(kind, text)

    def phi(self, kind: Type) -> Phi:
        self.function.count += 1
        phi = Phi(kind, f"%.{self.function.count}")
        self.block.lines.append(phi)
        return phi

    def end(self, text: str) -> Instruction:
        """Append the last instruction of the block."""
        assert not self.block.is_terminated, f"block {self.block.label} has ended"
        self.block.is_terminated = True
        return self.append_void(text)

    def ret(self, x: Value) -> None:
        self.end(f"ret {x.operand}")

    def ret_void(self) -> None:
        self.end("ret void")

    def branch(self, block: Block) -> None:
        self.end(f"br label {block.ref}")

    def cbranch(self, condition: Value, block: Block, other: Block, likely: bool | None = None) -> None:
        branch = self.end(f"br {condition.operand}, label {block.ref}, label {other.ref}")
        if likely is not None:
            weights = [Constant(IntType(32), x) for x in ((99, 1) if likely else (1, 99))]
            branch.set_metadata("prof", self.module.add_metadata(["branch_weights", *weights]))

    def position_at_end(self, block: Block) -> None:
        """Append to another block from now on."""
        self.block = block

    @contextmanager
    def if_then(self, condition: Value, likely: bool | None = None) -> Iterator[None]:
        """Append what follows in this context to a block for a true condition."""
        body, end = (self.function.append_basic_block(name) for name in ("if", "endif"))
        self.cbranch(condition, body, end, likely)
        with self.branch_to(body, end):
            yield
        self.position_at_end(end)

    @contextmanager
    def if_else(self, condition: Value) -> Iterator[tuple[AbstractContextManager, AbstractContextManager]]:
        """Yield the contexts of a true and of a false condition."""
        body, other, end = (self.function.append_basic_block(name) for name in ("if", "else", "endif"))
        self.cbranch(condition, body, other)
        yield self.branch_to(body, end), self.branch_to(other, end)
        self.position_at_end(end)

    @contextmanager
    def branch_to(self, block: Block, end: Block) -> Iterator[None]:
        """Append to a block that goes on at `end`, unless it is ended otherwise."""
        self.position_at_end(block)
        yield
        if not self.block.is_terminated:
            self.branch(end)
