"""ONNX's messages are loaded without the onnx package, and are the same classes as the package's."""

import subprocess
import sys

import onnx
import pytest

from cgraph.errors import UnavailableError
from cgraph.formats.onnx import onnx_messages as messages_module
from cgraph.formats.onnx.onnx_messages import MODULE, load_messages, messages


@pytest.fixture
def fresh(monkeypatch):
    """A process that has not loaded the messages yet."""
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    messages.cache_clear()
    yield
    messages.cache_clear()


def test_a_file_is_read_without_importing_the_package():
    code = (
        "import sys; from cgraph.formats.onnx.onnx_messages import messages; m = messages().ModelProto(ir_version=7);"
        "assert not sys.modules.keys() & {'onnx', 'importlib.metadata'};"
        "import onnx; assert onnx.ModelProto is type(m)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_messages_of_an_imported_package_are_used(fresh, monkeypatch):
    monkeypatch.setitem(sys.modules, MODULE, onnx)
    assert messages() is onnx


def test_a_module_that_another_thread_is_importing_is_not_used(fresh, monkeypatch):
    module = type(sys)(MODULE)
    monkeypatch.setitem(sys.modules, MODULE, module)
    monkeypatch.setattr(messages_module, "load_messages", lambda: setattr(module, "ModelProto", onnx.ModelProto))
    assert messages().ModelProto is onnx.ModelProto


def test_two_loads_have_compatible_classes(fresh):
    first, second = load_messages(), load_messages()
    model = first.ModelProto(ir_version=7)
    model.graph.CopyFrom(second.GraphProto(name="g"))
    assert model.graph.name == "g"


def test_a_package_without_messages_is_named_as_missing(fresh, monkeypatch):
    monkeypatch.setattr(messages_module, "MODULE", "onnx.nothing")
    with pytest.raises(UnavailableError, match="ONNX files need the package onnx"):
        messages()
