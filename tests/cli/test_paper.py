"""The tables of ``cgraph plan --paper``: rows, the best alpha, and models without images."""

from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.budget.patches.tile_peak import ALPHAS, SLICES
from cgraph.cli.model import CliModel
from cgraph.cli.paper import paper_lines, row
from cgraph.errors import FormatError


def test_patches_save_elements_and_cost_operations():
    before, after = SimpleNamespace(peak=100, work=1000), SimpleNamespace(peak=40, work=1250)
    assert row("0.5", before, after).split() == ["0.5", "60.0", "25.0"]


def test_a_row_has_columns_of_ten_and_one_decimal():
    before, after = SimpleNamespace(peak=300, work=1000), SimpleNamespace(peak=200, work=1001)
    assert row("3h, 3w", before, after) == "3h, 3w            33.3       0.1"
    assert row("0.1", before, SimpleNamespace(peak=330, work=900)) == "0.1              -10.0     -10.0"


def layers():
    """Images that are widest before the pool: of alpha from 0.4 to 0.7 come the same best patches."""
    x = y = cg.Var((1, 3, 32, 32), name="x")
    for width in (8, 8, 4, 16, 16):
        y = cg.max_pool2d(y, 2) if width == 16 and y.shape[1] == 4 else y
        y = cg.relu(cg.conv2d(y, cg.Const(np.ones((width, y.shape[1], 3, 3), "float32")), pad=1))
    return x, cg.mean(y, (2, 3))


def test_both_tables_have_all_their_rows_and_the_second_the_best_alpha():
    x, y = layers()
    lines = paper_lines(CliModel((y,), (x,)))
    assert lines[0].split(" elements")[0].isdigit() and lines[0].endswith(" operations")
    assert lines[1] == "alpha        saving, %  extra, %   2h, 2w"
    first = {line[:12].strip(): list(map(float, line[12:].split())) for line in lines[2 : 2 + len(ALPHAS)]}
    assert list(first) == [f"{alpha:.1f}" for alpha in ALPHAS]
    best = max(first, key=lambda name: (first[name][0], float(name)))
    assert lines[2 + len(ALPHAS)] == f"patches      saving, %  extra, %   alpha {best}"
    second = {line[:12].strip(): list(map(float, line[12:].split())) for line in lines[3 + len(ALPHAS) :]}
    assert list(second) == [f"{h}h, {w}w" for h, w in SLICES]
    assert second["2h, 2w"] == first[best] and first[best][0] > 0
    assert best == "0.7" and first["0.4"] == first["0.7"] != first["0.8"]  # the larger of equal ones


def test_inputs_of_bare_nodes_are_their_open_vars():
    x, y = layers()
    assert paper_lines(CliModel((y,))) == paper_lines(CliModel((y,), (x,)))


def test_a_model_without_images_is_refused():
    with pytest.raises(FormatError) as error:
        paper_lines(CliModel((cg.exp(cg.Var((4, 4))),)))
    assert str(error.value) == "the model has no images to be cut into patches. Give a model with convolutions"
