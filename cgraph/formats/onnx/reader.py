"""load: read an ONNX file as a graph. Images stay ``[n, c, h, w]``.

Needs the extra `onnx`. `shapes` fixes symbolic dimensions. Values that determine shapes must be constant, an input with
a value in `constants`, or bounded by `maximum`.
"""

from collections import ChainMap, Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.dtypes.convert import FLOAT32
from cgraph.dtypes.storage import BY_NAME
from cgraph.errors import FormatError
from cgraph.formats.constants import Evaluator
from cgraph.formats.model import Alternative, Model
from cgraph.formats.onnx.dynamic.bounds import LengthBounds, Size
from cgraph.formats.onnx.dynamic.value import Ragged, apply_maximum, counts_of, node_in
from cgraph.formats.onnx.either import Either, cases_of, map_cases
from cgraph.formats.onnx.graph import OnnxGraphBuilder, lookup, opsets_of, unsupported
from cgraph.formats.onnx.small import check_readers, storage_dtype
from cgraph.formats.onnx.source import Source, open_source
from cgraph.formats.onnx.tensors import DTYPE, STORED_AS, widen
from cgraph.formats.onnx.text_inputs import with_text_inputs
from cgraph.formats.onnx.vocabulary import STRING, CodedStrings, Tokens, Vocabulary
from cgraph.formats.unspecified import UnknownError
from cgraph.ir.graph import Node
from cgraph.ops.arithmetic import astype
from cgraph.ops.compare import logical_and
from cgraph.ops.leaf import Const, Var
from cgraph.running.string_codes import StringCodes, array_of_strings
from cgraph.storage.cell import PLAIN, fitting_array

OLDEST, NEWEST = 1, 27
BLOCKED = "com.microsoft.nchwc."  # operators on channel-blocked images; the size of a block depends on the processor
NAMED = 200  # bytes of an input's names, beside those of its node


def load(
    source: str | Path | bytes | memoryview,
    shapes: Mapping[str, Any] | None = None,
    constants: Mapping[str, Any] | None = None,
    maximum: Mapping[str, int] | None = None,
) -> Model:
    """Read a model.

    Parameters
        source: a file's path, or its bytes (then no data may be in other files)
        shapes: sizes of symbolic dimensions by name, ``{"N": 1}``; shapes of inputs by name, ``{"x": (1, 3)}``
        constants: values of inputs, numbers and lists in the input's dtype; a value that determines a shape becomes
            part of the graph, and is listed in `fixed`. For the name of an If's condition, the branch to build
        maximum: by name of a value, the maximum of its dynamic length, or the largest integer in it if lengths are
            computed from it. A run that exceeds it ends in an InputError
    Raises
        FormatError: the file is malformed or unsafe, needs an unsupported operator, dtype or version, or would cost
            more than a file of its size may
        UnknownError: sizes or values are missing in `shapes` and `constants`, and have no maximum
        PositionError: a constant index is outside its axis
    """
    opened = open_source(source)
    return build_model(opened, shapes or {}, constants or {}, maximum or {})


def build_model(
    opened: Source, shapes: Mapping[str, Any], constants: Mapping[str, Any], maximum: Mapping[str, int]
) -> Model:
    """Build the graph of an opened model. Errors name its file."""
    with opened.named():
        return graph_of(opened, shapes, constants, maximum)


def graph_of(
    opened: Source, shapes: Mapping[str, Any], constants: Mapping[str, Any], maximum: Mapping[str, int]
) -> Model:
    """Build the graph of an opened model."""
    proto = opened.proto
    graph = proto.graph
    functions = check_operators(opened)
    check_inputs(graph)
    check_shapes(graph, shapes)
    allowance, count = opened.allowance(), len(graph.input)
    allowance.spend(f"{count} inputs", nbytes=NAMED * count, nodes=count)
    stored = stored_names(graph)
    values = {v.name: input_value(v, shapes, constants) for v in graph.input if v.name not in stored}
    vocabulary = Vocabulary(allowance)
    string_inputs = {v.name for v in graph.input if v.type.tensor_type.elem_type == STRING} & values.keys()
    constants = {name: coded(vocabulary, name, x) if name in string_inputs else x for name, x in constants.items()}
    evaluator = Evaluator(allowance, constants_of(leaves(values.values()), constants))
    limits = LengthBounds(maximum, evaluator.allowance)
    opsets = opsets_of(proto.opset_import)
    decoders = opened.array, opened.listed
    builder = OnnxGraphBuilder(opsets, functions, *decoders, evaluator, limits, vocabulary, opened.few, opened.name)
    inputs = {name: apply_maximum(limits, name, widen(x)) for name, x in values.items()}
    inputs |= {name: CodedStrings(inputs[name]) for name in string_inputs}
    scope = builder.build(graph, ChainMap(inputs))
    declared = [(v.name, declared_outputs(lookup(scope, v.name, "output"), v)) for v in graph.output]
    pairs = [pair for name, x in declared for pair in tensors_of(name, x)]
    evaluator.allowance.spend("its outputs", nbytes=NAMED * (len(pairs) - len(declared)))
    names, outputs = tuple(name for name, _ in pairs), [x for _, x in pairs]
    unused = sorted(maximum.keys() - limits.used)
    if unused:
        raise FormatError(f"maximum gives {unused[0]!r}, but no computed value has this name. Remove it")
    opened.forget()
    cases = [choices_of(x.node if isinstance(x, CodedStrings) else x) for x in outputs]
    model = Model(
        tuple(leaves(values.values())),
        tuple(last.node for *_, last in cases),
        names,
        dict(scope),
        fixed=evaluator.used,
        counts={i: dict(last.counts) for i, (*_, last) in enumerate(cases) if last.counts},
        checks={check.holds: check.text for check in limits.checks},
        strings=string_codes_of(vocabulary, [values[name] for name in sorted(string_inputs)], outputs),
        choices={i: tuple(first) for i, (*first, _) in enumerate(cases) if first},
    )
    return with_text_inputs(model, vocabulary.features)


