"""Names of outputs: each once, and none that another output or input has."""

import pytest

from cgraph.ir.labels import distinct_names


@pytest.mark.parametrize(
    "names, others, expected",
    [
        ((), (), ()),
        (("y", "z"), (), ("y", "z")),
        (("y", "y", "y"), (), ("y", "y_1", "y_2")),
        (("y", "y", "y_1"), (), ("y", "y_2", "y_1")),  # a later output keeps its own name
        (("y_1", "y", "y"), (), ("y_1", "y", "y_2")),
        (("y", "z", "y", "z"), (), ("y", "z", "y_1", "z_1")),  # each name has a count of its own
        (("y", "y"), ("y_1", "y_2"), ("y", "y_3")),
        (("x",), ("x",), ("x",)),  # the first of a name stays, whoever else has it
        (("", ""), (), ("", "_1")),
        (("y", "y_1", "y", "y_1"), (), ("y", "y_1", "y_2", "y_1_1")),
    ],
)
def test_each_name_is_there_once(names, others, expected):
    labels = distinct_names(names, others)
    assert labels == expected
    assert len(set(labels)) == len(names)


def test_names_of_others_may_be_read_once_only():
    assert distinct_names(("y", "y", "y"), iter(["y_1"])) == ("y", "y_2", "y_3")
