"""Builder of graphs from GraphProtos; sub-graphs and functions are inlined."""

from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from cgraph.errors import UNFIT, FormatError, PositionError, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.formats.constants import Evaluator, fold
from cgraph.formats.onnx.context import Context, Value
from cgraph.formats.onnx.dynamic.bounds import LengthBounds
from cgraph.formats.onnx.dynamic.value import Ragged, apply_maximum
from cgraph.formats.onnx.either import Either, build_both, resolve
from cgraph.formats.onnx.operators import FAMILY_OF, importer_of
from cgraph.formats.onnx.operators.strings import moved_tokens
from cgraph.formats.onnx.tensors import shape_of_proto, sparse_array, widen
from cgraph.formats.onnx.vocabulary import MOVES, READS, STRING, CodedStrings, Tokens, Vocabulary, strings_of
from cgraph.formats.unspecified import UnknownError
from cgraph.ir.graph import Node
from cgraph.ir.origin import keeps_origin, origin_at
from cgraph.ops.leaf import Const

DOMAINS = ("", "ai.onnx")
NAMES = 1000  # cost of the names of a node, in computed elements
USUAL = 16  # operands and results of a node; each further one may add a node
NAME = 20  # cost of one more name in one scope
ITEM = 60  # cost of a copied item of a sequence
POINTER = 12  # bytes of an item of a sequence, with the spare capacity of lists
SHOWN = 60  # characters of a name in a message
DEEPEST = 64  # nesting depth of sub-graphs and functions


