"""Which cases of the library no test varies: conditions that are always true, bounds that are never met.

    python -m benchmarks.variation run FOLDER [options of pytest]
    python -m benchmarks.variation show FOLDER [paths]

`run` runs the quick tests while the modules of `cgraph` and `nn` record, for each place of `CASES`, which cases were
met; each process writes a file into FOLDER. `show` prints the places below the paths at which a case was not met.
A mistake in what a place does in such a case changes no result of a test. Many of these cases cannot happen.

Not recorded: processes that tests start themselves, the compiled search for plans, and what runs before the tests.
"""

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "CGRAPH_VARIATION"  # the environment variable that names the folder of the records
PACKAGES = ("cgraph", "nn")
COMPILED = ("cgraph/memory/search/",)  # Numba compiles these functions
NOT_RUN = ("tests/packaging", "tests/docs", "tests/language", "tests/benchmarks")  # they import in other processes
PREFIX = "VARIATION_"  # of the names that recorded modules call
NUMBERS = (int, float)
PLAIN = (*NUMBERS, str, bytes, tuple, list, dict, set, frozenset, type(None))
CASES = {
    "condition": ("true", "false"),
    "comparison": ("smaller", "equal", "larger"),
    "loop": ("no round", "one round", "several rounds"),
    "default": ("the default", "another value"),
    "index": ("one element", "several elements"),
    "factor": ("1", "another number"),
    "term": ("0", "another number"),
    "choice": ("smaller", "equal", "larger"),
}
"""The kinds of places, and their cases; bit i of what a place has met is case i."""
OPTIONAL = {
    "loop": {"no round", "one round"},
    "index": {"one element"},
    "factor": {"1"},
    "term": {"0"},
    "choice": {"equal"},
}
"""Cases that `show` does not miss."""

sites: list[tuple[str, int, str, str, str]] = []  # file, line, function, kind, text
met: list[int] = []  # a set of cases for each site


def new_site(file: str, line: int, function: str, kind: str, text: str) -> int:
    sites.append((file, line, function, kind, text))
    met.append(0)
    return len(met) - 1


def condition(site: int, value: Any) -> Any:
    """Record the truth of a value where only its truth counts."""
    met[site] |= 1 if value else 2
    return value


def operand(site: int, value: Any) -> Any:
    """Record the truth of an operand of `and` or `or`, whose value may be the result; arrays have no truth."""
    if isinstance(value, PLAIN):
        met[site] |= 1 if value else 2
    else:
        met[site] |= 3
    return value


