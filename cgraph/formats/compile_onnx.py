"""Compile an ONNX file: what a saved folder falls back to where its machine code does not fit."""

from cgraph.formats.onnx.reader import build_model
from cgraph.formats.onnx.source import open_source
from cgraph.function import Function, compile


def compile_onnx(file: memoryview, single: bool, threads: int) -> Function:
    """Return the Function of the graph that an ONNX file holds; `single` gives one array instead of a list of one."""
    model = build_model(open_source(file, "graph.onnx"), {}, {}, {})
    return compile(model.outputs[0] if single else model.outputs, model.inputs, threads=threads)
