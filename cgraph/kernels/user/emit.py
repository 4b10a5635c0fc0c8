"""Users' Python functions: typed by Numba, then compiled with all other kernels, for CPUs and GPUs alike.

Numba's LLVM text of a function without exceptions is plain arithmetic. Its x86 attributes are removed, and it is linked
to a kernel that calls it. Its mathematics become this project's own functions, which run on GPUs and which LLVM
vectorises; only a function over whole arrays on a CPU, which has no vectors, uses the C library, as Numba alone does.
References to Python or to Numba's run time are refused by name.
"""

import re
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from numba import njit, types
from numba.np import linalg
from numba.np.numpy_support import as_dtype, from_dtype
from numpy import dtype as numpy_dtype

from cgraph.dtypes.convert import code_of
from cgraph.errors import NoKernelError
from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import POINTER, Builder
from cgraph.kernels.llvm.values import Ptr, Val, vector_type
from cgraph.kernels.llvm.vmath import FLOAT
from cgraph.kernels.pointwise.emit import stream_list
from cgraph.kernels.user_function import UserFunction, user_function
from cgraph.kernels.walk.emit import walk

OWN = "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc lgamma"
OF_ONE = (*OWN.split(), "sqrt", "floor", "ceil", "trunc", "rint", "fabs", "tgamma")
OF_TWO = ("pow", "atan2", "hypot", "fmod", "copysign")
NAMED = {"tgamma": "gamma", "fabs": "abs"}  # their names in `FLOAT`
NAMES = "|".join([*OF_ONE, *OF_TWO])
CALL = re.compile(rf"@(?:llvm\.({NAMES})\.(?:v(\d+))?f(32|64)|({NAMES})(f?))(?=\()")
REMAINDER = re.compile(r"= frem (?:[a-z]+ )*(?:<(\d+) x )?(float|double)>? ([^,\n]+), ([^,\n]+)")
CODES = {"32": "f4", "64": "f8", "float": "f4", "double": "f8", "f": "f4", "": "f8"}
WORDS = {"f4": "float", "f8": "double"}
OWN_PREFIX = "cg_"  # of the names of our functions in Numba's text
STATUS = ir.IntType(32)
ARRAYS = "numba.np.arraymath"
OPTIONS: Any = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
REFUSED = {  # by the text of a function
    r"@NRT_(MemInfo_alloc|MemInfo_new|Allocate)": "allocates arrays, lists or text. Write into the output",
    r"@Py[A-Z_]": "uses Python objects, as print does, which kernels cannot. Remove them",
    r"pickledata": "raises exceptions, which kernels cannot. Return NaN instead",
}


