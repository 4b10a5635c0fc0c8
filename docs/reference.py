"""The reference pages of the site: public names in groups, each with its signature, docstring and example.

Examples stand in ``docs/examples/MODULE.txt``, as interpreter sessions below a line ``== name``; `tests/docs` runs
them.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import cgraph as cg
import cgraph.view  # pictures are among the functions
from docs.groups import CGRAPH, FORMATS, NN, NUMPY, VIEW, Group

EXAMPLES = Path(__file__).parent / "examples"
MODULES = (
    "cgraph cgraph.numpy cgraph.array_api cgraph.formats cgraph.dist cgraph.view nn nn.losses nn.metrics nn.optim "
    "nn.init "
    "nn.models"
).split()
GROUPS = {"cgraph": CGRAPH, "cgraph.numpy": NUMPY, "cgraph.array_api": NUMPY, "nn": NN}
NUMPY_HEAD = """import cgraph as cg
import cgraph.numpy as np

x = cg.Var((4,), "float64", name="x").assign([3, 1, 4, 2])
A = cg.Var((2, 2), "float64", name="A").assign([[2, 1], [1, 3]])"""
ARRAY_HEAD = """from cgraph import array_api as xp

x = xp.asarray([3.0, 1.0, 4.0, 2.0])
A = xp.asarray([[2.0, 1.0], [1.0, 3.0]])"""
HEADS = {
    "cgraph.numpy": NUMPY_HEAD,
    "cgraph.array_api": ARRAY_HEAD,
    "cgraph.dist": "import numpy as np\nimport cgraph as cg\nfrom cgraph import dist",
}
HEAD = "import numpy as np\nimport cgraph as cg"
NETWORK_HEAD = "import numpy as np\nimport cgraph as cg\nimport nn"
SECTION = re.compile(r"(Parameters|Operands|Result|Returns|Raises|Fields|Source|Examples?)(, .*)?$")
ITEM = re.compile(r"    ([\w*, …]+): (.*)")
EXAMPLE = re.compile(r"^== (\S+)\n(.*?)(?=^== |\Z)", re.DOTALL | re.MULTILINE)
CLASS = re.compile(r"<class '([\w.]+)'>")
DOTTED = re.compile(r"\b((?:[a-z_]\w*\.)+)(?=[A-Za-z_])")  # the module of a type
CONSTANTS = (int, float, complex, str, tuple, dict)


def pages() -> dict[str, str]:
    """The text of every page by its file, in the order of the contents."""
    texts: dict[str, str] = {}
    for name in MODULES:
        module = import_module(name)
        groups = grouped(module)
        if name != "cgraph":
            texts[page_file(name)] = one_page(module, groups)
            continue
        texts[page_file(name)] = overview(module, groups)
        texts |= {page_file(name, group): group_page(name, group, names) for group, names in groups}
    return texts


def page_file(module: str, group: Group | None = None) -> str:
    """The file of a module, or of one group of its names."""
    part = "" if group is None else "_" + re.match(r"\w+", group.title)[0].lower()
    return f"api_{module.replace('.', '_')}{part}.md"


def grouped(module: ModuleType) -> list[tuple[Group, dict[str, Any]]]:
    """The documented names of a module by group; names of no group come last."""
    rest = documented(module)
    groups = []
    for group in GROUPS.get(module.__name__, ()):
        names = {name: rest.pop(name) for name in list(rest) if group.has(name, rest[name])}
        groups += [(group, names)] if names else []
    return [*groups, (Group("Other names"), rest)] if rest else groups


def documented(module: ModuleType) -> dict[str, Any]:
    """The public functions and classes of a module by name, those of its public submodules with a dot."""
    if module.__name__ == "cgraph.formats":
        parts = {name: getattr(module, name) for name in FORMATS}
        return {f"{part}.{name}": getattr(x, name) for part, x in parts.items() for name in x.__all__}
    if module.__name__ == "cgraph.view":
        return {name: getattr(cg, name) for name in VIEW} | {"FunctionReport": cgraph.view.report.FunctionReport}
    names = {name: getattr(module, name) for name in sorted(names_of(module), key=str.lower)}
    if module.__name__ in ("cgraph.numpy", "cgraph.array_api"):
        for part in ("fft", "linalg", "random"):
            inner = getattr(module, part, None)
            listed = ["default_rng"] if part == "random" else getattr(inner, "__all__", dir(inner))
            names |= {f"{part}.{x}": getattr(inner, x) for x in listed if inner and not x.startswith("_")}
    return {name: x for name, x in names.items() if callable(x)}


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module: those it lists, else those it defines."""
    listed = getattr(module, "__all__", None)
    own = [name for name, x in vars(module).items() if getattr(x, "__module__", "") == module.__name__]
    return [name for name in (own if listed is None else listed) if not name.startswith("_")]


# -- pages ------------------------------------------------------------------------------------------------------------


def overview(module: ModuleType, groups: list[tuple[Group, dict[str, Any]]]) -> str:
    """The first page of a module of several pages: its groups and their names as links."""
    lines = [f"# {module.__name__}", "", *markdown(inspect.getdoc(module) or ""), "", *examples_line(module.__name__)]
    lines += ["| group | names |", "|---|---|"]
    for group, names in groups:
        file = page_file(module.__name__, group)
        links = ", ".join(f"[{name}]({file}#{name.lower()})" for name in names)
        lines.append(f"| [{group.title}]({file}) | {links} |")
    return "\n".join([*lines, "", *constants(module)]) + "\n"