@dataclass(eq=False)
class OnnxGraphBuilder:
    """Builds the graphs of one model. Changes: its nesting depth in sub-graphs.

    Fields
        opsets: version by domain
        functions: FunctionProto by (domain, name)
        arrays: converts a TensorProto to an array
        listed: returns the list of an AttributeProto that stays in the file
        evaluator: computes constants while the graph is built, with the allowance of the file
        limits: bounds of dynamic lengths, and the checks of a run
        vocabulary: the strings of the file
        few: ONNX's dtype numbers of the values that no array has, by name
        file: the model's name, for messages
        sizes: number of nodes of functions, including the functions that they call
        imports: versions by domain of called functions
        references: inside a function, the attributes of its call by name
    """

    opsets: Mapping[str, int]
    functions: Mapping[tuple[str, str], Any]
    arrays: Any
    listed: Any
    evaluator: Evaluator
    limits: LengthBounds
    vocabulary: Vocabulary
    few: Mapping[str, int] = field(default_factory=dict)
    file: str = "model"
    depth: int = 0
    sizes: dict[tuple[str, str], int] = field(default_factory=dict)
    imports: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    references: Mapping[str, Any] = field(default_factory=dict)

    def charge(self, names: int, scope: ChainMap[str, Value], nodes: int = 0) -> None:
        """Charge the lookup of names and the creation of nodes."""
        work = NAME * names * (2 + len(scope.maps))
        self.evaluator.allowance.spend("the graph, with its loops unrolled,", work=work, nodes=nodes)

    def build(self, graph: Any, outer: ChainMap[str, Value]) -> ChainMap[str, Value]:
        """Build the named values of a graph; inputs and free names are looked up in `outer`."""
        scope = outer.new_child()
        stored = len(graph.initializer) + len(graph.sparse_initializer)
        self.charge(stored + len(graph.input) + len(graph.output), scope, nodes=stored)
        for proto in graph.initializer:
            if proto.name in scope.maps[0]:
                raise FormatError(f"two initialisers have the name {proto.name!r:.{SHOWN}}: rename one")
            scope[proto.name] = self.constant(proto)
        for sparse in graph.sparse_initializer:
            scope[sparse.values.name] = Const(sparse_array(sparse, self.arrays, self.evaluator.allowance), copy=False)
        self.run(graph.node, scope, {v.name for v in graph.output})
        return scope

    def array(self, proto: Any) -> np.ndarray:
        """Return the array of a TensorProto; strings as objects."""
        if proto.data_type != STRING:
            return self.arrays(proto)
        if proto.data_location == proto.EXTERNAL or proto.HasField("segment"):
            raise FormatError(
                f"tensor {proto.name!r:.{SHOWN}} of strings is not stored in its string_data: store it there"
            )
        return strings_of(proto, shape_of_proto(proto), self.evaluator.allowance)

    def constant(self, proto: Any) -> Node | CodedStrings:
        """Return an initialiser as a Const of its name."""
        if proto.data_type == STRING:
            return self.vocabulary.constant(self.array(proto))
        return widen(Const(self.arrays(proto), name=proto.name or None, copy=False))

    def results(self, graph: Any, values: Sequence[Value], outer: ChainMap[str, Value], open_axes: bool) -> list[Value]:
        """Build the results of a graph from values for its inputs.

        Parameters
            open_axes: a result may be an Either
        """
        if len(values) != len(graph.input):
            raise FormatError(f"graph {graph.name!r} takes {len(graph.input)} inputs, but {len(values)} are given")
        inputs = {v.name: x for v, x in zip(graph.input, values)}
        scope = self.build(graph, outer.new_child(inputs))
        results = [lookup(scope, v.name, f"result of graph {graph.name!r}") for v in graph.output]
        for v, x in zip(graph.output, results):
            if isinstance(x, Either) and not open_axes:
                reason = (
                    f"result {v.name!r:.{SHOWN}} of its body is {x.text}, as If {x.selector.name!r:.{SHOWN}} decides"
                )
                raise UnknownError(reason, constants=[x.selector.read])
        return results

    @keeps_origin
    def run(self, protos: Sequence[Any], scope: ChainMap[str, Value], outputs: set[str]) -> None:
        """Build nodes in order; `scope` gains their results."""
        if self.depth >= DEEPEST:
            raise FormatError(f"sub-graphs are nested more than {DEEPEST} deep: inline some of them")
        self.depth += 1
        try:
            self.run_nodes(protos, scope, outputs)
        finally:
            self.depth -= 1

    def run_nodes(self, protos: Sequence[Any], scope: ChainMap[str, Value], outputs: set[str]) -> None:
        """Build nodes in order, one level deeper."""
        ends = [len(proto.input) + len(proto.output) for proto in protos]
        names = sum(ends) + sum(len(proto.attribute) for proto in protos)
        self.charge(names, scope, nodes=sum(max(count - USUAL, 1) for count in ends))
        inside = [names_inside(proto, self.evaluator.allowance) for proto in protos]
        read = outputs.union(*(proto.input for proto in protos), *inside)
        for number in order_of(protos, inside):
            proto, names_read = protos[number], inside[number]
            name = proto.name or next(filter(None, proto.output), "")
            try:
                with origin_at(self.file, number, name) if self.depth == 1 else nullcontext():
                    results = self.node(proto, scope, read, names_read)
            except UnknownError as error:
                reason = message(proto, FormatError(error.reason))
                raise UnknownError(reason, error.shapes, error.constants, error.maximum) from error
            except UNFIT as error:
                kind = PositionError if isinstance(error, PositionError) else FormatError
                raise kind(message(proto, error)) from error
            for name, x in zip(proto.output, results):
                if name:
                    scope[name] = apply_maximum(self.limits, name, x)

    def node(self, proto: Any, scope: ChainMap[str, Value], read: set[str], inside: set[str]) -> list[Value]:
        """Build the results of one node; for both values of an operand that is one of two.

        Parameters
            read: the names that some node reads
            inside: those that its sub-graphs read
        """
        names = [*proto.input, *sorted(inside)] if self.limits.choices else []
        open_values = {name: scope[name] for name in names if isinstance(scope.get(name), Either)}
        if not open_values:
            return self.import_node(proto, scope, read)
        selector = next(iter(open_values.values())).selector
        self.charge(2 * (len(names) + len(proto.output)), scope, nodes=2)

        def build(holds: bool) -> list[Value]:
            settled = {name: resolve(x, selector, holds) for name, x in open_values.items()}
            return self.node(proto, scope.new_child(settled), read, inside)

        return build_both(self.limits, selector, build, lambda error: message(proto, error))

    def import_node(self, proto: Any, scope: ChainMap[str, Value], read: set[str]) -> list[Value]:
        """Build the results of one node whose operands have a fixed number of axes."""
        operands = [lookup(scope, name, "operand") if name else None for name in proto.input]
        attributes = {a.name: self.references.get(a.ref_attr_name) if a.ref_attr_name else a for a in proto.attribute}
        if len(attributes) < len(proto.attribute):
            name = next(name for name, count in Counter(a.name for a in proto.attribute).items() if count > 1)
            raise FormatError(f"two attributes have the name {name!r:.{SHOWN}}: remove one")
        attributes = {name: a for name, a in attributes.items() if a is not None}
        self.copy_items("the sequences that are read", operands, stored=False)
        function = self.functions.get((proto.domain, proto.op_type))
        if function is not None:
            return self.function(function, operands, attributes)
        importer = importer_of(operator_key(proto))
        if importer is None:
            raise FormatError(f"the operator {proto.op_type} is not supported. See docs/formats.md for those that are")
        key = operator_key(proto)
        is_moved = key in MOVES and any(isinstance(x, CodedStrings) for x in operands)
        if is_moved or key in READS:
            operands = [x.node if isinstance(x, CodedStrings) else x for x in operands]
        context = Context(
            proto.op_type,
            proto.name,
            proto.input,
            proto.output,
            tuple(operands),
            attributes,
            self.opsets.get(proto.domain, self.opsets.get("", 1)),
            tuple(bool(name) and name in read for name in proto.output),
            self.evaluator,
            self.limits,
            lambda graph, values: self.results(graph, values, scope, proto.op_type == "If"),
            lambda name: lookup(scope, name, "value"),
            self.array,
            self.listed,
            self.vocabulary,
            self.few,
        )
        is_split = key in MOVES and any(isinstance(x, Tokens) for x in operands)
        answer = moved_tokens(context) if is_split else importer(context)
        listed = list(answer) if isinstance(answer, tuple | list) else [answer]
        if len(listed) < len([name for name in proto.output if name in read]):
            raise FormatError(f"{len(listed)} results are supported, {len(proto.output)} are read")
        self.copy_items("the sequences that are made", listed, stored=True)
        results = [self.settled(x, operands) for x in listed]
        return [CodedStrings(x) for x in results] if is_moved else results

    def copy_items(self, what: str, values: Sequence[Value], stored: bool) -> None:
        """Charge a copy of each sequence among some values."""
        count = sum(len(x) for x in values if isinstance(x, list))
        if count:
            self.evaluator.allowance.spend(what, nbytes=POINTER * count if stored else 0, work=ITEM * count)

    def settled(self, x: Value, operands: Sequence[Value]) -> Value:
        """Return a result folded, widened and with the user's maximum."""
        if isinstance(x, Ragged):
            return Ragged(widen(x.node), x.counts)
        return widen(fold(x, operands, self.evaluator))

    def size_of(self, key: tuple[str, str], depth: int = 0) -> int:
        """Count the nodes of a function and its calls without building it; any number if nested too deep."""
        if key not in self.functions or depth > DEEPEST:
            return 0
        if key not in self.sizes:
            self.sizes[key] = 0  # for a recursive function
            calls = [(node.domain, node.op_type) for node in self.functions[key].node]
            self.sizes[key] = sum(1 + self.size_of(call, depth + 1) for call in calls)
        return self.sizes[key]

    def function(self, proto: Any, operands: Sequence[Value], attributes: Mapping[str, Any]) -> list[Value]:
        """Inline a model-local function."""
        key = proto.domain, proto.name
        size, left = self.size_of(key), self.evaluator.allowance.nodes
        self.evaluator.allowance.check(f"the function {proto.name!r:.60}", size, left, "nodes")
        if key not in self.imports:
            self.imports[key] = opsets_of(proto.opset_import)
        scope: ChainMap[str, Value] = ChainMap(dict.fromkeys(proto.input))
        scope.update(zip(proto.input, operands))
        self.charge(len(proto.input) + len(proto.output) + len(proto.attribute_proto) + len(attributes), scope)
        references = {a.name: a for a in proto.attribute_proto} | dict(attributes)
        inner = replace(self, opsets=self.imports[key] or self.opsets, references=references, few={})
        inner.run(proto.node, scope, set(proto.output))
        return [lookup(scope, name, "result of a function") for name in proto.output]


