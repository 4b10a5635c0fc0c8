"""What reading may cost is charged before it is spent, whatever makes it."""

import math

import numpy as np
import pytest
from onnx.helper import make_node as node

from cgraph.errors import FormatError
from cgraph.formats.allowance import NBYTES, NBYTES_AT_LEAST, NODE, NODES_AT_LEAST, WORK_AT_LEAST, Allowance
from cgraph.formats.json_text import parse_json
from cgraph.formats.onnx import load
from tests.support.onnx_models import model_of


def test_a_file_may_cost_twice_its_bytes_and_some_more():
    allowance = Allowance(1000)
    allowance.spend("all of it", nbytes=NBYTES_AT_LEAST + NBYTES * 1000)
    with pytest.raises(
        FormatError, match="one byte would take 1 bytes while reading; 0 are left of what a file of 1000 B"
    ):
        allowance.spend("one byte", nbytes=1)
    allowance.grow(1)
    allowance.spend("two for another file's byte", nbytes=2)


def test_bytes_that_are_freed_may_be_taken_again():
    """Work remains charged, and a file that is opened meanwhile adds its share."""
    allowance = Allowance(1000)
    before = allowance.nbytes, allowance.work
    for _ in range(3):
        with allowance.scratch():
            allowance.spend("an array", nbytes=before[0] - 100, work=7)
            with allowance.scratch():
                allowance.spend("another", nbytes=100)
            with pytest.raises(FormatError, match="too much would take 101 bytes"):
                allowance.spend("too much", nbytes=101)
        assert allowance.nbytes == before[0]
    assert allowance.work == before[1] - 21
    with allowance.scratch():
        allowance.grow(50)
        allowance.spend("the rest", nbytes=before[0] + NBYTES * 50)
    assert allowance.nbytes == before[0] + NBYTES * 50


@pytest.mark.parametrize(
    ("kind", "most"),
    [("nbytes", (64 << 20) + 2 * 2560), ("work", (1 << 28) + 64 * 2560), ("nodes", 50_000 + 2560 // 256)],
)
@pytest.mark.parametrize("files", [(2560,), (1024, 512, 1024)])
def test_bytes_work_and_nodes_grow_with_the_files(kind, most, files):
    allowance = Allowance(files[0])
    for nbytes in files[1:]:
        allowance.grow(nbytes)
    with pytest.raises(FormatError, match="what a file of"):
        allowance.spend("too much", **{kind: most + 1})
    allowance.spend("as much as there is", **{kind: most})


@pytest.mark.parametrize("cost", [{"work": WORK_AT_LEAST + 1}, {"nodes": NODES_AT_LEAST + 1}, {"nbytes": math.inf}])
def test_too_much_of_anything_is_refused_and_not_counted(cost):
    allowance = Allowance(0)
    with pytest.raises(FormatError):
        allowance.spend("too much", **cost)
    with pytest.raises(FormatError):
        allowance.spend("no number", nbytes=math.nan)
    allowance.spend("as much as there is", work=WORK_AT_LEAST, nodes=NODES_AT_LEAST)


def test_nodes_take_bytes():
    allowance = Allowance(0)
    allowance.spend("most of the bytes", nbytes=NBYTES_AT_LEAST - 10 * NODE)
    allowance.spend("ten nodes", nodes=10)
    with pytest.raises(FormatError, match="650 bytes"):
        allowance.spend("one more", nodes=1)


@pytest.mark.parametrize(
    "raw", [b"[]", b"1", b"{", b'{"a": 1, "a": 2}', b'{"x": {"a": 1, "a": 2}}', b"\xff{}", b"[" * 99_999]
)
def test_text_that_is_no_object_of_unique_names_is_refused(raw):
    with pytest.raises(FormatError, match="the text"):
        parse_json(raw, Allowance(len(raw)), "the text")


@pytest.mark.parametrize("item", [b'"%06x":{}', b'"%06x":[]', b'"%06x":0'])
def test_small_text_that_becomes_large_objects_is_refused(item):
    raw = b"{" + b",".join(item % i for i in range(500_000)) + b"}"
    with pytest.raises(FormatError, match="the text would take"):
        parse_json(raw, Allowance(len(raw)), "the text")


@pytest.mark.parametrize("shape", [(1200,), (30, 40), (20, 30, 2), (1, 20, 30, 2)])
def test_nonzero_charges_an_index_along_each_axis_before_it_makes_them(shape, monkeypatch):
    charged = []
    spend = Allowance.spend

    def noted(self, what, nbytes=0.0, *others, **more):
        charged.append(nbytes)
        spend(self, what, nbytes, *others, **more)

    monkeypatch.setattr(Allowance, "spend", noted)
    loaded = load(model_of([node("NonZero", ["c"], ["y"])], [], {"c": np.ones(shape, "f4")}))
    (found,) = loaded.compile()()
    assert found.shape == (len(shape), 1200) and max(charged) >= 2 * found.nbytes  # NumPy's own indices, and their copy
