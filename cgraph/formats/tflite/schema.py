"""Constants of TFLite's schema: numbers of operators and dtypes, and the fields of tables and options.

Source: ``tensorflow/compiler/mlir/lite/schema/schema.fbs``, version 3 (identifier TFL3).
"""

from cgraph.record import Record

IDENTIFIER = b"TFL3"
# by number
NAMES = """
    ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
    FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION
    LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH
    CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER
    BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE
    BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM
    ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE
    TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK
    LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD
    RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N
    GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE
    NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL
    PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS HASHTABLE
    HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE
    ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU
    DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2
    UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD STABLEHLO_DIVIDE
    STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE
    STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE
    STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_MINIMUM
    STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT STABLEHLO_SELECT
    STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT STABLEHLO_DYNAMIC_SLICE
    STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA STABLEHLO_DOT_GENERAL STABLEHLO_REDUCE_WINDOW
    STABLEHLO_SORT STABLEHLO_WHILE STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE STABLEHLO_RNG_BIT_GENERATOR
    REDUCE_WINDOW STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT STABLEHLO_CASE
""".split()
DTYPE = {
    0: "float32", 1: "float16", 2: "int32", 3: "uint8", 4: "int64", 6: "bool", 7: "int16", 8: "complex64", 9: "int8",
    10: "float64", 12: "uint64", 15: "uint32", 16: "uint16",
}  # fmt: skip
RESOURCE = 13  # the dtype of a handle of a variable, which is read as its number
DTYPE_NAMES = """
    FLOAT32 FLOAT16 INT32 UINT8 INT64 STRING BOOL INT16 COMPLEX64 INT8 FLOAT64 COMPLEX128 UINT64 RESOURCE VARIANT UINT32
    UINT16 INT4 BFLOAT16 INT2 UINT4
""".split()


class ModelFields:
    """Fields of a model."""

    CODES, SUBGRAPHS, BUFFERS = 1, 2, 4


class OperatorCodeFields:
    """Fields of an operator code; numbers above 127 are in the newer one of two."""

    OLD, CUSTOM, NUMBER = 0, 1, 3


class SubgraphFields:
    """Fields of a graph."""

    TENSORS, INPUTS, OUTPUTS, OPERATORS = 0, 1, 2, 3


class OperatorFields:
    """Fields of an operator."""

    CODE, INPUTS, OUTPUTS, OPTIONS_TYPE, OPTIONS, CUSTOM = 0, 1, 2, 3, 4, 5
    NEWER_TYPE, NEWER = 11, 12  # of operators whose options are in the union BuiltinOptions2


class TensorFields:
    """Fields of a tensor."""

    SHAPE, DTYPE, BUFFER, NAME, QUANTIZATION, IS_VARIABLE, SPARSITY = 0, 1, 2, 3, 4, 5, 6
    SIGNATURE, EXTERNAL = 7, 10


class QuantizationFields:
    """Fields of the quantisation of a tensor."""

    SCALE, ZERO, DETAILS_TYPE, AXIS = 2, 3, 4, 6


class SparsityFields:
    """Fields of the sparsity of a tensor."""

    ORDER, BLOCKS, LEVELS = 0, 1, 2


class LevelFields:
    """Fields of a level of a sparse tensor. A list of indices is a union: the number of its kind, and its table."""

    FORMAT, SIZE, SEGMENTS_TYPE, SEGMENTS, INDICES_TYPE, INDICES = 0, 1, 2, 3, 4, 5


class BufferFields:
    """Fields of a buffer: its bytes, or their position after all tables."""

    DATA, OFFSET, SIZE = 0, 1, 2


class Option(Record):
    """A field of options: its index, type and default.

    The type is a format of `struct`, ``V`` for a vector of int32, ``F`` for one of float32, or ``T`` for a text.
    """

    field: int
    kind: str
    default: float = 0


class OptionFields(Record, eq=False):
    """The options table of an operator: its number, its fields by name, and True if its union is the newer one."""

    number: int
    fields: dict[str, Option]
    is_newer: bool = False


def options(number: int, text: str, is_newer: bool = False) -> OptionFields:
    """Parse fields in order: ``name:type`` or ``name:type=default``; ``_`` for an unused one."""
    fields = {}
    for i, word in enumerate(text.split()):
        name, _, rest = word.partition(":")
        kind, _, default = rest.partition("=")
        fields[name] = Option(i, kind, int(default or 0))
    return OptionFields(number, fields, is_newer)


