"""The entry of an exported program as LLVM text: argument tables, memory, and a function that makes all calls."""

from collections.abc import Iterator, Sequence
from operator import itemgetter

from cgraph.kernels.control import BEGIN, BETWEEN, SKIP
from cgraph.kernels.signature import WordTable
from cgraph.standalone.memory import ALIGNMENT, MemoryLayout
from cgraph.standalone.program import WORD, Address, ExportProgram, ExportRow, Moving, OutputCopy, RowJump, Word
from cgraph.standalone.word_tables import stored_words


def llvm_bytes(raw: bytes) -> str:
    """Return an LLVM string of these bytes."""
    return 'c"' + "".join(f"\\{b:02x}" for b in raw) + '"'


class EntryWriter:
    """Writes the entry. Mutable: lines are added as it is written.

    Parameters
        program: the calls
        layout: layout of arena and state in memory
        bits: of an address
        section: the arena's section; empty for the default one
        has_reset: write a function that restores the state
        word_tables: how the arguments of each kernel are stored; empty for words of 64 bits
    """

    def __init__(
        self,
        program: ExportProgram,
        layout: MemoryLayout,
        bits: int,
        section: str = "",
        has_reset: bool = False,
        word_tables: Sequence[WordTable | None] = (),
    ) -> None:
        self.word_tables = word_tables
        self.program, self.layout, self.bits, self.section = program, layout, bits, section
        self.prefix, self.has_reset = program.interface.prefix, has_reset
        self.body: list[str] = []
        late = (row for row in program.rows if any(map(self.is_late, row.words)))
        self.words_nbytes = max(map(self.table_nbytes, late), default=0)

    def text(self) -> str:
        """Return the module: definitions, tables, and the public functions."""
        return entry_text([self])

    def table(self, n: int) -> str:
        """Return the symbol of a row's arguments."""
        return self.symbol(f"a{n}{self.program.suffix}")

    def symbol(self, name: str) -> str:
        return f"@{self.prefix}_{name}"

    def declarations(self) -> Iterator[str]:
        """Yield memory and kernels. Constants and state are external, so the optimiser cannot read them."""
        section = f', section "{self.section}"' if self.section else ""
        constants, arena = (max(n, 1) for n in (len(self.program.constants), self.program.arena_nbytes))
        yield f"{self.symbol('constants')} = external constant [{constants} x i8], align {ALIGNMENT}"
        if not self.layout.is_caller:
            kind = f"internal global [{arena} x i8] zeroinitializer"
            yield f"{self.symbol('arena')} = {kind}{section}, align {ALIGNMENT}"
            yield f"{self.symbol('stop')} = internal global i64 0, align 8"
            yield f"{self.symbol('done')} = internal global i64 0, align 8"
            for x in self.program.interface.state:
                yield f"{self.symbol(x.name)} = external global [{max(x.nbytes, 1)} x i8], align 16"
        for i in range(len(self.program.kernels)):
            yield f"declare void {self.symbol(f'k{i}')}(ptr, i64, i64)"
        yield f"declare void @llvm.memcpy.p0.p0.i{self.bits}(ptr, ptr, i{self.bits}, i1)"

    # -- words --------------------------------------------------------------------------------------------------------
    def is_late(self, word: Word) -> bool:
        """Return True for an address that is only known during a run."""
        if isinstance(word, Moving):
            return True
        return isinstance(word, Address) and (word.is_parameter or self.layout.holds(word.symbol))

    def pointer(self, at: Address) -> str:
        """Return a constant expression for an address in static memory."""
        name = at.symbol.removeprefix("state:")
        return f"getelementptr (i8, ptr {self.symbol(name)}, i{self.bits} {at.offset})"

    def form_of(self, row: ExportRow) -> WordTable | None:
        """Return how a row's arguments are stored; None for words of 64 bits."""
        return self.word_tables[row.kernel] if self.word_tables and row.kernel >= 0 else None

    def width(self, row: ExportRow) -> int:
        """Return the bytes of a word of a row's table."""
        form = self.form_of(row)
        return WORD if form is None else form.width

    @property
    def all_tables_nbytes(self) -> int:
        """Bytes of the arguments of all rows."""
        return sum(map(self.table_nbytes, self.program.rows))

    def table_nbytes(self, row: ExportRow) -> int:
        return len(stored_words(row, self.form_of(row))) * self.width(row)

    def constant(self, word: Word, width: int) -> tuple[str, str]:
        """Return the type and the value of a table's word; of a late one, zero."""
        if not isinstance(word, Address) or self.is_late(word):
            return f"i{8 * width}", f"i{8 * width} {word if isinstance(word, int) else 0}"
        if self.bits == 8 * width:
            return "ptr", f"ptr {self.pointer(word)}"
        return "<{ ptr, i32 }>", f"<{{ ptr, i32 }}> <{{ ptr {self.pointer(word)}, i32 0 }}>"

    def tables(self) -> Iterator[str]:
        for n, row in enumerate(self.program.rows):
            words = [self.constant(word, self.width(row)) for _, word in stored_words(row, self.form_of(row))]
            types, values = (", ".join(x) for x in (map(itemgetter(0), words), map(itemgetter(1), words)))
            yield f"{self.table(n)} = internal constant <{{ {types} }}> <{{ {values} }}>, align 8"

    def late_pointer(self, at: Address | Moving) -> str:
        """Emit and return the pointer to a byte of a parameter, or to one that a loop moves."""
        if isinstance(at, Moving):
            return self.moved_pointer(at)
        if not self.is_late(at):
            return self.pointer(at)
        if at.is_parameter:
            side, _, name = at.symbol.partition(":")
            base, offset = f"%{side}_{name}", at.offset
        else:
            base, offset = "%memory", at.offset + self.layout.start_of(at.symbol)
        return self.value(f"getelementptr i8, ptr {base}, i64 {offset}")

    def moved_pointer(self, at: Moving) -> str:
        start = self.late_pointer(at.start)
        number = self.value(f"load i64, ptr %round{at.loop}, align 8")
        offset = self.value(f"mul i64 {number}, {at.stride}")
        return self.value(f"getelementptr i8, ptr {start}, i64 {offset}")

    def value(self, instruction: str) -> str:
        """Emit an instruction and return the name of its value."""
        name = f"%v{len(self.body)}"
        self.body.append(f"  {name} = {instruction}")
        return name

    def copy_bytes(self, out: str, x: str, nbytes: int) -> None:
        self.body.append(
            f"  call void @llvm.memcpy.p0.p0.i{self.bits}(ptr {out}, ptr {x}, i{self.bits} {nbytes}, i1 false)"
        )

    # -- the run ------------------------------------------------------------------------------------------------------
    def parameters(self) -> str:
        names = [f"%in_{x.name}" for x in self.program.interface.inputs]
        names += [f"%out_{x.name}" for x in self.program.interface.outputs]
        return ", ".join(f"ptr {x}" for x in (*(["%memory"] if self.layout.is_caller else []), *names))

    def run(self) -> list[str]:
        """Return the function that makes all calls; it returns 0, or 1 + the label of the call that stopped it."""
        self.body = [f"  %words = alloca [{max(self.words_nbytes, 1)} x i8], align 8"]
        jumps = {n: row.jump for n, row in enumerate(self.program.rows) if row.jump}
        self.body += [f"  %round{n} = alloca i64, align 8" for n, jump in jumps.items() if jump.kind == BEGIN]
        ends = {jump.to for jump in jumps.values()}
        for copy in self.program.first_copies:
            self.copy_output(copy)
        for n, row in enumerate(self.program.rows):
            if n in ends:
                self.body += [f"  br label %row{n}", f"row{n}:"]
            if row.jump:
                self.jump(n, row.jump)
            else:
                self.call(n, row)
        if len(self.program.rows) in ends:
            self.body += [f"  br label %row{len(self.program.rows)}", f"row{len(self.program.rows)}:"]
        for copy in self.program.last_copies:
            self.copy_output(copy)
        return [f"define i32 @{self.program.run_name}({self.parameters()}) {{", *self.body, "  ret i32 0", "}"]

    def copy_output(self, copy: OutputCopy) -> None:
        source = self.late_pointer(copy.source) if self.is_late(copy.source) else self.pointer(copy.source)
        self.copy_bytes(f"%out_{copy.output}", source, copy.nbytes)

    def call(self, n: int, row: ExportRow) -> None:
        """Emit one kernel call; its late words are written into a copy of its arguments."""
        args, width = self.table(n), self.width(row)
        late = [(at, word) for at, word in stored_words(row, self.form_of(row)) if self.is_late(word)]
        if late:
            self.copy_bytes("%words", args, self.table_nbytes(row))
            args = "%words"
        for at, word in late:
            assert not isinstance(word, int)
            number = self.value(f"ptrtoint ptr {self.late_pointer(word)} to i{8 * width}")
            place = self.value(f"getelementptr i8, ptr %words, i64 {at}")
            self.body.append(f"  store i{8 * width} {number}, ptr {place}, align {width}")
        self.body.append(f"  call void {self.symbol(f'k{row.kernel}')}(ptr {args}, i64 0, i64 {row.tasks})")
        if row.can_stop:
            self.check_stop(n, row.label)

    def jump(self, n: int, jump: RowJump) -> None:
        """Emit a jump: to a row, or on to the next one."""
        if jump.kind == SKIP:
            assert not isinstance(jump.at, int)
            byte = self.value(f"load i8, ptr {self.late_pointer(jump.at)}, align 1")
            self.go_on_if(f"icmp eq i8 {byte}, {jump.value}", n, jump)
            return
        if jump.kind == BETWEEN:
            assert not isinstance(jump.at, int)
            count = self.value(f"load i64, ptr {self.late_pointer(jump.at)}, align 8")
            above, below = (
                self.value(f"icmp {x}") for x in (f"sgt i64 {count}, {jump.value}", f"sle i64 {count}, {jump.high}")
            )
            self.go_on_if(f"and i1 {above}, {below}", n, jump)
            return
        counter = f"%round{jump.loop}"
        if jump.kind == BEGIN:
            number, start, other = "0", f"on{n}", f"row{jump.to}"
        else:
            before = self.value(f"load i64, ptr {counter}, align 8")
            number, start, other = self.value(f"add i64 {before}, 1"), f"row{jump.to}", f"on{n}"
        self.body.append(f"  store i64 {number}, ptr {counter}, align 8")
        goes_on = self.value(f"icmp slt i64 {number}, {jump.rounds}")
        self.body += [f"  br i1 {goes_on}, label %{start}, label %{other}", f"on{n}:"]

    def go_on_if(self, condition: str, n: int, jump: RowJump) -> None:
        """Emit a jump unless an instruction gives 1."""
        self.body += [f"  br i1 {self.value(condition)}, label %on{n}, label %row{jump.to}", f"on{n}:"]

    def check_stop(self, n: int, label: int) -> None:
        stop = self.late_pointer(Address("stop", 0)) if self.layout.is_caller else self.symbol("stop")
        word = self.value(f"load i64, ptr {stop}, align 8")
        failed = self.value(f"icmp ne i64 {word}, 0")
        self.body += [
            f"  br i1 {failed}, label %stopped{n}, label %go{n}",
            f"stopped{n}:",
            f"  store i64 0, ptr {stop}, align 8",
            f"  ret i32 {1 + label}",
            f"go{n}:",
        ]

    # -- reset and begin ----------------------------------------------------------------------------------------------
    def helpers(self) -> list[str]:
        """Return ``begin`` for the caller's memory, or ``reset`` if `has_reset`."""
        if self.layout.is_caller:
            return self.begin()
        if not self.has_reset:
            return []
        self.body = []
        self.restore_state()
        return [f"define void {self.symbol('reset')}() {{", *self.body, "  ret void", "}"]

    def begin(self) -> list[str]:
        """Return the function that prepares the caller's memory; it returns 1 if the memory is not aligned."""
        self.body = []
        number = self.value(f"ptrtoint ptr %memory to i{self.bits}")
        rest = self.value(f"and i{self.bits} {number}, {ALIGNMENT - 1}")
        wrong = self.value(f"icmp ne i{self.bits} {rest}, 0")
        self.body += [f"  br i1 {wrong}, label %refused, label %go", "refused:", "  ret i32 1", "go:"]
        for name in ("stop", "done"):
            self.body.append(f"  store i64 0, ptr {self.late_pointer(Address(name, 0))}, align 8")
        self.restore_state()
        return [f"define i32 {self.symbol('begin')}(ptr %memory) {{", *self.body, "  ret i32 0", "}"]

    def restore_state(self) -> None:
        for x in self.program.interface.state:
            at = Address(f"state:{x.name}", 0)
            place = self.late_pointer(at) if self.is_late(at) else self.symbol(x.name)
            self.copy_bytes(place, self.pointer(Address("constants", self.program.start_state[x.name])), x.nbytes)


def entry_text(writers: Sequence[EntryWriter]) -> str:
    """Return one module of several runs, which share the largest arena."""
    first = max(writers, key=lambda x: x.program.arena_nbytes)
    runs = [line for x in writers for line in (*x.tables(), *x.run())]
    return "\n".join((*first.declarations(), *runs, *first.helpers(), ""))
