"""Op and Node, the parts of a graph. Nodes are immutable, shared when equal, and carry the user's source line.

An op defines its facets (see `Op`); a node is an op applied to operands. A node's operators, its methods and NumPy's
functions look up ops by name in `OPS`, which `cgraph.ops` fills.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial, wraps
from itertools import count
from os.path import basename
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np

from cgraph import slots
from cgraph.dtypes.convert import is_storage, name_of
from cgraph.errors import (
    ArgumentError,
    CgraphError,
    DTypeError,
    GraphError,
    NoGradientError,
    NoKernelError,
    NoMeaningError,
)
from cgraph.ir.cut import Cut
from cgraph.ir.late_functions import LateFunctions
from cgraph.ir.node_methods import NodeMethods
from cgraph.ir.origin import Origin, is_own, user_line, variable_at
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import MOST_AXES, Bundle, Spec
from cgraph.ir.table import NodeTable, number_of
from cgraph.ir.tracing import TRACE
from cgraph.ir.work import Work
from cgraph.record import Record
from cgraph.terminal import visible

Called = TypeVar("Called", bound=Callable)
OPS = LateFunctions()
NODES: "NodeTable[Node]" = NodeTable()
_SERIAL = count()


def next_serial() -> int:
    """Return a serial that later nodes exceed and older ones do not."""
    return next(_SERIAL)


def public(function: Called) -> Called:
    """Register a function under its name for operators and file formats, and add the location to its errors."""
    called = OPS[function.__name__] = locates_errors(function)
    return called


def locates_errors(function: Called) -> Called:
    """Return the function with its name and the user's line added to its errors.

    Operands that it cannot interpret, such as a list instead of a number, become an ArgumentError.
    """

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if TRACE.get() is not None:
            return slots.traced_call(called, args, kwargs)
        try:
            return function(*args, **kwargs)
        except CgraphError as error:
            if error.is_located:
                raise
            raise locate(error, f"{function.__name__} at {user_line()}: {error}") from error.__cause__
        except (TypeError, ValueError, ArithmeticError, IndexError, AttributeError) as error:
            if not is_internal(error):
                raise
            arguments = ", ".join([f"{x!r:.60}" for x in args] + [f"{name}={x!r:.60}" for name, x in kwargs.items()])
            text = f"{function.__name__} at {user_line()}: {error} (given {arguments})"
            raise locate(ArgumentError(text), text) from error

    return cast(Called, called)


def is_internal(error: Exception) -> bool:
    """Return True if the error was raised in our own code, not in the caller or in a user's callback."""
    first = error.__traceback__
    at = inside = None if first is None else first.tb_next
    while at is not None:
        if not is_own(at.tb_frame.f_code.co_filename):
            return False
        at = at.tb_next
    return inside is not None


def locate(error: CgraphError, text: str) -> CgraphError:
    """Return an error of the same class with a text that names the location."""
    located = type(error)(text)
    located.is_located = True
    return located


class Op(Record):
    """The computation of a node. Fields are parameters, methods are facets; absent facets have the defaults below."""

    pure = True
    """True if equal operands give equal values, so that equal nodes are one node."""
    can_fail = False
    """True if a run may fail here: in a user's function, or at a position outside its axis."""
    takes_complex = False
    """True if complex operands are supported; otherwise they raise DTypeError."""
    is_layer = False
    """True for convolutions and products, whose two factors may be rounded to bfloat16."""
    writes = False
    """True if the result is written into the bytes of an operand."""
    takes_storage = False
    """True if operands may have a storage dtype: the op moves values, or widens them as it reads."""
    _number: ClassVar[int] = 0
    _first: "ClassVar[Op | None]" = None

    def __reduce__(self) -> tuple:
        """Pickle the fields only; the number belongs to this process."""
        return type(self), tuple(getattr(self, name) for name in self._fields)

    @property
    def name(self) -> str:
        return snake_case(type(self).__name__)

    def infer(self, *specs: Spec) -> Spec | Bundle:
        """Return the result's spec. ShapeError or DTypeError if the operands do not fit."""
        raise NotImplementedError(f"{self.name} does not define infer")

    def meaning(self, *xs: np.ndarray) -> Any:
        """Compute the op in plain NumPy; return a tuple of arrays if the result is a Bundle."""
        raise NotImplementedError(f"{self.name} does not define meaning")

    def grad(self, node: "Node", g: "Node") -> "tuple[Node | None, ...]":
        """Return the gradient of each operand from `g`, the gradient of the result."""
        raise NoGradientError(f"{self.name} has no gradient")

    def work(self, target: Any, *specs: Spec) -> Work:
        """Return the work of `target` for a node of this op on operands of these specs."""
        raise NoKernelError(f"{self.name} has no kernel. Pass engine='reference', or define work")

    def multiply_adds(self, *specs: Spec) -> int:
        """Return the number of multiply-adds; 0 for an op without sums of products."""
        return 0

    def reads(self, operands: "tuple[Node, ...]") -> "tuple[Node, ...]":
        """Return the operands that a step reads; the others only have to run before it."""
        return operands

    def reason(self, node: "Node") -> Any:
        """Return a key of failure: of nodes with equal keys, all fail or none."""
        return node

    def alias(self, *xs: Any) -> Any:
        """Return the result as a view of the bytes of operand 0, or None if it needs bytes of its own."""
        return None

    def cut(self, *specs: Spec) -> Cut | None:
        """Return how bands of rows of the result are computed; None if the op has to run whole."""
        return None

    def row_rule(self, *specs: Spec) -> RowRule | None:
        """Return how the first rows of the result, along axis 0, are computed; None if the op has to run whole."""
        return None


