"""Each pattern of each pass, and all graphs that differ from it in one place: what becomes of them is recorded.

A condition that a pass no longer checks, or checks too strictly, changes a recorded graph; its values are compared with
those of the graph as it was, too. ``python -m tests.passes.test_perturbed`` writes `perturbed.txt` anew, and with a
name it prints all graphs of one pattern.
"""

import sys
import zlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.dtypes.convert import resolve_dtype
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import Node, apply
from cgraph.ir.traverse import post_order
from cgraph.kernels.target import target_named
from cgraph.ops.fixed import fixed_product
from cgraph.ops.leaf import Var
from cgraph.ops.loop import Loop
from cgraph.ops.prefix import prefix
from cgraph.ops.shape import items
from cgraph.passes import rewrite_graph
from cgraph.passes.bound_rows import sink_prefixes
from cgraph.passes.decompose_int8 import decompose_int8
from cgraph.passes.fuse_reductions import fuse_reductions
from cgraph.passes.fuse_results import fuse_results
from cgraph.passes.fuse_stencils import fuse_stencils
from cgraph.passes.hold_weights import hold_weights
from cgraph.passes.integers.compute_integers import compute_integers
from cgraph.passes.know_factors import know_factors
from cgraph.passes.transpose_once import transpose_once
from tests.passes import (
    test_drop_identities,
    test_fuse_epilogues,
    test_fuse_gelu,
    test_fuse_group_norm,
    test_fuse_layer_norm,
    test_fuse_matmul,
    test_fuse_rms_norm,
    test_fuse_rotary,
    test_fuse_stencils,
    test_multiply_powers,
    test_tidy_loops,
)
from tests.passes.test_operand_orders import NODES
from tests.support.graphs import draw_values
from tests.support.perturbed import REFUSED, Outputs, digest, perturbed, shape_of_graph
from tests.support.tolerance import assert_close

RECORD = Path(__file__).with_name("perturbed.txt")
TARGET = target_named("avx2")
EVERY = 4
"""Of so many perturbed graphs the values of one are compared."""
ROUNDED = (
    "held",
    "int8",
    "uint8",
    "tests.passes.test_fuse_gelu, left, erf of a complex",
    "tests.passes.test_fuse_rotary, left, integers",
)
"""Patterns whose values a rounding may move to the next byte or integer; tests of their own compare these."""
Rewrite = Callable[[Outputs], Outputs]
FORMS: dict[str, tuple[Outputs, Rewrite]] = {name: ((node,), rewrite_graph) for name, node in NODES.items()}


def whole(*shape: int) -> cg.Node:
    """A constant of small whole numbers, none of them alike along any axis."""
    numbers = np.random.default_rng(sum(shape)).permutation(int(np.prod(shape))) % 17 - 8
    return cg.Const(numbers.reshape(shape).astype("f4") / 8)


def form(rewrite: Rewrite, prefix: str, **outputs: Node | Outputs) -> None:
    """Add patterns of one pass."""
    for name, nodes in outputs.items():
        FORMS[f"{prefix}, {name}"] = (nodes if isinstance(nodes, tuple) else (nodes,)), rewrite


def x(*shape: int, dtype: str = "float32", name: str = "x") -> Var:
    return cg.Var(shape, dtype, name)


FORMS |= {
    f"{module.__name__}, left, {name}": ((nodes if isinstance(nodes, tuple) else (nodes,)), rewrite_graph)
    for module in (
        test_fuse_epilogues, test_fuse_gelu, test_fuse_group_norm, test_fuse_layer_norm, test_fuse_rms_norm,
        test_fuse_rotary, test_drop_identities, test_multiply_powers,
    )
    for name, nodes in module.LEFT.items()
}  # fmt: skip
FORMS |= {f"dropped, {name}": ((node,), rewrite_graph) for name, (node, _) in test_drop_identities.DROPPED.items()}
FORMS |= {f"matmul, apart, {name}": (nodes, rewrite_graph) for name, nodes in test_fuse_matmul.APART.items()}
STENCILS = partial(fuse_stencils, target=TARGET)
FORMS |= {f"stencils, {name}": ((node,), STENCILS) for name, node in test_fuse_stencils.JOINED.items()}
FORMS |= {f"stencils, apart, {name}": (nodes, STENCILS) for name, nodes in test_fuse_stencils.APART.items()}

