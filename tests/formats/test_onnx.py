"""The package of ONNX: what it offers, and that its writer is imported late."""

import subprocess
import sys

import pytest

from cgraph.formats import onnx
from cgraph.formats.onnx import writer


def test_functions_of_the_reader_and_the_writer_are_there():
    assert dir(onnx) == onnx.__all__ == ["compile_sizes", "load", "open_shapes", "save", "serialised"]
    assert all(callable(getattr(onnx, name)) for name in onnx.__all__)
    assert onnx.save is writer.save and onnx.serialised is writer.serialised


@pytest.mark.parametrize("name", ["lod", "writers", "__path"])
def test_an_unknown_name_is_refused_with_the_known_ones(name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'. Use one of compile_sizes, load, open_shapes"):
        getattr(onnx, name)


def test_the_writer_is_imported_when_it_is_used():
    script = """
import sys
from cgraph.formats import onnx
assert "cgraph.formats.onnx.writer" not in sys.modules
onnx.serialised
assert "cgraph.formats.onnx.writer" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)
