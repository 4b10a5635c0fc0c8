"""A method that subclasses define: called on its class, it says that it is missing. Few others do nothing."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]


DOES_NOTHING = {  # and should
    "CudaInstance.direct_run",
    "CudaInstance.write_to",
    "EmulatedTiles.release",
    "FreeParameters.finish",
    "Mode.on_build",
    "RandomParameters.finish",
    "Record.__post_init__",
    "ReferenceEngine.plan",
    "ReferenceInstance.direct_run",
    "ReferenceInstance.write_to",
    "SilentBar.close",
    "SilentBar.show",
    "SimulatedQueue.captured",
    "SimulatedQueue.follow",
    "SimulatedQueue.wait",
    "StreamedInstance.direct_run",
}


ENDS = re.compile(r'^ {8}(raise NotImplementedError.*|pass|[^ \n].*"""|""")\n(\n|\Z| {0,4}\S)', re.MULTILINE)


def methods():
    """Module, class and tree of the methods of each file in which one ends with its docstring, pass or such an error.

    Those of Protocols and overloads are left out.
    """
    for path in sorted(p for name in ("cgraph", "nn") for p in (ROOT / name).rglob("*.py")):
        module, text = ".".join(path.relative_to(ROOT).with_suffix("").parts), path.read_text()
        if not ENDS.search(text):  # parsing all files would take seconds
            continue
        for kind in (x for x in ast.parse(text).body if isinstance(x, ast.ClassDef)):
            for method in (x for x in kind.body if isinstance(x, ast.FunctionDef)):
                marks = {ast.unparse(x) for x in (*method.decorator_list, *kind.bases)}
                if not marks & {"Protocol", "overload"}:
                    yield module, kind.name, method


def is_docstring(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


METHODS = list(methods())
ABSTRACT = [(m, k, f.name) for m, k, f in METHODS if ast.unparse(f.body[-1]).startswith("raise NotImplementedError")]


def test_methods_that_do_nothing_are_listed():
    """A subclass that does not define one of the others would return None without a word."""
    empty = {f"{k}.{f.name}" for _, k, f in METHODS if all(is_docstring(x) or isinstance(x, ast.Pass) for x in f.body)}
    assert empty == DOES_NOTHING and len(ABSTRACT) > 20


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
