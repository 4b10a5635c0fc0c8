import numpy as np
import pytest

import cgraph as cg
from nn.cache import Cache
from nn.mode import Mode


def test_rows_follow_those_that_are_cached():
    cache, x = Cache(2, 5), cg.Var((2, 1, 2, 3))
    mode = Mode(cache=cache)
    rows = cache.append("layer", "keys", x, mode)
    step = cg.compile(rows, [x], updates=mode.updates | {cache.start: cache.start + 2})
    first = step(np.full((2, 1, 2, 3), 1, np.float32))
    second = step(np.full((2, 1, 2, 3), 2, np.float32))
    assert first[0, 0, :, 0].tolist() == [1, 1, 0, 0, 0] and second[0, 0, :, 0].tolist() == [1, 1, 2, 2, 0]
    cache.forget()
    assert cache.start.value.tolist() == [0, 0]


def test_a_layer_that_occurs_twice_has_rows_for_each_use():
    cache, x = Cache(1, 4), cg.Var((1, 1, 1, 2))
    mode = Mode(cache=cache)
    for _ in range(2):
        cache.append("layer", "keys", x, mode)
    assert len(cache.rows) == 2 and len(mode.updates) == 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_have_the_heads_width_and_dtype_of_the_first_ones(dtype):
    """Keys and values of one layer may differ in all of them."""
    cache, mode = Cache(2, 5), Mode(cache=Cache(2, 5))
    keys, values = cg.Var((2, 3, 1, 4), dtype), cg.Var((2, 2, 1, 6))
    for name, x in (("keys", keys), ("values", values)):
        rows = cache.append("layer", name, x, mode)
        assert rows.shape == (2, x.shape[1], 5, x.shape[3]) and rows.dtype == x.dtype
    assert [(place, x.name, x.dtype, (x.value == 0).all()) for place, x in cache.rows.items()] == [
        (("layer", "keys", 0), "keys", np.dtype(dtype), True), (("layer", "values", 0), "values", np.float32, True),
    ]  # fmt: skip