def group_page(module: str, group: Group, names: dict[str, Any]) -> str:
    lines = [f"# {module}: {group.title.lower()}", "", group.text, "", *examples_line(module)]
    return "\n".join([*lines, *entries(module, names, "##")]) + "\n"


def one_page(module: ModuleType, groups: list[tuple[Group, dict[str, Any]]]) -> str:
    """The page of a module: its groups one below the other."""
    name = module.__name__
    lines = [f"# {name}", "", *markdown(inspect.getdoc(module) or ""), "", *examples_line(name)]
    for group, names in groups:
        lines += [] if len(groups) == 1 else [f"## {group.title}", "", group.text, ""]
        lines += entries(name, names, "##" if len(groups) == 1 else "###")
    return "\n".join([*lines, *constants(module)]) + "\n"


def examples_line(module: str) -> list[str]:
    text = "Examples start with these lines; numbers are shown with 4 digits (`np.set_printoptions(precision=4)`):"
    return [text, "", "```python", head(module), "```", ""] if examples(module) else []


def head(module: str) -> str:
    """The imports of a module's examples."""
    return HEADS.get(module, NETWORK_HEAD if module.startswith("nn") else HEAD)


def entries(module: str, names: dict[str, Any], level: str) -> list[str]:
    shown = examples(module)
    return [line for name, x in names.items() for line in entry(name, x, shown.get(name, ""), level)]


def entry(name: str, documented: Callable[..., Any], example: str = "", level: str = "##") -> list[str]:
    lines = [f"{level} {name}", "", "```python", called(name, documented), "```", ""]
    lines += [*markdown(documented.__doc__ or ""), ""]
    return [*lines, "```pycon", example.rstrip(), "```", ""] if example else lines


def constants(module: ModuleType) -> list[str]:
    """A section of the public values of a module that are neither functions nor modules."""
    values = {name: getattr(module, name) for name in names_of(module) if not name.startswith("_")}
    plain = {n: x for n, x in values.items() if not callable(x) and isinstance(x, (*CONSTANTS, cg.Record))}
    rows = [f"- `{name}`: `{repr(x) if len(repr(x)) < 200 else type(x).__name__}`" for name, x in plain.items()]
    return ["## Values", "", *rows, ""] if rows else []


def examples(module: str) -> dict[str, str]:
    """The examples of a module by name; pictures have those of `cgraph`."""
    own = dict(EXAMPLE.findall((EXAMPLES / f"{module}.txt").read_text()))
    return {name: x for name, x in examples("cgraph").items() if name in VIEW} | own if module == "cgraph.view" else own


# -- one entry --------------------------------------------------------------------------------------------------------


def called(name: str, function: Callable[..., Any]) -> str:
    """A signature with types, on one line or with one argument a line if it is long; of a record its fields."""
    parameters = [*arguments(function)]
    text = f"{name}({', '.join(parameters)}){result_of(function)}"
    if len(text) <= 100:
        return text
    return "\n".join([f"{name}(", *(f"    {x}," for x in parameters), f"){result_of(function)}"])


def arguments(function: Callable[..., Any]) -> Iterator[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        yield "..."
        return
    starred = False
    for x in parameters:
        if x.kind is x.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or x.kind in (x.KEYWORD_ONLY, x.VAR_POSITIONAL)
        if x.name != "self":
            yield argument(x)


def argument(x: inspect.Parameter) -> str:
    star = {x.VAR_POSITIONAL: "*", x.VAR_KEYWORD: "**"}.get(x.kind, "")
    kind = "" if x.annotation is x.empty else f": {type_text(x.annotation)}"
    default = getattr(x.default, "__qualname__", None) if callable(x.default) else None
    value = "" if x.default is x.empty else f"{' = ' if kind else '='}{default or f'{x.default!r:.60}'}"
    return star + x.name + kind + value


def result_of(function: Callable[..., Any]) -> str:
    if isinstance(function, type):
        return ""
    try:
        kind = inspect.signature(function).return_annotation
    except (TypeError, ValueError):
        return ""
    return "" if kind is inspect.Signature.empty else f" -> {type_text(kind)}"


def type_text(annotation: Any) -> str:
    """A type as it is written in code, without modules."""
    text = annotation.__name__ if type(annotation) is type else str(annotation)
    return DOTTED.sub("", CLASS.sub(r"\1", text))


def markdown(text: str) -> list[str]:
    """Return the lines of a docstring: sections are bold, their entries are items, ``code`` is `code`."""
    lines: list[str] = []
    listed = False
    session = False
    for line in inspect.cleandoc(text).replace("``", "`").splitlines():
        item = ITEM.fullmatch(line)
        if session or line.strip().startswith(">>>"):
            lines += [] if session else ["```pycon"]
            session = bool(line.strip())
            lines.append(line.strip() if session else "```\n")
        elif SECTION.match(line):
            listed = True
            lines += ["", f"**{line}**", ""]
        elif not listed or not line.startswith(" "):
            listed = listed and not line
            lines.append(line)
        elif item:
            lines.append(f"- `{item[1]}`: {item[2]}")
        else:
            lines.append(f"  {line.strip()}" if lines[-1].strip() else line.strip())
    return [*lines, "```"] if session else lines
