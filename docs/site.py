"""Build the documentation as a site: the pages of this folder, and a page of every public name from its docstring.

    python -m docs.site [FOLDER]        out/site by default; open its index.html

MkDocs (extra `dev`) makes the pages; its strict mode refuses links that lead nowhere.
"""

import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import cgraph as cg
import cgraph.view  # pictures are among the functions

DOCS = Path(__file__).parent
MODULES = ("cgraph", "cgraph.array_api", "nn", "nn.losses", "nn.metrics", "nn.optim", "nn.init", "nn.models")
TUTORIALS = ("first_ten_minutes", "from_numpy", "deploy", "nn")
HOW_TO = ("debugging", "errors", "jit", "loops", "memory", "recompute", "strategies", "saved", "weights", "standalone")
HOW_TO += ("lengths", "sequences", "quantised", "half", "own_kernels", "add_a_kernel", "dist", "cuda")
REFERENCE = ("numpy", "array_api", "ops", "gradients", "formats", "onnx", "command_line", "targets")
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
SECTION = re.compile(r"(Parameters|Operands|Result|Returns|Raises|Fields|Source)$")
ITEM = re.compile(r"    ([\w*, …]+): (.*)")
SETTINGS = """site_name: cgraph
docs_dir: pages
site_dir: {site}
use_directory_urls: false
theme: {{name: readthedocs, highlightjs: false}}
markdown_extensions: [tables, fenced_code, codehilite: {{noclasses: true, guess_lang: false}}]
extra_javascript: [offline_search.js]
nav:
{nav}
"""


def main() -> None:
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "out/site").resolve())


def build(site: Path) -> None:
    """Write the site in place of the folder's contents."""
    source = site.with_name(site.name + "_source")
    shutil.rmtree(source, ignore_errors=True)
    pages = source / "pages"
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    (pages / "index.md").write_text(front_page())
    for name in MODULES:
        (pages / api_file(name)).write_text(api_page(import_module(name)))
    settings = source / "mkdocs.yml"
    settings.write_text(SETTINGS.format(site=site, nav="\n".join(navigation(pages))))
    command = ["mkdocs", "build", "--strict", "--quiet", "--config-file", str(settings)]
    subprocess.run([sys.executable, "-m", *command], check=True)
    shutil.rmtree(source)
    index = (site / "search" / "search_index.json").read_text()
    (site / "search" / "search_index.js").write_text(f"var search_index = {index};\n")


def front_page() -> str:
    """The README, whose links lead into this folder."""
    text = (DOCS.parent / "README.md").read_text()
    text = re.sub(r"\]\((?:docs/)([^)]+)\)", r"](\1)", text)
    return text.replace('src="docs/', 'src="')


def navigation(pages: Path) -> Iterator[str]:
    """Lines of the site's contents."""
    api = [api_file(name) for name in MODULES]
    listed = {f"{name}.md" for name in ("index", "contents", *TUTORIALS, *HOW_TO, *REFERENCE)} | set(api)
    yield "  - Home: index.md"
    yield "  - Contents: contents.md"
    yield from entries("Tutorials", [f"{name}.md" for name in TUTORIALS], pages)
    yield from entries("How-to", [f"{name}.md" for name in HOW_TO], pages)
    yield from entries("Reference", [*api, *(f"{name}.md" for name in REFERENCE)], pages)
    yield from entries("Explanation", sorted(x.name for x in pages.glob("*.md") if x.name not in listed), pages)
    yield from entries(
        "Development", sorted(f"development/{x.name}" for x in (pages / "development").glob("*.md")), pages
    )
    yield from entries("Decisions", sorted(f"decisions/{x.name}" for x in (pages / "decisions").glob("*.md")), pages)


def entries(title: str, files: list[str], pages: Path) -> Iterator[str]:
    yield f"  - {title}:"
    for name in files:
        title = TITLE.search((pages / name).read_text())
        label = (title[1] if title else name).replace('"', "'").replace("`", "")
        yield f'    - "{label}": {name}'


def api_stem(module: str) -> str:
    return "api_" + module.replace(".", "_")


def api_file(module: str) -> str:
    return api_stem(module) + ".md"


def api_page(module: ModuleType) -> str:
    """The page of a module: signature and docstring of each public name."""
    names = [(name, getattr(module, name)) for name in sorted(names_of(module), key=str.lower)]
    parts = [part for name, x in names if callable(x) for part in entry(name, x)]
    return "\n".join([f"# {module.__name__}", "", *markdown(inspect.getdoc(module) or ""), "", *parts]) + "\n"


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module: those it lists, else those it defines."""
    listed = getattr(module, "__all__", None)
    own = [name for name, x in vars(module).items() if getattr(x, "__module__", "") == module.__name__]
    return [name for name in (own if listed is None else listed) if not name.startswith("_")]


def entry(name: str, documented: Callable[..., Any]) -> list[str]:
    return [f"## {name}", "", "```python", called(name, documented), "```", "", *markdown(documented.__doc__ or ""), ""]


def called(name: str, function: Callable[..., Any]) -> str:
    """A signature on one line, or with one argument a line if it is long; of a record its fields."""
    if isinstance(function, type) and issubclass(function, cg.Record) and "__init__" not in vars(function):
        defaults = function._defaults
        fields = [f"{x}={defaults[x]!r:.40}" if x in defaults else x for x in function._fields if not x.startswith("_")]
        text = f"{name}({', '.join(fields)})"
    else:
        text = f"{name}{signature(function)}"
    return text if len(text) <= 100 else text.replace("(", "(\n    ", 1).replace(", ", ",\n    ")


def signature(function: Callable[..., Any]) -> str:
    try:
        whole = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    plain = [x.replace(annotation=inspect.Parameter.empty) for x in whole.parameters.values() if x.name != "self"]
    return str(whole.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def markdown(text: str) -> list[str]:
    """Return the lines of a docstring: sections are bold, their entries are items, ``code`` is `code`."""
    lines: list[str] = []
    listed = False
    for line in inspect.cleandoc(text).replace("``", "`").splitlines():
        item = ITEM.fullmatch(line)
        if SECTION.match(line):
            listed = True
            lines += ["", f"**{line}**", ""]
        elif not listed or not line.startswith(" "):
            listed = listed and not line
            lines.append(line)
        elif item:
            lines.append(f"- `{item[1]}`: {item[2]}")
        else:
            lines.append(f"  {line.strip()}" if lines[-1].strip() else line.strip())
    return lines


if __name__ == "__main__":
    main()
