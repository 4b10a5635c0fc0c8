"""load: read a TFLite file as a graph. Needs no other package.

Inputs and outputs have the file's shapes, images ``[n, h, w, c]``; between operators they are ``[n, c, h, w]``.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.errors import CgraphError, FormatError, PositionError, damaged_file
from cgraph.formats.constants import Evaluator, fold
from cgraph.formats.mapped import map_file
from cgraph.formats.model import Model
from cgraph.formats.names import cg
from cgraph.formats.tflite import operators  # noqa: F401 - fills OPERATORS
from cgraph.formats.tflite.context import ON_BYTES, ON_WORDS, OPERATORS, TfliteContext
from cgraph.formats.tflite.fixed import bytes_of, floats_for
from cgraph.formats.tflite.schema import OPTIONS, OperatorFields, SubgraphFields
from cgraph.formats.tflite.source import TensorFacts, TfliteSource, stored_form
from cgraph.formats.tflite.value import FIRST, SIGN, QuantisedFormat, TfliteValue, have_one_format, permute
from cgraph.formats.tflite.wire import PackedNumbers, Table
from cgraph.ir.graph import Node
from cgraph.ir.origin import keeps_origin, origin_at
from cgraph.kernels.mapped import release
from cgraph.ops.leaf import Var
from cgraph.record import replace

# errors of importers whose options or shapes are of an unexpected type
EXPECTED = (CgraphError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
NUMBER = 64  # bytes of memory of an operand's number
NAME = 256  # bytes in memory of an operator's name
NODES = 4  # per operator: itself, a bias, its reshape, an activation
NODES_OF_OPERAND = 2  # per operand or result beyond MOST_PLAIN
MOST_PLAIN = 4  # operands or results that `NODES` covers
Values = list[TfliteValue | None]
"""Values by tensor number; None if not computed yet."""


def load(source: str | Path | bytes, floats: bool = False, shapes: Mapping[str, Sequence[int]] | None = None) -> Model:
    """Read a model.

    Parameters
        source: a file's path, or its bytes
        floats: dequantise inputs and outputs of 8 bits
        shapes: shapes of inputs by name, in place of those in the file
    Raises
        FormatError: the file is malformed, needs an operator or dtype that is not supported, or would cost more than
            a file of its size may
    """
    with open_file(source) as file:
        model = build_model(file, floats, shapes or {})
        data = file.data
    if len(data):
        release(np.frombuffer(data, np.uint8))
    return model


@contextmanager
def open_file(source: str | Path | bytes) -> Iterator[TfliteSource]:
    """Open a file; errors inside get its name."""
    data = memoryview(source).toreadonly() if isinstance(source, bytes | bytearray) else map_file(source)
    name = "model" if isinstance(source, bytes | bytearray) else Path(source).name
    try:
        yield TfliteSource(data, name)
    except FormatError as error:
        raise FormatError(f"{name}: {error}") from error


def build_model(source: TfliteSource, floats: bool, shapes: Mapping[str, Sequence[int]]) -> Model:
    """Build the graph of an opened model."""
    places = source.places(source.graph, SubgraphFields.OPERATORS)
    check_supported(source, places)
    inputs_listed = list(dict.fromkeys(map(source.tensor, numbers_of(source, source.graph, SubgraphFields.INPUTS))))
    shown = numbers_of(source, source.graph, SubgraphFields.OUTPUTS)
    source.allowance.spend("its inputs and outputs", nodes=NODES * (len(inputs_listed) + len(shown)))
    check_shapes(inputs_listed, shapes)
    inputs = [input_of(replace(x, shape=tuple(shapes.get(x.name, x.shape))), floats) for x in inputs_listed]
    values: Values = [None] * len(source.tensors)
    for tensor, x in zip(inputs_listed, inputs):
        values[tensor.number] = enter_input(x, tensor.quantised)
    run(source, places, values)
    outputs = [leave_output(value_of(source, values, i), floats) for i in shown]
    named = {
        source.tensor(i).name: leave_output(x, False)
        for i, x in enumerate(values)
        if x is not None and x.expression is not None
    }
    names = tuple(source.tensor(i).name for i in shown)
    return Model(tuple(inputs), tuple(outputs), names, named, source.variables.updates())


def check_supported(source: TfliteSource, places: np.ndarray) -> None:
    """Raise FormatError that names all operators without an importer."""
    source.allowance.spend("the graph", nodes=NODES * len(places))
    numbers = (int(Table(source.data, int(at)).number(OperatorFields.CODE, "I")) for at in places)
    codes, counts = np.unique(np.fromiter(numbers, "int64", len(places)), return_counts=True)
    source.allowance.spend("names of operators", nbytes=NAME * len(codes))
    missing: Counter[str] = Counter()
    for code, count in zip(codes.tolist(), counts.tolist()):
        if (name := source.operator_name(code)) not in OPERATORS:
            missing[name] += count
    if missing:
        named = ", ".join(f"{name} ({n} times)" if n > 1 else name for name, n in sorted(missing.items())[:40])
        raise FormatError(
            f"{len(missing)} operators are not supported: {named}. See docs/formats.md for those that are"
        )


def numbers_of(source: TfliteSource, table: Table, field: int) -> list[int]:
    """Return a list of tensor numbers."""
    numbers = table.vector(field, "int32")
    if numbers is None:
        return []
    source.allowance.spend("lists of tensors", nbytes=NUMBER * len(numbers))
    return numbers.tolist()


def check_shapes(inputs: Sequence[TensorFacts], shapes: Mapping[str, Any], axes: Sequence[str] = ()) -> None:
    """Raise FormatError unless each shape belongs to an input and has its number of axes; `axes` are other names."""
    counts = {x.name: len(x.shape) for x in inputs}
    for name, shape in shapes.items():
        if name not in counts:
            raise FormatError(f"shapes: {name!r:.60} is not an input or open axis. Use {', '.join([*counts, *axes])}")
        if not isinstance(shape, list | tuple) or len(shape) != counts[name]:
            raise FormatError(f"shapes: {shape!r:.60} is not a shape of {counts[name]} axes, as {name!r:.60} has")


def input_of(tensor: TensorFacts, floats: bool) -> Var:
    """Create the Var of an input."""
    return Var(tensor.shape, "float32" if floats and tensor.quantised else tensor.dtype, tensor.name)


def enter_input(x: Node, quantised: QuantisedFormat | None) -> TfliteValue:
    """Return the value of an input: int8 shifted by 128 to bytes, floats quantised.

    Pictures of int8 are transposed and shifted in one copy.
    """
    if quantised is not None and x.dtype == np.float32:
        return TfliteValue(bytes_of(x / quantised.scale, quantised), quantised=quantised)
    if quantised is None or not quantised.is_signed:
        return TfliteValue(x, quantised=quantised)
    first, numbers = x.ndim == len(FIRST) and x.shape[-1] > 1, cg.bitcast(x, "uint8")
    numbers = permute(numbers, FIRST) if first else numbers
    return TfliteValue(cg.bitwise_xor(numbers, np.uint8(SIGN)), first=first, quantised=quantised)


def leave_output(x: TfliteValue, floats: bool) -> Node:
    """Return an output as in the file, or dequantised."""
    if floats and x.quantised is not None:
        return floats_for(x, x.plain)
    if x.quantised is None or not x.quantised.is_signed:
        return x.plain
    return cg.bitcast(cg.bitwise_xor(x.plain, np.uint8(SIGN)), "int8")


def value_of(source: TfliteSource, values: Values, index: int) -> TfliteValue:
    """Return a computed tensor, or a constant of the file."""
    tensor = source.tensor(index)
    value = values[index]
    if value is not None:
        return value
    if tensor.is_variable:
        values[index] = value = variable_of(source, tensor)
        return value
    if tensor.array is None and 0 not in tensor.shape:
        raise damaged_file(f"tensor {tensor.name!r:.60} is read before it is computed")
    array = np.zeros(tensor.shape, tensor.dtype) if tensor.array is None else tensor.array
    if tensor.quantised is not None and tensor.quantised.is_signed:
        source.allowance.spend("numbers of int8 as bytes", nbytes=array.nbytes)
    values[index] = value = TfliteValue(array=array, quantised=tensor.quantised)
    return value


def variable_of(source: TfliteSource, tensor: TensorFacts) -> TfliteValue:
    """Return the value of a variable tensor when a run starts: at first, zeros."""
    if source.is_inner:
        raise FormatError(f"tensor {tensor.name!r:.60} is a variable inside IF or WHILE. Read it outside")
    number = source.variables.number(tensor.number, tensor.name)
    return TfliteValue(source.variables.read(number, *stored_form(tensor)), quantised=tensor.quantised)


def assign_variable(source: TfliteSource, values: Values, numbers: Sequence[int], i: int, value: Node) -> None:
    """Give the variable tensor that is operand i of an operator a new value."""
    tensor = source.tensor(numbers[i])
    if not tensor.is_variable:
        raise damaged_file(f"tensor {tensor.name!r:.60}, which the operator writes, is not a variable")
    values[tensor.number] = TfliteValue(value, quantised=tensor.quantised)
    source.variables.assign(source.variables.number(tensor.number, tensor.name), value)


@keeps_origin
def run(source: TfliteSource, places: np.ndarray, values: Values) -> None:
    """Build operator after operator; `values` gains their results."""
    evaluator = Evaluator(source.allowance)
    for number, at in enumerate(places):
        table = Table(source.data, int(at))
        results = numbers_of(source, table, OperatorFields.OUTPUTS)
        name = source.operator_name(int(table.number(OperatorFields.CODE, "I")))
        try:
            label = source.tensor(int(results[0])).name if len(results) else ""
            with origin_at(source.name, number, label), np.errstate(all="ignore"):  # scales that overflow are refused
                results_of_node = build_node(source, table, name, results, values, evaluator)
        except EXPECTED as error:
            kind = PositionError if isinstance(error, PositionError) else FormatError
            raise kind(f"in {name} {number}: {str(error) or type(error).__name__}") from error
        for i, value in zip(results, results_of_node):
            values[i] = value


def build_node(
    source: TfliteSource, table: Table, name: str, results: Sequence[int], values: Values, evaluator: Evaluator
) -> list[TfliteValue]:
    """Build the results of one operator."""
    numbers = numbers_of(source, table, OperatorFields.INPUTS)
    more = max(len(numbers) - MOST_PLAIN, 0) + max(len(results) - MOST_PLAIN, 0)
    source.allowance.spend("its operands and results", nodes=NODES_OF_OPERAND * more)
    facts = tuple(source.tensor(i) if i >= 0 else None for i in numbers)
    operands = tuple(None if x is None else value_of(source, values, x.number) for x in facts)
    tensors = tuple(source.tensor(i) for i in results)
    check_quantised(name, [x.quantised for x in (*operands, *tensors) if x is not None and x.quantised is not None])
    build = partial(build_subgraph, source)
    assign = partial(assign_variable, source, values, numbers)
    options = options_of(table, name)
    context = TfliteContext(
        name, operands, options, tensors, source.allowance, build, assign, source.variables, source.is_inner, facts
    )
    answer = OPERATORS[name](context)
    listed = [answer] if isinstance(answer, Node | TfliteValue) else answer
    if len(listed) != len(results):
        raise damaged_file(f"it has {len(results)} results, not {len(listed)}")
    values_listed = [x if isinstance(x, TfliteValue) else TfliteValue(x) for x in listed]
    for x, tensor in zip(values_listed, tensors):
        want = stored_form(tensor)[0].dtype
        if x.dtype != want:
            raise damaged_file(f"result {tensor.name!r:.60} is {x.dtype}, but the file declares {want}")
    return [fold_result(x, operands, tensor.quantised, evaluator) for x, tensor in zip(values_listed, tensors)]


def build_subgraph(source: TfliteSource, number: int, operands: Sequence[TfliteValue]) -> list[TfliteValue]:
    """Build another graph of the file from the values of its inputs, and return its outputs."""
    inner = source.subgraph(number)
    places = inner.places(inner.graph, SubgraphFields.OPERATORS)
    check_supported(inner, places)
    inputs, shown = (numbers_of(inner, inner.graph, x) for x in (SubgraphFields.INPUTS, SubgraphFields.OUTPUTS))
    inner.allowance.spend("its inputs and outputs", nodes=NODES * (len(inputs) + len(shown)))
    if len(inputs) != len(operands):
        raise damaged_file(f"graph {number} has {len(inputs)} inputs, not {len(operands)}")
    values: Values = [None] * len(inner.tensors)
    for i, x in zip(inputs, operands):
        check_format(inner.tensor(i), x.quantised)
        values[i] = x
    run(inner, places, values)
    return [value_of(inner, values, i) for i in shown]


def check_format(tensor: TensorFacts, quantised: QuantisedFormat | None) -> None:
    """Raise FormatError if a value that becomes a tensor of another graph is quantised in another way."""
    if not have_one_format(tensor.quantised, quantised):
        raise FormatError(f"tensor {tensor.name!r:.60} is quantised in another way than the value that it gets")


def check_quantised(name: str, quantised: Sequence[QuantisedFormat]) -> None:
    """Raise FormatError if an operator does not support quantised values, or moves them and their scales differ."""
    if quantised and name not in ON_BYTES:
        raise FormatError(f"{name} does not support quantised values. Dequantise its operands")
    if name not in ON_WORDS and any(x.is_wide for x in quantised):
        raise FormatError(f"{name} does not support quantised values of 16 bits. Quantise to 8 bits")
    if quantised and not ON_BYTES[name] and not all(x.equals(quantised[0]) for x in quantised):
        raise FormatError("its operands and results have different scales or zero points. Requantise them to one scale")


def fold_result(
    x: TfliteValue, operands: Sequence[TfliteValue | None], quantised: QuantisedFormat | None, evaluator: Evaluator
) -> TfliteValue:
    """Return a result, folded if it is a small one of constants, such as a shape; images are not folded."""
    if x.expression is None:
        return x
    if x.first:
        return TfliteValue(x.expression, None, True, quantised)
    node = fold(x.expression, [None if y is None else y.node for y in operands], evaluator)
    return TfliteValue(node, None, x.first, quantised)


def options_of(table: Table, name: str) -> Table | PackedNumbers | None:
    """Return the options of an operator. FormatError if they belong to another operator."""
    if name.startswith("CUSTOM"):
        return PackedNumbers(table.vector(OperatorFields.CUSTOM, "uint8"))
    if name not in OPTIONS:
        return None
    of_kind, place = OperatorFields.OPTIONS_TYPE, OperatorFields.OPTIONS
    if OPTIONS[name].is_newer:
        of_kind, place = OperatorFields.NEWER_TYPE, OperatorFields.NEWER
    number = int(table.number(of_kind, "B"))
    if number == 0:
        return None
    if number != OPTIONS[name].number:
        raise damaged_file(f"it has the options {number}, not {OPTIONS[name].number}")
    return table.table(place)
