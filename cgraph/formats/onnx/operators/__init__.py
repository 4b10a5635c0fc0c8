"""Importers by family. A family is imported when a model has one of its operators."""

from importlib import import_module

from cgraph.formats.onnx.context import OPERATORS, Importer

FAMILIES = {
    "attention": "Attention RotaryEmbedding LinearAttention CausalConvWithState",
    "blocks": "com.microsoft.MatMulNBits com.microsoft.GatherBlockQuantized",
    "boxes": "NonMaxSuppression",
    "choice": "Compress NonZero Unique",
    "control": "If Loop ai.onnx.preview.training.Gradient",
    "conv": "Conv ConvTranspose GlobalAveragePool GlobalMaxPool GlobalLpPool MaxPool AveragePool LpPool",
    "decoders": (
        "com.microsoft.GroupQueryAttention com.microsoft.SkipLayerNormalization "
        "com.microsoft.SkipSimplifiedLayerNormalization com.microsoft.RotaryEmbedding"
    ),
    "early": "Affine ParametricSoftplus ScaledTanh Scale ImageScaler Crop",
    "encoders": ("com.microsoft.Attention com.microsoft.MultiHeadAttention com.microsoft.EmbedLayerNormalization"),
    "estimators": (
        "ai.onnx.ml.LinearRegressor ai.onnx.ml.LinearClassifier ai.onnx.ml.SVMRegressor ai.onnx.ml.SVMClassifier"
    ),
    "features": (
        "ai.onnx.ml.Scaler ai.onnx.ml.Normalizer ai.onnx.ml.Binarizer ai.onnx.ml.Imputer "
        "ai.onnx.ml.FeatureVectorizer ai.onnx.ml.ArrayFeatureExtractor ai.onnx.ml.OneHotEncoder "
        "ai.onnx.ml.LabelEncoder"
    ),
    "frame": "Pad CenterCropPad",
    "fused": (
        "com.microsoft.FusedConv com.microsoft.FusedGemm com.microsoft.FusedMatMul com.microsoft.TransposeMatMul "
        "com.microsoft.Gelu com.microsoft.BiasGelu com.microsoft.FastGelu com.microsoft.QuickGelu"
    ),
    "index": "Gather GatherElements GatherND ScatterElements Scatter ScatterND TensorScatter OneHot TopK",
    "linear": "MatMul Gemm Einsum com.microsoft.Solve com.microsoft.CDist com.microsoft.Inverse Det",
    "loss": "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    "makers": "Shape Size Constant ConstantOfShape EyeLike Range Trilu com.microsoft.Trilu",
    "norm": (
        "BatchNormalization InstanceNormalization GroupNormalization LayerNormalization RMSNormalization "
        "SimplifiedLayerNormalization MeanVarianceNormalization LRN LpNormalization Softmax LogSoftmax "
        "Hardmax"
    ),
    "pointwise": (
        "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Erf Exp Floor IsNaN Log Mish Neg Not "
        "Reciprocal Relu Round Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh Add Sub Mul And Or Xor "
        "BitwiseAnd BitwiseOr BitwiseXor Equal Greater GreaterOrEqual Less LessOrEqual Div Mod Pow Sum Max "
        "Min Mean Clip BitShift IsInf Where Cast CastLike BitCast Celu Elu HardSigmoid HardSwish LeakyRelu "
        "Selu ThresholdedRelu Gelu Swish Shrink PRelu Dropout"
    ),
    "quantised": (
        "com.microsoft.NhwcMaxPool com.microsoft.QLinearAveragePool com.microsoft.QLinearSoftmax "
        "com.microsoft.QLinearWhere com.microsoft.MatMulIntegerToFloat com.microsoft.DynamicQuantizeMatMul "
        "com.microsoft.QAttention com.microsoft.QEmbedLayerNormalization"
    ),
    "quantize": (
        "QuantizeLinear com.microsoft.QuantizeLinear DequantizeLinear com.microsoft.DequantizeLinear "
        "DynamicQuantizeLinear MatMulInteger ConvInteger QLinearMatMul QLinearConv com.microsoft.QLinearAdd "
        "com.microsoft.QLinearMul com.microsoft.QLinearConcat com.microsoft.QLinearGlobalAveragePool "
        "com.microsoft.QLinearLeakyRelu com.microsoft.QLinearSigmoid com.microsoft.QGemm"
    ),
    "random": "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial",
    "recurrent": "LSTM GRU RNN com.microsoft.DynamicQuantizeLSTM",
    "reduce": (
        "ReduceSum ReduceProd ReduceMean ReduceMax ReduceMin ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum "
        "ReduceLogSumExp ArgMax ArgMin CumSum CumProd"
    ),
    "resize": "Resize Upsample",
    "sample": "GridSample com.microsoft.GridSample AffineGrid RoiAlign MaxRoiPool DeformConv",
    "scans": "Scan",
    "scores": "ai.onnx.ml.ZipMap",
    "sequences": (
        "Identity SequenceConstruct SequenceEmpty SequenceAt SequenceLength SequenceInsert SequenceErase "
        "SplitToSequence ConcatFromSequence SequenceMap Optional OptionalGetElement OptionalHasElement"
    ),
    "shape": (
        "Reshape Flatten Transpose Squeeze Unsqueeze Concat Split Slice Expand Tile DepthToSpace SpaceToDepth "
        "ReverseSequence"
    ),
    "signal": "HannWindow HammingWindow BlackmanWindow DFT STFT MelWeightMatrix",
    "strings": "StringNormalizer com.microsoft.Tokenizer StringConcat StringSplit RegexFullMatch",
    "text": "TfIdfVectorizer",
    "trees": "ai.onnx.ml.TreeEnsembleClassifier ai.onnx.ml.TreeEnsembleRegressor ai.onnx.ml.TreeEnsemble",
    "window": "Col2Im MaxUnpool",
}
"""Operators by family: its module, and the names that the module registers."""
FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names.split()}


def importer_of(name: str) -> Importer | None:
    """Return the importer of an operator, None if it is not supported."""
    if name not in OPERATORS and name in FAMILY_OF:
        import_module(f"cgraph.formats.onnx.operators.{FAMILY_OF[name]}")
    return OPERATORS.get(name)