_POOL = options(5, "padding:b stride_w:i stride_h:i window_w:i window_h:i activation:b")
_REDUCE = options(27, "keepdims:?")
_CONV_3D = options(
    106,
    "padding:b stride_d:i stride_w:i stride_h:i activation:b dilation_d:i=1 dilation_w:i=1 dilation_h:i=1",
)
_CUSTOM_POOL = options(0, "padding:i stride_w:i stride_h:i window_w:i window_h:i activation:i")
OPTIONS = {
    "ADD": options(11, "activation:b pot:?=1"),
    "ARG_MAX": options(40, "dtype:b"),
    "ARG_MIN": options(57, "dtype:b"),
    "AVERAGE_POOL_2D": _POOL,
    "BATCH_MATMUL": options(101, "adjoint_x:? adjoint_y:?"),
    "BIDIRECTIONAL_SEQUENCE_LSTM": options(69, "activation:b clip:f projection_clip:f merge:? time_major:?=1"),
    "BIDIRECTIONAL_SEQUENCE_RNN": options(70, "time_major:? activation:b merge:?"),
    "BUCKETIZE": options(115, "boundaries:F"),
    "CALL_ONCE": options(103, "graph:i"),
    "CONCATENATION": options(10, "axis:i activation:b"),
    "CONV_2D": options(1, "padding:b stride_w:i stride_h:i activation:b dilation_w:i=1 dilation_h:i=1"),
    "CONV_3D": _CONV_3D,
    "CONV_3D_TRANSPOSE": _CONV_3D,
    "CUMSUM": options(102, "exclusive:? reverse:?"),
    "CUSTOM 'Convolution2DTransposeBias'": options(0, "padding:i stride_w:i stride_h:i"),
    "CUSTOM 'MaxPoolingWithArgmax2D'": _CUSTOM_POOL,
    "CUSTOM 'MaxUnpooling2D'": _CUSTOM_POOL,
    "DEPTHWISE_CONV_2D": options(
        2, "padding:b stride_w:i stride_h:i multiplier:i activation:b dilation_w:i=1 dilation_h:i=1"
    ),
    "DEPTH_TO_SPACE": options(94, "block:i"),
    "DIV": options(29, "activation:b"),
    "FAKE_QUANT": options(58, "min:f max:f bits:i narrow:?"),
    "FULLY_CONNECTED": options(8, "activation:b weights_format:b keepdims:? asymmetric:?"),
    "GATHER": options(23, "axis:i batch_axes:i"),
    "GELU": options(116, "approximate:?"),
    "IF": options(92, "then:i orelse:i"),
    "L2_NORMALIZATION": options(12, "activation:b"),
    "L2_POOL_2D": _POOL,
    "LEAKY_RELU": options(75, "alpha:f"),
    "LOCAL_RESPONSE_NORMALIZATION": options(13, "radius:i bias:f alpha:f beta:f"),
    "LSTM": options(14, "activation:b clip:f projection_clip:f kernel:b"),
    "MAX_POOL_2D": _POOL,
    "MEAN": _REDUCE,
    "MIRROR_PAD": options(77, "mode:b"),
    "MUL": options(21, "activation:b"),
    "ONE_HOT": options(61, "axis:i"),
    "PACK": options(59, "count:i axis:i"),
    "REDUCE_ALL": _REDUCE,
    "REDUCE_ANY": _REDUCE,
    "REDUCE_MAX": _REDUCE,
    "REDUCE_MIN": _REDUCE,
    "REDUCE_PROD": _REDUCE,
    "RESHAPE": options(17, "shape:V"),
    "RESIZE_BILINEAR": options(15, "_ _ align_corners:? half_pixel:?"),
    "RESIZE_NEAREST_NEIGHBOR": options(74, "align_corners:? half_pixel:?"),
    "REVERSE_SEQUENCE": options(87, "time:i batch:i"),
    "RNN": options(7, "activation:b"),
    "SHAPE": options(55, "dtype:b"),
    "SOFTMAX": options(9, "beta:f"),
    "SPACE_TO_DEPTH": options(19, "block:i"),
    "SPLIT": options(35, "count:i"),
    "SPLIT_V": options(79, "count:i"),
    "SQUEEZE": options(30, "axes:V"),
    "STABLEHLO_COMPOSITE": options(21, "name:T graph:i", is_newer=True),
    "STRIDED_SLICE": options(32, "begin:i end:i ellipsis:i new_axis:i shrink:i offset:?"),
    "SUB": options(28, "activation:b pot:?=1"),
    "SUM": _REDUCE,
    "SVDF": options(6, "rank:i activation:b"),
    "TRANSPOSE_CONV": options(49, "padding:b stride_w:i stride_h:i activation:b"),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": options(71, "activation:b clip:f projection_clip:f time_major:?"),
    "UNIDIRECTIONAL_SEQUENCE_RNN": options(31, "time_major:? activation:b"),
    "UNPACK": options(64, "count:i axis:i"),
    "VAR_HANDLE": options(111, "container:T name:T"),
    "WHILE": options(93, "condition:i body:i"),
}
