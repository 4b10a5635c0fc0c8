"""The page in a real Chromium: it loads alone, searches, selects in both pictures, and shows names as they are."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import GraphError
from cgraph.view.page import page_html
from cgraph.view.planned import memory_of
from tests.support.browser import chromium
from tests.support.planned import planned
from tests.support.tolerance import near
from tests.view.test_page import HOSTILE, example

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def show(browser, tmp_path):
    def show(compiled, title="Page"):
        path = tmp_path / "page.html"
        path.write_text(page_html(compiled, title), encoding="utf-8")
        browser.get(path.as_uri())
        wait_for_frame(browser)
        return browser

    return show


def wait_for_frame(browser):
    script = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
    browser.execute_async_script(script)


def click(browser, canvas, x, y):
    """Click at a place of a canvas, in pixels from its left top."""
    from selenium.webdriver.common.action_chains import ActionChains

    element = browser.find_element("id", canvas)
    size = element.size
    dx, dy = round(x - size["width"] / 2), round(y - size["height"] / 2)
    ActionChains(browser).move_to_element_with_offset(element, dx, dy).click().perform()
    wait_for_frame(browser)


def text(browser, element):
    return browser.find_element("id", element).text


def network():
    """A chain with a fork, so that the peak is in the middle."""
    x = node = cg.Var((64, 64), name="x")
    for i in range(6):
        node = np.sin(node) if i % 2 else np.cos(node)
    wide = cg.concat([node, x, np.exp(node)], 0)
    return planned(np.tanh(cg.sum(wide, axis=0)))


def test_it_loads_alone_and_without_a_complaint(show):
    browser = show(example())
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert browser.get_log("browser") == []


def test_nothing_can_be_fetched_from_the_page(show):
    browser = show(example())
    script = "const done = arguments[0]; fetch('data:,x').then(() => done('fetched'), () => done('refused'))"
    assert browser.execute_async_script(script) == "refused"


def test_names_are_shown_as_they_are(show):
    browser = show(example(), HOSTILE)
    shown = HOSTILE.replace("\u202e", "?")
    assert browser.title == shown
    search = browser.find_element("id", "search")
    search.send_keys("</script>\n")
    assert shown in text(browser, "selected")
    assert browser.execute_script("return window.attacked") is None
    assert not browser.find_elements("tag name", "img")


def test_search_counts_matches_and_goes_through_them(show):
    compiled = network()
    browser = show(compiled)
    search = browser.find_element("id", "search")
    search.send_keys("cos")
    assert text(browser, "matches") == "3 found"
    search.send_keys("\n")
    assert text(browser, "matches") == "1 of 3"
    assert text(browser, "selected").startswith("node (cos) float32[64,64]")
    search.send_keys("\n\n\n")
    assert text(browser, "matches") == "1 of 3"
    search.clear()
    search.send_keys("no such name")
    assert text(browser, "matches") == "0 found"


def test_a_click_on_a_value_selects_its_node_and_the_other_way_round(show):
    compiled = network()
    memory = memory_of(compiled)
    browser = show(compiled)
    place = """
        const page = window.cgraph, b = page.memory.boxes[arguments[0]], view = page.memoryView;
        return [view.toX((b.first + b.last + 1) / 2), view.toY(page.memory.top - b.offset - b.nbytes / 2)];
    """
    click(browser, "memory", *browser.execute_script(place, 0))
    chosen = browser.execute_script("return window.cgraph.selected")
    assert chosen["box"] == 0
    assert browser.execute_script("return window.cgraph.graph.items[arguments[0]].step", chosen["item"]) == 0
    assert f"steps {memory.boxes[0].first}..{memory.boxes[0].last}" in text(browser, "selected")
    place = """
        const page = window.cgraph, i = page.itemOfStep.get(arguments[0]), view = page.graphView;
        page.graph.reveal(view, i);
        return [view.toX(page.graph.items[i].x), view.toY(page.graph.items[i].y)];
    """
    last = len(compiled.layout.steps) - 1
    click(browser, "graph", *browser.execute_script(place, last))
    assert browser.execute_script("return window.cgraph.selected.box") == last
    assert text(browser, "selected").startswith("tanh")


def test_the_slider_starts_at_the_peak_and_tells_what_is_in_use(show):
    compiled = network()
    memory = memory_of(compiled)
    browser = show(compiled)
    assert text(browser, "step-note").startswith(f"step {memory.peak} of {memory.last}:")
    rows = browser.find_elements("css selector", "#alive tr")
    assert [int(row.get_attribute("data-box")) for row in rows] == memory.alive(memory.peak)
    for _ in range(memory.last + 2):
        browser.find_element("id", "next").click()
    assert text(browser, "step-note").startswith(f"step {memory.last} of {memory.last}:")
    browser.find_element("id", "peak").click()
    assert text(browser, "step-note").startswith(f"step {memory.peak} of")


def test_links_lead_along_the_graph(show):
    browser = show(network())
    browser.find_element("id", "search").send_keys("tanh\n")
    (link,) = browser.find_elements("css selector", "#selected .link")
    assert link.text.startswith("sum")
    link.click()
    assert text(browser, "selected").startswith("sum")


def test_zooming_and_fitting_keep_the_picture_in_sight(show):
    browser = show(network())
    whole = browser.execute_script("return [window.cgraph.memoryView.scaleX, window.cgraph.memoryView.x]")
    zoom, _, fit = browser.find_elements("css selector", "#memory-tools button")
    zoom.click()
    wait_for_frame(browser)
    assert browser.execute_script("return window.cgraph.memoryView.scaleX") == near(
        1.5 * whole[0], "float64 through float32"
    )
    fit.click()
    assert browser.execute_script("return [window.cgraph.memoryView.scaleX, window.cgraph.memoryView.x]") == whole


def test_both_pictures_are_drawn(show):
    browser = show(network())
    script = """
        const c = document.getElementById(arguments[0]);
        const colours = new Set(new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer));
        return colours.size;
    """
    for canvas in ("memory", "graph"):
        assert browser.execute_script(script, canvas) > 5


def test_four_thousand_nodes_can_be_searched_and_selected(show):
    browser = show(chain(4000))
    browser.find_element("id", "search").send_keys("sin\n")
    assert text(browser, "matches") == "1 of 2000"
    assert text(browser, "selected").startswith("node (sin) float32[64]")


def constants():
    """A sum with what is made of constants; the packed ones and the views of them are folded."""
    x = cg.Var((8, 8), name="x")
    return planned(cg.broadcast_to(np.arange(8, dtype="float32"), (8, 8)).T + np.sin(x))


def test_constants_are_folded_until_they_are_asked_for(show):
    browser = show(constants())
    hidden = "return window.cgraph.graph.items.filter((item) => item.hidden).map((item) => item.name).sort()"
    names = browser.execute_script(hidden)
    button = browser.find_element("id", "constants")
    assert len(names) >= 1 and "x" not in names and button.text.startswith(str(len(names)))
    at = "const {graph: g, graphView: v} = window.cgraph, i = g.items[arguments[0]]; return [v.toX(i.x), v.toY(i.y)]"
    fold = "return window.cgraph.graph.items.findIndex((item) => item.folded)"
    where = browser.execute_script(fold)
    button.click()
    wait_for_frame(browser)
    assert browser.execute_script(hidden) == [] and button.get_attribute("aria-pressed") == "true"
    click(browser, "graph", *browser.execute_script(at, where))
    assert any(text(browser, "selected").startswith(name) for name in names)
    button.click()
    wait_for_frame(browser)
    assert browser.execute_script(hidden) == names


def test_a_long_graph_has_a_map_that_leads_to_its_end(show):
    node = cg.Var((64,), name="x")
    for i in range(250):
        node = np.cumsum(node) if i % 2 else np.cos(node)
    browser = show(planned(node))
    map_of = "return window.cgraph.graph.map(window.cgraph.graphView)"
    found = browser.execute_script(map_of)
    click(browser, "graph", found["left"] + found["wide"] / 2, found["top"] + found["tall"] - 2)
    seen = "const v = window.cgraph.graphView; return [v.fromY(0), v.fromY(v.height)]"
    last = browser.execute_script("return Math.max(...window.cgraph.graph.items.map((item) => item.y))")
    low, high = browser.execute_script(seen)
    assert low < last < high
    browser.execute_script("window.cgraph.graphView.fit()")
    assert browser.execute_script(map_of) is None


def test_nodes_of_a_layer_are_one_group_whose_name_the_search_finds(show):
    layers = [nn.ConvNorm(8, 8, 3, pad="same") for _ in range(3)]
    stages = [nn.Residual(nn.Sequential(*layers)) for _ in range(2)]
    model = nn.initialise(nn.Sequential(nn.Input((8, 16, 16)), *stages), 0)
    browser = show(nn.compile(model).function.compiled)
    groups = browser.execute_script("return cgraph.graph.groups.map((x) => [x.name, x.count])")
    steps = browser.execute_script("return cgraph.graph.items.filter((x) => x.step >= 0).map((x) => x.name)")
    assert [name for name, _ in groups if name.startswith("parts.")] == ["parts.1", "parts.2"]
    assert all(count == sum(name.startswith(group) for name in steps) for group, count in groups)
    browser.execute_script("cgraph.search('parts.2')")
    assert text(browser, "matches") == f"{sum('parts.2' in name for name in steps)} found"
    shown = "return [['parts.4.conv (stream)', 20], ['parts.4.conv (stream)', 11], ['parts.4 (relu)', 3]]"
    assert browser.execute_script(f"{shown}.map(([name, room]) => fitted(name, room, 1))") == [
        "parts.4.conv",
        "4.conv",
        "",
    ]


def chain(steps):
    node = cg.Var((64,), name="x")
    for i in range(steps):
        node = np.sin(node) if i % 2 else np.cos(node)
    return planned(node)


@pytest.mark.parametrize("graph", [network, lambda: chain(4000)], ids=["small", "large"])
@pytest.mark.parametrize("width", [1440, 400, 320])
@pytest.mark.parametrize("title", ["sin+multiply+add", 9 * "a long name "])
def test_the_page_is_as_wide_as_the_window(show, title, graph, width):
    browser = show(graph(), title)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wait_for_frame(browser)
    try:
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        assert browser.find_element("id", "search").size["width"] > 150
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_legend_tells_every_mark(show):
    browser = show(example())
    legend = browser.find_element("id", "legend")
    marks = legend.find_elements("css selector", "i")
    assert len(marks) == 16 and all(x.is_displayed() and x.size["width"] for x in marks)


def test_the_legend_is_folded_on_a_small_screen(show):
    browser = show(example())
    size = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.refresh()
        assert browser.find_element("id", "legend").get_attribute("open") is None
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize(
    ("colour", "opacity", "ground", "text"),
    [
        ("#ffffff", 1, "#0f172a", "#111827"),
        ("#dede3a", 1, "#0f172a", "#111827"),
        ("#dede3a", 0.3, "#0f172a", "#f8fafc"),
        ("#1e3a5f", 1, "#0f172a", "#f8fafc"),
        ("#000000", 0.2, "#ffffff", "#111827"),
    ],
)
def test_text_is_dark_on_light_colours_and_light_on_dark_ones(show, colour, opacity, ground, text):
    assert show(example()).execute_script("return textOn(...arguments)", colour, opacity, ground) == text


def test_times_of_steps_are_shown_where_they_were_measured(show, browser, tmp_path):
    x = cg.Var((64, 64), name="x")
    function = cg.compile(cg.softmax(np.sin(x) @ np.ones((64, 64), "float32")), [x])
    times = cg.timed_report(function, np.ones((64, 64), "float32"))
    browser.get_log("browser")  # what other tests did
    path = tmp_path / "timed.html"
    path.write_text(page_html(function, "Timed", times), encoding="utf-8")
    browser.get(path.as_uri())
    wait_for_frame(browser)
    rows = browser.find_elements("css selector", "#slowest-rows tr")
    assert len(rows) == len(times.steps)
    browser.find_element("css selector", "#slowest summary").click()
    slowest = max(times.steps, key=lambda row: row.seconds)
    assert rows[0].text.startswith(slowest.op)
    rows[0].click()
    assert f"step {slowest.step} of" in text(browser, "step-note") and "% of the time" in text(browser, "step-note")
    assert "% of the time" in text(browser, "selected")
    assert "time of all steps" in text(browser, "figures").lower()
    assert browser.get_log("browser") == []
    show(planned(np.sin(x)))
    assert not browser.find_element("id", "slowest").is_displayed() and "time" not in text(browser, "step-note")


def test_times_of_another_function_are_refused():
    x = cg.Var((4,), name="x")
    one, other = cg.compile(np.sin(x), [x]), cg.compile(np.cos(x), [x])
    with pytest.raises(GraphError, match="times of cos, but the steps are sin"):
        page_html(one, times=cg.timed_report(other, np.ones(4, "float32")))
    with pytest.raises(GraphError, match="timed report .* times of no step"):
        page_html(one, times=cg.report(one))