form(
    rewrite_graph,
    "images",
    padded=cg.conv2d(cg.pad(x(2, 4, 5, 6), [(0, 0), (0, 0), (1, 0), (2, 3)]), whole(5, 4, 2, 3), (1, 2), (0, 1, 2, 0)),
    taps=cg.conv2d(x(2, 4, 5, 6), whole(4, 2, 3, 5), (1, 2), (6, 5, 4, 7), (5, 3), 2),
    patches=cg.transpose(
        cg.reshape(cg.conv2d(x(1, 3, 26, 56), whole(5, 3, 13, 14), (13, 14)) + x(5, 1, 1, name="b"), (1, 5, 8)),
        (0, 2, 1),
    ),
    pixel=cg.conv_transpose2d(x(2, 5, 1, 1), whole(5, 3, 4, 3), (2, 3), (1, 0, 2, 1), output_pad=(1, 2)),
    sequence=cg.conv1d(x(2, 6, 9), whole(4, 3, 3), 2, (1, 2), 2, 2),
    transposed_sequence=cg.conv_transpose1d(x(2, 6, 9), whole(6, 5, 3), 2, (1, 0), output_pad=1),
    narrow_sequence=cg.conv1d(x(2, 2, 9), whole(5, 2, 3)),
    batch_norm=cg.batch_norm(x(2, 3, 4, 5), *(cg.Const(np.array([2, 1, 4], "f4") / i) for i in (1, 2, 3, 5))),
    few_channels=cg.conv2d(x(1, 3, 5, 6), whole(2, 3, 3, 2)),
    depthwise=cg.relu(cg.conv2d(x(1, 2, 33, 35), whole(2, 1, 3, 2), groups=2)),
    groups=cg.conv2d(x(1, 8, 5, 6), x(8, 4, 3, 2, name="f"), groups=2),
    many_groups=cg.conv2d(x(1, 8, 5, 6), x(8, 1, 3, 2, name="f"), groups=8),
    computed=cg.relu(cg.conv2d(x(1, 8, 5, 6), x(8, 8, 3, 2, name="f")) * whole(8, 1, 1)),
    computed_of_few=cg.conv2d(x(1, 5, 5, 6), x(9, 5, 3, 2, name="f")),
)
VOLUME = cg.conv3d(x(2, 5, 4, 5, 6), whole(6, 5, 2, 3, 2), (1, 2, 1), (1, 0, 2, 0, 1, 1), (1, 1, 2))
form(
    rewrite_graph,
    "volumes",
    of_groups=cg.conv3d(x(2, 4, 5, 5, 4), whole(6, 2, 2, 3, 2), (2, 1, 1), (1, 0, 1, 2, 1, 0), (2, 1, 1), 2),
    largest=cg.max_pool3d(VOLUME, (2, 1, 3), (1, 2, 1), (1, 0, 1, 0, 0, 1)),
    mean=cg.avg_pool3d(VOLUME, (2, 3, 2), (2, 1, 1), (1, 0, 1, 0, 1, 0), count_pad=True),
    one_depth=cg.conv3d(cg.relu(VOLUME + whole(6, 1, 1, 1)), whole(3, 6, 1, 2, 2), (2, 1, 1)),
    added=VOLUME + x(*VOLUME.shape, name="y"),
    added_by_image=VOLUME + x(2, 1, 1, 1, 1, name="y"),
    joined=cg.relu(cg.concat([VOLUME, cg.tanh(VOLUME)], 1)),
    few=cg.conv3d(x(2, 2, 4, 5, 6), whole(3, 2, 2, 2, 2)),
    transposed=cg.conv_transpose3d(
        x(2, 4, 3, 2, 3), whole(4, 3, 3, 2, 2), (2, 1, 2), (1, 0, 1, 0, 1, 0), dilation=(2, 1, 1)
    ),
)
MATRIX, ROW = x(3, 4), x(4, name="row")
form(
    rewrite_graph,
    "ops",
    constants=cg.Const(np.arange(6, dtype="f4").reshape(2, 3)) @ whole(3, 4) + MATRIX[:2],
    of_filters=cg.conv2d(x(1, 6, 4, 5), cg.broadcast_to(whole(4, 1, 1, 1), (4, 6, 3, 2)) * 2),
    split=cg.set_slice(cg.zeros((5, 4)), (slice(0, 3),), MATRIX)
    + cg.set_slice(cg.zeros((5, 4)), (slice(3, 5),), MATRIX[:2]),
    powers=cg.power(MATRIX, -1.5) + cg.power(MATRIX, 3.0) + cg.power(MATRIX, 0.5) / cg.power(MATRIX, -2.0),
    whole_powers=cg.power(x(3, dtype="int32"), 5),
    pointwise=(cg.exp(MATRIX) * cg.sin(MATRIX) + ROW, cg.sin(MATRIX) - 1, cg.sum(cg.tanh(MATRIX * ROW), 0)),
    gradient=cg.sum(cg.swapaxes(x(2, 5, 3), 1, 2) @ x(2, 5, 4, name="y"), 0),
    singular=cg.svd(x(12, 5), full_matrices=False)[1:],
    singular_wide=cg.svd(x(5, 12), full_matrices=False)[1:],
    widened=cg.take(x(6, 8, dtype="float16").astype("float32"), x(3, dtype="int32", name="i"), 0)[:, ::2] * 2,
    stopped=cg.stop_gradient(MATRIX) * 1 + 0,
    moved=cg.transpose(cg.reshape(cg.transpose(x(2, 3, 4), (1, 0, 2)), (3, 8)), (1, 0)),
)
form(
    rewrite_graph,
    "loops",
    states=cg.scan(lambda s, v: (s * 2 + v + 0, cg.power(s, 2.0)), cg.zeros((4,)), MATRIX),
    repeated=cg.while_loop(lambda s: cg.sum(s) < 9, lambda s: cg.power(s * 1, 2.0) + 1, ROW),
    chosen=cg.cond(x(dtype="bool"), lambda a: cg.exp(a + 0) * 2, lambda a: cg.power(a, 3.0), ROW),
    of_loops=items(apply(Loop(test_tidy_loops.BODY, 4), *test_tidy_loops.OPERANDS))[1:4],
)
INPUTS = x(3, 4, name="a"), x(3, 4, name="b"), x(4, name="c")
A, B, C = INPUTS
form(
    lambda roots: fuse_results(roots, INPUTS),
    "results",
    steps=(0.9 * A + 0.1 * B, A * A + C, A - (0.9 * A + 0.1 * B)),
    apart=(cg.exp(A), cg.exp(B)),
    of_rows=(cg.exp(C), cg.sin(C), A + C),
    read_elsewhere=(cg.exp(A), cg.sin(A), cg.sum(cg.exp(A), 0)),
    of_no_input=(cg.exp(A), A + cg.sin(x(3, 4, name="other"))),
)
form(fuse_reductions, "reductions", row=cg.sum(cg.exp(A) * C, 1), largest=cg.max(cg.abs(B), 0), place=cg.argmax(-B, 1))
form(
    partial(transpose_once, target=TARGET),
    "transposed",
    twice=(x(3, 8) @ x(6, 8, name="w").T, cg.exp(x(3, 8)) @ x(6, 8, name="v").T),
    chain=cg.tanh(cg.tanh(x(3, 8) @ (W := x(8, 8, name="w")).T) @ W.T) @ W.T,
)
N = x(dtype="int64", name="n")
TALL = x(40, 30)
form(
    sink_prefixes,
    "prefixes",
    chain=prefix(cg.exp(prefix(TALL, N)), N),
)
HELD = cg.Const(np.arange(200 * 150, dtype="f4").reshape(200, 150) % 31 / 8)
form(
    lambda roots: hold_weights(rewrite_graph(roots), resolve_dtype("bfloat16")),
    "held",
    product=x(3, 200) @ HELD,
    turned=cg.relu(x(3, 150) @ HELD.T + x(200, name="b")),
    table=cg.take(HELD, x(5, dtype="int32", name="i"), 0),
    filters=cg.relu(cg.conv2d(x(1, 50, 4, 4), cg.reshape(HELD, (200, 50, 3, 1))) * whole(200, 1, 1)),
    transposed=cg.conv_transpose2d(x(1, 200, 3, 4), cg.reshape(HELD, (200, 50, 3, 1))),
)


