"""What is known of a graph goes along with its outputs; a graph is rebuilt no further than it changes."""

import pytest

import cgraph as cg
from cgraph.ir.roots import Roots, rebuild
from cgraph.ops.elementary import Sin
from cgraph.ops.family import Pointwise
from cgraph.ops.linear import Matmul

X, Y = cg.Var((3, 4), name="x"), cg.Var((3, 4), name="y")


def test_a_node_is_inner_where_one_node_reads_it_and_nobody_sees_it():
    once, twice, shown = cg.sin(X), cg.cos(X), cg.tanh(X)
    roots = Roots((once + twice, twice * twice, cg.exp(shown), shown))
    assert [roots.is_inner(x) for x in (once, twice, shown, roots[0], X)] == [True, False, False, False, False]
    assert roots.readers[once] is roots[0] and roots.readers[twice] is None
    assert roots.users[twice] == [roots[0], roots[1]]


def test_a_node_that_is_read_twice_by_one_node_has_one_reader():
    x = cg.sin(X)
    roots = Roots((x * x,))
    assert roots.is_inner(x) and roots.users[x] == [roots[0]]


def test_kinds_are_found_by_their_parents_too():
    roots = Roots((cg.sin(X) + Y,))
    assert roots.has(Sin) and roots.has(Matmul, Pointwise) and not roots.has(Matmul)


def test_what_does_not_change_comes_back_as_it_is():
    roots = Roots((cg.sin(X) + Y, cg.cos(X)))
    assert rebuild(roots, lambda node, new: None) is roots
    assert Roots.of(roots) is roots


def test_what_does_not_read_a_change_stays_and_what_does_keeps_its_line():
    changed, other = cg.sin(X), cg.cos(X)
    reader = cg.exp(changed)
    found = rebuild((reader, other), lambda node, new: cg.tanh(new[X]) if node is changed else None)
    assert found[0] is cg.exp(cg.tanh(X)) and found[1] is other
    assert found[0].origin == reader.origin


def test_what_takes_the_place_of_a_node_has_its_line():
    first = cg.sin(X)
    second = cg.cos(first)
    third = cg.exp(second)
    kinds = {first: cg.arctan, second: cg.sinh, third: cg.cosh}
    (found,) = rebuild((third,), lambda node, new: kinds[node](new[node.operands[0]]) if node in kinds else None)
    lines = [node.origin for node in (third, second, first)]
    assert len(set(lines)) == 3
    assert [x.origin for x in (found, found.operands[0], found.operands[0].operands[0])] == lines


def test_only_ops_of_the_named_kinds_and_users_of_replacements_are_asked():
    x = cg.Var((3,))
    outputs = cg.exp(cg.sin(x)), cg.cos(x)
    asked = []

    def change(node, new):
        asked.append(node.op.name)
        return cg.tanh(new[node.operands[0]]) if node.op.name == "sin" else None

    rebuild(outputs, change, {type(outputs[0].operands[0].op)})
    assert asked == ["sin", "exp"]


@pytest.mark.parametrize("changed", [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_a_node_of_another_kind_is_rebuilt_whichever_of_its_operands_was_replaced(changed):
    conditions = cg.Var(X.shape, "bool")
    parts = [cg.logical_not(conditions), cg.sin(X), cg.cos(X)]
    node = cg.where(*parts)

    new_parts = {parts[i]: conditions if i == 0 else cg.exp(X) for i in changed}

    def change(node, new):
        return new_parts.get(node)

    (found,) = rebuild((node,), change, {type(x.op) for x in parts})
    assert all(got is new_parts.get(part, part) for got, part in zip(found.operands, parts, strict=True))