class Node(NodeMethods["Node"]):
    """One value of the graph: an op applied to operands. Immutable; holds no data.

    Fields
        op, operands: the computation
        spec: shape and dtype, inferred at construction
        serial: order of construction; operands precede their users
        origin: the user's file and line, and the name there
    """

    __slots__ = ("__weakref__", "op", "operands", "origin", "serial", "spec")
    __array_priority__ = 1000

    def __init__(self, op: Op, operands: "tuple[Node, ...]", spec: Any, origin: Origin) -> None:
        self.op, self.operands, self.spec, self.origin = op, operands, spec, origin
        self.serial = next(_SERIAL)

    # -- properties of the value ------------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype:
        return self.spec.dtype

    @property
    def ndim(self) -> int:
        return len(self.spec.shape)

    @property
    def size(self) -> int:
        return self.spec.size

    @property
    def nbytes(self) -> int:
        return self.spec.nbytes

    @property
    def name(self) -> str:
        """The name of the op, or of a Var or Const."""
        return getattr(self.op, "label", None) or self.op.name

    @property
    def label(self) -> str:
        """The user's name: that of a leaf, of the layer, of the file's node, or of the variable; or empty."""
        if hasattr(self.op, "label"):
            return self.name
        return self.origin.name or variable_at(self.origin.file, self.origin.line)

    @property
    def title(self) -> str:
        """The user's name first, then the op's: ``blocks.0 (conv2d)``; one of them where they are the same."""
        label = self.label
        return self.name if label in ("", self.name) else f"{label} ({self.op.name})"

    @property
    def where(self) -> str:
        """The user's file and line, such as ``train.py:41``, and the name there: ``train.py:41 in blocks.0``."""
        return str(self.origin)

    @property
    def place(self) -> str:
        """The user's file and line, such as ``train.py:41``."""
        return f"{basename(self.origin.file)}:{self.origin.line}"

    def __repr__(self) -> str:
        return visible(f"<{self.name} {self.spec} at {self.where}>")

    def _repr_html_(self) -> str:
        return slots.node_html(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"{self.name} {self.spec} is a scalar and has no length. Use .size")
        return self.shape[0]

    def __iter__(self) -> "Iterator[Node]":
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        raise GraphError(
            f"{self.name} at {self.where} has no value yet, so it is neither True nor False; "
            "use cg.where to select inside the graph, cg.while_loop for a loop, or .eval() to compute it"
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise self._no_data(
            "call .eval() to compute it, pass the node itself to functions such as np.sin, or join nodes with np.stack"
        )

    def _no_data(self, remedy: str) -> NoMeaningError:
        return NoMeaningError(f"{self.name} at {self.where} holds no data; {remedy}")

    def _no_number(self) -> Any:
        raise self._no_data("call .item() to compute the number, or use NumPy's function, np.sin for math.sin")

    __float__ = __int__ = __complex__ = __index__ = _no_number

    def __format__(self, form: str) -> str:
        return self._no_number() if form else repr(self)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise self._no_data("nodes are immutable; use x = x.at[index].set(value)")

    def __delitem__(self, index: Any) -> None:
        raise self._no_data("nodes are immutable; use x = np.delete(x, index)")

    def __round__(self, decimals: int = 0) -> "Node":
        return OPS["round"](self, decimals)

    def __divmod__(self, other: Any) -> "tuple[Node, Node]":
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> "tuple[Node, Node]":
        return other // self, other % self

    # -- operators: each is an op by name, set below --------------------------------------------------------------
    if TYPE_CHECKING:

        def _of_two(self, other: Any) -> "Node": ...
        def _of_one(self) -> "Node": ...

        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = _of_two
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = _of_two
        __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __rand__ = __ror__ = __rxor__ = _of_two
        __lt__ = __le__ = __gt__ = __ge__ = _of_two

        def __eq__(self, other: Any) -> "Node": ...  # type: ignore[override]
        def __ne__(self, other: Any) -> "Node": ...  # type: ignore[override]
        def __hash__(self) -> int: ...

        __neg__ = __abs__ = __invert__ = __pos__ = _of_one

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"Node has no attribute {name!r}")
            if name not in METHODS:
                return slots.numpy_attribute(self, name)

            def method(*args: Any, **kwargs: Any) -> Any:
                own = kwargs.keys() <= PLAIN and len(args) <= METHODS[name]
                return (partial(OPS[name], self) if own else slots.numpy_attribute(self, name))(*args, **kwargs)

            return method

        def __call__(self, *args: Any, **named: Any) -> Any:
            raise NoMeaningError(
                f"{self.name} at {self.where} is a node, not a function; f = cg.compile(node, inputs) makes one of it"
            )

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *METHODS, *slots.numpy_names()})

    @property
    def T(self) -> "Node":
        return OPS["transpose"](self)

    def __getitem__(self, index: Any) -> "Node":
        return OPS["getitem"](self, index)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return slots.numpy_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: tuple, kwargs: dict) -> Any:
        return slots.numpy_function(function, types, args, kwargs)


