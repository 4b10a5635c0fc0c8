"""Functions with random shapes, axes and arguments beside NumPy's of the same call."""

import zlib

import numpy as np
import pytest

import cgraph as cg
from tests.support.draws import Draws
from tests.support.numpy_pointwise import CALLS
from tests.support.tolerance import assert_close

SEEDS = range(12)
COMPILED = 3  # of these seeds by kernels, too


@pytest.mark.parametrize("name", CALLS)
def test_a_call_means_what_numpy_computes(name):
    mine, theirs = getattr(cg, name), getattr(np, name)
    nodes, wanted, arrays = [], [], []
    for seed in SEEDS:
        given, arguments, *named = CALLS[name](Draws(zlib.crc32(name.encode()), seed))
        options = named[0] if named else {}
        with np.errstate(all="ignore"):
            want = theirs(*given, *arguments, **options)
        operands = [[cg.Const(v) for v in x] if isinstance(x, list) else cg.Const(x) for x in given]
        node = mine(*operands, *arguments, **options)
        several = isinstance(want, list | tuple)
        nodes.append(node if several else [node])
        wanted.append(want if several else [want])
    for count, engine in ((len(nodes), "reference"), (COMPILED, "cpu")):
        arrays = cg.compile([x for some in nodes[:count] for x in some], engine=engine, passes=False)()
        for got, want in zip(arrays, [np.asarray(x) for some in wanted[:count] for x in some], strict=True):
            assert_close(got, want, 10)