def lookup(scope: Mapping[str, Value], name: str, what: str) -> Value:
    if name not in scope:
        raise FormatError(
            f"{what} {name!r:.{SHOWN}} has no value: no input, constant or node has this name, "
            "or nodes wait for each other. Export the model again"
        )
    return scope[name]


def order_of(protos: Sequence[Any], inside: Sequence[set[str]]) -> Sequence[int]:
    """Return the numbers of nodes, each after those whose results it reads; in the file's order if that is one, or if
    there is none.

    Parameters
        inside: for each node, the names that its sub-graphs read
    """
    makers: dict[str, int] = {}
    for i, proto in enumerate(protos):
        for name in filter(None, proto.output):
            makers.setdefault(name, i)
    needs = [{makers.get(name, i) for name in (*proto.input, *inside[i])} - {i} for i, proto in enumerate(protos)]
    if all(j < i for i, earlier in enumerate(needs) for j in earlier):
        return range(len(protos))
    try:
        return [*TopologicalSorter(dict(enumerate(needs))).static_order()]
    except CycleError:
        return range(len(protos))


def operator_key(proto: Any) -> str:
    """Return the name of the operator, with its domain unless it is ONNX's own."""
    return proto.op_type if proto.domain in DOMAINS else f"{proto.domain}.{proto.op_type}"


