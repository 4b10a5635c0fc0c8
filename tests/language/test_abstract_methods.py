"""A method that subclasses define: called on its own class, it says that it is missing."""

import ast
import inspect
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]


def abstract_methods():
    """Module, class and method whose body, but for its docstring, is one ``raise NotImplementedError``."""
    for path in sorted(p for name in ("cgraph", "nn") for p in (ROOT / name).rglob("*.py")):
        text = path.read_text()
        if "NotImplementedError" not in text:
            continue
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for kind in (x for x in ast.parse(text).body if isinstance(x, ast.ClassDef)):
            for method in (x for x in kind.body if isinstance(x, ast.FunctionDef)):
                if "NotImplementedError" in ast.unparse(method.body[-1]) and isinstance(method.body[-1], ast.Raise):
                    yield module, kind.name, method.name


ABSTRACT = list(abstract_methods())


def test_there_are_many():
    assert len(ABSTRACT) > 20


@pytest.mark.parametrize(("module", "kind", "name"), ABSTRACT)
def test_a_method_that_its_class_does_not_define_says_so(module, kind, name):
    cls = getattr(import_module(module), kind)
    method = inspect.getattr_static(cls, name)
    function = method.fget if isinstance(method, property) else method
    parameters = list(inspect.signature(function).parameters.values())[1:]
    positional = [None for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
    named = {p.name: None for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty}
    instance = object.__new__(cls)
    if "op" in inspect.signature(cls).parameters:
        object.__setattr__(instance, "op", SimpleNamespace(name="twice"))
    with pytest.raises(NotImplementedError):
        function(instance, *positional, **named)
