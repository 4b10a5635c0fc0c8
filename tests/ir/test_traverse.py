"""Walks over a graph: their orders against plain recursions, and where nodes come from that are made meanwhile."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.formats import darknet
from cgraph.ir.origin import ORIGIN, keeps_origin
from cgraph.ir.traverse import at_origins, descendants, post_order, post_order_of, users_of
from cgraph.passes import rewrite_graph
from tests.support.injection import Lines, events

CONFIG = "[net]\nheight=4\nwidth=4\n[maxpool]\nsize=2\n[avgpool]\n"


def test_an_exception_at_any_line_of_a_walk_or_a_file_leaves_the_users_line_as_it_was(tmp_path):
    (tmp_path / "net.cfg").write_text(CONFIG)
    x = cg.Var((3, 4))
    roots = (cg.relu(x @ cg.Const([[1.0], [2.0], [3.0], [4.0]], "float32") + 1.0) * 2.0,)
    for act in (lambda: rewrite_graph(roots), lambda: darknet.load(tmp_path / "net.cfg")):
        act()
        for at in range(1, len(events(act)) + 1, 3):
            Lines(at).during(act)
            assert ORIGIN.get() is None


def test_what_is_made_while_nodes_are_looked_at_has_the_line_of_the_present_one():
    x = cg.Var((3,))
    one = x + 1.0
    two = one * 2.0
    three = cg.sin(two)
    nodes = [one, two, three]
    assert len({node.origin.line for node in nodes}) == 3
    made = keeps_origin(lambda: [cg.cos(node) for node in at_origins(iter(nodes))])()
    assert [node.origin for node in made] == [node.origin for node in nodes]
    assert ORIGIN.get() is None


def drawn(seed: int) -> tuple[list[cg.Node], list[cg.Node]]:
    """A graph of sums and products of earlier nodes, some read twice by one node; all nodes, and some of them."""
    rng = np.random.default_rng(seed)
    nodes: list[cg.Node] = [cg.Var((3,), name=f"x{i}") for i in range(4)]
    for i in range(20):
        x, y = (nodes[j] for j in rng.integers(max(len(nodes) - 6, 0), len(nodes), 2))
        nodes.append((x + y if i % 2 else x * y) if i % 5 else cg.sin(x))
    nodes = list(dict.fromkeys(nodes))
    return nodes, [nodes[i] for i in rng.permutation(len(nodes))[:5]]


def walked(node, done: dict, before=None) -> None:
    """A walk by recursion: what a node needs, then the node."""
    if node not in done:
        for x in (*node.operands, *(before or {}).get(node, ())):
            walked(x, done, before)
        done[node] = True


@pytest.mark.parametrize("seed", range(5))
def test_a_walk_has_the_order_of_a_recursion_and_each_node_once(seed):
    _, roots = drawn(seed)
    done: dict = {}
    for root in (*roots, roots[0]):
        walked(root, done)
    assert post_order((*roots, roots[0])) == list(done)
    assert post_order(()) == [] and post_order(iter(roots)) == list(done)


@pytest.mark.parametrize("seed", range(5))
def test_other_nodes_precede_a_node_without_being_its_operands(seed):
    nodes, roots = drawn(seed)
    outside = [cg.cos(nodes[0]), cg.tanh(nodes[1])]
    before = {roots[0]: outside, nodes[2]: [nodes[3]]}
    done: dict = {}
    for root in roots:
        walked(root, done, before)
    assert post_order(roots, before) == list(done)


@pytest.mark.parametrize("seed", range(5))
def test_users_are_in_order_each_once_and_a_node_that_nobody_reads_has_none(seed):
    nodes, roots = drawn(seed)
    order = post_order(roots)
    users = users_of(order)
    assert set(users) == set(order)
    for x in order:
        assert users[x] == [node for node in order if any(x is y for y in node.operands)]
    later = [node for node in order if node.operands]
    assert all(users_of(later)[x] for node in later for x in node.operands), "operands that are not among the nodes"


@pytest.mark.parametrize("seed", range(5))
def test_descendants_are_what_a_walk_from_them_meets(seed):
    nodes, roots = drawn(seed)
    sources = {nodes[1], nodes[9]}
    order = post_order(roots)
    expected = {x for x in order if sources.intersection(post_order((x,)))}
    assert descendants(order, sources) == expected | sources
    assert descendants(order, ()) == set()


@pytest.mark.parametrize("seed", range(5))
def test_a_walk_over_numbers_is_that_over_nodes(seed):
    """Also of roots that an earlier one needs, or that are named twice."""
    nodes, roots = drawn(seed)
    number = {x: i for i, x in enumerate(nodes)}
    operands = [[number[x] for x in node.operands] for node in nodes]
    for some in (roots, [*roots, *roots], nodes, nodes[::-1], []):
        assert post_order_of(operands, [number[x] for x in some]) == tuple(number[x] for x in post_order(some))
