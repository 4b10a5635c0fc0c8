"""Compile an ONNX file: the fallback of a saved folder whose machine code does not fit the processor."""

from cgraph.formats.onnx.reader import build_model
from cgraph.formats.onnx.source import open_source
from cgraph.function import Function, compile


def compile_onnx(file: memoryview, single: bool, threads: int) -> Function:
    """Return the Function of the graph in an ONNX file; with `single` it returns one array instead of a list of one."""
    model = build_model(open_source(file, "graph.onnx"), {}, {}, {})
    return compile(model.outputs[0] if single else model.outputs, model.inputs, threads=threads)
