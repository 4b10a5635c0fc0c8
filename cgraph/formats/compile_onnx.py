"""Compile an ONNX file: the fallback of a saved folder whose machine code does not fit the processor."""

from collections.abc import Sequence

from cgraph.formats.onnx.reader import build_model
from cgraph.formats.onnx.source import open_source
from cgraph.function import Function, compile
from cgraph.ir.labels import distinct_names


def compile_onnx(file: memoryview, single: bool, threads: int, names: Sequence[str]) -> Function:
    """Return the Function of the graph in an ONNX file.

    Parameters
        single: it returns one array instead of a list of one
        names: of its outputs, if they differ from those in the file
    """
    model = build_model(open_source(file, "graph.onnx"), {}, {}, {})
    labels = names if len(names) == len(model.outputs) else model.names
    outputs = model.outputs[0] if single else dict(zip(distinct_names(labels), model.outputs))
    return compile(outputs, model.inputs, threads=threads)
