"""Wiring of cgraph and nn, read from their sources: arguments reach the parameters of their names, options are passed
on, and what a function gets is read.

Each rule finds a mistake that reads well. What is meant so stands in a table: a new entry needs a reason.
"""

import ast

import pytest

from tests.support import wiring
from tests.support.wiring import Function, Module, Signature, Site, modules, sites, values

EXCHANGED = {
    "the mirror image": """
        cgraph/kernels/views/matrices.py: transposed → cgraph.record.replace: column, row
        cgraph/kernels/views/matrices.py: transposed → cgraph.record.replace: m, n""",
    "the larger operand comes first, or the later one": """
        cgraph/kernels/conv8/halves_emit.py: vector_of → .with_lane: x, y
        cgraph/kernels/sort/emit.py: merge_halves → cgraph.kernels.sort.emit.comes_first: x, y
        cgraph/numpy/elementwise.py: other_than_nan → cgraph.ops.compare.where: x, y
        cgraph/numpy/signals.py: convolve → cgraph.numpy.signals.sliding_products: a, v""",
}
ANY_DTYPE = (  # functions that read an array or a number; the dtype of the result is set behind them
    "cgraph.ops.leaf.as_node: dtype",
    "cgraph.ops.leaf.constant: dtype",
    "cgraph.ops.leaf.Const: dtype",
    "cgraph.ops.family.unify: dtype",
)
FORGOTTEN = {
    "the operand has that dtype, shape or form already": """
        cgraph/array_api/creation.py: asarray → cgraph.array_api.creation.astype: device
        cgraph/formats/tflite/operators/conv.py: sums_of → cgraph.kernels.conv8.calls.Result: zero
        cgraph/numpy/nans.py: nanvar → cgraph.numpy.reductions.sum: dtype
        cgraph/numpy/nans.py: nanvar → cgraph.numpy.reductions.var: correction
        cgraph/numpy/statistics.py: cov → cgraph.numpy.reductions.sum: dtype
        cgraph/ops/reduce.py: mean → cgraph.ops.reduce.sum: dtype""",
    "applied to the result": """
        cgraph/numpy/creation.py: geomspace → cgraph.numpy.creation.logspace: axis
        cgraph/numpy/creation.py: geomspace → cgraph.numpy.creation.logspace: dtype
        cgraph/numpy/creation.py: logspace → cgraph.numpy.creation.linspace: axis
        cgraph/numpy/creation.py: logspace → cgraph.numpy.creation.linspace: dtype
        cgraph/numpy/inspection.py: apply_along_axis → cgraph.ops.join.stack: axis
        cgraph/numpy/linalg.py: vector_norm → cgraph.ops.norms.norm: keepdims
        cgraph/numpy/quantiles.py: median → cgraph.ops.reduce.mean: keepdims
        cgraph/numpy/quantiles.py: quantile → cgraph.ops.reduce.any: keepdims
        cgraph/numpy/quantiles.py: rows → cgraph.ops.sort.sort: axis
        cgraph/numpy/signals.py: slope → cgraph.numpy.signals.diff: axis""",
    "checked, and without effect: every sort is stable": """
        cgraph/numpy/selection.py: argpartition → cgraph.ops.sort.argsort: kind
        cgraph/numpy/selection.py: argsort → cgraph.ops.sort.argsort: kind
        cgraph/numpy/selection.py: argsort → cgraph.ops.sort.argsort: stable
        cgraph/numpy/selection.py: isin → cgraph.ops.sort.sort: kind
        cgraph/numpy/selection.py: partition → cgraph.ops.sort.sort: kind
        cgraph/numpy/selection.py: sort → cgraph.ops.sort.sort: kind
        cgraph/numpy/selection.py: sort → cgraph.ops.sort.sort: stable""",
    "another thing of that name": """
        cgraph/array_api/calls.py: wrap → cgraph.array_api.array.Array: count
        cgraph/array_api/values.py: compile_structure → cgraph.function.compile: order
        cgraph/budget/bands/build_bands.py: stage_of → cgraph.budget.bands.regions.Stage: free
        cgraph/engine/cuda/segments.py: straight_segments → cgraph.engine.cuda.segments.Segment: rows
        cgraph/function.py: rounding_of → cgraph.lowering.rounded_layers.RoundedLayers: names
        cgraph/kernels/reduce/calls.py: across_call → cgraph.kernels.views.layout.block_columns: most
        cgraph/numpy/signals.py: sliding_products → cgraph.ops.pad.pad: mode
        cgraph/numpy/statistics.py: histogram → cgraph.numpy.statistics.histogram_bin_edges: weights
        cgraph/ops/physical/conv.py: calls → cgraph.kernels.conv.calls.conv_calls: workspace
        cgraph/ops/physical/planned_body.py: placed → cgraph.ir.work.Part: places
        cgraph/transforms/executable.py: add → cgraph.storage.function_cache.nbytes_of: key
        nn/models/mask_rcnn/pretrained_configs.py: mask_rcnn → nn.models.mask_rcnn.heads.MaskHead: eps
        nn/models/mask_rcnn/pretrained_configs.py: mask_rcnn_matterport → nn.models.mask_rcnn.heads.AnchorHead: depth
    """,
}
UNREAD = {
    "called by name with what all of its kind get": """
        cgraph/formats/darknet/layers.py: avgpool: net
        cgraph/formats/darknet/layers.py: maxpool: net
        cgraph/formats/darknet/layers.py: reorg: net
        cgraph/formats/darknet/layers.py: route: x
        cgraph/formats/onnx/dynamic_ops/slices.py: take_along: c
        cgraph/formats/onnx/operators/open_resize.py: clip_to_axis: c
        cgraph/formats/onnx/operators/resize.py: resize_image: region
        cgraph/formats/onnx/operators/sequences.py: sequence_empty: c
        cgraph/kernels/boxes/gpu_emit.py: suppress: lanes
        cgraph/kernels/conv8/halves_emit.py: half_of: k
        cgraph/kernels/gemm/pack_emit.py: copy_lines: k
        cgraph/kernels/gemm/pack_emit.py: each_panel: dtype
        cgraph/kernels/llvm/halves.py: low_halves: k
        cgraph/engine/cuda/simulator/decode.py: one_function: kernel""",
    "the interface is another package's": """
        cgraph/array_api/inspection.py: default_dtypes: device
        cgraph/formats/onnx/backend.py: is_compatible: model
        nn/parallel/worker.py: teardown: worker""",
}


