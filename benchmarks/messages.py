"""Count of the error messages that carry values and a way out.

    python -m benchmarks.messages [--without values|way_out [PATH]]

Counted are the `raise` statements of cgraph and nn that a user can meet: those that raise an exception whose name ends
in ``Error``, except NotImplementedError and AssertionError, and those that raise the result of a function of the
project. A bare `raise` and raising a caught exception are not counted. The text of a message consists of the strings
and f-strings among its arguments. If an argument calls a function of the project with a unique name, that function's
strings count too.

A message has *values* if an f-string of it has a placeholder. It has *a way out* if its text has one of

- an imperative: a verb of `VERBS` at the beginning of the text, of a sentence or of a clause (after ``.``, ``;``,
  ``:``, ``,``, ``(`` or ``or``), except a name that is the subject, as in ``compile takes nodes``;
- an option named with ``=``, as in ``budget=`` or ``recompute=True``, except one that shows a value (``threads={n}``);
- a public name (``cg.x``, ``nn.x``, ``np.x``, ``cgraph.x(``), ``pip install``, or an option of the command line
  that is not at the beginning of the text.

`--without` lists the messages that lack one of the two, with file and line.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PLACEHOLDER = "\0"
NOT_FOR_USERS = ("NotImplementedError", "AssertionError")
VERBS = (
    "add allocate allow apply ask assign await build call cast change check choose close combine compare compile "
    "compute concatenate convert copy correct create cut decrease define delete dequantise divide download drop "
    "enable ensure expand export fetch fill fix fold free freeze give import increase initialise inline insert "
    "install keep leave limit list load lower make map mix move name normalise omit open pad pass pick place provide "
    "put quantise raise read rebuild record reduce remove rename repeat replace requantise reshape restart return "
    "rewrite round run save scale select send set shorten sort specify split start state stop store subtract swap "
    "take train transpose try turn update upgrade use wait wrap write yield"
).split()
SUBJECT = r"(?!\s+(?:is|are|was|has|have|of|takes|makes|gives|needs|reads|returns|runs|gets|got|must|cannot)\b)"
WAYS_OUT = (
    re.compile(rf"(?:^|[.;:,(]\s+(?:or |and |please )?|\bor )(?:{'|'.join(VERBS)})\b{SUBJECT}", re.IGNORECASE),
    re.compile(rf"\b[a-z_]\w*=(?!{PLACEHOLDER})"),
    re.compile(r"\b(?:cg|nn|np)\.\w|\bcgraph(?:\.\w+)+\(|\bpip install\b|.(?<!\w)--[a-z]"),
)


class Message(NamedTuple):
    """One raise statement: its place, its text with placeholders, and whether it has them."""

    path: str
    line: int
    text: str

    @property
    def values(self) -> bool:
        return PLACEHOLDER in self.text

    @property
    def way_out(self) -> bool:
        return any(pattern.search(self.text) for pattern in WAYS_OUT)

    @property
    def package(self) -> str:
        parts = Path(self.path).parts
        return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def messages(root: Path = ROOT) -> list[Message]:
    """Return every message that a user can meet, by file and line."""
    trees = {
        path: ast.parse(path.read_text()) for top in ("cgraph", "nn") for path in sorted((root / top).rglob("*.py"))
    }
    functions = functions_of(trees.values())
    return [
        Message(str(path.relative_to(root)), node.lineno, text)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and (text := text_of(node, functions)) is not None
    ]


def functions_of(trees: Iterable[ast.Module]) -> dict[str, ast.AST]:
    """Return the functions and methods whose names are defined once, by name."""
    by_name = defaultdict(list)
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                by_name[node.name].append(node)
    return {name: nodes[0] for name, nodes in by_name.items() if len(nodes) == 1}


def text_of(node: ast.Raise, functions: dict[str, ast.AST]) -> str | None:
    """Return the message of a raise statement; None if users cannot meet it."""
    error = node.exc
    if not isinstance(error, ast.Call):
        return None
    name = name_of(error)
    if name in functions:
        return strings(functions[name], {}) + strings(error, {})
    if not name.endswith("Error") or name in NOT_FOR_USERS:
        return None
    return strings(error, functions)


def name_of(call: ast.Call) -> str:
    """Return the last part of the called name."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def strings(node: ast.AST, functions: dict[str, ast.AST]) -> str:
    """Return the strings of an expression one after another, with a placeholder for each value."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(x.value) if isinstance(x, ast.Constant) else PLACEHOLDER for x in node.values)
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        body = [x for x in ast.walk(node) if isinstance(x, ast.Return | ast.JoinedStr)]
        return " ".join(strings(x, {}) for x in body)
    text = ""
    if isinstance(node, ast.Call) and name_of(node) in functions:
        text = strings(functions[name_of(node)], {})
    return text + "".join(strings(x, functions) for x in ast.iter_child_nodes(node))


def table(rows: list[Message]) -> Iterator[str]:
    """Yield lines of a table: packages with their numbers of messages, and the shares."""
    yield f"{'package':24} {'messages':>8} {'values':>7} {'way out':>8} {'values':>7} {'way out':>8}"
    groups = defaultdict(list)
    for message in rows:
        groups[message.package].append(message)
    for package, group in [*sorted(groups.items()), ("all", rows)]:
        values, ways, count = sum(x.values for x in group), sum(x.way_out for x in group), len(group)
        yield f"{package:24} {count:8} {values:7} {ways:8} {values / count:7.0%} {ways / count:8.0%}"


def main() -> None:
    rows = messages()
    if "--without" not in sys.argv:
        print("\n".join(table(rows)))
        return
    lacking, *package = sys.argv[sys.argv.index("--without") + 1 :]
    for row in rows:
        if not getattr(row, lacking) and row.path.startswith(package[0] if package else ""):
            print(f"{row.path}:{row.line}: {row.text.replace(PLACEHOLDER, '{}')}")


if __name__ == "__main__":
    main()
