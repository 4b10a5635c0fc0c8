"""Records that describe processors: hosts, targets, instructions, code generation, architectures."""

from collections.abc import Callable, Mapping

from cgraph.dtypes.storage import BY_CODE
from cgraph.record import Record, replace

TILE_ROW = 64  # bytes of a row of a tile register


class Host(Record):
    """A machine in LLVM's terms: processor name and features, target triple, data layout; the version of llvmlite and
    its library; and the processor's vendor, as ``/proc/cpuinfo`` calls it. Name and layout are empty where the system
    reports all features that targets need.
    """

    cpu: str
    features: str
    triple: str
    layout: str
    version: str
    vendor: str = ""

    def has(self, *features: str) -> bool:
        return {f"+{x}" for x in features} <= set(self.features.split(","))


class Target(Record):
    """A processor or GPU as planners and emitters see it: capabilities that they may ask for.

    Fields
        name: as users select it, such as ``avx2`` or ``neon``
        cpu, features: as LLVM names them
        lanes: float32 values in one vector register
        registers: vector registers
        fma: fused multiply-add is one instruction; without it emitters multiply, then add
        architecture: name of the `Architecture`, whose table has the instructions
        code: ``native`` machine code, or ``ptx``, where a task is a thread or a block of threads
        dot: sum of four products of bytes. ``mixed``: one instruction multiplies bytes without signs by bytes with
            signs. ``signed``: one instruction multiplies bytes with signs. ``pairs``: sums of two 16-bit products.
            ``halves``: two products of 16 bits in one
            instruction without vectors. ``across``: all products of two vectors of bytes in one instruction, which
            adds them to a number. ``plain``: integer arithmetic
        converts_half: one instruction widens or rounds float16
        rounds: one instruction rounds a float to a whole number, or the C library does
        bf16: sums of two products of bfloat16 numbers. ``dot``: one instruction, as fast as one multiply-add of
            floats; ``emulated``: two multiply-adds, which tests use in its place; empty: float32 is at least as fast
        tiles: products of whole tiles of bytes and of bfloat16 numbers. ``amx``: the
            instructions of Intel AMX; ``emulated``: the same bits on any processor, slowly, for tests; empty: none
        selects_bytes: one instruction selects bytes from 128 others
        block_columns: most columns of a block whose sums lie on the stack; few where the stack is small
        has_libc: kernels may call the C library's mathematics; else they bring their own
        has_blocks: families use kernels for blocks of threads; families without them run a task in each thread
        tuning: LLVM's name of the processor whose instruction times decide the order of instructions; empty: those of
            `cpu`
    """

    name: str
    cpu: str
    features: str
    lanes: int
    registers: int
    fma: bool
    architecture: str
    code: str = "native"
    dot: str = "plain"
    converts_half: bool = False
    rounds: bool = True
    bf16: str = ""
    tiles: str = ""
    selects_bytes: bool = False
    block_columns: int = 1024
    has_libc: bool = True
    has_blocks: bool = False
    tuning: str = ""

    @property
    def is_small(self) -> bool:
        """True for micro-controllers whose 8-bit kernels are those for few registers."""
        return self.dot in ("halves", "across")

    @property
    def narrow(self) -> "Target":
        """The same target with loops vectorised by LLVM to at most 256 bits."""
        return replace(self, features=self.features.replace("-prefer-256-bit", "+prefer-256-bit"))

    @property
    def multiplies_bfloat16(self) -> bool:
        """True if products of bfloat16 numbers are faster than those of float32."""
        return bool(self.bf16 or self.tiles)

    @property
    def task_elements(self) -> int:
        """Elements of one task: many for a CPU thread, few for one of a GPU's thousands of threads."""
        return 64 if self.code == "ptx" else 32768

    def lanes_of(self, dtype: str) -> int:
        """Return the values of `dtype` (``f4``, ``i8``…) in one vector register; of complex numbers, the real parts."""
        return max(1, self.lanes * 4 // (int(dtype[1:]) // (2 if dtype[0] == "c" else 1)))

    def channels_of(self, dtype: str) -> int:
        """Return the channels of a block of a channel-blocked image: one register; of bytes as many as of float32.

        Those of a storage dtype, bfloat16, are a row of a tile register on every target.
        """
        if dtype in BY_CODE:
            return TILE_ROW // BY_CODE[dtype].dtype.itemsize
        return self.lanes if dtype == "u1" else self.lanes_of(dtype)


class Intrinsic(Record):
    """An instruction that LLVM's operations do not express.

    Fields
        name: LLVM's intrinsic
        result: dtype of the elements of the result, None without a result
        operands: dtypes as which the operands' bits are read
        constants: further operands: dtype, value, and lanes (0: a number)
        constants_first: they precede the operands
    """

    name: str
    result: str | None = None
    operands: tuple[str, ...] = ()
    constants: tuple[tuple[str, int, int], ...] = ()
    constants_first: bool = False


class CodeGeneration(Record):
    """The settings of LLVM's code generator that, together with the target and LLVM's version, determine machine code.

    Fields
        triple, layout: LLVM's names of the system and the data layout; an empty layout is the triple's own
        optimisation: LLVM's level, 0 to 3
        relocation, code_model: form of addresses; ``jitdefault`` is 64 bits wherever code may lie anywhere
        jit: True for code that runs in this process
        address_bits: bits of an address
        abi: LLVM's name of the calling convention; empty for the triple's own
        form: of object files: ``elf``, ``arm-elf`` (with ARM's attributes), ``coff``, ``mach-o``, ``wasm``
        reduces_strength: LLVM searches for cheaper addresses in loops (loop strength reduction)
    """

    triple: str
    layout: str
    optimisation: int = 3
    relocation: str = "default"
    code_model: str = "jitdefault"
    jit: bool = False
    address_bits: int = 64
    abi: str = ""
    form: str = "elf"
    reduces_strength: bool = True


class Patch(Record):
    """What a relocation of an object file stores at its place.

    Fields
        value: ``address`` (64 bits); ``distance`` from the place; ``pages``, the distance of two pages of 4096 bytes;
            ``offset`` in the page
        fields: bits of the 32-bit word that store the value, lowest first: how many, and the first
        shift: the value's lowest bits, which are 0 and are not stored
        is_call: it may lead to a C function
    """

    value: str
    fields: tuple[tuple[int, int], ...] = ()
    shift: int = 0
    is_call: bool = False


class Architecture(Record, eq=False):
    """Processors that share instructions, triples and the form of object files.

    Fields
        name: as in the table of architectures
        targets: the narrowest first; a processor that runs one runs those before it
        instructions: LLVM's intrinsics by operation and lanes of the result (0: not a vector)
        objects: code generation for other machines than this process runs on; None if there is none
        detect: returns the widest target of a host, None if no process runs on such a machine
        needs: features that saved code of each target needs, as ``/proc/cpuinfo`` calls them; a target that is absent
            cannot be saved
        cpuinfo: lines of ``/proc/cpuinfo`` that describe the processor, that of the features last
        feature_names: LLVM's names of features by those of ``/proc/cpuinfo``: all features that `detect` asks for
        common: common processors, for which a release has machine code
        elf, mach_o: machine number in the header of object files, None if there are no such files
        relocations: of ELF object files by number, where our linker supports them; empty if only LLVM links the code
        stub: machine code that goes to the address in the eight bytes after it, for calls of C functions by distance
        code_model: of ELF code that runs in this process: one whose relocations are in the table
        reduces_strength: of code that runs in this process; False where instructions add and scale addresses anyway
        clear_cache: libgcc's function that makes new code visible to the processor; empty where none is needed
        futex: Linux's number of the system call ``futex``, 0 if it is unknown
    """

    name: str
    targets: tuple[Target, ...]
    instructions: Mapping[tuple[str, int], Intrinsic]
    objects: CodeGeneration | None = None
    detect: Callable[[Host], Target] | None = None
    needs: Mapping[str, tuple[str, ...]] = {}
    cpuinfo: tuple[str, ...] = ()
    feature_names: Mapping[str, str] = {}
    common: tuple[Host, ...] = ()
    elf: int | None = None
    mach_o: int | None = None
    relocations: Mapping[int, Patch] = {}
    stub: bytes = b""
    code_model: str = "jitdefault"
    reduces_strength: bool = True
    clear_cache: str = ""
    futex: int = 0

    def target(self, name: str) -> Target:
        """Return the target of this name.

        Raises
            KeyError: there is none
        """
        return {x.name: x for x in self.targets}[name]
