"""Imports go down the layers of pyproject.toml, those that `import_module` makes included.

The package root, `cgraph/__init__.py`, stands above all layers: it loads public names late and fills the slots.
"""

import ast
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LAYERS = next(c["layers"] for c in PYPROJECT["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
LEVELS = {name.strip(): level for level, layer in enumerate(LAYERS) for name in layer.split("|")}


LATE = ("import_module", "LateModule", "LatePass")


def modules() -> dict[str, Path]:
    """The modules of both packages by dotted name, without the root."""
    files = (p for package in ("cgraph", "nn") for p in (ROOT / package).rglob("*.py"))
    names = {".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p for p in files}
    return {name: path for name, path in names.items() if name != "cgraph"}


MODULES = modules()


def late_imports(nodes: list[ast.AST]) -> Iterator[str]:
    """The modules that `LATE` are called with, without the name of a function; of an f-string, all that begin with its
    first part.
    """
    for call in nodes:
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in LATE):
            continue
        argument = call.args[0]
        if isinstance(argument, ast.Constant):
            yield argument.value.partition(":")[0]
        elif isinstance(argument, ast.JoinedStr) and isinstance(argument.values[0], ast.Constant):
            yield from (name for name in MODULES if name.startswith(argument.values[0].value))


def static_imports(nodes: list[ast.AST]) -> Iterator[str]:
    """The modules that import statements load, without those for type checkers alone."""
    checked = [x for x in nodes if isinstance(x, ast.If) and getattr(x.test, "id", "") == "TYPE_CHECKING"]
    skipped = {id(x) for block in checked for x in ast.walk(block)}
    for statement in nodes:
        if id(statement) in skipped:
            continue
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            for alias in statement.names:
                name = f"{statement.module}.{alias.name}"
                yield name if name in MODULES else statement.module


def imports() -> dict[str, set[str]]:
    """What each module loads, at once or late."""
    loads = {}
    for name, path in MODULES.items():
        nodes = list(ast.walk(ast.parse(path.read_text())))
        loads[name] = {x for x in (*static_imports(nodes), *late_imports(nodes)) if x in MODULES}
    return {name: others - {name} for name, others in loads.items()}  # a prefix of names may be its own package's


def level_of(module: str) -> int:
    """The layer of a module, 0 on top."""
    return next(LEVELS[name] for name in sorted(LEVELS, key=len, reverse=True) if f"{module}.".startswith(f"{name}."))


def test_no_circle_of_imports_even_where_import_module_is_followed():
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_import_module_loads_nothing_of_a_higher_layer():
    up = [
        f"{name} loads {loaded}"
        for name, path in MODULES.items()
        if any(word in path.read_text() for word in LATE)  # others need not be parsed
        for loaded in late_imports(list(ast.walk(ast.parse(path.read_text()))))
        if loaded in MODULES and level_of(loaded) < level_of(name)
    ]
    assert not up


def test_only_the_root_names_the_functions_that_fill_slots():
    fillers = [name for name, path in MODULES.items() if "slots.fill(" in path.read_text()]
    assert fillers == []


def test_every_slot_is_filled_with_a_function_that_is_there():
    from cgraph import slots

    declared = {name: slot for name, slot in vars(slots).items() if isinstance(slot, slots.Hook)}
    assert declared
    for name, slot in declared.items():
        module, _, function = slot._place.partition(":")
        tree = ast.parse(MODULES[module].read_text())
        assert function in {x.name for x in tree.body if isinstance(x, ast.FunctionDef)}, name


def test_every_function_that_is_called_late_is_there():
    calls = []
    for path in MODULES.values():
        if "LateModule" not in path.read_text():
            continue
        tree = ast.parse(path.read_text())
        late = {
            x.targets[0].id: x.value.args[0].value
            for x in tree.body
            if isinstance(x, ast.Assign) and isinstance(x.value, ast.Call) and ast.unparse(x.value.func) == "LateModule"
        }
        reads = [x for x in ast.walk(tree) if isinstance(x, ast.Attribute)]
        calls += [(late[x.value.id], x.attr) for x in reads if isinstance(x.value, ast.Name) and x.value.id in late]
        calls += [
            (x.value.args[0].value, x.attr)
            for x in reads
            if isinstance(x.value, ast.Call) and ast.unparse(x.value.func) == "LateModule"
        ]
    assert len(calls) > 30
    for module, function in calls:
        tree = ast.parse(MODULES[module].read_text())
        assert function in {x.name for x in tree.body if isinstance(x, ast.FunctionDef | ast.ClassDef)}, function


def test_every_pass_and_strategy_that_is_called_late_is_there():
    from cgraph.ir.late_pass import LatePass
    from cgraph.lowering import pipeline
    from cgraph.memory.strategies import STRATEGIES
    from cgraph.passes import PASSES

    rows = [*PASSES, *(x for x in vars(pipeline).values() if isinstance(x, LatePass))]
    places = [(row.module, row.__name__) for row in rows]
    places += [(f"cgraph.memory.strategies.{name}", name) for name in STRATEGIES]
    assert all(name == strategy.__name__ for name, strategy in STRATEGIES.items())
    for module, function in places:
        tree = ast.parse(MODULES[module].read_text())
        assert function in {x.name for x in tree.body if isinstance(x, ast.FunctionDef)}, (module, function)
