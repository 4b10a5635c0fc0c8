"""Compile an ONNX file: what a saved folder falls back to where its machine code does not fit."""

from cgraph.formats.onnx import load
from cgraph.function import Function, compile


def compile_onnx(path: str, single: bool, threads: int) -> Function:
    """Return the Function of a file's graph; `single` gives one array instead of a list of one."""
    model = load(path)
    return compile(model.outputs[0] if single else model.outputs, model.inputs, threads=threads)