def coded(vocabulary: Vocabulary, name: str, value: Any) -> np.ndarray:
    """Return the codes of an array of strings."""
    strings = np.asarray(value, object)
    return vocabulary.codes(array_of_strings(strings, strings.shape, name).reshape(-1)).reshape(strings.shape)


def string_codes_of(vocabulary: Vocabulary, inputs: Sequence[Var], outputs: Sequence[Any]) -> StringCodes | None:
    """Return which inputs and outputs are strings; None if there are none."""
    places = frozenset(i for i, x in enumerate(outputs) if isinstance(x, CodedStrings))
    return StringCodes(dict(vocabulary.numbers), frozenset(inputs), places) if inputs or places else None


def choices_of(x: Any) -> list[Alternative]:
    """Return the arrays that an output may be, with the conditions under which it is."""
    return [
        Alternative(
            reduce(logical_and, conditions or [Const(np.array(True))]), node_in(value), nodes_of(counts_of(value))
        )
        for conditions, value in cases_of(x)
    ]


def nodes_of(counts: Mapping[int, Size]) -> dict[int, Node]:
    """Return the node of each length, by axis."""
    return {axis: count.node for axis, count in counts.items()}


def tensors_of(name: str, x: Any) -> list[tuple[str, Any]]:
    """Return an output with its name. Each item of a sequence is an output of its own, such as ``probabilities.0``.

    Raises
        FormatError: it has no items, or only a run decides whether it is a sequence
    """
    if isinstance(x, Either) and not all(isinstance(value, Node | Ragged) for _, value in cases_of(x)):
        raise UnknownError(f"output {name!r} is {x.text}, as a run decides", constants=[x.selector.read])
    if isinstance(x, Tokens):
        raise FormatError(f"output {name!r} is {x.text}, tokens whose number a run decides: remove it from the outputs")
    if isinstance(x, Node | Ragged | Either | CodedStrings):
        return [(name, x)]
    if not x:
        raise FormatError(f"output {name!r} is empty; only tensors can be outputs. Remove it from the outputs")
    return [pair for i, item in enumerate(x) for pair in tensors_of(f"{name}.{i}", item)]


def declared_outputs(x: Any, proto: Any) -> Any:
    """Round an output to the storage dtype that the file declares; return any other unchanged."""
    if isinstance(x, Either):
        return map_cases(lambda value: declared_outputs(value, proto), x)
    if isinstance(x, Ragged):
        return Ragged(declared_outputs(x.node, proto), x.counts)
    number = proto.type.tensor_type.elem_type
    name = STORED_AS.get(number, DTYPE.get(number))
    return astype(x, name) if isinstance(x, Node) and x.dtype == FLOAT32 and name in BY_NAME else x


def leaves(values: Any) -> list[Var]:
    """Return the Vars among values, including those in sequences."""
    variables: list[Var] = []
    for x in values:
        variables.extend(leaves(x) if isinstance(x, list) else [x] if isinstance(x, Var) else [])
    return variables