def message(proto: Any, error: Exception) -> str:
    """Return ``Conv 'conv1': operand 1 is missing``; only the innermost message of nested nodes."""
    if isinstance(error, FormatError | PositionError) and str(error).startswith("in "):
        return str(error)
    text = str(error) or type(error).__name__
    return f"in {operator_key(proto):.{SHOWN}} {proto.name!r:.{SHOWN}} -> {excerpt(proto.output)}: {text}"


def excerpt(names: Sequence[str], most: int = 8) -> str:
    """Return names for a message: the first ones, truncated."""
    listed = [f"{name:.{SHOWN}}" for name in names[:most]]
    return ", ".join(listed if len(names) <= most else [*listed, f"… ({len(names)} in all)"])


def opsets_of(imports: Sequence[Any]) -> dict[str, int]:
    """Return the version of each domain, ONNX's own under the empty name."""
    return {"" if x.domain in DOMAINS else x.domain: int(x.version) for x in imports}


def names_inside(proto: Any, allowance: Allowance) -> set[str]:
    """Return the names that the sub-graphs of a node read, at any depth."""
    outer_names: set[str] = set()
    waiting = [*graphs_of(proto)]
    while waiting:
        graph = waiting.pop()
        names = len(graph.output) + sum(len(node.input) + len(node.attribute) for node in graph.node)
        work = NAMES * len(graph.node) + NAME * names
        allowance.spend("the sub-graphs, each time that they are built,", work=work)
        outer_names.update(v.name for v in graph.output)
        for node in graph.node:
            outer_names.update(node.input)
            waiting.extend(graphs_of(node))
    return outer_names


def graphs_of(proto: Any) -> Iterator[Any]:
    """Yield the sub-graphs of a node."""
    for a in proto.attribute:
        if a.type == a.GRAPH:
            yield a.g
        yield from a.graphs


def unsupported(graph: Any, functions: Mapping[tuple[str, str], Any]) -> Counter[str]:
    """Count operators without an importer, including those in sub-graphs and functions."""
    counts: Counter[str] = Counter()
    waiting = [graph, *functions.values()]
    while waiting:
        part = waiting.pop()
        check_texts(part)
        for node in part.node:
            if operator_key(node) not in FAMILY_OF and (node.domain, node.op_type) not in functions:
                counts[operator_key(node)] += 1
            waiting.extend(graphs_of(node))
    return counts


def check_texts(part: Any) -> None:
    """Raise FormatError if a name in a graph or function is not UTF-8; protobuf returns such names as bytes."""
    check_text(part.name)
    for node in part.node:
        for text in (node.op_type, node.domain, node.name, *node.input, *node.output):
            check_text(text)
        for a in node.attribute:
            check_text(a.name)
    for v in (*part.input, *part.output):
        check_text(v.name if hasattr(part, "initializer") else v)
    for v in (*part.initializer, *part.input) if hasattr(part, "initializer") else ():
        check_text(v.name)
        for d in v.type.tensor_type.shape.dim if hasattr(v, "type") else ():
            check_text(d.dim_param)


def check_text(text: Any) -> None:
    """Raise FormatError for a name that is not UTF-8."""
    if not isinstance(text, str):
        raise damaged_file(f"the name {text!r:.60} is not UTF-8")
