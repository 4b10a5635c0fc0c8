import base64
import hashlib
import json
from html.parser import HTMLParser

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import GraphError
from cgraph.record import replace
from cgraph.view.page import page_html, seconds_of
from cgraph.view.planned import memory_of
from cgraph.view.report import report
from tests.support.planned import planned

HOSTILE = "</script><script>window.attacked=1</script><img src=x onerror='window.attacked=1'>&lt;\"'\u202e"


def example():
    x, count = cg.Var((16, 16), name=HOSTILE), cg.Var((), name="count")
    turned = np.tanh((np.sin(x) + 2.0).T)
    return planned(cg.concat([turned, np.cos(x)], 0), turned, updates={count: count + 1.0})


class Elements(HTMLParser):
    """Tags of a page with their attributes and the text in scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.open = False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs), []))
        self.open = True

    def handle_endtag(self, tag):
        self.open = False

    def handle_data(self, data):
        if self.open:
            self.found[-1][2].append(data)

    def all(self, tag):
        return [(attributes, "".join(text)) for name, attributes, text in self.found if name == tag]


def data_of(page):
    ((_, text),) = [x for x in Elements(page).all("script") if x[0].get("type") == "application/json"]
    return json.loads(text)


def records(table):
    """The rows of a table, as the page's script makes objects of them."""
    return [dict(zip(table["fields"], row)) for row in table["rows"]]


def test_boxes_and_figures_are_those_of_the_plan():
    compiled = example()
    memory, data = memory_of(compiled), data_of(page_html(compiled))
    assert [(row["nbytes"], row["offset"], row["first"], row["last"]) for row in records(data["boxes"])] == [
        (x.nbytes, x.offset, x.first, x.last) for x in memory.boxes
    ]
    assert (data["nbytes"], data["lower_bound"], data["peak"]) == (compiled.nbytes, compiled.lower_bound, memory.peak)
    assert data["in_use"] == memory.in_use.tolist()


def test_items_are_the_nodes_of_the_graph():
    compiled = example()
    data = data_of(page_html(compiled))
    order = list(compiled.layout.views)
    index = {node: i for i, node in enumerate(order)}
    items = records(data["items"])
    assert [row["operands"] for row in items] == [[index[x] for x in node.operands] for node in order]
    assert sum(row["output"] for row in items) == 2
    (edge,) = records(data["updates"])
    assert (items[edge["source"]]["name"], items[edge["target"]]["name"]) == ("add", "count")


def test_names_are_data_and_never_markup():
    page = page_html(example(), HOSTILE)
    elements = Elements(page)
    assert len(elements.all("script")) == 2 and not elements.all("img")
    assert HOSTILE.replace("\u202e", "?") in [row["name"] for row in records(data_of(page)["items"])]
    ((_, title),) = elements.all("title")
    assert title == HOSTILE.replace("\u202e", "?")


def test_the_policy_allows_this_script_and_nothing_else():
    elements = Elements(page_html(example()))
    (policy,) = [x["content"] for x, _ in elements.all("meta") if x.get("http-equiv") == "Content-Security-Policy"]
    (script,) = [text for attributes, text in elements.all("script") if not attributes.get("type")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy


def test_the_page_names_no_address():
    page = page_html(example())
    named = [x[name] for _, x, _ in Elements(page).found for name in ("src", "href", "action", "data") if name in x]
    assert named == ["data:,"]
    assert "://" not in page and "@import" not in page and "innerHTML" not in page


def test_a_deep_graph_of_four_thousand_nodes_is_a_small_file():
    node = cg.Var((64,), name="x")
    for i in range(4000):
        node = np.sin(node) if i % 2 else np.cos(node)
    page = page_html(planned(node))
    assert len(records(data_of(page)["items"])) == 4001
    assert len(page) < 1_500_000


def test_a_function_has_a_page_unless_it_has_no_plan():
    x = cg.Var((4,), name="x")
    assert len(records(data_of(page_html(cg.compile(np.sin(x), [x])))["items"])) == 2
    assert "<title>x</title>" in page_html(cg.compile([x], [x]))
    with pytest.raises(GraphError, match="no memory plan"):
        page_html(cg.compile(np.sin(x), [x], engine="reference"))


def test_times_are_those_of_the_same_steps_in_the_same_order_all_measured():
    compiled = example()
    plain = report(compiled)
    steps = [replace(row, seconds=i / 8) for i, row in enumerate(plain.steps)]
    assert len({row.op for row in steps}) > 1
    assert seconds_of(compiled, replace(plain, steps=tuple(steps))) == [row.seconds for row in steps]
    assert seconds_of(compiled, None) == []
    wrong = [
        steps[::-1], steps[:-1], [*steps, steps[-1]], [*steps[:-1], replace(steps[-1], op="another")],
        [replace(steps[0], op="another"), *steps[1:]], [*steps[:-1], replace(steps[-1], seconds=None)], plain.steps,
    ]  # fmt: skip
    for others in wrong:
        with pytest.raises(GraphError, match="times must be a timed report of the Function that the page shows"):
            seconds_of(compiled, replace(plain, steps=tuple(others)))


def test_a_page_is_titled_by_the_call_or_by_its_first_three_outputs():
    args = [cg.Var((n,), name=f"x{n}") for n in range(1, 5)]
    function = cg.compile([f(x) for f, x in zip((np.sin, np.cos, np.tanh, np.exp), args)], args)
    for title, want in (("", "sin, cos, tanh"), ("a title", "a title")):
        assert [text for _, text in Elements(page_html(function, title)).all("title")] == [want]