def constants_of(inputs: Sequence[Var], constants: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of inputs; numbers and lists become arrays of the input's dtype."""
    plain = [x for x in inputs if isinstance(constants.get(x.name), PLAIN)]
    return {**constants, **{x.name: fitting_array(constants[x.name], x.spec, x.name) for x in plain}}


def check_inputs(graph: Any) -> None:
    """Raise FormatError if two inputs have one name."""
    names = Counter(v.name for v in graph.input)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise FormatError(f"{names[twice[0]]} inputs have the name {twice[0]!r:.60}: rename all but one")


def check_shapes(graph: Any, shapes: Mapping[str, Any]) -> None:
    """Raise FormatError for an unknown name, and UnknownError that lists all missing sizes."""
    check_names(graph, shapes)
    stored, needed = stored_names(graph), {}
    for proto in graph.input:
        if proto.name not in stored and proto.name not in shapes:
            needed.update(open_sizes(proto, shapes))
    if needed:
        raise UnknownError("sizes of inputs are unknown", needed)


def check_names(graph: Any, shapes: Mapping[str, Any]) -> None:
    """Raise FormatError unless each name in `shapes` is a dimension or an input."""
    stored = stored_names(graph)
    names = set(stored)
    for proto in graph.input:
        names |= {proto.name, *open_axes(proto)}
    unknown = sorted(shapes.keys() - names)
    if unknown:
        names_listed = ", ".join(sorted(filter(None, names - stored)))
        raise FormatError(f"{unknown[0]!r} is neither a dimension nor an input. Use one of {names_listed}")


def stored_names(graph: Any) -> set[str]:
    """Return the names of inputs that have initialisers."""
    return {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}


def open_axes(proto: Any) -> list[str]:
    """Return the names of an input's axes without a size; empty for unnamed ones."""
    return [dimension_name(d) for d in proto.type.tensor_type.shape.dim if declared_size(d) is None]


def dimension_name(dim: Any) -> str:
    """Return the name of an axis without a size; empty for ``?``, ``None`` and the like, which name no size."""
    name: str = dim.dim_param
    return name if any(map(str.isalpha, name)) and name != "None" else ""


def declared_size(dim: Any) -> int | None:
    """Return the size that a file gives an axis; None for a name, and for -1, which some exporters write for none."""
    return int(dim.dim_value) if dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0 else None


def open_sizes(proto: Any, shapes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the missing entries of `shapes` for one input, with examples: sizes by name, or the whole shape."""
    if proto.type.WhichOneof("value") != "tensor_type":
        return {}
    tensor, axes = proto.type.tensor_type, open_axes(proto)
    if not tensor.HasField("shape"):
        return {proto.name: (1, 3)}
    if "" in axes:
        return {proto.name: tuple(declared_size(d) or 1 for d in tensor.shape.dim)}
    return {name: 1 for name in axes if name not in shapes}


def check_operators(opened: Source) -> Mapping[tuple[str, str], Any]:
    """Return the functions of a model by domain and name. FormatError if an operator or version is not supported."""
    if opened.functions is None:
        functions = {(f.domain, f.name): f for f in opened.proto.functions}
        check_supported(opened.proto, functions)
        opened.few = check_readers(opened.proto.graph)
        opened.functions = functions
    return opened.functions


def check_supported(proto: Any, functions: Mapping[tuple[str, str], Any]) -> None:
    """Raise FormatError that names all operators without an importer, or an unsupported version."""
    opsets = opsets_of(proto.opset_import)
    version = opsets.get("", NEWEST)
    if not OLDEST <= version <= NEWEST:
        raise FormatError(
            f"the model is of opset {version}; opsets {OLDEST} to {NEWEST} are supported. Convert it with "
            "onnx.version_converter"
        )
    missing = unsupported(proto.graph, functions)
    if missing:
        named = ", ".join(f"{name} ({n} times)" if n > 1 else name for name, n in sorted(missing.items()))
        way_out = "See docs/formats.md for those that are"
        if any(name.startswith(BLOCKED) for name in missing):
            way_out = (
                "The file has onnxruntime's image layout for one processor. Save the model with optimisations up to "
                "ORT_ENABLE_EXTENDED"
            )
        raise FormatError(f"{len(missing)} operators are not supported: {named}. {way_out}")


def input_value(proto: Any, shapes: Mapping[str, Any], constants: Mapping[str, Any]) -> Any:
    """Return a Var for a tensor input. Sequences and optionals have no size, so their value must be constant."""
    kind = proto.type.WhichOneof("value")
    if kind != "tensor_type":
        if proto.name in constants:
            return known_value(constants[proto.name])
        kind_name = str(kind).removesuffix("_type")
        raise FormatError(f"input {proto.name!r} is a {kind_name}; give its value in constants=")
    number = proto.type.tensor_type.elem_type
    dtype = np.dtype("int64") if number == STRING else storage_dtype(number, f"input {proto.name!r}")
    declared = proto.type.tensor_type.shape.dim
    if proto.name in shapes:
        sizes = np.atleast_1d(shapes[proto.name]).tolist()
    else:
        sizes = [shapes[d.dim_param] if n is None else n for d, n in zip(declared, map(declared_size, declared))]
    check_declared(sizes, declared, proto)
    return Var(sizes, dtype, proto.name)


def known_value(value: Any) -> Any:
    """Convert a tensor, sequence or empty optional to a value of the graph."""
    if value is None:
        return None
    return [known_value(x) for x in value] if isinstance(value, list) else Const(value)


def check_declared(sizes: list[int], declared: Any, proto: Any) -> None:
    """Raise FormatError if a shape differs from the one that the file declares."""
    if not proto.type.tensor_type.HasField("shape"):
        return
    fixed = [declared_size(d) for d in declared]
    if len(fixed) != len(sizes) or any(n not in (None, m) for n, m in zip(fixed, sizes)):
        named = ", ".join("?" if n is None else str(n) for n in fixed)
        reason = f"input {proto.name!r} is declared as [{named}], not {sizes}"
        raise FormatError(reason) if fixed else UnknownError(reason, constants=[proto.name])