def held(v: Node, scale: float, zero: int, kind: str) -> Node:
    """Floats held in bytes."""
    low = int(np.iinfo(kind).min)
    return cg.dequantize(cg.quantize(v, np.float32(scale), low + zero, kind), np.float32(scale), low + zero)


def filters(*shape: int) -> Node:
    scale = np.arange(1, shape[0] + 1, dtype="f4").reshape(-1, *[1] * (len(shape) - 1)) / 256
    numbers = np.arange(np.prod(shape)).reshape(shape) % 251 - 125
    return cg.dequantize(numbers.astype("i1"), scale)


for kind in ("uint8", "int8"):
    bytes_in = held(x(2, 4, 5, 6), 0.02, 120, kind)
    bias = cg.dequantize(np.arange(6, dtype="i4") * 99, np.float32(0.02) * np.arange(1, 7, dtype="f4") / 256)
    conv = cg.conv2d(bytes_in, filters(6, 4, 3, 2), (1, 2), (1, 0, 2, 1)) + cg.reshape(bias, (6, 1, 1))
    left = held(x(3, 5), 0.04, 99, kind)
    form(
        compute_integers,
        kind,
        convolution=held(cg.minimum(cg.relu(conv), 2.0), 0.05, 7, kind),
        residual=held(held(conv, 0.05, 100, kind) + held(x(*conv.shape, name="r"), 0.03, 90, kind), 0.07, 128, kind),
        product=held(left @ cg.transpose(filters(6, 5)), 0.06, 128, kind),
        values=held(left @ cg.transpose(held(x(4, 5, name="y"), 0.03, 140, kind)), 0.06, 128, kind),
        joined=held(cg.concat([bytes_in, held(x(2, 3, 5, 6, name="y"), 0.03, 110, kind)], 1), 0.02, 120, kind),
        largest=held(cg.max_pool2d(bytes_in, (3, 2), (2, 1), (1, 0, 0, 1)), 0.02, 120, kind),
        padded=held(cg.pad(bytes_in, [(0, 0), (0, 0), (1, 2), (0, 3)]), 0.02, 120, kind),
        mean=held(cg.mean(bytes_in, (2, 3)), 0.01, 128, kind),
        pooled=held(cg.relu(cg.avg_pool2d(bytes_in, (3, 2), (1, 2), (1, 0, 1, 1), count_pad=True)), 0.02, 30, kind),
        curve=held(cg.sigmoid(bytes_in) * bytes_in, 0.02, 10, kind),
        upwards=held(
            cg.conv_transpose2d(bytes_in, cg.transpose(filters(3, 4, 2, 3), (1, 0, 2, 3)), (2, 3)), 0.05, 90, kind
        ),
        sums=(x(3, 5, dtype=kind, name="w").astype("int32") - x(dtype="int32", name="z"))
        @ cg.Const(np.arange(20).reshape(5, 4) * 13 - 100).astype("int32"),
    )
    form(
        lambda roots: decompose_int8(compute_integers(roots)),
        f"{kind} in floats",
        convolution=held(conv, 0.05, 7, kind),
        product=held(left @ cg.transpose(filters(6, 5)), 0.06, 128, kind),
    )
