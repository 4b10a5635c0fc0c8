"""Groups of public names in the reference, with what the names of a group have in common."""

from typing import Any

from cgraph.record import Record

FORMATS = ("onnx", "tflite", "keras_h5", "darknet", "torch_file", "safetensors", "npz", "deep_compression")
VIEW = "page_html function_svg frame_svg report timed_report text graph_from_text graph_dot function_dot".split()
OPERANDS = (
    "Operands are nodes, arrays, numbers or nested lists. They broadcast and promote to one dtype as in NumPy; the "
    "result is "
    "a node of the broadcast shape."
)
SHAPE = "`ShapeError`: shapes that do not go together. `DTypeError`: a dtype that the function does not take."


class Group(Record):
    """A group of names: those that it lists, those that its modules define, and those of a submodule.

    A group without names, modules and submodule has all names of no other group.
    """

    title: str
    text: str = ""
    names: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    submodule: str = ""

    def has(self, name: str, documented: Any) -> bool:
        if self.submodule:
            return name.startswith(self.submodule + ".")
        module = getattr(documented, "__module__", "")
        inside = any(module == x or module.startswith(x + ".") for x in self.modules)
        return name in self.names or inside or not (self.names or self.modules)


def group(title: str, text: str, names: str = "", modules: str = "") -> Group:
    """A group from its names and modules in one text each."""
    return Group(title, text, tuple(names.split()), tuple(modules.split()))