METHODS = dict.fromkeys(("astype", "max", "min", "squeeze"), 1) | dict.fromkeys(("clip", "mean", "sum"), 2)
METHODS |= dict.fromkeys(("eval", "item", "reshape", "swapaxes", "transpose"), MOST_AXES)
"""Methods that this library uses itself, with the most arguments by position: ops by name, with keywords PLAIN only.
`cgraph.numpy` has the others, and calls with more arguments."""
PLAIN = frozenset(["axis", "dtype", "keepdims"])
_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
}  # fmt: skip
COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
_UNARY = {"neg": "negative", "abs": "abs", "invert": "invert", "pos": "positive"}


def _operator(name: str, swap: bool = False) -> Callable:
    def apply(self: Node, *other: Any) -> Any:
        return OPS[name](*((*other, self) if swap else (self, *other)))

    return apply


for _python, _name in (_BINARY | COMPARISONS | _UNARY).items():
    setattr(Node, f"__{_python}__", _operator(_name))
for _python, _name in _BINARY.items():
    setattr(Node, f"__r{_python}__", _operator(_name, swap=True))
# `==` builds a node, so nodes are hashed by identity
Node.__hash__ = object.__hash__  # type: ignore[method-assign]


NodeLike = Node | Any
"""A node. NumPy's stubs declare results as ndarray, so a type checker must accept these, too."""


def apply(op: Op, *operands: Node) -> Node:
    """Return the node of `op` on `operands`: an equal existing one, or a new one, whose spec is inferred."""
    return intern(op, operands, None, None)


def with_operands(node: Node, operands: tuple[Node, ...]) -> Node:
    """Return the node's op on other operands, with its line; specs are inferred only if those of operands differ."""
    alike = [x.spec for x in operands] == [x.spec for x in node.operands]
    return intern(node.op, operands, node.spec if alike else None, node.origin)


def intern(op: Op, operands: tuple[Node, ...], spec: Any, origin: Origin | None) -> Node:
    """Return an equal existing node, or a new one of this spec and origin, which are determined if None."""
    key = (number_of(op), *[id(x) for x in operands]) if op.pure else None
    if key is not None:
        entry = NODES.entries.get(key)
        existing = None if entry is None else entry()
        if existing is not None:
            return existing
    origin = origin or user_line()
    try:
        spec = spec or infer_spec(op, [x.spec for x in operands])
    except CgraphError as error:
        raise locate(error, located_message(op, operands, origin, str(error))) from None
    node = Node(op, operands, spec, origin)
    if key is not None:
        NODES.put(key, node)
    return node


def infer_spec(op: Op, specs: list[Any]) -> Any:
    """Return the result's spec. DTypeError for complex operands and storage dtypes that the op does not support."""
    if not op.takes_complex and any(isinstance(x, Spec) and x.dtype.kind == "c" for x in specs):
        raise DTypeError(
            f"{op.name} does not support complex operands; use np.real, np.imag, np.abs or np.angle of them"
        )
    stored = () if op.takes_storage else [x.dtype for x in specs if isinstance(x, Spec) and is_storage(x.dtype)]
    if stored:
        raise DTypeError(f"{op.name} does not compute in {name_of(stored[0])}; use x.astype('float32')")
    return op.infer(*specs)


def located_message(op: Op, operands: tuple[Node, ...], origin: Origin, problem: str) -> str:
    """Return ``matmul at train.py:52: <problem> (x float32[32,784], w float32[256,128])``."""
    named = ", ".join(f"{x.name} {x.spec}" for x in operands)
    return f"{op.name} at {origin}: {problem}" + (f" ({named})" if named else "")


@cache
def snake_case(name: str) -> str:
    """Return a name in snake case: ``snake_case("Conv2d") == "conv2d"``."""
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))