form(
    know_factors,
    "factors",
    known=fixed_product(x(3, 4, dtype="int32"), cg.Const(np.int32(1 << 30)), cg.Const(np.int32(-3)), True),
)


def recorded(name: str) -> list[tuple[str, str, Outputs]]:
    """Return what becomes of each graph: its name, a text, and the graph."""
    outputs, rewrite = FORMS[name]
    found = []
    for place, other in [("as it is", outputs), *perturbed(outputs)]:
        try:
            with np.errstate(all="ignore"):  # infinite factors
                text = shape_of_graph(rewrite(other))
        except REFUSED as error:
            text = f"refused: {type(error).__name__}"
        found.append((place, text, other))
    return found


def line(found: list[tuple[str, str, Outputs]]) -> str:
    return f"{len(found)} {digest(''.join(f'{place}: {text}' for place, text, _ in found))}"


@cache
def in_record() -> dict[str, str]:
    lines = RECORD.read_text(encoding="utf-8").splitlines() if RECORD.exists() else []
    return dict(tuple(x.rsplit(": ", 1)) for x in lines)


@pytest.mark.parametrize("name", FORMS)
def test_what_becomes_of_a_pattern_and_of_its_neighbours_is_recorded(name):
    found = recorded(name)
    rewrite = FORMS[name][1]
    for i, (place, text, outputs) in enumerate(found):
        is_chosen = i == 0 or zlib.crc32(f"{name}{place}".encode()) % EVERY == 0
        if is_chosen and not name.startswith(ROUNDED) and not text.startswith("refused"):
            leaves = [v for v in post_order(outputs) if isinstance(v, Var)]
            values = dict(zip(leaves, draw_values(leaves)))
            with np.errstate(all="ignore"):
                for got, want in zip(evaluate(rewrite(outputs), values), evaluate(outputs, values), strict=True):
                    assert_close(got, want)
    hint = f"print them with: python -m tests.passes.test_perturbed {name!r}"
    assert line(found) == in_record().get(name), f"other graphs than recorded; {hint}"


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.stdout.writelines(f"-- {place}\n{text}\n" for place, text, _ in recorded(sys.argv[1]))
    else:
        RECORD.write_text("".join(f"{name}: {line(recorded(name))}\n" for name in FORMS), encoding="utf-8")
