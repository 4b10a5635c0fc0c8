"""Pages of the site and of a plan have no serious finding of axe: 1,440 and 400 pixels wide, light and dark."""

import pytest

import cgraph as cg
import nn
from tests.support.axe import axe_script, serious_findings, show_as
from tests.support.browser import chromium

pytestmark = pytest.mark.slow
SIZES = [(width, scheme) for width in (1440, 400) for scheme in ("light", "dark")]
PAGES = (
    "index",
    "architecture",
    "numpy",
    "api_cgraph_elementwise",
    "first_ten_minutes",
    "api_cgraph",
    "plan_memory",
    "command_line",
    "search",
)


@pytest.fixture(scope="module")
def script():
    return axe_script()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory, script):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    from docs import site

    folder = tmp_path_factory.mktemp("site") / "site"
    site.build(folder)
    return folder


@pytest.mark.parametrize(("width", "scheme"), SIZES)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_the_site_has_no_serious_finding(browser, folder, script, page, width, scheme):
    show_as(browser, width, scheme)
    browser.get((folder / f"{page}.html").as_uri())
    assert serious_findings(browser, script) == []


@pytest.mark.parametrize(("width", "scheme"), SIZES)
@pytest.mark.parametrize("bands", [None, 1])
def test_the_page_of_a_plan_has_no_serious_finding(browser, script, tmp_path, bands, width, scheme):
    layers = [nn.ConvNorm(8, 8, 3, pad="same") for _ in range(3)]
    model = nn.initialise(nn.Sequential(nn.Input((8, 32, 32)), *layers), 0)
    function = nn.compile(model, bands=bands).function
    path = tmp_path / "page.html"
    path.write_text(cg.page_html(function, "Three convolutions"), encoding="utf-8")
    show_as(browser, width, scheme)
    browser.get(path.as_uri())
    for element in browser.find_elements("css selector", "details"):
        browser.execute_script("arguments[0].open = true", element)
    assert serious_findings(browser, script) == []


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_the_site_has_the_colours_that_the_system_asks_for(browser, folder, scheme, dark):
    show_as(browser, 1440, scheme)
    browser.get((folder / "index.html").as_uri())
    for element in ("body", ".wy-nav-content", ".codehilite", ".wy-menu-vertical li.current"):
        style = f"getComputedStyle(document.querySelector({element!r})).backgroundColor"
        colour = [int(x) for x in browser.execute_script(f"return {style}.match(/\\d+/g)")[:3]]
        assert (max(colour) < 64) == dark, element


def test_the_search_field_is_in_sight_on_a_page_far_down_the_menu(browser, folder):
    show_as(browser, 1440, "light")
    browser.get((folder / "targets.html").as_uri())
    field = browser.find_element("css selector", ".wy-side-nav-search input[type=text]").rect
    assert 0 <= field["y"] < 200
