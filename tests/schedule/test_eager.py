from hypothesis import given

from cgraph.schedule.dag import Dag, peak
from cgraph.schedule.eager import eager
from tests.schedule.dags import dags


@given(dag=dags(most=14))
def test_every_node_runs_once_and_after_its_operands(dag):
    order = eager(dag)
    step = {node: i for i, node in enumerate(order)}
    assert sorted(order) == list(range(len(dag.nbytes)))
    assert all(step[operand] < step[node] for node in order for operand in dag.operands[node])
    assert order == eager(dag)


def training_chain(layers):
    """Forward values, then all gradients down to the first layer, then the small gradients of all weights."""
    nbytes, operands = [100], [()]
    for i in range(layers):
        nbytes.append(100)
        operands.append((i,))
    down = [layers]
    for i in reversed(range(layers)):
        down.append(len(nbytes))
        nbytes.append(100)
        operands.append((down[-2], i))
    for i in range(layers):
        nbytes.append(1)
        operands.append((down[layers - i - 1], i))
    return Dag(tuple(nbytes), tuple(operands), frozenset(range(len(nbytes) - layers, len(nbytes))))


def test_gradients_of_weights_are_computed_as_soon_as_they_can():
    dag = training_chain(20)
    assert peak(dag, range(len(dag.nbytes))) > 3900
    assert peak(dag, eager(dag)) < 2400


def test_a_result_that_stays_is_not_free_though_nobody_reads_it():
    """Node 1 is an output of 50 bytes: run early, it is in use while node 2 needs its 100."""
    operands = ((), (0,), (0,), (2,), (0, 3))
    early = Dag((1, 50, 100, 1, 1), operands, frozenset({1, 4}))
    late = Dag((1, 50, 100, 1, 1), operands, frozenset({4}))
    assert eager(early) == (0, 1, 2, 3, 4)
    assert eager(late)[:2] == (0, 1), "what nobody reads is free"
    lasting = Dag((1, 100, 1, 50), ((), (0,), (1,), (0,)), frozenset({2, 3}))
    assert eager(lasting) == (0, 1, 2, 3), "an output does not run ahead of what frees bytes"
    unread = Dag((1, 100, 1, 50), ((), (0,), (1,), (0,)), frozenset({2}))
    assert eager(unread) == (0, 3, 1, 2)
