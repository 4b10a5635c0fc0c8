"""Walks over a graph: where nodes come from that are made meanwhile."""

import cgraph as cg
from cgraph.formats import darknet
from cgraph.ir.origin import ORIGIN
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