def order(site: int, left: Any, right: Any) -> None:
    """Record the order of two numbers; of other values, all orders."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        met[site] |= 1 if left < right else 4 if left > right else 2
    else:
        met[site] |= 7


def less(site: int, left: Any, right: Any) -> Any:
    order(site, left, right)
    return left < right


def less_equal(site: int, left: Any, right: Any) -> Any:
    order(site, left, right)
    return left <= right


def greater(site: int, left: Any, right: Any) -> Any:
    order(site, left, right)
    return left > right


def greater_equal(site: int, left: Any, right: Any) -> Any:
    order(site, left, right)
    return left >= right


def choice(site: int, function: Any, left: Any, right: Any) -> Any:
    order(site, left, right)
    return function(left, right)


def loop(site: int, values: Iterable[Any]) -> Iterator[Any]:
    rounds = 0
    try:
        for value in values:
            rounds += 1
            yield value
    finally:
        met[site] |= 1 << min(rounds, 2)


def defaults(first: int, values: Sequence[Any], expected: Sequence[Any]) -> None:
    """Record for each parameter with a default whether it has that value."""
    for i, (value, default) in enumerate(zip(values, expected)):
        is_default = type(value) is type(default) and isinstance(value, PLAIN) and value == default
        met[first + i] |= 1 if is_default else 2


def index(site: int, values: Any) -> Any:
    met[site] |= 1 if hasattr(values, "__len__") and len(values) == 1 else 2
    return values


def part(site: int, value: Any, neutral: int) -> Any:
    """Record whether a factor or a term changes a result."""
    met[site] |= 1 if type(value) in NUMBERS and value == neutral else 2
    return value


RECORDERS = (
    condition, operand, less, less_equal, greater, greater_equal, choice, loop, defaults, index, part,
)  # fmt: skip
COMPARISONS = {ast.Lt: less, ast.LtE: less_equal, ast.Gt: greater, ast.GtE: greater_equal}
NEUTRAL = {ast.Mult: 1, ast.FloorDiv: 1, ast.Div: 1, ast.Add: 0, ast.Sub: 0}


class Instrument(ast.NodeTransformer):
    """Let each place of a module record its cases."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.scope: list[str] = []

    def site(self, node: Any, kind: str, text: str | None = None) -> int:
        return new_site(self.file, node.lineno, ".".join(self.scope), kind, text or ast.unparse(node))

    def call(self, recorder: Any, place: ast.AST, *arguments: Any) -> ast.Call:
        values = [x if isinstance(x, ast.AST) else ast.copy_location(ast.Constant(x), place) for x in arguments]
        name = ast.copy_location(ast.Name(PREFIX + recorder.__name__, ast.Load()), place)
        return ast.copy_location(ast.Call(name, values, []), place)

    def visit_all(self, nodes: Sequence[Any]) -> list[Any]:
        return [self.visit(x) for x in nodes]

    def truth(self, node: Any) -> Any:
        """An expression where only its truth counts: each operand of and, or and not records its own."""
        if isinstance(node, ast.BoolOp):
            node.values = [self.truth(x) for x in node.values]
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self.truth(node.operand)
            return node
        if self.is_constant(node):
            return node
        site = self.site(node, "condition")
        return self.call(condition, node, site, self.visit(node))

    def is_constant(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id == "TYPE_CHECKING")

    def visit_If(self, node: ast.If) -> ast.If:
        node.test = self.truth(node.test)
        node.body, node.orelse = self.visit_all(node.body), self.visit_all(node.orelse)
        return node

    def visit_While(self, node: ast.While) -> ast.While:
        node.test = self.truth(node.test)
        node.body, node.orelse = self.visit_all(node.body), self.visit_all(node.orelse)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.IfExp:
        node.test, node.body, node.orelse = self.truth(node.test), self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.BoolOp:
        node.values = [x if self.is_constant(x) else self.operand(x) for x in node.values]
        return node

    def operand(self, node: ast.expr) -> ast.expr:
        site = self.site(node, "condition")
        return self.call(operand, node, site, self.visit(node))

    def visit_Return(self, node: ast.Return) -> ast.Return:
        if isinstance(node.value, ast.Compare):
            node.value = self.operand(node.value)
            return node
        self.generic_visit(node)
        return node

    def visit_For(self, node: ast.For) -> ast.For:
        node.iter = self.call(loop, node.iter, self.site(node.iter, "loop"), self.visit(node.iter))
        node.body, node.orelse = self.visit_all(node.body), self.visit_all(node.orelse)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        node.iter = self.call(loop, node.iter, self.site(node.iter, "loop"), self.visit(node.iter))
        node.ifs = [self.truth(x) for x in node.ifs]
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        node.guard = node.guard and self.truth(node.guard)
        node.body = self.visit_all(node.body)
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        recorder = COMPARISONS.get(type(node.ops[0])) if len(node.ops) == 1 else None
        if recorder is None:
            self.generic_visit(node)
            return node
        site = self.site(node, "comparison")
        return self.call(recorder, node, site, self.visit(node.left), self.visit(node.comparators[0]))

    def visit_BinOp(self, node: ast.BinOp) -> ast.BinOp:
        if type(node.op) not in NEUTRAL:
            self.generic_visit(node)
            return node
        neutral, text = NEUTRAL[type(node.op)], ast.unparse(node)
        node.right = self.part(node.right, neutral, text)
        commutes = isinstance(node.op, ast.Mult | ast.Add)
        node.left = self.part(node.left, neutral, text) if commutes else self.visit(node.left)
        return node

    def part(self, node: Any, neutral: int, text: str) -> Any:
        if isinstance(node, ast.Constant | ast.List | ast.Tuple | ast.JoinedStr):
            return self.visit(node)
        site = self.site(node, "factor" if neutral else "term", f"{ast.unparse(node)} in {text}")
        return self.call(part, node, site, self.visit(node), neutral)

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        is_end = isinstance(node.ctx, ast.Load) and ast.unparse(node.slice) in ("0", "-1")
        site = self.site(node, "index") if is_end else 0
        self.generic_visit(node)
        if is_end:
            node.value = self.call(index, node.value, site, node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        is_choice = (
            isinstance(node.func, ast.Name)
            and node.func.id in ("min", "max")
            and len(node.args) == 2
            and not node.keywords
            and not any(isinstance(x, ast.Starred) for x in node.args)
        )
        site = self.site(node, "choice") if is_choice else 0
        self.generic_visit(node)
        return self.call(choice, node, site, node.func, *node.args) if is_choice else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Record defaults when the function begins. Decorators, defaults and annotations stay as they are."""
        self.scope.append(node.name)
        arguments = node.args.posonlyargs + node.args.args
        given = [*zip(arguments[::-1], node.args.defaults[::-1]), *zip(node.args.kwonlyargs, node.args.kw_defaults)]
        pairs = [(x, default) for x, default in given if isinstance(default, ast.Constant)]
        node.body = self.visit_all(node.body)
        if pairs:
            first = [self.site(x, "default", f"{x.arg}={ast.unparse(default)}") for x, default in pairs][0]
            names = ast.Tuple([ast.Name(x.arg, ast.Load()) for x, _ in pairs], ast.Load())
            values = ast.Tuple([ast.Constant(default.value) for _, default in pairs], ast.Load())
            node.body.insert(
                ast.get_docstring(node, clean=False) is not None,
                ast.copy_location(ast.Expr(self.call(defaults, node, first, names, values)), node.body[0]),
            )
        self.scope.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self.scope.append(node.name)
        node.body = self.visit_all(node.body)
        self.scope.pop()
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.value = node.value and self.visit(node.value)
        return node


def instrumented(source: str, path: str, file: str) -> CodeType:
    """Return the code of a module whose places record their cases."""
    tree = ast.fix_missing_locations(Instrument(file).visit(ast.parse(source, path)))
    return compile(tree, path, "exec", dont_inherit=True)


class Loader(SourceFileLoader):
    """Loads a module with instrumented code, and stores no byte code."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return instrumented(Path(path).read_text(), path, Path(path).relative_to(ROOT).as_posix())

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update({PREFIX + x.__name__: x for x in RECORDERS})
        super().exec_module(module)


class Finder(MetaPathFinder):
    """Finds modules of the packages in this tree."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname.split(".")[0] in PACKAGES else None
        if spec is None or not spec.origin or not Path(spec.origin).is_relative_to(ROOT):
            return None
        if Path(spec.origin).relative_to(ROOT).as_posix().startswith(COMPILED):
            return None
        spec.loader = Loader(fullname, spec.origin)
        return spec


def pytest_sessionfinish() -> None:
    """Write what this process has met."""
    records = [[*site, cases] for site, cases in zip(sites, met)]
    (Path(os.environ[FOLDER]) / f"{os.getpid()}.json").write_text(json.dumps(records))


def run(folder: Path, options: list[str]) -> int:
    """Run the quick tests with records, in the folder's absolute path. Return pytest's exit status."""
    folder.mkdir(parents=True, exist_ok=True)
    ignored = [f"--ignore={x}" for x in NOT_RUN]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.variation", "-p", "no:cacheprovider", *ignored]
    environment = {**os.environ, FOLDER: str(folder.resolve())}
    return subprocess.run([*command, "-m", "not slow", *(options or ["tests"])], cwd=ROOT, env=environment).returncode


def unmet(folder: Path) -> Iterator[tuple[str, int, str]]:
    """Yield file, line and text of each place at which a case was not met in any process."""
    total: Counter[tuple] = Counter()
    for file in sorted(folder.glob("*.json")):
        for *site, cases in json.loads(file.read_text()):
            total[tuple(site)] |= cases
    for (file, line, function, kind, text), cases in sorted(total.items()):
        missing = {name for i, name in enumerate(CASES[kind]) if not cases >> i & 1} - OPTIONAL.get(kind, set())
        if missing:
            names = ", ".join(x for x in CASES[kind] if x in missing)
            yield file, line, f"{file}:{line} {function}: {kind} {text}: never {names}"


def show(folder: Path, paths: list[str]) -> int:
    """Print the places below the paths, all by default."""
    for file, _, text in unmet(folder):
        if not paths or any(file.startswith(x) for x in paths):
            print(text)
    return 0


def main(action: str, folder: str, *rest: str) -> int:
    return {"run": run, "show": show}[action](Path(folder), list(rest))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
if FOLDER in os.environ and not any(isinstance(x, Finder) for x in sys.meta_path):  # a plugin of pytest
    sys.meta_path.insert(0, Finder())
