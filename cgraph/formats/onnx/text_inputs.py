"""Inputs of strings that calls split or change: one row of integers for each, of which the graph reads parts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace as replace_model
from math import prod
from typing import Any

from cgraph.formats.model import Model
from cgraph.formats.names import cg
from cgraph.ir.graph import Node
from cgraph.ir.roots import New, rebuild
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import Var
from cgraph.record import Record, replace
from cgraph.running.string_codes import StringCodes
from cgraph.running.text_features import TextFeature, TextInput


class FeatureSlice(Record, eq=False):
    """The integers of a feature Var, or of the codes of an input, in the row of the input."""

    row: Var
    start: int
    stop: int

    def of(self, x: Var) -> Node:
        """Return what the graph reads in place of a Var."""
        return cg.reshape(self.row[self.start : self.stop], x.shape)


def with_text_inputs(model: Model, features: Mapping[Var, tuple[Var, TextFeature]]) -> Model:
    """Return a model in which each input whose strings calls split or change is a row of integers.

    Parameters
        features: the input and the feature of each Var that a call computes
    """
    if not features or model.strings is None:
        return model
    read = set(post_order(list(nodes_of(model))))
    parts, rows, texts = dict[Node, FeatureSlice](), dict[Var, Var](), dict[Any, TextInput]()
    for x in model.inputs:
        own = {f: feature for f, (source, feature) in features.items() if source is x and f in read}
        if not own:
            continue
        codes = x in read
        text = TextInput(x.shape, codes, tuple(own.values()))
        row = rows[x] = Var((text.size,), "int64", x.name)
        texts[row], at = text, 0
        for part in [*([x] if codes else []), *own]:
            parts[part], at = FeatureSlice(row, at, at + prod(part.shape)), at + prod(part.shape)
    return replaced(model, parts, rows, texts)


def nodes_of(model: Model) -> Sequence[Node]:
    """Return all nodes that a call computes."""
    choices = [choice for choices in model.choices.values() for choice in choices]
    counts = [*model.counts.values(), *(choice.counts for choice in choices)]
    arrays = [x for choice in choices for x in (choice.holds, choice.node)]
    return [*model.outputs, *arrays, *(n for by_axis in counts for n in by_axis.values()), *model.checks]


def replaced(
    model: Model, parts: Mapping[Node, FeatureSlice], rows: Mapping[Var, Var], texts: Mapping[Any, TextInput]
) -> Model:
    """Return a model that reads parts of rows in place of Vars."""
    named = {name: x for name, x in model.values.items() if isinstance(x, Node)}
    old = [*nodes_of(model), *named.values()]

    def change(x: Node, new: New) -> Node | None:
        return parts[x].of(x) if x in parts and isinstance(x, Var) else None

    new = New(zip(old, rebuild(tuple(old), change)))
    assert model.strings is not None
    numbers, outputs = model.strings.numbers, model.strings.outputs
    inputs = frozenset(rows.get(x, x) for x in model.strings.inputs)
    return replace_model(
        model,
        inputs=tuple(rows.get(x, x) for x in model.inputs),
        outputs=tuple(new[x] for x in model.outputs),
        values=model.values | {name: new[x] for name, x in named.items()},
        counts={i: renamed(counts, new) for i, counts in model.counts.items()},
        checks={new[x]: text for x, text in model.checks.items()},
        choices={
            i: tuple(replace(x, holds=new[x.holds], node=new[x.node], counts=renamed(x.counts, new)) for x in choices)
            for i, choices in model.choices.items()
        },
        strings=StringCodes(numbers, inputs, outputs, texts),
    )


def renamed(counts: Mapping[int, Node], new: New) -> dict[int, Node]:
    return {axis: new[n] for axis, n in counts.items()}
