"""A mypy plugin: NumPy's functions and operators return a Node if an operand is one.

NumPy's own stubs declare an ndarray there, because a node has an ``__array__``. In a project's settings for mypy:
``plugins = ["cgraph.mypy_plugin"]``. Not covered: functions whose stubs take a list of arrays, such as
``np.concatenate``.
"""

from collections.abc import Callable, Iterable

from mypy.plugin import FunctionContext, MethodContext, Plugin
from mypy.types import Instance, TupleType, Type, UnionType, get_proper_type

NODE = "cgraph.ir.graph.Node"


def plugin(version: str) -> type[Plugin]:
    """Return the plugin's class; mypy calls this with its version."""
    return NodePlugin


class NodePlugin(Plugin):
    """The plugin: mypy calls it for every function and method by full name."""

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        return node_if_any if fullname.startswith("numpy.") else None

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        ufunc_or_operator = fullname.endswith(".__call__") or ".ndarray.__" in fullname
        return node_if_any if fullname.startswith("numpy.") and ufunc_or_operator else None


def node_if_any(context: FunctionContext | MethodContext) -> Type:
    """Return a Node if an operand is or contains one, otherwise the type that NumPy's stubs declare."""
    return first_node(x for types in context.arg_types for x in types) or context.default_return_type


def node_in(kind: Type) -> Instance | None:
    """Return the type Node for one of its classes, or for a list, tuple or union with one."""
    kind = get_proper_type(kind)
    if isinstance(kind, Instance):
        for base in kind.type.mro:
            if base.fullname == NODE:
                return Instance(base, [])
        return first_node(kind.args)
    return first_node(kind.items) if isinstance(kind, TupleType | UnionType) else None


def first_node(parts: Iterable[Type]) -> Instance | None:
    return next(filter(None, map(node_in, parts)), None)
