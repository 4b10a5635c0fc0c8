import numpy as np

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
