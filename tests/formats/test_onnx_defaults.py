"""Defaults of ONNX attributes in the importers are those of the standard's schemas, and of ONNX Runtime's."""

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import AttributeProto, defs, helper

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "cgraph/formats/onnx/operators").glob("*.py"))


def schema_defaults() -> dict[str, dict[str, list]]:
    """The defaults of each attribute of each operator, of any version."""
    table: dict[str, dict[str, list]] = {}
    for schema in defs.get_all_schemas_with_history():
        for name, attribute in schema.attributes.items():
            known = table.setdefault(schema.name, {}).setdefault(name, [])
            if attribute.default_value.type:
                known.append(helper.get_attribute_value(attribute.default_value))
    return table


def microsofts_defaults() -> dict[str, dict[str, list]]:
    """The same of the operators that ONNX Runtime adds."""
    state = pytest.importorskip("onnxruntime").capi.onnxruntime_pybind11_state
    table: dict[str, dict[str, list]] = {}
    for schema in state.get_all_operator_schema():
        for name, attribute in schema.attributes.items() if schema.domain == "com.microsoft" else ():
            known = table.setdefault(f"com.microsoft.{schema.name}", {}).setdefault(name, [])
            if attribute._default_value:
                known.append(helper.get_attribute_value(AttributeProto.FromString(attribute._default_value)))
    return table


SCHEMAS = schema_defaults() | microsofts_defaults()


def kinds_in(node: ast.AST) -> set[str]:
    """The operators that are named below a node."""
    texts = (x.value for x in ast.walk(node) if isinstance(x, ast.Constant) and isinstance(x.value, str))
    return {text for text in texts if text in SCHEMAS}


def defaults_in(tree: ast.Module) -> Iterator[tuple[set[str], str, object, int]]:
    """Yield operators, an attribute, its default and the line; of a helper the operators of the module."""
    everywhere = kinds_in(tree)
    for function in tree.body:
        decorators = getattr(function, "decorator_list", [])
        own = set().union(*map(kinds_in, decorators))
        if decorators and not own:  # operators that no schema says anything about
            continue
        for x in ast.walk(function):
            is_method = isinstance(x, ast.Call) and isinstance(x.func, ast.Attribute) and x.func.attr == "attribute"
            if is_method and len(x.args) == 2 and all(isinstance(a, ast.Constant) for a in x.args):
                yield own or everywhere, x.args[0].value, x.args[1].value, x.lineno


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_default_is_that_of_the_standard(path):
    for kinds, name, default, line in defaults_in(ast.parse(path.read_text(encoding="utf-8"))):
        known = [x for kind in kinds for x in SCHEMAS[kind].get(name, ())]
        plain = {x.decode() if isinstance(x, bytes) else x for x in known if not isinstance(x, list)}
        is_same = default in plain or (isinstance(default, float) and float(np.float32(default)) in plain)
        assert not plain or is_same, f"{path.name}:{line}: {name} is {plain} for {sorted(kinds)}"


def test_most_defaults_are_looked_at():
    rows = [row for path in FILES for row in defaults_in(ast.parse(path.read_text(encoding="utf-8")))]
    assert len([name for kinds, name, *_ in rows if any(SCHEMAS[kind].get(name) for kind in kinds)]) > 150
