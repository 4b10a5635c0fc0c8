"""A processor is described in `cgraph.kernels.isa` alone: nothing else asks its name or names its instructions."""

import ast
import re
from collections.abc import Iterable, Iterator

import pytest

from cgraph.kernels.isa.architectures import MACHINES, architecture
from tests.support.sources import sources_with

NAMES = {target.name for name in MACHINES for target in architecture(name).targets} | {"gpu"}
INTRINSIC = re.compile(r"llvm\.(x86|aarch64|arm|wasm|riscv)\.")
WORDS = ("startswith", "endswith", "partition", "split", "find", "count")


def is_identity(node: ast.AST) -> bool:
    """The name of a target, or a triple."""
    if not isinstance(node, ast.Attribute):
        return False
    owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
    return node.attr == "triple" or node.attr == "name" and owner.endswith("target")


def questions(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """The lines of comparisons and of methods of text that ask a target's name or a triple."""
    for node in nodes:
        compared = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WORDS:
            compared = [node.func.value]
        if isinstance(node, ast.Match):
            compared = [node.subject]
        yield from (node.lineno for x in compared if is_identity(x))


def texts(nodes: Iterable[ast.AST]) -> Iterator[ast.Constant]:
    yield from (x for x in nodes if isinstance(x, ast.Constant) and isinstance(x.value, str))


def test_nothing_outside_asks_the_name_of_a_target_or_names_an_instruction():
    wrong = []
    for path, tree in sources_with({"triple", "target.name", "llvm.", *NAMES}):
        if path.startswith("cgraph/kernels/isa/"):
            continue
        nodes = list(ast.walk(tree))
        lines = [*questions(nodes)]
        lines += [x.lineno for x in texts(nodes) if x.value in NAMES or INTRINSIC.search(x.value)]
        wrong += [f"{path}:{line}" for line in lines]
    assert not wrong


@pytest.mark.parametrize(
    "line",
    [
        "if k.target.name == 'wide': pass",
        "x = target.name in ('a', 'b')",
        "x = host().triple.startswith('x')",
        "x = 'linux' in module.triple",
        "match target.name:\n    case 'a': pass",
    ],
)
def test_the_search_finds_each_form_of_the_question(line):
    assert [*questions(ast.walk(ast.parse(line)))] == [1]