def each(k: Builder, function: UserFunction, dtypes: tuple[str, ...], ins: str, outs: str) -> None:
    """Call the function for one number at a time; every element is read before it is written.

    Task: some rows, one block of columns. A function of only a few comparisons waits for memory, where long vectors
    would straddle cache lines.
    """
    a = k.args()
    compiled = NumbaFunction(k, function, [number_type(d) for d in dtypes[:-1]], own=True)
    k.is_narrow = not compiled.has_mathematics
    streams = list(zip(stream_list(a.streams, len(dtypes)), dtypes, ins + outs))
    apart = scopes(k)
    with k.task_loop() as task:
        low, start = (task // a.blocks) * a.rows_each, (task % a.blocks) * a.block
        high, end = k.smaller(low + a.rows_each, a.rows), k.smaller(start + a.block, a.columns)

        def row(_: Val, offsets: list[Val]) -> None:
            with k.loop(start, end) as column:
                *places, out = (
                    element(k, base + offset, stride, column, dtype, access)
                    for ((base, stride), dtype, access), offset in zip(streams, offsets)
                )
                numbers = [number_at(place) for place in places]
                for x in numbers:
                    assert isinstance(x, ir.Instruction)
                    x.set_metadata("alias.scope", apart)
                compiled(*numbers)
                result = k.cast(compiled.result(), out.dtype)
                result = k.cast(result, "u1") if out.dtype == "b1" else result
                k.b.store(result.v, out.v, align=int(out.dtype[1:])).set_metadata("noalias", apart)

        walk(k, a.axes, a.rank, len(dtypes), low, high, row)


def element(k: Builder, row: Val, stride: Val, column: Val, dtype: str, access: str) -> Ptr:
    """Return one column of a row: contiguous (``v``), one value for all (``s``) or strided (``g``)."""
    if access == "v":
        return k.pointer(row, dtype) + column
    return k.pointer(row, dtype) if access == "s" else k.pointer(row + column * stride, dtype)


def scopes(k: Builder) -> ir.Value:
    """Return an alias scope: a store cannot change what a later iteration of the loop reads.

    This holds for an output in an operand's own bytes too, since each element is read, then written, and never again.
    """
    domain = k.module.add_metadata(["operands"])
    return k.module.add_metadata([k.module.add_metadata(["elements", domain])])


def tasks(k: Builder, function: UserFunction, dtypes: tuple[str, ...], ranks: tuple[int, ...]) -> None:
    """Call the function on whole arrays; it writes only the first. Task: one call."""
    a = k.args()
    kinds = [argument_type(d, rank, is_result=i == 0) for i, (d, rank) in enumerate(zip(dtypes, ranks))]
    compiled = NumbaFunction(k, function, [types.int64, *kinds], own=k.target.code == "ptx")
    words: list[ir.Value] = []
    for i, (kind, dtype, rank) in enumerate(zip(kinds, dtypes, ranks)):
        at = k.pointer((a.arrays + i).load(), dtype)
        extents = [(a.extents + sum(ranks[:i]) + axis).load() for axis in range(rank)]
        words += array_words(k, at, extents) if isinstance(kind, types.Array) else [number_at(at)]
    with k.task_loop() as task:
        compiled(task.v, *words)


def argument_type(dtype: str, rank: int, is_result: bool) -> types.Type:
    """Return Numba's type of an array, or of the number that an operand without axes is passed as."""
    kind = number_type(dtype)
    return types.Array(kind, rank, "C", readonly=not is_result) if rank or is_result else kind


def number_at(at: Ptr) -> ir.Value:
    """Return the number at an address, as Numba's functions take it."""
    return at.as_dtype("u1" if at.dtype == "b1" else at.dtype).load().v


def array_words(k: Builder, at: Ptr, extents: Sequence[Val]) -> list[ir.Value]:
    """Return an array as Numba's functions take it: owners, elements, itemsize, address, shape, strides in bytes."""
    nothing, nbytes = ir.Constant(POINTER, None), k.const(int(at.dtype[1:]), "i8")
    strides, step = [], nbytes
    for n in reversed(extents):
        strides.append(step)
        step = step * n
    return [
        nothing,
        nothing,
        (step // nbytes).v,
        nbytes.v,
        at.v,
        *(n.v for n in extents),
        *(s.v for s in strides[::-1]),
    ]


def load_arrays_alone() -> None:
    """Load Numba's array functions once, without SciPy's linear algebra.

    Numba imports SciPy to check that it is installed, which takes a sixth of the time of a process's first kernel. Here
    it is imported only if a function needs it.
    """
    if ARRAYS in sys.modules:
        return
    asked = linalg.ensure_blas
    linalg.ensure_blas = require_scipy
    try:
        arrays: Any = import_module(ARRAYS)
    finally:
        linalg.ensure_blas = asked
    arrays.ensure_blas = asked


def require_scipy() -> None:
    """Raise ImportError if SciPy is not installed."""
    if find_spec("scipy") is None:
        raise ImportError("SciPy is not installed: pip install scipy")


class NumbaFunction:
    """A function that Numba has compiled for arguments of some types, linked to the kernel under construction.

    Call it with the values of its arguments; `result` is then its return value.
    """

    def __init__(self, k: Builder, function: UserFunction, arguments: Sequence[types.Type], own: bool) -> None:
        """`own`: its mathematics are this project's."""
        refused, signature = f"kernel {function.label} ({function.where})", tuple(arguments)
        if user_function(function.python) != function:
            raise NoKernelError(
                f"{refused} reads a value that has changed since the graph was built. Build the graph again"
            )
        try:
            load_arrays_alone()
            compiled = njit(**OPTIONS)(function.python)
            compiled.compile(signature)
        except Exception as error:  # Numba's own, and what it meets, as an AttributeError where a module lacks a name
            raise NoKernelError(
                f"{refused} is not code that Numba compiles: {error}. Rewrite it, or omit compile="
            ) from None
        overload = compiled.overloads[signature]
        text = overload.library.get_llvm_str()
        for sign, what in REFUSED.items():
            if re.search(sign, text):
                raise NoKernelError(f"{refused} {what}")
        text = strip_target(text)
        text = own_mathematics(k, with_calls_of_fmod(text)) if own else text
        k.linked[refused], self.has_mathematics = text, OWN_PREFIX in text
        self.k, self.refused, self.returns = k, refused, overload.signature.return_type
        self.name, self.room = overload.fndesc.llvm_func_name, k.stack_ptr("i8", 2)

    def __call__(self, *values: ir.Value) -> None:
        called = self.k.declare(self.name, STATUS, [POINTER, POINTER, *(v.type for v in values)])
        self.k.b.call(called, [self.room.v, self.room.v, *values])

    def result(self) -> Val:
        """Return the number that it returned. NoKernelError if it returns none."""
        if not isinstance(self.returns, types.Integer | types.Float | types.Boolean):
            raise NoKernelError(
                f"{self.refused} returns {self.returns}, which is not a number. Return an integer, a float or a bool"
            )
        return self.room.as_dtype(code_of(as_dtype(self.returns))).load()


def number_type(dtype: str) -> types.Type:
    """Numba's type of an element."""
    return from_dtype(numpy_dtype("?" if dtype == "b1" else dtype))


def strip_target(text: str) -> str:
    """Return Numba's text without its target machine, and with C's name of the gamma function instead of its own."""
    text = text.replace("@numba_gamma", "@tgamma")
    text = re.sub(r"^(target datalayout|target triple).*$", "", text, flags=re.M)
    return re.sub(r"^attributes (#\d+) = \{.*?\}$", r"attributes \1 = { nounwind }", text, flags=re.M)


def with_calls_of_fmod(text: str) -> str:
    """Return the text with calls instead of LLVM's frem, which GPUs compute wrongly."""

    def call(m: re.Match) -> str:
        kind = f"<{m[1]} x {m[2]}>" if m[1] else m[2]
        return f"= call {kind} @{own_name('fmod', CODES[m[2]], m[1])}({kind} {m[3]}, {kind} {m[4]})"

    return REMAINDER.sub(call, text)


def own_name(name: str, dtype: str, lanes: str | None) -> str:
    return f"{OWN_PREFIX}{name}_{dtype}" + (f"x{lanes}" if lanes else "")


def own_mathematics(k: Builder, text: str) -> str:
    """Return the text with this project's mathematical functions, which are added to the kernel's module."""

    def own(m: re.Match) -> str:
        name, dtype = m[1] or m[4], CODES[m[3] if m[1] else m[5]]
        return f"@{own_name(name, dtype, m[2])}"

    text = CALL.sub(own, text)
    used = sorted(set(re.findall(r"@(cg_([a-z0-9]+)_(f[48])(?:x(\d+))?)\(", text)))
    for symbol, name, dtype, lanes in used:
        define(k, symbol, name, dtype, int(lanes or 0))
    missing = [
        declaration(symbol, dtype, lanes, 2)
        for symbol, name, dtype, lanes in used
        if name == "fmod" and not re.search(rf"^declare .*@{symbol}\(", text, re.M)
    ]
    return "\n".join([text, *missing])


def declaration(symbol: str, dtype: str, lanes: str, count: int) -> str:
    kind = f"<{lanes} x {WORDS[dtype]}>" if lanes else WORDS[dtype]
    return f"declare {kind} @{symbol}({', '.join([kind] * count)})"


def define(k: Builder, symbol: str, name: str, dtype: str, lanes: int) -> None:
    """Add one of this project's functions to the kernel's module."""
    kind = vector_type(dtype, lanes)
    function = ir.Function(k.module, ir.FunctionType(kind, [kind] * (2 if name in OF_TWO else 1)), symbol)
    inner = type(k)(k.module, function, k.kernel, k.target)
    result = FLOAT[NAMED.get(name, name)](inner, *(inner.wrap(x, dtype, lanes) for x in function.args))
    inner.b.ret(result.v)
    inner.finish()
