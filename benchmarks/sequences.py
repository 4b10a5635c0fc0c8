"""Table: attention, encoders and one step of a decoder in several engines, with random weights shared by ONNX files.

python -m benchmarks.sequences [cases] [engines] [1|2]
python -m benchmarks.sequences processor [cases] [engines]     the same by processor time of one thread
python -m benchmarks.sequences bf16 int8 ...   rows of these precisions instead of float32: cgraph's precision="bf16"
                                               beside openvino as it comes, and encoders of onnxruntime's quantiser
python -m benchmarks.sequences bytes        arenas of attention by its length, and of the graph of plain ops
"""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import cgraph as cg
import nn
from benchmarks import networks
from benchmarks.peers import Run, onnxruntime_run, openvino_run
from benchmarks.runner import PROCESSOR, ROUNDED, Absent, precision_of, print_table
from cgraph.errors import bytes_text
from cgraph.formats.onnx import load, serialised
from nn.compile import freeze
from nn.layer import initialise

HEADS, WIDTH, PAST, SYMBOLS = 8, 64, 255, 4096
ENGINES = ("cgraph", "bfloat16", "onnxruntime", "openvino", "fused")  # fused: onnxruntime's own operator for attention
Graph = tuple[list[cg.Node], list[cg.Var], list[np.ndarray]]


def drawn(variables: Sequence[cg.Var]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(x.shape).astype("float32") for x in variables]


def attention(length: int, causal: bool = False) -> Graph:
    """Return queries, keys and values of one layer."""
    variables = [cg.Var((1, HEADS, length, WIDTH), name=name) for name in "qkv"]
    return [cg.scaled_dot_product_attention(*variables, causal=causal)], variables, drawn(variables)


