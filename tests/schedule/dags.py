"""Random graphs for tests of schedules."""

import random
from collections.abc import Sequence

from hypothesis import strategies as st

from cgraph.schedule.dag import Dag


@st.composite
def dags(draw: st.DrawFn, most: int = 8, steps: bool = True) -> Dag:
    """Forks, joins, repeated operands, leaves, empty and kept values; workspaces and taken bytes if `steps`."""
    count = draw(st.integers(0, most))
    nbytes = draw(st.lists(st.sampled_from([0, 1, 2, 5, 9]), min_size=count, max_size=count))
    operands = [draw(st.lists(st.integers(0, i - 1), max_size=3)) if i else [] for i in range(count)]
    kept = draw(st.frozensets(st.integers(0, count - 1), max_size=2)) if count else frozenset()
    if not steps or not draw(st.booleans()):
        return Dag(tuple(nbytes), tuple(map(tuple, operands)), kept)
    scratch = draw(st.lists(st.sampled_from([0, 0, 1, 7]), min_size=count, max_size=count))
    takes = [draw(st.sampled_from([(), tuple(xs)])) for xs in operands]
    return Dag(tuple(nbytes), tuple(map(tuple, operands)), kept, tuple(scratch), tuple(takes))


def is_schedule(dag: Dag, order: Sequence[int]) -> bool:
    """Every node runs once, after its operands."""
    step = {node: i for i, node in enumerate(order)}
    return sorted(order) == list(range(len(dag.nbytes))) and all(
        step[operand] < step[node] for node in order for operand in dag.operands[node]
    )


def random_dag(seed: int, count: int) -> Dag:
    """Nodes of up to two earlier operands."""
    rng = random.Random(seed)
    nbytes = tuple(rng.choice((1, 2, 5, 9, 20)) for _ in range(count))
    return Dag(nbytes, tuple(tuple(rng.randrange(i) for _ in range(rng.randint(0, min(i, 2)))) for i in range(count)))
