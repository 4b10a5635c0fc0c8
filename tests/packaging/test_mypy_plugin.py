"""The mypy plugin: which calls it looks at, and the type of a call by the types of its operands."""

from types import SimpleNamespace

import pytest

mypy = pytest.importorskip("mypy.types", reason="the package mypy is not installed")

from mypy.nodes import Block, ClassDef, SymbolTable, TypeInfo  # noqa: E402 - after the check
from mypy.options import Options  # noqa: E402
from mypy.types import AnyType, Instance, NoneType, TupleType, TypeOfAny, UnionType  # noqa: E402

from cgraph.mypy_plugin import NODE, NodePlugin, first_node, node_if_any, node_in, plugin  # noqa: E402


def class_named(fullname, *bases):
    info = TypeInfo(SymbolTable(), ClassDef(fullname.rpartition(".")[2], Block([])), fullname.rpartition(".")[0])
    info._fullname = fullname
    info.mro = [info, *bases]
    return info


OBJECT = class_named("builtins.object")
BASE = class_named(NODE, OBJECT)
NODE_TYPE, VAR = Instance(BASE, []), Instance(class_named("cgraph.ops.leaf.Var", BASE, OBJECT), [])
ARRAY = Instance(class_named("numpy.ndarray", OBJECT), [])
LIST = class_named("builtins.list", OBJECT)
ANY = AnyType(TypeOfAny.explicit)


def test_mypy_gets_the_class_and_it_looks_at_numpy_alone():
    assert plugin("1.0") is NodePlugin
    hooks = NodePlugin(Options())
    assert hooks.get_function_hook("numpy.mean") is node_if_any
    assert hooks.get_function_hook("scipy.numpy.mean") is hooks.get_function_hook("builtins.sum") is None
    for name in ("numpy._core._ufunc.__call__", "numpy.ndarray.__add__", "numpy._typing._ufunc._UFunc.__call__"):
        assert hooks.get_method_hook(name) is node_if_any
    for name in ("numpy.ndarray.sum", "cgraph.ir.graph.Node.__call__", "numpy.random.Generator.normal"):
        assert hooks.get_method_hook(name) is None


def test_a_node_is_found_in_classes_containers_and_unions():
    for kind in (NODE_TYPE, VAR, Instance(LIST, [VAR]), TupleType([ARRAY, VAR], ARRAY), UnionType([ARRAY, NODE_TYPE]),
                 Instance(LIST, [UnionType([NoneType(), VAR])])):  # fmt: skip
        found = node_in(kind)
        assert isinstance(found, Instance) and found.type is BASE and not found.args
    for kind in (
        ARRAY,
        ANY,
        NoneType(),
        Instance(LIST, [ARRAY]),
        TupleType([ARRAY], ARRAY),
        UnionType([ARRAY, NoneType()]),
    ):
        assert node_in(kind) is None
    assert first_node([ARRAY, VAR]).type is BASE and first_node([]) is None


def test_the_type_of_a_call_is_a_node_if_any_operand_is_one():
    def called(*types):
        return node_if_any(SimpleNamespace(arg_types=list(types), default_return_type=ARRAY))

    assert called([ARRAY], [VAR]).type is BASE and called([], [ARRAY, NODE_TYPE]).type is BASE
    assert called([ARRAY], []) is ARRAY and called() is ARRAY
