"""The documentation's site: built without a warning, with an entry for every public name; docstrings as markdown."""

import re
from importlib import import_module

import pytest

pytest.importorskip("mkdocs", reason="mkdocs is not installed")
from docs import site
from tests.support.browser import chromium


@pytest.mark.slow
def test_the_site_has_every_name_and_no_link_that_leads_nowhere(tmp_path):
    folder = tmp_path / "site"
    site.build(folder)
    for name in site.MODULES:
        page = (folder / site.api_file(name).replace(".md", ".html")).read_text()
        wanted = {x for x in site.names_of(import_module(name)) if callable(getattr(import_module(name), x))}
        found = set(re.findall(r'<h2 id="[^"]*">(\w+)</h2>', page))
        assert found == wanted and len(found) > 4, name
    home = (folder / "index.html").read_text()
    pictures = re.findall(r'<img[^>]* src="([^"]+)"', home)
    assert pictures and all((folder / x).exists() for x in pictures)
    assert [x.name for x in tmp_path.iterdir()] == ["site"]


def test_sections_of_a_docstring_are_lists():
    text = """One line, with ``code``.

    Parameters
        x: an array
            of several lines
        y, z: others
    Raises
        ShapeError: it does not fit

    And more.
    """
    assert "\n".join(site.markdown(text)) == (
        "One line, with `code`.\n\n\n**Parameters**\n\n- `x`: an array\n  of several lines\n- `y, z`: others\n\n"
        "**Raises**\n\n- `ShapeError`: it does not fit\n\nAnd more."
    )


def test_calls_are_shown_as_they_are_written():
    assert site.called("accuracy", import_module("nn").metrics.accuracy) == "accuracy()"
    assert site.called("BatchNorm", import_module("nn").BatchNorm).startswith(
        "BatchNorm(channels, eps=1e-05, decay=0.9"
    )
    assert site.called("train", import_module("nn").train).startswith("train(\n    model,\n    data,\n    loss=")


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
