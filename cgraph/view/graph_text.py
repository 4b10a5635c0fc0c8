"""The text form of a graph: one line for each node, in an order in which operands come first.

    %0 = var x : float32[1,3,8,8]
    %1 = const : float32[] = 2.0
    %2 = multiply(%0, %1) : float32[1,3,8,8]
    return %2

A line has the op, its operands, its parameters that differ from the defaults, and the spec of the result. `text` writes
it, before or after any pass. `graph_from_text` reads it back if all parameters are plain: numbers, texts, None, dtypes,
and tuples of these. Constants of more than `MOST_VALUES` elements are shown by a checksum, and the reader takes their
values from the caller.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from cgraph.dtypes.convert import name_of
from cgraph.errors import CgraphError, FormatError, GraphError
from cgraph.function import Function
from cgraph.ir.graph import Node, NodeLike, Op, apply, public, snake_case
from cgraph.ir.spec import Spec, dtype_of
from cgraph.ir.traverse import post_order
from cgraph.ops import import_ops
from cgraph.ops.leaf import Const, ConstOp, Var
from cgraph.passes import PASSES
from cgraph.record import Record
from cgraph.terminal import visible

MOST_VALUES = 16  # maximum elements of a constant that are shown
CHECKSUM = "sha256:"
NOT_A_LINE = (
    ValueError,
    TypeError,
    SyntaxError,
    AttributeError,
    ArithmeticError,
    LookupError,
    RecursionError,
    MemoryError,
)
PLAIN = (int, float, complex, str, bool, type(None))
LINE = re.compile(r"%(?P<number>\d+) = (?P<op>\w+)(?P<rest>.*?) : (?P<spec>\w+\[[\d,]*\]|bundle)(?: = (?P<values>.*))?")
CALL = re.compile(r"\((?P<operands>(?:%\d+(?:, )?)*)\)(?: (?P<fields>.*))?")


@public
def text(graph: NodeLike | Iterable[NodeLike] | Function, passes: str | None = None) -> str:
    """Return a graph as text, one line for each node.

    Parameters
        graph: a node, several nodes, or a Function, whose compiled graph is shown
        passes: None for the graph itself; the name of a pass, such as ``fold_constants``, for the graph after that pass
            and all before it; ``all`` after all passes; ``trace`` for the text after each pass that changed it
    Raises
        GraphError: an unknown pass, or `graph` is a Function and `passes` is not None
    """
    if isinstance(graph, Function):
        if passes is not None:
            raise GraphError(f"text(function, passes={passes!r}): a Function is shown as it runs. Pass nodes instead")
        updates = dict(zip(graph.compiled.updated, graph.compiled.sources)) if graph.compiled else graph.updates
        return lines_of(graph.compiled.outputs if graph.compiled else graph.outputs, updates)
    nodes = (graph,) if isinstance(graph, Node) else tuple(graph)
    for x in nodes:
        if not isinstance(x, Node):
            raise GraphError(f"text needs nodes or a Function, got {x!r:.60}. Wrap arrays in cg.Const")
    if passes is None:
        return lines_of(nodes)
    if passes == "trace":
        return trace_of(nodes)
    return lines_of(after(nodes, passes))


def after(nodes: tuple[Node, ...], name: str) -> tuple[Node, ...]:
    """Return the graph after the pass `name` and all passes before it. GraphError for an unknown name."""
    names = [rewrite.__name__ for rewrite in PASSES]
    if name not in (*names, "all"):
        raise GraphError(f"there is no pass {name!r}. Use one of {', '.join(names)}, all or trace")
    last = len(names) if name == "all" else names.index(name) + 1
    for rewrite in PASSES[:last]:
        nodes = tuple(rewrite(nodes))
    return nodes


def trace_of(nodes: tuple[Node, ...]) -> str:
    """Return the text of a graph, then its text after each pass that changed it, under the name of the pass."""
    shown = lines_of(nodes)
    parts = ["-- as written", shown]
    for rewrite in PASSES:
        nodes = tuple(rewrite(nodes))
        changed = lines_of(nodes)
        if changed != shown:
            parts += [f"-- after {rewrite.__name__}", changed]
        shown = changed
    return "\n".join(parts)


def lines_of(outputs: Iterable[Node], updates: Mapping[Var, Node] | None = None) -> str:
    """Return the text of a graph with its outputs and update edges."""
    ends, edges = tuple(outputs), dict(updates or {})
    nodes = post_order((*ends, *edges.values(), *edges))
    numbers = {node: i for i, node in enumerate(nodes)}
    lines = [line_of(node, numbers) for node in nodes]
    if ends:
        lines.append("return " + ", ".join(f"%{numbers[x]}" for x in ends))
    lines += [f"update %{numbers[x]} = %{numbers[node]}" for x, node in edges.items()]
    return visible("\n".join(lines))


def line_of(node: Node, numbers: Mapping[Node, int]) -> str:
    """Return the line of one node."""
    spec = str(node.spec) if isinstance(node.spec, Spec) else "bundle"
    if isinstance(node, Var):
        return f"%{numbers[node]} = var {node.name} : {spec}"
    if isinstance(node.op, ConstOp):
        label = f" {node.op.label}" if node.op.label else ""
        return f"%{numbers[node]} = const{label} : {spec} = {values_text(node.op.array)}"
    operands = ", ".join(f"%{numbers[x]}" for x in node.operands)
    fields = ", ".join(fields_text(node.op))
    return (
        f"%{numbers[node]} = {snake_case(type(node.op).__name__)}({operands}){' ' if fields else ''}{fields} : {spec}"
    )


def fields_text(op: Op) -> Iterator[str]:
    """Yield ``name=value`` for each parameter of an op that is not its default."""
    for name in op._fields:
        shown = value_text(getattr(op, name))
        if name not in op._defaults or shown != value_text(op._defaults[name]) or shown.startswith("<"):
            yield f"{name}={shown}"


def value_text(value: Any) -> str:
    """Return a parameter as text: plain values as Python writes them, others between angle brackets."""
    if is_plain(value):
        return repr(value)
    if isinstance(value, np.dtype):
        return f"dtype({name_of(value)!r})"
    inner = f"{type(value).__name__} {value!s:.60}" if isinstance(value, Record) else type(value).__name__
    return f"<{' '.join(inner.split())}>"


def is_plain(value: Any) -> bool:
    """Return True for numbers, texts, None, and tuples of these."""
    return all(map(is_plain, value)) if type(value) is tuple else type(value) in PLAIN


def values_text(array: np.ndarray) -> str:
    """Return the elements of a constant, or a checksum if it has more than `MOST_VALUES`."""
    return repr(literal_of(array.tolist())) if array.size <= MOST_VALUES else checksum_of(array)


def checksum_of(array: np.ndarray) -> str:
    """Return the checksum that represents the elements of a large constant."""
    return f"{CHECKSUM}{hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]}"


def literal_of(values: Any) -> Any:
    """Return numbers as literals of Python; those that are not finite as strings."""
    if isinstance(values, list):
        return [literal_of(x) for x in values]
    return values if isinstance(values, int) or np.isfinite(values) else str(values)


# -- reading ----------------------------------------------------------------------------------------------------------


@public
def graph_from_text(source: str, constants: Mapping[str, Any] | None = None) -> tuple[Node, ...]:
    """Return the outputs of a graph from its text.

    Vars are new ones with the same names. Ops with parameters that are not plain cannot be read.

    Parameters
        source: the text
        constants: arrays of the constants that the text shows only by a checksum, by number: ``{"%3": array}``
    Raises
        FormatError: a line that `text` does not write; an unknown op; a parameter that is not plain; a constant that is
            missing, or has another spec or checksum; a result with another spec than its line; an update edge
    """
    reader = GraphReader(constants or {})
    for number, line in enumerate(source.splitlines(), 1):
        try:
            reader.read(line.strip())
        except (CgraphError, *NOT_A_LINE) as error:
            raise FormatError(f"line {number} of the graph: {error}") from None
    if not reader.outputs:
        raise FormatError("the text has no line 'return %...', so the graph has no outputs. Add one")
    return tuple(reader.outputs)


class GraphReader:
    """A graph under construction. Mutable: each line adds a node.

    Fields
        nodes: by number
        outputs: outputs named in the line ``return``
    """

    def __init__(self, constants: Mapping[str, Any]) -> None:
        self.constants, self.ops = constants, ops_by_name()
        self.nodes: dict[int, Node] = {}
        self.outputs: list[Node] = []

    def read(self, line: str) -> None:
        """Read one line."""
        if not line or line.startswith(("--", "#")):
            return
        if line.startswith("return "):
            self.outputs = self.nodes_in(line)
            return
        if line.startswith("update "):
            raise FormatError(
                f"update edges cannot be read: {line!r:.60}. Remove the line, and pass updates= to compile"
            )
        match = LINE.fullmatch(line)
        if match is None:
            raise FormatError(f"{line!r:.80} is not a node. Write '%7 = op(%5, %6) name=value : float32[2,3]'")
        node = self.node_of(match)
        spec = str(node.spec) if isinstance(node.spec, Spec) else "bundle"
        if spec != match["spec"]:
            raise FormatError(f"{match['op']} gives {spec}, the line says {match['spec']}. Correct one of them")
        self.nodes[int(match["number"])] = node

    def node_of(self, match: re.Match[str]) -> Node:
        """Return the node that a line describes."""
        if match["op"] == "var":
            spec = spec_of(match["spec"])
            return Var(spec.shape, spec.dtype, match["rest"].strip())
        if match["op"] == "const":
            return Const(self.array_of(match), name=match["rest"].strip() or None)
        call = CALL.fullmatch(match["rest"])
        if call is None:
            raise FormatError(f"{match['rest']!r:.60} is not '(%1, %2) name=value'")
        if match["op"] not in self.ops:
            raise FormatError(f"there is no op {match['op']!r}. Use a name that text() writes")
        return apply(self.op_of(match["op"], call["fields"] or ""), *self.nodes_in(call["operands"]))

    def nodes_in(self, part: str) -> list[Node]:
        """Return the nodes named in a part of a line. FormatError for a node that no earlier line defines."""
        numbers = [int(x) for x in re.findall(r"%(\d+)", part)]
        for number in numbers:
            if number not in self.nodes:
                raise FormatError(f"%{number} is not defined before this line. Move its line up, or add it")
        return [self.nodes[number] for number in numbers]

    def op_of(self, name: str, fields: str) -> Op:
        """Return the op of a name and ``name=value`` pairs."""
        if "<" in fields:
            raise FormatError(f"{name} has a parameter that is not plain: {fields:.60}. Build this op in Python")
        call = ast.parse(f"op({fields})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or any(x.arg is None for x in call.keywords):
            raise FormatError(f"{fields!r:.60} are not parameters. Write 'name=value, name=value'")
        return self.ops[name](**{str(x.arg): field_of(x.value) for x in call.keywords})

    def array_of(self, match: re.Match[str]) -> np.ndarray:
        """Return the array of a constant. FormatError if it is missing or differs."""
        spec, values = spec_of(match["spec"]), match["values"] or ""
        if not values.startswith(CHECKSUM):
            numbers = np.array(numbers_of(ast.literal_eval(values)))
            parts = numbers if spec.dtype.kind == "c" else numbers.real
            return parts.astype(spec.dtype).reshape(spec.shape)
        key = f"%{match['number']}"
        if key not in self.constants:
            raise FormatError(
                f"the text leaves out the {spec.size} elements of {key}. Pass constants={{{key!r}: array}}"
            )
        array = np.asarray(self.constants[key])
        if Spec(array.shape, array.dtype) != spec:
            raise FormatError(f"constants[{key!r}] is {array.dtype}{list(array.shape)}, the line says {spec}")
        if checksum_of(array) != values:
            raise FormatError(f"constants[{key!r}] has {checksum_of(array)}, the line says {values}. Pass that array")
        return array


def field_of(value: ast.expr) -> Any:
    """Return the value of a parameter: a literal of Python, or a dtype as ``dtype('float32')``."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dtype":
        return dtype_of(ast.literal_eval(value.args[0]))
    return ast.literal_eval(value)


def numbers_of(values: Any) -> Any:
    """Return a number, or lists of numbers; texts such as ``"nan"`` and ``"-inf"`` become numbers."""
    if isinstance(values, list):
        return [numbers_of(x) for x in values]
    return complex(values) if isinstance(values, str) else values


def spec_of(source: str) -> Spec:
    """Return the spec that a text such as ``float32[2,3]`` describes."""
    dtype, _, axes = source.rstrip("]").partition("[")
    return Spec(tuple(int(n) for n in axes.split(",") if n), dtype_of(dtype))


def ops_by_name() -> dict[str, type[Op]]:
    """Return the classes of logical ops by their names in texts."""
    import_ops()
    classes, todo = {}, [Op]
    while todo:
        cls = todo.pop()
        todo += cls.__subclasses__()
        if ".physical." not in cls.__module__:  # ops of lowered graphs have parameters that are not plain
            classes[snake_case(cls.__name__)] = cls
    return classes
