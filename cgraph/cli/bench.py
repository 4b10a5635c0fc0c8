"""``cgraph bench MODEL``: time runs of a model, of cgraph only, or also of onnxruntime or openvino in the same
process."""

import argparse
import json
from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np

from cgraph.cli.arguments import add_memory, add_threads
from cgraph.cli.model import CliModel, model_from
from cgraph.cli.model_arguments import add_model, constants_of
from cgraph.cli.pictures import add_look
from cgraph.cli.precision_arguments import add_precision, precision_options
from cgraph.cli.samples import runs_of
from cgraph.engine.cpu.cores import cores
from cgraph.errors import FormatError, UnavailableError, bytes_text
from cgraph.running.difference import difference
from cgraph.system.progress import Bars, with_progress
from cgraph.terminal import say

Run = Callable[[], Any]
OURS = "cgraph"
WARM = 3  # uncounted turns before the first that counts
REST = 0.05  # seconds after which another engine's threads no longer spin while they wait for its next run


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "bench",
        help="time a model with cgraph, and perhaps with another engine",
        description="Time runs of a model on random inputs from a fixed seed. With --against, both engines run by "
        "turns in this process, with as many threads, and their outputs are compared. openvino runs in float32, and as "
        "it comes: in the precision that it selects for this processor.",
    )
    add_model(parser)
    parser.add_argument("--against", choices=tuple(PEERS), help="compare with this engine (for .onnx)")
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="runs that count")
    add_threads(parser)
    add_memory(parser)
    add_precision(parser)
    add_look(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the shortest and the median time, and the ratio."""
    if args.runs < 1:
        raise FormatError(f"--runs is {args.runs}. Give at least 1")
    begin = perf_counter()
    model = model_from(args)
    function = model.compiled(memory=args.memory, threads=args.threads)
    compile_seconds = perf_counter() - begin
    values = random_inputs(model) | constants_of(args, model.inputs)
    arrays = tuple(values[x.name] for x in model.inputs)
    runs: dict[str, Run] = {OURS: lambda: function(*arrays)}
    options = rounding_options(args, model, arrays)
    if options:
        in_bf16 = model.compiled(memory=args.memory, threads=args.threads, **options)
        runs[f"{OURS} bf16"] = lambda: in_bf16(*arrays)
    if args.against:
        runs |= PEERS[args.against](args.model, values, args.threads or cores())
    outputs = {name: as_list(once()) for name, once in runs.items()}
    times = alternate_runs(runs, args.runs)
    assert function.compiled is not None
    facts: dict[str, Any] = {
        "model": args.model,
        "threads": args.threads or cores(),
        "load_and_compile_seconds": compile_seconds,
        "plan_nbytes": function.compiled.nbytes,
        "lower_bound_nbytes": function.compiled.lower_bound,
        "seconds": {name: {"least": min(t), "median": median(t), "runs": len(t)} for name, t in times.items()},
    }
    if options:
        facts["precision"] = in_bf16.precision.facts()
    facts["comparisons"] = {name: comparison(name, outputs, times) for name in runs if name != OURS}
    if args.against:
        facts |= facts["comparisons"][args.against]
    say(json.dumps(facts, indent=1) if args.json else "\n".join(lines_of(facts)))
    return 0


def rounding_options(args: argparse.Namespace, model: CliModel, arrays: tuple[np.ndarray, ...]) -> dict[str, Any]:
    """Return the options of the run with rounded layers, measured on its own inputs unless there are samples; empty
    without.
    """
    samples = partial(runs_of, args, model.inputs, constants_of(args, model.inputs))
    return precision_options(args, samples if args.samples else lambda: [arrays])


def comparison(name: str, outputs: dict[str, list[np.ndarray]], times: dict[str, list[float]]) -> dict[str, float]:
    """Return the speed of our float32 relative to another run, and the largest difference of outputs from it."""
    pairs = zip(outputs[OURS], outputs[name])
    return {
        "speed_ratio": median(times[name]) / median(times[OURS]),
        "largest_difference": max((difference(a, b) for a, b in pairs), default=0.0),
    }


def as_list(outputs: Any) -> list[np.ndarray]:
    return list(outputs) if isinstance(outputs, list | tuple) else [outputs]


def random_inputs(model: CliModel) -> dict[str, np.ndarray]:
    """Return random inputs from a fixed seed: normal floats, small integers."""
    rng = np.random.default_rng(0)
    return {
        x.name: rng.standard_normal(x.shape).astype(x.dtype)
        if x.dtype.kind == "f"
        else rng.integers(0, 2, x.shape).astype(x.dtype)
        for x in model.inputs
    }


def onnxruntime_run(path: str, values: dict[str, np.ndarray], threads: int) -> Run:
    """Return a run of the same file by onnxruntime with `threads` threads."""
    if not path.lower().endswith(".onnx"):
        raise FormatError(f"{path}: only .onnx files can be compared with onnxruntime")
    try:
        import onnxruntime
    except ImportError:
        raise UnavailableError("onnxruntime is not installed: pip install onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, values)


def openvino_run(core: Any, path: str, values: dict[str, np.ndarray], settings: dict[str, Any]) -> Run:
    """Return a run of the same file by an ``openvino.Core`` with its own settings."""
    compiled = core.compile_model(core.read_model(path), "CPU", settings)
    request = compiled.create_infer_request()

    def run() -> list[np.ndarray]:
        request.infer(values, share_inputs=True, share_outputs=True)
        return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]

    return run


def onnxruntime_runs(path: str, values: dict[str, np.ndarray], threads: int) -> dict[str, Run]:
    return {"onnxruntime": onnxruntime_run(path, values, threads)}


def openvino_runs(path: str, values: dict[str, np.ndarray], threads: int) -> dict[str, Run]:
    """Return runs by openvino in float32, and as it comes: with the precision that it selects for the processor.

    Both use one Core. A Core replaces this thread's alternate signal stack and puts the former one back when it is
    freed, so if two are freed in the order of their creation, the next signal that Python handles ends the process.
    """
    if not path.lower().endswith(".onnx"):
        raise FormatError(f"{path}: only .onnx files can be compared with openvino")
    try:
        import openvino
    except ImportError:
        raise UnavailableError("openvino is not installed: pip install openvino") from None
    core, settings = openvino.Core(), {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    return {
        "openvino": openvino_run(core, path, values, {**settings, "INFERENCE_PRECISION_HINT": "f32"}),
        "openvino as it comes": openvino_run(core, path, values, settings),
    }


PEERS: dict[str, Callable[[str, dict[str, np.ndarray], int], dict[str, Run]]] = {
    "onnxruntime": onnxruntime_runs,
    "openvino": openvino_runs,
}
"""Runs of other engines by name; the first has the engine's own name and computes in float32."""


def alternate_runs(runs: dict[str, Run], count: int) -> dict[str, list[float]]:
    """Return the seconds of each run, engines taking turns so that a disturbance affects all.

    Each turn rests first and runs once uncounted: then the threads of the previous engine sleep and its own are awake.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for i in with_progress("turns", range(WARM + count), Bars()):
        for name, once in runs.items():
            sleep(REST if len(runs) > 1 else 0)
            once()
            begin = perf_counter()
            once()
            if i >= WARM:
                seconds[name].append(perf_counter() - begin)
    return seconds


def lines_of(facts: dict[str, Any]) -> list[str]:
    """Return the facts as text."""
    lines = [
        f"{facts['model']}: load and compile {facts['load_and_compile_seconds']:.2f} s, {facts['threads']} threads, "
        f"arena {bytes_text(facts['plan_nbytes'])}"
    ]
    width = max(12, *map(len, facts["seconds"]))
    for name, t in facts["seconds"].items():
        lines.append(
            f"{name:<{width}} least {t['least'] * 1e3:9.3f} ms, median {t['median'] * 1e3:9.3f} ms of {t['runs']}"
        )
    for name, x in facts.get("comparisons", {}).items():
        lines.append(
            f"{x['speed_ratio']:.2f} x the speed of {name}; outputs differ by {x['largest_difference']:.2e} at most"
        )
    return lines
