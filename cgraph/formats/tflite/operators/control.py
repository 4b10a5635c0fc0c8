"""Importers of IF, WHILE and STABLEHLO_COMPOSITE, which run other graphs of the file."""

from collections.abc import Sequence

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import TfliteContext, operator
from cgraph.formats.tflite.value import QuantisedFormat, TfliteValue, have_one_format
from cgraph.ir.graph import Node

Formats = Sequence[QuantisedFormat | None]


@operator("IF", on_bytes=True, on_words=True)
def if_else(c: TfliteContext) -> list[TfliteValue]:
    """Import IF; operands: one bool, then the inputs of both branches."""
    formats, results = formats_of(c.operands[1:]), [x.quantised for x in c.results]

    def branch(option: str) -> list[Node]:
        outputs = c.build(c.option(option), entered(c.nodes[1:], formats))
        check_formats(option, outputs, results)
        return [x.plain for x in outputs]

    return entered(cg.cond(c[0].plain, lambda: branch("then"), lambda: branch("orelse")), results)


@operator("WHILE", on_bytes=True, on_words=True)
def while_loop(c: TfliteContext) -> list[TfliteValue]:
    """Import WHILE; operands: the state, which the condition and the body take."""
    formats = formats_of(c.operands)

    def condition(state: list[Node]) -> Node:
        outputs = c.build(c.option("condition"), entered(state, formats))
        if len(outputs) != 1:
            raise FormatError(f"the condition has {len(outputs)} outputs, not 1")
        return outputs[0].plain

    def body(state: list[Node]) -> list[Node]:
        outputs = c.build(c.option("body"), entered(state, formats))
        check_formats("body", outputs, formats)
        return [x.plain for x in outputs]

    return entered(cg.while_loop(condition, body, c.nodes), formats)


@operator("STABLEHLO_COMPOSITE", on_bytes=True, on_words=True)
def composite(c: TfliteContext) -> list[TfliteValue]:
    """Import STABLEHLO_COMPOSITE: a graph that has a name, which is not read."""
    outputs = c.build(c.option("graph"), [c[i] for i in range(len(c.operands))])
    check_formats("the graph", outputs, [x.quantised for x in c.results])
    return outputs


def formats_of(operands: Sequence[TfliteValue | None]) -> Formats:
    """Return the quantisation of each operand, or None."""
    return [None if x is None else x.quantised for x in operands]


def entered(nodes: Sequence[Node], formats: Formats) -> list[TfliteValue]:
    """Return nodes in the file's order of axes as values."""
    return [TfliteValue(x, quantised=quantised) for x, quantised in zip(nodes, formats, strict=True)]


def check_formats(name: str, outputs: Sequence[TfliteValue], formats: Formats) -> None:
    """Raise FormatError unless a graph's outputs are as many as expected and quantised in the same way."""
    if len(outputs) != len(formats):
        raise FormatError(f"{name} has {len(outputs)} outputs, not {len(formats)}")
    for i, (x, other) in enumerate(zip(outputs, formats)):
        if not have_one_format(x.quantised, other):
            raise FormatError(f"output {i} of {name} is quantised in another way than the value that it becomes")
