"""Names in cgraph and nn: a name says what a value is, and a class name stands for one concept."""

import ast
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests.support.wiring import sources

PARTICIPLES = frozenset("found made given seen known wanted kept held taken chosen".split())
TWINS = {
    "an op and the layer of that name": "Add BatchNorm Conv1d Conv2d Conv3d GroupNorm LayerNorm Max Reshape Slice",
    "an op and the initialiser that draws with it": "Uniform",
    "an op and the stream that feeds or drains it": "RowSource RowSink",
    "the tile of each emitter": "Tile",
    "LLVM's word for a part of its text": "Constant Function Instruction Value",
}
MOST_TWINS = 20


def bound(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name that a tree binds, with its line: locals, parameters, fields, functions, classes, imports."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.alias(name=name, asname=other):
                yield node.lineno, other or name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name


def is_participle(name: str) -> bool:
    """Return True for a bare participle, with or without underscores around it."""
    return name.strip("_").lower() in PARTICIPLES


def test_no_name_is_a_bare_participle():
    rows = [
        f"{path}:{line}: {name}"
        for path, tree in sources().items()
        for line, name in bound(tree)
        if is_participle(name)
    ]
    assert not rows, "say what the value is:\n" + "\n".join(rows)


@pytest.mark.parametrize(
    "code",
    [
        "found = 1",
        "for seen in x: pass",
        "x = [1 for made in y]",
        "with x as wanted: pass",
        "if (found := 1): pass",
        "import x as found",
        "self._known = 1",
        "def f(*, given): pass",
        "def f(*held): pass",
        "x = lambda kept: 1",
        "def chosen(): pass",
        "class Made: pass",
        "class A:\n    taken: int",
        "try: pass\nexcept E as seen: pass",
        "match x:\n    case [*kept]: pass",
    ],
)
def test_every_way_to_bind_a_participle_is_refused(code):
    assert [name for _, name in bound(ast.parse(code)) if is_participle(name)]


@pytest.mark.parametrize("code", ["offset = x.found", "founds = 1", "f(given=1)", "has_seen = 1", "found"])
def test_names_that_are_read_or_longer_are_allowed(code):
    assert not [name for _, name in bound(ast.parse(code)) if is_participle(name)]


def test_one_class_name_is_one_concept():
    places = defaultdict(list)
    for path, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path))
    twins = {name: paths for name, paths in places.items() if len(paths) > 1}
    allowed = {name for names in TWINS.values() for name in names.split()}
    assert twins.keys() == allowed, {name: twins.get(name) for name in twins.keys() ^ allowed}
    assert len(allowed) <= MOST_TWINS
