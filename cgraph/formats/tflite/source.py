"""TfliteSource: an opened TFLite file, with its tensors as records and their arrays as views of its bytes."""

from functools import cached_property
from math import prod

import numpy as np

from cgraph.errors import FormatError, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.formats.tflite.schema import (
    DTYPE,
    DTYPE_NAMES,
    IDENTIFIER,
    NAMES,
    RESOURCE,
    BufferFields,
    ModelFields,
    OperatorCodeFields,
    QuantizationFields,
    SubgraphFields,
    TensorFields,
)
from cgraph.formats.tflite.sparse import densify
from cgraph.formats.tflite.value import BYTE, QuantisedFormat
from cgraph.formats.tflite.variables import Variables
from cgraph.formats.tflite.wire import WORD, Table, numbers, unpack
from cgraph.ir.spec import LARGEST, Spec
from cgraph.record import Record

MOST_AXES = 8
QUANTISED = ("int8", "uint8", "int16")  # dtypes whose scales determine what operators compute
TENSOR = 1000  # bytes of memory of a tensor's record, besides its name
POINTER, PLACE = 8, 8  # bytes of memory of an element of a list, and of the position of a table
CHECKS = 8  # passes over the scales and zero points of a tensor


class TensorFacts(Record, eq=False):
    """The description of a tensor in a file.

    Fields
        number: index among the file's tensors
        array: its value, if it is constant
        quantised: its quantisation, if it has 8 or 16 bits
        is_variable: True if it persists between runs
        open_axes: axes whose size may vary; `shape` has a placeholder
        details: its scales and zero points in the file
    """

    number: int
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    array: np.ndarray | None
    quantised: QuantisedFormat | None
    is_variable: bool = False
    open_axes: tuple[int, ...] = ()
    details: Table | None = None

    @property
    def integers(self) -> QuantisedFormat | None:
        """Return the quantisation, also that of int32, which QUANTIZE alone converts."""
        return self.quantised or quantised(self.details, self.name, self.shape, self.dtype)


class TfliteSource:
    """The file of a model. Changes: it caches the descriptions of tensors.

    Parameters
        data: its bytes
        name: for messages
        number: index of the graph among those of the file
        outer: the graph that contains it, as the body of a loop; None for the first one
    """

    def __init__(self, data: memoryview, name: str, number: int = 0, outer: "TfliteSource | None" = None) -> None:
        if bytes(data[WORD : 2 * WORD]) != IDENTIFIER:
            raise FormatError(
                f"this is not a TFLite model: bytes 4 to 8 are {bytes(data[WORD : 2 * WORD])!r}, not {IDENTIFIER!r}. "
                "Convert the model to TFLite, or download the file, again"
            )
        self.data, self.name = data, name
        self.allowance: Allowance = Allowance(len(data)) if outer is None else outer.allowance
        self.variables: Variables = Variables(self.allowance) if outer is None else outer.variables
        self.path: tuple[int, ...] = (*(() if outer is None else outer.path), number)
        self.model = Table(data, unpack(data, 0, "I"))
        graphs = self.model.places(ModelFields.SUBGRAPHS)
        if not len(graphs):
            raise FormatError(
                "this is not a TFLite model: it has no graph. Convert the model, or download the file, again"
            )
        if not 0 <= number < len(graphs):
            raise damaged_file(f"graph {number} is outside the {len(graphs)} graphs of the file")
        self.graph = Table(data, int(graphs[number]))

    @property
    def is_inner(self) -> bool:
        """Return True for a graph that an operator of another one contains."""
        return len(self.path) > 1

    def subgraph(self, number: int) -> "TfliteSource":
        """Return another graph of the file. FormatError if it contains itself."""
        if number in self.path:
            raise damaged_file(f"graph {number} contains itself")
        return TfliteSource(self.data, self.name, number, self)

    @cached_property
    def tensor_places(self) -> np.ndarray:
        return self.places(self.graph, SubgraphFields.TENSORS)

    @cached_property
    def tensors(self) -> list[TensorFacts | None]:
        """Return tensors by number, None until read; a list, since crafted dictionary keys could collide."""
        self.allowance.spend("its tensors", nbytes=POINTER * len(self.tensor_places))
        return [None] * len(self.tensor_places)

    @cached_property
    def buffer_places(self) -> np.ndarray:
        return self.places(self.model, ModelFields.BUFFERS)

    @cached_property
    def code_places(self) -> np.ndarray:
        return self.places(self.model, ModelFields.CODES)

    def places(self, table: Table, field: int) -> np.ndarray:
        """Return the positions of the tables of a vector of tables."""
        self.allowance.spend("its lists of tables", nbytes=PLACE * table.count(field))
        return table.places(field)

    def operator_name(self, index: int) -> str:
        """Return the name of the operator with a code."""
        if index >= len(self.code_places):
            raise damaged_file(f"an operator has the code {index} of {len(self.code_places)}")
        code = Table(self.data, int(self.code_places[index]))
        number = int(max(code.number(OperatorCodeFields.OLD, "b"), code.number(OperatorCodeFields.NUMBER, "i")))
        name = NAMES[number] if 0 <= number < len(NAMES) else f"number {number}"
        return f"CUSTOM {code.text(OperatorCodeFields.CUSTOM)!r:.60}" if name == "CUSTOM" else name

    def tensor(self, index: int) -> TensorFacts:
        """Return a tensor by its number, cached."""
        if not 0 <= index < len(self.tensor_places):
            raise damaged_file(f"tensor {index} is outside the {len(self.tensor_places)} tensors of the file")
        tensor = self.tensors[index]
        if tensor is None:
            self.allowance.spend("what is known of tensors", nbytes=TENSOR)
            tensor = self.tensors[index] = self.described(Table(self.data, int(self.tensor_places[index])), index)
        return tensor

    def described(self, table: Table, index: int) -> TensorFacts:
        """Return the description in a tensor's table."""
        name = table.text(TensorFields.NAME) or f"tensor{index}"
        self.allowance.spend("names of tensors", nbytes=len(name) * (1 if name.isascii() else 4))
        sizes = table.vector(TensorFields.SHAPE, "int32")
        shape = () if sizes is None else tuple(sizes[: MOST_AXES + 1].tolist())
        if len(shape) > MOST_AXES or any(n < 0 for n in shape) or prod(n for n in shape if n) * 8 > LARGEST:
            raise damaged_file(f"tensor {name!r:.60} has the impossible shape {list(shape)}")
        if table.number(TensorFields.EXTERNAL, "I"):
            raise FormatError(
                f"tensor {name!r:.60} is in another file, which is not supported. Convert it to one in this file"
            )
        dtype = dtype_of_number(int(table.number(TensorFields.DTYPE, "b")), name)
        sparsity = table.table(TensorFields.SPARSITY)
        array = self.array(int(table.number(TensorFields.BUFFER, "I")), name, shape, dtype, sparsity)
        details = table.table(TensorFields.QUANTIZATION)
        if details is not None:
            count = details.count(QuantizationFields.SCALE) + details.count(QuantizationFields.ZERO)
            self.allowance.spend("scales of tensors", work=CHECKS * count)
        is_variable = bool(table.number(TensorFields.IS_VARIABLE, "?"))
        sizes = table.vector(TensorFields.SIGNATURE, "int32")
        axes = () if sizes is None or sizes.size != len(shape) else tuple(np.flatnonzero(sizes < 0).tolist())
        form = quantised(details, name, shape, dtype) if dtype.name in QUANTISED else None
        return TensorFacts(index, name, shape, dtype, array, form, is_variable, axes, details)

    def array(
        self, buffer: int, name: str, shape: tuple[int, ...], dtype: np.dtype, sparsity: Table | None = None
    ) -> np.ndarray | None:
        """Return the contents of a buffer, dense; None for buffer 0 and an empty one."""
        if buffer == 0:
            return None
        if buffer >= len(self.buffer_places):
            raise damaged_file(f"tensor {name!r:.60} lies in buffer {buffer} of {len(self.buffer_places)}")
        table = Table(self.data, int(self.buffer_places[buffer]))
        raw = table.vector(BufferFields.DATA, "uint8")
        offset, size = int(table.number(BufferFields.OFFSET, "Q")), int(table.number(BufferFields.SIZE, "Q"))
        if offset > 1:
            raw = numbers(self.data, offset, size, "uint8")
        if raw is None or not raw.size:
            return None
        if sparsity is not None and raw.size % dtype.itemsize == 0:
            values = raw.view(dtype.newbyteorder("<")).astype(dtype, copy=False)
            try:
                return densify(sparsity, values, shape, self.allowance)
            except FormatError as error:
                raise FormatError(f"tensor {name!r:.60}: {error}") from error
        if raw.size != prod(shape) * dtype.itemsize:
            need = prod(shape) * dtype.itemsize
            raise damaged_file(f"tensor {name!r:.60} {dtype}{list(shape)} needs {need} bytes, {raw.size} are stored")
        return raw.view(dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)