def meant(table: dict[str, str]) -> set[str]:
    """The entries of a table."""
    return {line.strip() for lines in table.values() for line in lines.strip().split("\n")}


def functions() -> list[tuple[Module, Function]]:
    return [(module, x) for module in modules().values() for x in module.nodes if isinstance(x, Function)]


def test_no_two_arguments_change_places():
    """An argument that has the name of another parameter, which gets this one's, is probably exchanged with it."""
    assert {row for site in sites() for row in wiring.exchanged(site)} == meant(EXCHANGED)


def test_options_are_passed_on():
    """A function with an option of its callee's name passes it on, or its callee's default holds."""
    rows = {row for site in sites() for row in wiring.forgotten(site)}
    assert {row for row in rows if not row.endswith(ANY_DTYPE)} == meant(FORGOTTEN)


def test_what_a_function_sets_is_read():
    """Of two names that are set together, such as rows and columns, one that is never read may stand for the other."""
    assert not [row for module, x in functions() for row in wiring.unread_locals(module, x)]


def test_what_a_function_gets_is_read():
    assert {row for module, x in functions() for row in wiring.unread_parameters(module, x, values())} == meant(UNREAD)


def test_most_calls_are_looked_at():
    assert len(sites()) > 15_000
    assert {"cgraph.function.compile", "cgraph.record.replace", ".task_loop"} <= {site.callee for site in sites()}


def site_of(code: str, *names: str, optional: str = "") -> Site:
    """A call inside a function, of a callee with these parameters."""
    function = ast.parse(code).body[0]
    assert isinstance(function, ast.FunctionDef)
    call = next(x for x in ast.walk(function) if isinstance(x, ast.Call))
    signature = Signature(names, len(names), frozenset(optional.split()))
    is_open = wiring.has_star(call) or any(x.arg is None for x in call.keywords)
    return Site("a.py", function, "b.g", signature, wiring.passed_of(call, signature), is_open)


@pytest.mark.parametrize(
    ("call", "is_faulty"),
    [
        ("g(columns, rows)", True),
        ("g(x.columns, x.rows)", True),
        ("g(rows=columns, columns=rows)", True),
        ("g(columns, columns=rows)", True),
        ("g(rows, columns)", False),
        ("g(columns, 1)", False),
        ("g(*columns, rows)", False),
    ],
)
def test_exchanged_arguments_are_found(call, is_faulty):
    assert bool([*wiring.exchanged(site_of(f"def f(): {call}", "rows", "columns"))]) is is_faulty


@pytest.mark.parametrize(
    ("code", "is_faulty"),
    [
        ("def f(x, stride): g(x)", True),
        ("def f(x, *, stride=1): return g(x)", True),
        ("def f(x, stride): g(x, stride)", False),
        ("def f(x, stride): g(x, stride=2)", False),
        ("def f(x, stride, **more): g(x, **more)", False),
        ("def f(x): g(x)", False),
    ],
)
def test_options_that_are_not_passed_on_are_found(code, is_faulty):
    assert bool([*wiring.forgotten(site_of(code, "x", "stride", optional="stride"))]) is is_faulty


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("def f(x):\n    rows, columns = x\n    return rows, rows", ["columns"]),
        ("def f(x):\n    rows, columns = x\n    return rows * columns", []),
        ("def f(x):\n    _, columns = x\n    return columns", []),
        ("def f(x):\n    y = 0\n    def g():\n        nonlocal y\n        y = 1\n    return g", []),
        ("def f(x):\n    y = 0\n    return lambda: y", []),
    ],
)
def test_names_that_are_set_and_not_read_are_found(code, names):
    function = ast.parse(code).body[0]
    module = next(iter(modules().values()))
    assert [row.split(": ")[-1] for row in wiring.unread_locals(module, function)] == names
