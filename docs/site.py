"""Build the documentation as a site: the pages of this folder, and a page of every public name from its docstring.

    python -m docs.site [FOLDER]        out/site by default; open its index.html

MkDocs (extra `dev`) makes the pages; its strict mode refuses links that lead nowhere.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from pygments.formatters import HtmlFormatter

from docs import reference

DOCS = Path(__file__).parent
TUTORIALS = ("first_ten_minutes", "from_numpy", "deploy", "train", "plan_memory", "strategies")
HOW_TO = ("debugging", "errors", "threads", "containers", "caches", "budgets", "exporting", "jit", "loops", "memory")
HOW_TO += ("recompute", "saved", "weights", "standalone", "nn", "lengths", "sequences", "quantised", "half")
HOW_TO += ("own_kernels", "add_a_kernel", "dist", "cuda")
REFERENCE = ("numpy", "array_api", "ops", "gradients", "formats", "onnx", "command_line", "targets")
CODE_STYLES = {"light": "default", "dark": "github-dark"}
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
SETTINGS = """site_name: cgraph
docs_dir: pages
site_dir: {site}
use_directory_urls: false
theme: {{name: readthedocs, highlightjs: false}}
markdown_extensions: [tables, fenced_code, codehilite: {{guess_lang: false}}]
extra_css: [site.css, code.css]
extra_javascript: [offline_search.js, site.js]
nav:
{nav}
"""


def main() -> None:
    if any(argument.startswith("-") for argument in sys.argv[1:]):
        sys.exit("usage: python -m docs.site [FOLDER]")
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "out/site").resolve())


def build(site: Path) -> None:
    """Write the site in place of the folder's contents."""
    source = site.with_name(site.name + "_source")
    shutil.rmtree(source, ignore_errors=True)
    pages = source / "pages"
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("*.py", "__pycache__", "examples"))
    (pages / "index.md").write_text(front_page())
    for name, text in reference.pages().items():
        (pages / name).write_text(text)
    (pages / "code.css").write_text(code_colours())
    settings = source / "mkdocs.yml"
    settings.write_text(SETTINGS.format(site=site, nav="\n".join(navigation(pages))))
    command = ["mkdocs", "build", "--strict", "--quiet", "--config-file", str(settings)]
    subprocess.run([sys.executable, "-m", *command], check=True)
    shutil.rmtree(source)
    index = (site / "search" / "search_index.json").read_text()
    (site / "search" / "search_index.js").write_text(f"var search_index = {index};\n")


def code_colours() -> str:
    """Colours of code for a light and for a dark page."""
    rules = {scheme: HtmlFormatter(style=style).get_style_defs(".codehilite") for scheme, style in CODE_STYLES.items()}
    return "\n".join(f"@media (prefers-color-scheme: {scheme}) {{\n{text}\n}}" for scheme, text in rules.items())


def front_page() -> str:
    """The README, whose links lead into this folder."""
    text = (DOCS.parent / "README.md").read_text()
    text = re.sub(r"\]\((?:docs/)([^)]+)\)", r"](\1)", text)
    return text.replace('src="docs/', 'src="')


def navigation(pages: Path) -> Iterator[str]:
    """Lines of the site's contents."""
    api = list(reference.pages())
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


if __name__ == "__main__":
    main()
