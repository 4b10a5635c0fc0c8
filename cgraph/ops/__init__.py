"""The public functions of ops, by the module that defines them. A module is imported when a function is first used."""

from importlib import import_module

from cgraph.ir.graph import OPS

FUNCTIONS = {
    "activation": (
        "relu6 leaky_relu elu selu celu hard_sigmoid hard_swish swish mish softsign thresholded_relu gelu prelu "
        "relu sigmoid softplus"
    ),
    "arithmetic": (
        "round astype positive clip add subtract multiply true_divide floor_divide remainder maximum minimum "
        "negative abs sign square reciprocal floor ceil trunc rint"
    ),
    "attention": "scaled_dot_product_attention",
    "average_pool": "avg_pool1d avg_pool2d avg_pool3d global_avg_pool",
    "bitcast": "bitcast",
    "blocks": "block_matmul",
    "boxes": "box_iou non_maximum_suppression box_encode box_decode roi_align",
    "callback": "delay delay_array lazy_print",
    "compare": (
        "less less_equal greater greater_equal equal not_equal bitwise_and bitwise_or bitwise_xor invert "
        "left_shift right_shift logical_not logical_and logical_or logical_xor isnan isinf isfinite where"
    ),
    "complex": "real imag conj complex as_parts",
    "control": "scan fori cond",
    "conv": "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d",
    "diagonal": "triu tril diagonal diag trace eye",
    "einsum": "einsum",
    "elementary": (
        "exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh "
        "arccosh arctanh arctan2 hypot fmod copysign erf erfc"
    ),
    "factors": "qr svd svdvals eigh eig",
    "fft": "fft ifft rfft irfft",
    "fixed": "fixed_product",
    "gamma": "gamma lgamma digamma trigamma",
    "index": "one_hot nonzero atleast_1d gather_nd take_index",
    "join": "concat stack roll tile repeat",
    "kernel": "kernel",
    "linalg": "inv solve cholesky det slogdet logdet",
    "linear": "matmul dot inner vdot outer tensordot kron",
    "norm": "batch_norm batch_norm_training layer_norm rms_norm group_norm instance_norm lrn",
    "norms": "norm",
    "pad": "pad",
    "pool": "max_pool1d max_pool2d max_pool3d global_max_pool",
    "power": "power",
    "quantise": "quantize dequantize",
    "random": "random_key split_key random_bits random_uniform random_normal random_bernoulli dropout",
    "recurrent": "rnn_cell lstm_cell gru_cell",
    "reduce": "sum prod min max any all argmin argmax mean var std count_nonzero ptp",
    "regions": "roi_align_levels",
    "resize": "resize",
    "rows": "set_rows take_rows",
    "scan": "cumsum cumprod",
    "shape": (
        "reshape ravel flatten transpose permute_dims swapaxes moveaxis squeeze expand_dims broadcast_to full "
        "zeros ones zeros_like ones_like arange"
    ),
    "slicing": "split flip getitem set_slice",
    "sliding": "sliding",
    "softmax": "softmax log_softmax logsumexp",
    "sort": "sort argsort top_k searchsorted digitize unique",
    "stop": "stop_gradient custom_gradient",
    "take": "take take_along_axis scatter scatter_add put_along_axis",
    "trees": "tree_leaves",
    "while_loop": "while_loop",
    "whole": "bitwise_count gcd",
}


def import_ops() -> None:
    """Import all modules with public functions, so that ``Op.__subclasses__`` has all classes of ops."""
    for name in FUNCTIONS:
        import_module(f"cgraph.ops.{name}")


OPS.list_modules({f"cgraph.ops.{name}": functions for name, functions in FUNCTIONS.items()})
