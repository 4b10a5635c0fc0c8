"""Calls between functions of cgraph and nn, as their sources have them: which argument goes to which parameter.

A call is looked at if its callee is known: a function or class of the project under the name that the module imports,
or a method whose name has one signature in the whole project. About 20,000 calls are.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
Function = ast.FunctionDef | ast.AsyncFunctionDef
BUILTIN = {name for kind in (str, bytes, list, dict, set, tuple, int, float, Path) for name in dir(kind)}
BASES = ("Record", "NamedTuple")  # of classes whose parameters are their fields
RENAMES = 4  # modules from which a name may be imported on


class Signature(NamedTuple):
    """The parameters of a function without ``self``, in order, and those with a default."""

    names: tuple[str, ...] = ()
    positional: int = 0
    optional: frozenset[str] = frozenset()


class Module(NamedTuple):
    """A module: its functions and classes, and what its names from other modules of the project mean."""

    path: str
    name: str
    functions: Mapping[str, Function]
    classes: Mapping[str, ast.ClassDef]
    imports: Mapping[str, tuple[str, str]]
    nodes: tuple[ast.AST, ...]


class Site(NamedTuple):
    """A call: where, the function around it, the callee with its signature, the values of parameters by name."""

    path: str
    inside: Function | None
    callee: str
    signature: Signature
    passed: Mapping[str, ast.expr]
    is_open: bool  # arguments are unpacked

    @property
    def place(self) -> str:
        """The file, the function around the call, and the callee."""
        caller = self.inside.name if self.inside is not None else "the module"
        return f"{self.path}: {caller} → {self.callee}"


@cache
def sources() -> dict[Path, ast.Module]:
    """Return the modules of both packages, parsed, by path from the root."""
    paths = [path for top in ("cgraph", "nn") for path in sorted((ROOT / top).rglob("*.py"))]
    return {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


@cache
def modules() -> dict[str, Module]:
    """Return the modules by name."""
    parsed = (module_of(path, tree) for path, tree in sources().items())
    return {module.name: module for module in parsed}


def module_of(path: Path, tree: ast.Module) -> Module:
    nodes = tuple(ast.walk(tree))
    imports = {
        alias.asname or alias.name: (x.module, alias.name)
        for x in nodes
        if isinstance(x, ast.ImportFrom) and x.module
        for alias in x.names
    }
    return Module(
        path.as_posix(),
        ".".join(path.with_suffix("").parts).removesuffix(".__init__"),
        {x.name: x for x in tree.body if isinstance(x, Function)},
        {x.name: x for x in tree.body if isinstance(x, ast.ClassDef)},
        imports,
        nodes,
    )


def signature_of(node: Function, is_method: bool = False) -> Signature:
    """Return the signature of a definition."""
    a = node.args
    positional = [x.arg for x in (*a.posonlyargs, *a.args)]
    optional = {x.arg for x, default in zip(a.kwonlyargs, a.kw_defaults) if default is not None}
    optional.update(positional[len(positional) - len(a.defaults) :])
    is_static = any(isinstance(x, ast.Name) and x.id == "staticmethod" for x in node.decorator_list)
    positional = positional[1:] if is_method and not is_static else positional
    return Signature((*positional, *(x.arg for x in a.kwonlyargs)), len(positional), frozenset(optional))


def fields_of(node: ast.ClassDef) -> list[ast.AnnAssign]:
    """Return the fields of a record."""
    rows = [x for x in node.body if isinstance(x, ast.AnnAssign) and isinstance(x.target, ast.Name)]
    return [x for x in rows if "ClassVar" not in ast.unparse(x.annotation)]


@cache
def class_signature(name: str, module: str) -> Signature | None:
    """Return the parameters of a class: of ``__init__``, or the fields of a record; None if they are not known."""
    node = modules()[module].classes[name]
    for x in node.body:
        if isinstance(x, Function) and x.name == "__init__":
            return signature_of(x, True)
    inherited: Signature | None = Signature() if node.bases else None
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id not in BASES:
            inherited = (resolve(base.id, module) or ("", None))[1]
    if inherited is None:
        return None
    fields = {x.target.id: x.value is not None for x in fields_of(node)}  # type: ignore[union-attr]
    names = tuple(dict.fromkeys((*inherited.names, *fields)))
    return Signature(names, len(names), inherited.optional | {x for x, has_default in fields.items() if has_default})


@cache
def resolve(name: str, module: str) -> tuple[str, Signature] | None:
    """Return the full name and the signature of what a name means in a module; None if the project does not define
    it.
    """
    for _ in range(RENAMES):
        there = modules()[module]
        if name in there.functions:
            return f"{module}.{name}", signature_of(there.functions[name])
        if name in there.classes:
            signature = class_signature(name, module)
            return None if signature is None else (f"{module}.{name}", signature)
        module, name = there.imports.get(name, ("", ""))
        if module not in modules():
            return None
    return None


@cache
def methods() -> dict[str, list[Signature]]:
    """Return the signatures of the methods of each name."""
    table: dict[str, list[Signature]] = defaultdict(list)
    for module in modules().values():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                for x in node.body:
                    if isinstance(x, Function):
                        table[x.name].append(signature_of(x, True))
    return table


@cache
def only_method(name: str) -> tuple[str, Signature] | None:
    """Return the signature of a method's name, if the project has one alone, and Python's classes have none."""
    signatures = set(methods().get(name, ())) if name not in BUILTIN else ()
    return (f".{name}", *signatures) if len(signatures) == 1 else None  # type: ignore[return-value]


def callee_of(call: ast.Call, module: Module) -> tuple[str, Signature] | None:
    """Return what a call calls, if that is known."""
    f = call.func
    if isinstance(f, ast.Name):
        return resolve(f.id, module.name)
    if not isinstance(f, ast.Attribute):
        return None
    source = ".".join(module.imports.get(tail(f.value), ("", ""))) if isinstance(f.value, ast.Name) else ""
    return resolve(f.attr, source) if source in modules() else only_method(f.attr)


def passed_of(call: ast.Call, signature: Signature) -> dict[str, ast.expr]:
    """Return the values that a call gives to parameters; of unpacked arguments nothing."""
    plain = [x for x in call.args if not isinstance(x, ast.Starred)] if not has_star(call) else []
    by_name = {x.arg: x.value for x in call.keywords if x.arg is not None}
    return dict(zip(signature.names[: signature.positional], plain)) | by_name


def has_star(call: ast.Call) -> bool:
    return any(isinstance(x, ast.Starred) for x in call.args)


@cache
def sites() -> tuple[Site, ...]:
    """Return all calls whose callee is known."""
    return tuple(site for module in modules().values() for site in sites_of(module))


def sites_of(module: Module) -> Iterator[Site]:
    waiting: list[tuple[ast.AST, Function | None]] = [(module.nodes[0], None)]
    while waiting:
        node, inside = waiting.pop()
        for x in ast.iter_child_nodes(node):
            if isinstance(x, ast.Call) and (target := callee_of(x, module)):
                is_open = has_star(x) or any(k.arg is None for k in x.keywords)
                yield Site(module.path, inside, *target, passed_of(x, target[1]), is_open)
            waiting.append((x, x if isinstance(x, Function) else inside))


def tail(x: ast.AST) -> str:
    """Return a name, or the last name of an attribute; nothing for other expressions."""
    return x.id if isinstance(x, ast.Name) else x.attr if isinstance(x, ast.Attribute) else ""


# -- mistakes ----------------------------------------------------------------------------------------------------------


def exchanged(site: Site) -> Iterator[str]:
    """Yield pairs of parameters that each get the value that has the other one's name."""
    names = {name: tail(x) for name, x in site.passed.items()}
    for name, other in names.items():
        if name < other and names.get(other) == name:
            yield f"{site.place}: {name}, {other}"


