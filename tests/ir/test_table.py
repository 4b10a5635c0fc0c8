"""The table of nodes: one number for equal ops while one exists, dead entries that go, entries that stay."""

import pickle

import cgraph as cg
from cgraph.ir import table
from cgraph.ir.graph import Op
from cgraph.ir.table import LEAST_SWEPT, NodeTable, number_of

X = cg.Var((3, 4), name="x")


class Numbered(Op):
    """An op that no other test has."""

    number: int


def test_an_op_leaves_the_table_of_ops_with_its_last_node():
    number_of(Numbered(-1))
    before = len(table._FIRST)
    for i in range(100):
        first, again = Numbered(i), Numbered(i)
        assert number_of(first) == number_of(again)
        del first, again
    assert len(table._FIRST) == before


def test_equal_ops_have_one_number_as_long_as_one_of_them_is_there():
    first, second = Numbered(1), Numbered(1)
    number = number_of(first)
    assert number_of(second) == number != number_of(Numbered(2))
    del first
    assert number_of(Numbered(1)) == number
    del second
    assert number_of(Numbered(1)) != number


def test_a_number_stays_in_its_process():
    op = Numbered(3)
    assert number_of(op) > 0 and vars(pickle.loads(pickle.dumps(op))) == {"number": 3}


def test_nodes_that_are_gone_leave_the_table_and_others_stay():
    table = NodeTable()
    table.put((0,), X)
    for i in range(3 * LEAST_SWEPT):
        table.put((1, i), cg.Var((1,)))
    assert len(table.entries) <= LEAST_SWEPT and table.entries[(0,)]() is X


def test_a_table_of_nodes_that_stay_grows():
    table, kept = NodeTable(), [cg.Var((1,))] * (2 * LEAST_SWEPT)
    for i, x in enumerate(kept):
        table.put((i,), x)
    assert len(table.entries) == len(kept) < table.most


def test_an_entry_is_replaced_and_does_not_keep_its_value_alive():
    entries, first, second = NodeTable(), cg.Var((1,)), cg.Var((1,))
    entries.put((1, 2), first)
    entries.put((2, 1), X)
    entries.put((1, 2), second)
    assert entries.entries[(1, 2)]() is second and entries.entries[(2, 1)]() is X and len(entries.entries) == 2
    del second
    assert entries.entries[(1, 2)]() is None


def test_ops_of_two_classes_with_equal_fields_have_two_numbers():
    class Other(Op):
        number: int

    assert number_of(Other(1)) != number_of(Numbered(1))


def test_a_table_that_was_emptied_is_not_swept_at_each_entry():
    """Below the least number of entries, dead ones may stay."""
    table = NodeTable()
    for i in range(LEAST_SWEPT + 1):
        table.put((i,), cg.Var((1,)))
    assert len(table.entries) <= 1 and table.most == LEAST_SWEPT
    for i in range(100):
        table.put((1, i), cg.Var((1,)))
    assert len(table.entries) >= 100


def test_after_a_burst_of_nodes_that_are_gone_a_table_is_small_again():
    table, kept = NodeTable(), [cg.Var((1,)) for _ in range(4 * LEAST_SWEPT)]
    for i, x in enumerate(kept):
        table.put((0, i), x)
    del kept, x
    for i in range(12 * LEAST_SWEPT):
        table.put((1, i), cg.Var((1,)))
    assert len(table.entries) <= LEAST_SWEPT + 1
