"""Planning problems for tests: random ones, ones that are hard on strategies, and recorded networks."""

import random

from hypothesis import strategies as st

from cgraph.memory.files import read_problem
from cgraph.memory.problem import Problem, problem_of
from tests.support.data import shared

NETWORKS = ("mobilenet_v1", "mobilenet_v2", "deeplab_v3", "inception_v3", "posenet", "blazeface")


@st.composite
def problems(draw: st.DrawFn, most: int = 14, steps: int = 12) -> Problem:
    """A few operands with many equal sizes and steps, so that ties, nesting and empty operands all occur."""
    sizes = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 8, 64, 65, 2**40]), min_size=1, max_size=4))
    rows = draw(
        st.lists(st.tuples(st.sampled_from(sizes), st.integers(0, steps), st.integers(0, steps)), max_size=most)
    )
    alignment = draw(st.sampled_from([1, 4, 64]))
    return problem_of([(size, min(a, b), max(a, b)) for size, a, b in rows], alignment)


def random_problem(seed: int, count: int) -> Problem:
    """Operands of one of several kinds of graph, by the seed: chain, skips, training, dense, few sizes."""
    rng = random.Random(seed)
    kind = seed % 5
    rows = []
    for i in range(count):
        size = rng.choice((1, 2, 3, 8, 13)) if kind == 4 else rng.randint(1, 10_000)
        if kind == 0:
            first, last = i, i + 1
        elif kind == 1:
            first, last = i, i + rng.choice((1, 1, 1, count // 2))
        elif kind == 2:
            first, last = (i, count - i) if 2 * i < count else (i, i + 1)
        else:
            first = rng.randrange(count)
            last = first + rng.randrange(count)
        rows.append((size, first, last))
    return problem_of(rows)


def network(name: str) -> Problem:
    """The usage records of a network, or skip the test."""
    return read_problem(shared(f"planner/records/{name}.csv"))