def forgotten(site: Site) -> Iterator[str]:
    """Yield options of the callee that the caller has as a parameter of that name and does not pass on."""
    own = signature_of(site.inside).names if site.inside is not None and not site.is_open else ()
    for name in own:
        if name in site.signature.optional and name not in site.passed and not site.callee.startswith("."):
            yield f"{site.place}: {name}"


def unread_locals(module: Module, function: Function) -> Iterator[str]:
    """Yield the locals that a function sets and does not read."""
    nodes = list(ast.walk(function))
    names = [x for x in nodes if isinstance(x, ast.Name)]
    read = {x.id for x in names if not isinstance(x.ctx, ast.Store)}
    read |= {name for x in nodes if isinstance(x, ast.Global | ast.Nonlocal) for name in x.names}
    for name in sorted({x.id for x in names} - read):
        if not name.startswith("_"):
            yield f"{module.path}: {function.name}: {name}"


def unread_parameters(module: Module, function: Function, values: frozenset[str]) -> Iterator[str]:
    """Yield the parameters that a function does not read, unless it is one of several that are called alike.

    Parameters
        values: names that are used otherwise than to call them
    """
    body = [x for x in function.body if not (isinstance(x, ast.Expr) and isinstance(x.value, ast.Constant))]
    is_empty = not body or isinstance(body[0], ast.Raise | ast.Pass)
    if is_empty or function.name.startswith("__") or function.name in values or len(methods()[function.name]) > 1:
        return
    read = {x.id for x in ast.walk(function) if isinstance(x, ast.Name)}
    others = (x.arg for x in (function.args.vararg, function.args.kwarg) if x is not None)
    for name in (*signature_of(function).names, *others):
        if name not in read | {"self", "cls"} and not name.startswith("_") and "locals" not in read:
            yield f"{module.path}: {function.name}: {name}"


@cache
def values() -> frozenset[str]:
    """Return the names that some module uses otherwise than to call them: functions in tables, callbacks."""
    nodes = [x for module in modules().values() for x in module.nodes]
    called = {id(x.func) for x in nodes if isinstance(x, ast.Call)}
    return frozenset(tail(x) for x in nodes if isinstance(x, ast.Name | ast.Attribute) and id(x) not in called)
