"""The documentation's site: built without a warning, with an entry for every public name; docstrings as markdown."""

import re
from importlib import import_module

import pytest

pytest.importorskip("mkdocs", reason="mkdocs is not installed")
from docs import reference, site
from tests.support.browser import chromium


@pytest.mark.slow
def test_the_site_has_every_name_and_no_link_that_leads_nowhere(tmp_path):
    folder = tmp_path / "site"
    site.build(folder)
    files = [name.replace(".md", ".html") for name in reference.pages()]
    for module in reference.MODULES:
        file = reference.page_file(module).removesuffix(".md")
        own = [x for x in files if x == f"{file}.html" or module == "cgraph" and x.startswith(f"{file}_")]
        text = "".join((folder / x).read_text() for x in own)
        headings = set(re.findall(r'<h[23] id="[^"]*">([\w.]+)</h[23]>', text))
        assert set(reference.documented(import_module(module))) <= headings, module
    home = (folder / "index.html").read_text()
    pictures = re.findall(r'<img[^>]* src="([^"]+)"', home)
    assert pictures and all((folder / x).exists() for x in pictures)
    assert [x.name for x in tmp_path.iterdir()] == ["site"]


@pytest.mark.slow
def test_the_search_of_a_site_that_is_opened_as_files_finds_pages(tmp_path):
    site.build(tmp_path / "site")
    with chromium(tmp_path / "profile") as browser:
        browser.set_script_timeout(60)
        browser.get((tmp_path / "site" / "search.html").as_uri() + "?q=oversubscribe")
        wait = "const done = arguments[0], look = () => document.querySelector('#mkdocs-search-results article a')"
        browser.execute_async_script(wait + "? done() : setTimeout(look, 50); look()")
        links = browser.find_elements("css selector", "#mkdocs-search-results article a")
        assert any("/deploy.html" in link.get_attribute("href") for link in links)
        assert [x for x in browser.get_log("browser") if x["level"] == "SEVERE"] == []


def test_the_contents_have_the_tutorials_and_how_tos_in_this_order(tmp_path):
    site.shutil.copytree(site.DOCS, tmp_path / "pages")
    for name in ("index.md", *reference.pages()):
        (tmp_path / "pages" / name).write_text(f"# {name}\n")
    lines = "\n".join(site.navigation(tmp_path / "pages"))
    tutorials = lines[lines.index("- Tutorials") : lines.index("- How-to")]
    assert re.findall(r": (\w+)\.md", tutorials) == [*site.TUTORIALS]
    assert len(re.findall(r"(?m)\.md$", lines)) == len(set(re.findall(r"[\w/-]+\.md$", lines, re.MULTILINE)))
    assert "api_cgraph_numpy.md" in lines[lines.index("- Reference") : lines.index("- Explanation")]