def encoder(layers: int, features: int, tokens: int = 128) -> Graph:
    """Return blocks of a decoder in which each token attends to all others."""

    def block() -> nn.Layer:
        mixing = nn.Sequential(
            nn.Linear(features, 4 * features), nn.Activation("gelu"), nn.Linear(4 * features, features)
        )
        attention = nn.MultiHeadAttention(features, features // WIDTH)
        return nn.models.DecoderBlock(nn.LayerNorm(features), attention, nn.LayerNorm(features), mixing)

    model = freeze(initialise(nn.Sequential(*(block() for _ in range(layers))), 0))
    x = cg.Var((1, tokens, features), name="x")
    return [model(x)], [x], drawn([x])


class Past:
    """Keys and values as inputs to which new ones are appended, as in exported decoders. Changes: inputs are added."""

    def __init__(self) -> None:
        self.start = cg.Const(np.array([PAST]))
        self.inputs: list[cg.Var] = []

    def append(self, layer: Any, name: str, x: cg.Node, mode: Any) -> cg.Node:
        self.inputs.append(cg.Var((1, HEADS, PAST, WIDTH), name=f"past{len(self.inputs)}"))
        return cg.concat([self.inputs[-1], x], 2)


def decoder() -> nn.models.Decoder:
    return freeze(nn.models.gpt(0, SYMBOLS, PAST + 1, HEADS * WIDTH, HEADS, 8))


def step_with_past() -> Graph:
    """Return one token after a past of 255, which is an input."""
    past, token = Past(), cg.Var((1, 1), "int64", "token")
    scores = decoder()(token, mode=nn.Mode(cache=past))  # type: ignore[arg-type]
    return [scores], [token, *past.inputs], [np.array([[5]]), *drawn(past.inputs)]


def step_in_place(threads: int, **options: Any) -> Run:
    """Return the same with a cache in place."""
    cache, token = nn.Cache(1, PAST + 1), cg.Var((1, 1), "int64", "token")
    mode = nn.Mode(cache=cache)
    scores = decoder()(token, mode=mode)
    for x, past in zip(cache.rows.values(), step_with_past()[2][1:], strict=True):
        x.assign(np.concatenate([past, np.zeros((1, HEADS, 1, WIDTH), "float32")], 2))
    cache.start.assign(np.array([PAST]))
    function = cg.compile([scores], token, updates=mode.updates, threads=threads, **options)
    return lambda: function(np.array([[5]]))


CASES: dict[str, Callable[[], Graph]] = {
    "attention-1024": lambda: attention(1024),
    "attention-4096": lambda: attention(4096),
    "causal-4096": lambda: attention(4096, causal=True),
    "encoder-6x384": lambda: encoder(6, 384),
    "encoder-12x768": lambda: encoder(12, 768),
    "decoder-step": step_with_past,
}

PEERS = {"onnxruntime": onnxruntime_run, "openvino": openvino_run}


def prepare(engine: str, case: str, threads: int) -> Run:
    case, precision = precision_of(case)
    if precision:
        return rounded_run(engine, case, precision, threads)
    if engine == "fused":
        return fused_run(case, threads)
    if engine in PEERS:
        return peer_run(PEERS[engine], case, threads)
    if engine == "bfloat16" and case.startswith(("attention", "causal")):
        raise Absent("no weights")
    options: dict[str, Any] = {"weights_dtype": engine} if engine == "bfloat16" else {}
    if case == "decoder-step":
        return step_in_place(threads, **options)
    outputs, inputs, values = CASES[case]()
    function = cg.compile(outputs, inputs, threads=threads, **options)
    return lambda: function(*values)


def rounded_run(engine: str, case: str, precision: str, threads: int) -> Run:
    """Return a run of a case in bfloat16 or int8."""
    if not case.startswith(("encoder", "decoder")):
        raise Absent("no weights")
    if precision == "int8":
        return int8_run(engine, case, threads)
    if engine == "openvino":
        return peer_run(partial(openvino_run, as_it_comes=True), case, threads)
    if engine != "cgraph":
        raise Absent("it computes in float32 only, or bfloat16 is not its default")
    if case == "decoder-step":
        return step_in_place(threads, precision=precision)
    outputs, inputs, values = CASES[case]()
    function = cg.compile(outputs, inputs, threads=threads, precision=precision)
    return lambda: function(*values)


def int8_run(engine: str, case: str, threads: int) -> Run:
    """Return a run of an encoder that onnxruntime's static quantiser wrote, by any engine that reads the file."""
    if not case.startswith("encoder") or engine not in ("cgraph", *PEERS):
        raise Absent("encoders in cgraph, onnxruntime and openvino alone")
    outputs, inputs, (value,) = CASES[case]()
    path = networks.FOLDER / f"{case}_u8s8.onnx"
    if not path.exists():
        quantised = import_module("benchmarks.quantised")
        networks.FOLDER.mkdir(parents=True, exist_ok=True)
        plain = networks.FOLDER / f"{case}.{os.getpid()}.onnx"
        plain.write_bytes(serialised(outputs, inputs))
        quantised.written(plain, path, quantised.Pictures(value, inputs[0].name), "u8s8")
        plain.unlink()
    if engine != "cgraph":
        return PEERS[engine](str(path), {inputs[0].name: value}, threads)
    function = load(path).compile(threads=threads)
    return lambda: function(value)


def peer_run(peer: Callable[..., Run], case: str, threads: int) -> Run:
    outputs, inputs, values = CASES[case]()
    return peer(serialised(outputs, inputs), {x.name: value for x, value in zip(inputs, values)}, threads)


def fused_run(case: str, threads: int) -> Run:
    """Return attention by onnxruntime's own operator, on queries, keys and values in its layout."""
    from onnx import TensorProto, helper

    kind, _, length = case.partition("-")
    if kind not in ("attention", "causal"):
        raise Absent("attention alone")
    shape = (1, int(length), HEADS * WIDTH)
    values = [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape) for x in ("q", "k", "v", "out")]
    options = {"domain": "com.microsoft", "num_heads": HEADS, "unidirectional": int(kind == "causal")}
    node = helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["out"], **options)
    graph = helper.make_graph([node], "attention", values[:3], values[3:])
    domains = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    _, inputs, given = CASES[case]()
    feeds = {x.name: np.ascontiguousarray(v.swapaxes(1, 2)).reshape(shape) for x, v in zip(inputs, given)}
    model = helper.make_model(graph, opset_imports=domains, ir_version=9).SerializeToString()
    run = onnxruntime_run(model, feeds, threads)
    return lambda: run()[0].reshape(1, -1, HEADS, WIDTH).swapaxes(1, 2)


def print_bytes() -> None:
    """Print the arenas of attention, and of its graph of plain ops."""
    print("| tokens | attention | written out | ratio |\n|---:|---:|---:|---:|")
    for length in (512, 1024, 2048, 4096, 8192):
        (node,), inputs, _ = attention(length)
        ours = cg.compile(node, inputs).nbytes
        written_out = node.op.written_out(*node.operands)  # type: ignore[attr-defined]
        apart = cg.compile(written_out, inputs, passes=False).nbytes
        print(f"| {length:,} | {bytes_text(ours)} | {bytes_text(apart)} | {apart / ours:.0f} |")


def main(words: list[str]) -> None:
    if "bytes" in words:
        print_bytes()
        return
    names = [x for x in CASES if x in words] or list(CASES)
    precisions = [x for x in ROUNDED if x in words]
    names = [f"{name} {x}" for name in names for x in precisions] or names
    engines = [x for x in ENGINES if x in words] or ENGINES
    if "processor" in words:
        print_table("benchmarks.sequences", names, engines, (1,), PROCESSOR)
    else:
        print_table("benchmarks.sequences", names, engines, [n for n in (1, 2) if str(n) in words] or (1, 2))


if __name__ == "__main__":
    main(sys.argv[1:])