def quantised(table: Table | None, name: str, shape: tuple[int, ...], dtype: np.dtype) -> QuantisedFormat | None:
    """Return the quantisation of integers. FormatError if a scale or zero point is invalid."""
    scales = None if table is None else table.vector(QuantizationFields.SCALE, "float32")
    if table is None or scales is None or not scales.size or dtype.name not in (*QUANTISED, "int32"):
        return None
    if table.number(QuantizationFields.DETAILS_TYPE, "B"):
        raise FormatError(
            f"tensor {name!r:.60} is quantised in a way that is not supported. Use scales and zero points"
        )
    zeros, axis = table.vector(QuantizationFields.ZERO, "int64"), int(table.number(QuantizationFields.AXIS, "i"))
    zeros = np.zeros(1, "int64") if zeros is None else zeros
    if len(set(zeros[:2].tolist())) == 1 and (zeros == zeros[0]).all():
        zeros = zeros[:1]
    if not (np.isfinite(scales) & (scales > 0)).all() or zeros.size not in (1, scales.size):
        raise damaged_file(
            f"tensor {name!r:.60} has scales that are not finite and positive, or fewer zero points than scales"
        )
    if scales.size > 1 and not (0 <= axis < len(shape) and shape[axis] == scales.size):
        raise damaged_file(f"tensor {name!r:.60} {list(shape)} has {scales.size} scales along axis {axis}")
    limits = np.iinfo(dtype)
    if (zeros < limits.min).any() or (zeros > limits.max).any():
        raise damaged_file(f"tensor {name!r:.60} has a zero point outside {dtype}")
    return QuantisedFormat(scales, zeros, axis, dtype == np.int8, BYTE if dtype.itemsize == 1 else dtype)


def dtype_of_number(number: int, name: str) -> np.dtype:
    """Return the NumPy dtype of TFLite's number. FormatError if it is not supported."""
    if number == RESOURCE:
        return np.dtype("int32")
    if number not in DTYPE:
        named = DTYPE_NAMES[number] if 0 <= number < len(DTYPE_NAMES) else str(number)
        raise FormatError(f"tensor {name!r:.60} has the dtype {named}, which is not supported")
    return np.dtype(DTYPE[number])


def stored_form(x: TensorFacts) -> tuple[Spec, int]:
    """Return the spec of a tensor's numbers as they are stored here, and the number that represents 0."""
    form = x.quantised
    return (Spec(x.shape, x.dtype), 0) if form is None else (Spec(x.shape, form.dtype), form.zero)
