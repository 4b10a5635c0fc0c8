"""``cgraph run MODEL --input FILE``: run a model or saved function once; show and save its outputs."""

import argparse
import json
from functools import partial
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from cgraph.cli.arguments import add_budget, add_memory, add_threads, whole_number
from cgraph.cli.arrays import read_inputs
from cgraph.cli.model_arguments import add_model, constants_of, is_saved
from cgraph.cli.pictures import add_look, look_of
from cgraph.cli.precision_arguments import add_precision, precision_options
from cgraph.cli.samples import runs_of
from cgraph.cli.stream import add_stream, stream_options
from cgraph.errors import FormatError, bytes_text
from cgraph.formats.npz import write_npz
from cgraph.record import Record
from cgraph.running.runner import Runner
from cgraph.saved.read import load
from cgraph.storage.cell import Variable
from cgraph.system.progress import Bars, with_progress
from cgraph.terminal import say, visible


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "run", help="run a model on pictures or arrays", description="Run a model once and show its outputs."
    )
    add_model(parser)
    parser.add_argument(
        "-i", "--input", action="append", default=[], metavar="[NAME=]FILE", help="a picture, .wav, .npy or .npz file"
    )
    add_look(parser)
    parser.add_argument("--labels", type=Path, metavar="FILE", help="names of the classes, one in a line")
    parser.add_argument("--top", type=whole_number, default=5, metavar="K", help="how many classes to show")
    parser.add_argument(
        "--times",
        type=whole_number,
        default=1,
        metavar="N",
        help="runs; the last one is shown, with their mean time",
    )
    add_threads(parser)
    add_budget(parser)
    add_memory(parser)
    add_stream(parser)
    add_precision(parser)
    parser.add_argument("--trust", action="store_true", help="run a saved function even if others may have written it")
    parser.add_argument("--save", type=Path, metavar="OUT.npz", help="keep the outputs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the model, print a line or a table for each output, and save them if requested."""
    labels = read_labels(args.labels) if args.labels else []
    begin = perf_counter()
    if is_saved(args.model):
        model = saved_model(args)
    else:
        args.shape += import_module("cgraph.cli.open_sizes").sizes_from_inputs(args)
        model = import_module("cgraph.cli.model").model_from(args, invent=False)
    values = read_inputs(args.input, model.inputs, look_of(args), constants_of(args, model.inputs))
    loaded = perf_counter()
    with stream_options(args.stream) as streamed:
        own = tuple(values[x.name] for x in model.inputs)
        samples = partial(runs_of, args, model.inputs, constants_of(args, model.inputs))
        options = streamed | precision_options(args, samples if args.samples else lambda: [own])
        function = model.compiled(memory=args.memory, threads=args.threads, budget=args.budget, **options)
    compiled = perf_counter()
    runs = max(args.times, 1)
    for _ in with_progress("runs", range(runs), Bars()):
        answer = function(*(values[x.name] for x in model.inputs))
    done = perf_counter()
    outputs = answer if isinstance(answer, list) else [answer]
    names = model.names or function.names
    if args.save:
        write_npz(args.save, dict(zip(names, outputs)))
    seconds = {"load": loaded - begin, "compile": compiled - loaded, "run": (done - compiled) / runs}
    facts = facts_of(function, seconds, dict(zip(names, outputs)), labels, args.top)
    precision = function.precision.summary() if function.precision else []
    say(json.dumps(facts, indent=1) if args.json else "\n".join([*precision, *lines_of(facts)]))
    return 0


class SavedModel(Record):
    """A saved function: compiled, without a graph."""

    function: Runner

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return getattr(self.function, "names", ())

    @property
    def inputs(self) -> tuple[Variable, ...]:
        return self.function.inputs

    def compiled(self, **options: Any) -> Runner:
        """Return the function itself, whatever the options."""
        return self.function


def saved_model(args: argparse.Namespace) -> SavedModel:
    """Return a saved function, which is planned and compiled already."""
    lists = (args.shape, args.state, args.maximum)
    values = (args.budget, args.weights, args.stream, args.weights_dtype, args.precision)
    if any(lists) or any(x is not None for x in values) or args.memory != "auto":
        idle = "--budget, --memory, --shape, --weights, --state, --maximum, --stream, --weights-dtype and --precision"
        raise FormatError(f"{args.model} is planned already; {idle} change nothing. Leave them out")
    return SavedModel(load(args.model, threads=args.threads, trust=args.trust))


def read_labels(path: Path) -> list[str]:
    """Read one name per line, or a JSON list of names."""
    try:
        text = path.read_text(encoding="utf-8")
        names = json.loads(text) if path.suffix.lower() == ".json" else text.splitlines()
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: {error}") from None
    if not isinstance(names, list):
        raise FormatError(f"{path} does not hold a list of names. Write one name per line")
    return [str(name) for name in names]


def facts_of(
    function: Runner, seconds: dict[str, float], outputs: dict[str, np.ndarray], labels: list[str], top: int
) -> dict[str, Any]:
    """Return everything that is shown, as numbers and texts."""
    compiled = getattr(function, "compiled", None)
    weights = import_module("cgraph.view.weights").weights_of(function) if compiled else None
    return {
        "seconds": {name: round(s, 6) for name, s in seconds.items()},
        "plan_nbytes": function.nbytes,
        **({"lower_bound_nbytes": compiled.lower_bound} if compiled else {}),
        **({"streamed_nbytes": weights.nbytes, "ring_nbytes": weights.ring} if weights else {}),
        **({"precision": function.precision.facts()} if function.precision else {}),
        "outputs": [output_facts(name, x, labels, top) for name, x in outputs.items()],
    }


def output_facts(name: str, x: np.ndarray, labels: list[str], top: int) -> dict[str, Any]:
    """Describe one output: its range, and the largest scores of a row."""
    facts: dict[str, Any] = {"name": name, "dtype": str(x.dtype), "shape": list(x.shape)}
    if x.size and x.dtype.kind in "biuf":
        facts |= {"least": x.min().item(), "most": x.max().item(), "mean": float(x.mean(dtype=np.float64))}
    row = x.reshape(-1)
    if top > 0 and row.size > 1 and row.size == max(x.shape):
        order = np.argsort(-row.astype(np.float64), kind="stable")[:top].tolist()
        facts["top"] = [
            {"class": i, "label": labels[i] if i < len(labels) else "", "value": row[i].item()} for i in order
        ]
    return facts


def lines_of(facts: dict[str, Any]) -> list[str]:
    """Return the facts as text."""
    seconds = facts["seconds"]
    bound = facts.get("lower_bound_nbytes")
    lines = [
        f"load {seconds['load']:.3f} s, compile {seconds['compile']:.3f} s, run {seconds['run'] * 1e3:.2f} ms; "
        f"arena {bytes_text(facts['plan_nbytes'])}"
        + (f", {facts['plan_nbytes'] / bound:.3f} x lower bound" if bound else "")
    ]
    if "ring_nbytes" in facts:
        lines += [f"{bytes_text(facts['streamed_nbytes'])} read through a ring of {bytes_text(facts['ring_nbytes'])}"]
    for x in facts["outputs"]:
        head = f"{visible(x['name'], '')} {x['dtype']}{x['shape']}"
        lines.append(f"{head} from {x['least']:.6g} to {x['most']:.6g}, mean {x['mean']:.6g}" if "least" in x else head)
        lines += [f"{t['value']:>14.6f}  {t['class']:>6}  {visible(t['label'], '')}".rstrip() for t in x.get("top", [])]
    return lines
