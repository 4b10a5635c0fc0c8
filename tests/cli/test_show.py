"""``cgraph show``: a model's graph as text."""

from itertools import combinations

import pytest

import cgraph as cg
from cgraph.cli import main

MODULE = """
import numpy as np
import cgraph as cg

x = cg.Var((4, 4), name="x")

def nodes():
    return [np.exp(x * 1.0 + 0.0)]
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A module with a graph, in the current folder."""
    (tmp_path / "shown_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "shown_module:nodes"


@pytest.mark.parametrize(
    ("options", "passes"), [([], None), (["--after", "drop_identities"], "drop_identities"), (["--trace"], "trace")]
)
def test_what_is_printed_is_the_text_of_the_graph(model, capsys, options, passes):
    import shown_module

    assert main(["show", model, *options]) == 0
    assert capsys.readouterr().out == cg.text(shown_module.nodes(), passes=passes) + "\n"


def test_the_compiled_graph_is_shown_as_it_runs(model, capsys):
    assert main(["show", model, "--compiled"]) == 0
    shown = capsys.readouterr().out
    assert "exp(%0)" in shown and "multiply" not in shown


def test_an_unknown_pass_is_refused_with_those_that_there_are(model, capsys):
    assert main(["show", model, "--after", "nothing"]) == 2
    assert "Use one of tidy_loops" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [*combinations((("--after", "all"), ("--trace",), ("--compiled",)), 2)], ids=str)
def test_only_one_graph_is_shown(model, capsys, flags):
    with pytest.raises(SystemExit) as ended:
        main(["show", model, *flags[0], *flags[1]])
    assert ended.value.code == 2
    assert f"argument {flags[1][0]}: not allowed with argument {flags[0][0]}" in capsys.readouterr().err