CGRAPH = (
    group(
        "Build and compile",
        "A `Var` is an array whose value comes later; functions of nodes build a graph; `compile` or `jit` makes a "
        "Function.",
        "Var Const Node eval item compile Function jit vmap compile_sizes SizedFunction Tolerance MixedPrecision "
        "LayerPrecision Record",
    ),
    group(
        "Gradients",
        "Gradients are nodes of the graph, or Python functions of functions. `NoGradientError`: an op on the path has "
        "none.",
        "gradient pullback jvp hessian_vector_product grad value_and_grad jacobian hessian "
        "stop_gradient custom_gradient",
    ),
    group(
        "Loops, branches and Python functions",
        "Bodies are called once, with nodes; their results keep structure, shapes and dtypes (`ShapeError` otherwise).",
        "scan fori while_loop cond kernel delay delay_array lazy_print",
    ),
    group(
        "Elementwise functions",
        f"{OPERANDS} Functions of angles, roots and logarithms turn integers into float64.\n\n{SHAPE}",
        "abs add subtract multiply true_divide floor_divide remainder fmod power negative positive sign square "
        "reciprocal "
        "maximum minimum floor ceil trunc rint round clip astype exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin "
        "cos tan "
        "arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh hypot copysign erf erfc gamma lgamma "
        "digamma "
        "trigamma",
    ),
    group(
        "Comparison, bits and complex numbers",
        f"{OPERANDS} Comparisons have dtype bool.\n\n{SHAPE}",
        "less less_equal greater greater_equal equal not_equal where isnan isinf isfinite gcd",
        "cgraph.ops.compare cgraph.ops.complex cgraph.ops.bitcast cgraph.ops.whole",
    ),
    group(
        "Bitwise functions",
        f"{OPERANDS} They take integers and bool.\n\n{SHAPE}",
        "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift bitwise_count",
    ),
    group(
        "Reductions and running sums",
        "`axis` is one axis, several, or None for all; these axes go, or stay with length 1 (`keepdims=True`).\n\n"
        "`ShapeError`: an axis that the operand does not have, or an extreme of nothing.",
        "",
        "cgraph.ops.reduce cgraph.ops.scan cgraph.ops.norms",
    ),
    group(
        "Creation and shapes",
        "Shape functions move no number where a view will do. `ShapeError`: the number of elements or an axis does "
        "not fit.",
        "",
        "cgraph.ops.shape cgraph.ops.join cgraph.ops.pad cgraph.ops.sliding cgraph.ops.diagonal",
    ),
    group(
        "Indices, slices and sorting",
        "`ShapeError`: an index or axis outside the operand. `PositionError`, at the run: a computed index is out of "
        "range.",
        "split flip getitem set_slice one_hot nonzero atleast_1d gather_nd take_index",
        "cgraph.ops.take cgraph.ops.rows cgraph.ops.sort",
    ),
    group(
        "Linear algebra and Fourier transforms",
        "Leading axes are batches. `fft` and the like hold complex numbers as pairs, `[..., n, 2]`; NumPy's own "
        f"`np.fft.fft(node)` takes complex nodes.\n\n{SHAPE}",
        "",
        "cgraph.ops.linear cgraph.ops.linalg cgraph.ops.factors cgraph.ops.einsum cgraph.ops.fft",
    ),
    group(
        "Activations and softmax",
        f"{OPERANDS} Integers become floats.\n\n{SHAPE}",
        "relu sigmoid softplus",
        "cgraph.ops.activation cgraph.ops.softmax",
    ),
    group(
        "Layers of networks",
        "Images are `[n, channels, height, width]`, filters `[k, channels / groups, rows, columns]`, sequences `[n, "
        "channels, "
        f"width]`.\n\n{SHAPE}",
        "dropout",
        "cgraph.ops.conv cgraph.ops.pool cgraph.ops.average_pool cgraph.ops.norm cgraph.ops.attention "
        "cgraph.ops.recurrent "
        "cgraph.ops.resize cgraph.ops.boxes cgraph.ops.regions",
    ),
    group(
        "Quantised numbers and trees",
        f"Integers that stand for floats, packed matrices and decision trees.\n\n{SHAPE}",
        "",
        "cgraph.ops.quantise cgraph.ops.fixed cgraph.ops.blocks cgraph.ops.trees",
    ),
    group(
        "Random numbers",
        "A key is uint32[2]; equal keys give equal numbers, on every machine and number of threads.\n\n"
        "`DTypeError`, `ShapeError`: the key is not uint32[2], or a parameter is out of its range.",
        "",
        "cgraph.ops.random",
    ),
    group(
        "Files and export",
        "`FormatError`: a file that cannot be read. `WeightsError`: a damaged file of weights.",
        "load SavedFunction Runner export export_sizes export_targets ExportEngine StreamedWeights check_weights",
    ),
    group(
        "Memory plans",
        "The records of a memory strategy of your own: see [your own strategy](strategies.md).",
        "Problem Plan ProblemOperand UsageInterval",
    ),
    group("Text, pictures and reports", "Also listed in [cgraph.view](api_cgraph_view.md).", "", "cgraph.view"),
    group(
        "Errors",
        "Every error of the library is a `CgraphError`, and also the built-in kind that fits; see [errors](errors.md).",
        "",
        "cgraph.errors",
    ),
)
REDUCTIONS = (
    "all amax amin any argmax argmin average count_nonzero cumprod cumsum cumulative_prod cumulative_sum max mean "
    "median min "
    "nanmax nanmean nanmin nanprod nanstd nansum nanvar nanargmax nanargmin nancumsum nancumprod nanmedian "
    "nanpercentile "
    "nanquantile percentile prod ptp quantile std sum var"
)
CREATION = (
    "arange array asanyarray asarray ascontiguousarray asfortranarray astype copy diag diagflat empty empty_like eye "
    "from_dlpack full full_like fromfunction geomspace identity indices linspace logspace meshgrid ones ones_like tri "
    "tril "
    "triu vander zeros zeros_like"
)
SHAPES = (
    "append array_split atleast_1d atleast_2d atleast_3d block broadcast_arrays broadcast_to column_stack concat "
    "concatenate "
    "delete dsplit dstack expand_dims flip fliplr flipud hsplit hstack insert matrix_transpose moveaxis pad "
    "permute_dims "
    "ravel repeat reshape resize roll rollaxis rot90 split squeeze stack swapaxes tile transpose unstack vsplit vstack"
)
CHOICE = (
    "argpartition argsort argwhere choose clip compress diagonal digitize extract flatnonzero in1d intersect1d isin "
    "lexsort "
    "nonzero partition piecewise place put put_along_axis searchsorted select setdiff1d setxor1d sort sort_complex "
    "take "
    "take_along_axis trim_zeros union1d unique unique_all unique_counts unique_inverse unique_values where"
)
PRODUCTS = (
    "convolve correlate corrcoef cov cross dot einsum einsum_path inner kron matmul matvec outer tensordot trace vdot "
    "vecdot "
    "vecmat"
)
TYPES = "allclose array_equal array_equiv broadcast_shapes can_cast finfo iinfo isclose isdtype iscomplex iscomplexobj "
TYPES += "isreal isrealobj isscalar ndim promote_types result_type shape size Array dtype issubdtype min_scalar_type"
NUMPY = (
    group("Creation", "A shape is an integer or a tuple of integers; the dtype is as in NumPy.", CREATION),
    group(
        "Shapes and joining", "`ShapeError`: the number of elements, an axis or the other operands do not fit.", SHAPES
    ),
    group(
        "Choice, sorting and sets",
        "`ShapeError`: an axis or index outside. A result whose length depends on values is refused; the message "
        "names what "
        "to use.",
        CHOICE,
    ),
    group("Reductions", "`axis` is one axis, several, or None for all. `ShapeError`: no such axis.", REDUCTIONS),
    group("Products", "`ShapeError`: lengths that differ along the axes that are summed.", PRODUCTS),
    group("Shapes, dtypes and comparisons of whole arrays", "What a graph knows before a run is plain Python.", TYPES),
    Group(
        "Linear algebra",
        "Leading axes are batches. `ShapeError`: matrices that are not square, or do not fit.",
        submodule="linalg",
    ),
    Group(
        "Fourier transforms",
        "Complex nodes in and out, as in NumPy. `DTypeError`: an operand that is not a number.",
        submodule="fft",
    ),
    Group("Random numbers", "A generator whose state travels with traced functions.", submodule="random"),
    Group("Elementwise functions", f"{OPERANDS}\n\n{SHAPE}"),
)
NN = (
    group(
        "Training",
        "See [networks and training](nn.md).",
        "train training_step data_parallel compile Loader Batches Sample SampleSource DaskSamples PictureFiles "
        "picture_folder random_shift "
        "shifted History Epoch Early Checkpoint TensorBoard Optimiser LossError Step read_checkpoint write_checkpoint",
    ),
    group(
        "Models and parameters",
        "A layer is a record of sizes; its Parameters get values from `initialise` or a file.",
        "Layer Parameter Mode Cache initialise set_values freeze summary save_weights load_weights load_torch "
        "Predictor "
        "Generator Choice Below quantise QuantisedPredictor",
    ),
    group(
        "Layers",
        "A layer is called on nodes or layers, or stands in `Sequential`. `InputError`: its input does not fit.",
        "",
        "nn.layers",
    ),
)
