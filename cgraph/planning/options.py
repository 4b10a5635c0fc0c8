"""The request and the options of one `compile`, and their checks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypedDict

import numpy as np

from cgraph.budget.budget import Budget
from cgraph.dtypes.convert import is_storage
from cgraph.dtypes.storage import BY_NAME
from cgraph.errors import GraphError
from cgraph.ir.graph import Node
from cgraph.ir.roots import Roots
from cgraph.ir.spec import dtype_of
from cgraph.lowering.rounded_layers import RoundedLayers
from cgraph.memory.problem import Strategy
from cgraph.ops.leaf import Var
from cgraph.planning.mixed_precision import MixedPrecision, Tolerance
from cgraph.record import Record
from cgraph.storage.weight_file import StreamedWeights
from cgraph.system.byte_counts import SIZE, byte_count, is_byte_count
from cgraph.system.keywords import unknown_option


class Request(Record, eq=False):
    """A graph to compile into a Function.

    Fields
        outputs: the nodes whose values a call returns
        inputs: the Vars that each call passes, in order
        updates: update edges: for each Var, the node whose value it has after a run
    """

    outputs: tuple[Node, ...]
    inputs: tuple[Var, ...]
    updates: Mapping[Var, Node]

    @cached_property
    def roots(self) -> Roots:
        """Outputs, then the sources of the update edges."""
        return Roots((*self.outputs, *self.updates.values()))

    def of(self, roots: tuple[Node, ...]) -> "Request":
        """Return the same request with other nodes for the same values."""
        split = len(self.outputs)
        return Request(roots[:split], self.inputs, dict(zip(self.updates, roots[split:])))


class CompileOptions(Record):
    """The choices of one `compile`.

    Fields
        memory: a strategy's name, ``auto`` by default; ``one_each`` shares nothing
        order: the running order: ``depth_first``, ``breadth_first``, ``least_memory`` or ``auto``. ``auto`` plans depth
            first. It also plans the order of least memory if that may save 4 KiB (with a budget and in exported code:
            any byte), and uses the smaller plan
        changing: Vars that change from run to run: values that do not depend on them are stored between runs
        budget: maximum bytes of the arena, a number or text such as ``"2MiB"``; with `weights`, of arena, ring
            and the constants that stay in memory
        passes: rewrite the graph first; False runs it as written
        winograd: allow it where it is faster; False computes every convolution directly, which is more exact
        freeze: Vars whose present values become constants, which passes fold and pack: weights at inference
        recompute: rematerialise values of the forward part for the backward part: the same bits, less memory, more
            time. True for few bytes with nothing computed more than twice; a number of bytes for the least extra work
            that fits in them; a share of the work, below 1, to rematerialise cheap values up to that share
        bands: compute images in bands of rows of at least this number of pixels, wherever that makes the plan smaller;
            the same bits. With `budget`, bands are used where they are necessary without this option
        restructure: patch-based execution of the steps around the memory peak, which computes the borders of patches
            twice (Cipolletta and Calimera 2021): the reach of regions as a share of the peak, and the number of
            patches down and across
        weights: read large constants from a file while a run computes, instead of keeping them in memory. See
            docs/weights.md
        weights_dtype: a storage dtype, such as ``bfloat16``: round the large constants that convolutions and products
            read, and store them in fewer bytes; arithmetic stays in float32. See docs/half.md
        precision: ``bf16``: convolutions and products, in training too, may round their factors to bfloat16 and add in
            float32. They do where that is faster; elsewhere they stay float32. A `Tolerance` decides for each layer by
            the error of samples; a `MixedPrecision` repeats a choice. Engines get `RoundedLayers`. See docs/half.md
        rows: inputs and outputs, images ``[n, c, h, w]``, that are streamed by rows and are never completely in memory:
            the same bits, except for some convolutions of few channels. See docs/memory.md
    """

    memory: str | Strategy = "auto"
    order: str = "auto"
    changing: Sequence[Var] = ()
    budget: int | None = None
    passes: bool = True
    winograd: bool = True
    freeze: Sequence[Var] = ()
    recompute: bool | float = False
    bands: int | None = None
    restructure: tuple[float, tuple[int, int]] | None = None
    weights: StreamedWeights | None = None
    rows: Sequence[Node] = ()
    weights_dtype: str | None = None
    precision: str | Tolerance | MixedPrecision | RoundedLayers | None = None

    @property
    def in_pairs(self) -> bool:
        """Return True if products may multiply bfloat16 numbers."""
        return self.precision is not None

    @property
    def rounded_layers(self) -> RoundedLayers | None:
        """The layers that may round, if the choice is by layer."""
        return self.precision if isinstance(self.precision, RoundedLayers) else None

    @property
    def storage_dtype(self) -> np.dtype | None:
        """The dtype in which large weights are stored; None for their own."""
        return None if self.weights_dtype is None else dtype_of(self.weights_dtype)


class CompileKeywords(TypedDict, total=False):
    """The keyword arguments of `cgraph.compile`, for functions that pass them on."""

    engine: Any
    threads: int
    memory: str | Strategy
    order: str
    changing: Sequence[Var]
    budget: int | str | None
    passes: bool
    winograd: bool
    freeze: Sequence[Var]
    recompute: bool | float | str
    bands: int | None
    restructure: tuple[float, tuple[int, int]] | None
    weights: StreamedWeights | None
    rows: Sequence[Node]
    weights_dtype: str | None
    precision: str | Tolerance | MixedPrecision | None


COMPILE_KEYWORDS = ("engine", "threads", *CompileOptions._fields)


class PlanSettings(Record):
    """Settings of planning the graphs of one compile.

    Fields
        target: the target whose kernels run
        alignment: offsets are multiples of it
        strategy: the memory strategy
        order: one of `cgraph.planning.orders.ORDERS`
        changing: Vars that change from run to run
        budget: the budget of the plan
        moves_results: runs compute large results in callers' arrays
        least_gain: bytes; a search for another order must be able to gain as many
    """

    target: Any
    alignment: int
    strategy: Strategy
    order: str = "auto"
    changing: tuple[Var, ...] = ()
    budget: Budget = Budget()
    moves_results: bool = False
    least_gain: int = 1


def is_whole(x: Any) -> bool:
    return isinstance(x, int | np.integer) and not isinstance(x, bool) and bool(0 <= x < 2**62)


def is_switch(x: Any) -> bool:
    return isinstance(x, bool | np.bool_)


def is_share(x: Any) -> bool:
    return isinstance(x, float | np.floating) and bool(0 <= x < 1)


def is_patches(x: Any) -> bool:
    """Return True for a share with patches down and across."""
    if not (isinstance(x, tuple | list) and len(x) == 2 and isinstance(x[1], tuple | list) and len(x[1]) == 2):
        return False
    return isinstance(x[0], int | float) and all(map(is_whole, x[1]))


CHECKS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "memory": (
        "a strategy's name, or a strategy",
        lambda x: isinstance(x, str) or (callable(x) and not isinstance(x, Node)),
    ),
    "order": ("the name of an order", lambda x: isinstance(x, str)),
    "changing": ("Vars, such as [w]", lambda x: all(isinstance(v, Var) for v in x)),
    "budget": (f"{SIZE}, or None", lambda x: x is None or is_byte_count(x)),
    "passes": ("True or False", is_switch),
    "winograd": ("True or False", is_switch),
    "freeze": ("Vars, such as [w]", lambda x: all(isinstance(v, Var) for v in x)),
    "recompute": (
        f"True, False, a share below 1, or {SIZE}",
        lambda x: is_switch(x) or is_byte_count(x) or is_share(x),
    ),
    "bands": ("a number of pixels, or None", lambda x: x is None or is_whole(x)),
    "restructure": ("a share of the peak and two counts, (0.5, (2, 2))", lambda x: x is None or is_patches(x)),
    "weights": ("StreamedWeights(path)", lambda x: isinstance(x, StreamedWeights | None)),
    "rows": ("inputs and outputs, such as [x, y]", lambda x: all(isinstance(v, Node) for v in x)),
    "weights_dtype": (" or ".join(BY_NAME), lambda x: x is None or is_weights_dtype(x)),
    "precision": (
        "bf16, a Tolerance, the precision of a Function, or None for float32",
        lambda x: x == "bf16" if isinstance(x, str) else isinstance(x, Tolerance | MixedPrecision | None),
    ),
}
"""For each option, the values that it accepts, in words and as a predicate."""
SEVERAL = ("changing", "freeze", "rows")
IN_BYTES = ("budget", "recompute")


def is_weights_dtype(x: Any) -> bool:
    """Return True for a dtype that can store weights, or its name."""
    return isinstance(x, str | type | np.dtype) and is_storage(dtype_of(x))


def options_of(arguments: dict[str, Any]) -> CompileOptions:
    """Return options by name. GraphError for an unknown name, and for a value that an option does not accept."""
    for name, value in arguments.items():
        if name not in CHECKS:
            raise unknown_option("compile", name, COMPILE_KEYWORDS)
        argument = members(value) if name in SEVERAL else value
        words, is_accepted = CHECKS[name]
        if argument is None and name in SEVERAL or not is_accepted(argument):
            raise GraphError(f"{name} takes {words}, not {value!r:.60}")
        arguments = arguments | {name: plain_number(argument)}
    for name in IN_BYTES:
        if isinstance(arguments.get(name), str):
            arguments[name] = byte_count(arguments[name])
    if arguments.get("recompute") == 0.0 and isinstance(arguments["recompute"], float):
        arguments["recompute"] = False  # a share of nothing
    return CompileOptions(**arguments)


def check_together(request: Request, options: CompileOptions, refused: Sequence[str], engine: str) -> None:
    """Raise GraphError if options contradict one another, the graph or the engine.

    Parameters
        refused: options that the engine does not support
        engine: its name
    """
    roles = (("an input", request.inputs), ("the target of an update", request.updates), ("changing", options.changing))
    for role, variables in roles:
        for x in variables:
            if x in set(options.freeze):
                reason = f"freeze has {x.name} {x.spec}, which is {role}: it cannot be a constant as well"
                raise GraphError(f"{reason}. Remove it from freeze")
    for name in refused:
        if getattr(options, name) != CompileOptions._defaults[name]:
            raise GraphError(f"the engine {engine} does not support {name}=; leave it out, or use another engine")
    for name in ("weights_dtype", "precision"):
        if not options.passes and getattr(options, name) is not None:
            raise GraphError(f"{name}= is a pass over the graph, and passes=False runs none. Omit one of the two")
    for name in ("changing", "recompute", "bands", "restructure", "weights"):
        value, default = getattr(options, name), CompileOptions._defaults[name]
        if options.rows and (value != default or type(value) is not type(default)):
            raise GraphError(f"rows= goes with budget=, not with {name}=. Omit {name}=")


def plain_number(x: Any) -> Any:
    """Return a NumPy number as Python's, so that NumPy's True is True; anything else unchanged."""
    return x.item() if isinstance(x, np.bool_ | np.integer | np.floating) else x


def members(x: Any) -> tuple[Any, ...] | None:
    """Return the members of a collection; None for anything else, such as a Var, which is iterable by rows."""
    return tuple(x) if isinstance(x, Iterable) and not isinstance(x, Node | str) else None
