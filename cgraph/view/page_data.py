"""Data of the page: records whose fields have the same names in Python and JavaScript.

`PageData` is an object in the page's JSON. A list of records is a table there, ``{"fields": names, "rows": values}``,
so that names are written once; ``records`` in ``web/page.js`` makes objects of its rows.
"""

from collections.abc import Sequence
from typing import Any

from cgraph.record import Record
from cgraph.view.boxes import WORKSPACE, BoxBytes, MemoryPicture, last_drawn_steps
from cgraph.view.diagram import CONST, VIEW, Diagram, DiagramItem
from cgraph.view.layered import layered
from cgraph.view.text import COLOURS, plain


class BoxRow(BoxBytes):
    """A value's bytes; the fields are those of `Box`, and

    Fields
        is_workspace: of kind `WORKSPACE`
        until: the last step at which it is drawn
    """

    block: int
    is_workspace: bool
    over: int
    inside: int
    until: int


class ReservedRow(Record):
    """All bytes of an operand that several values share, as in `MemoryPicture.reserved`."""

    nbytes: int
    offset: int
    first: int
    last: int
    block: int


class ItemRow(DiagramItem):
    """A node, and its position.

    Fields
        folded: True for a constant, or a view of constants only: hidden until requested
        column, layer: in units of one, with folded items hidden
        whole_column, whole_layer: with all items shown
    """

    folded: bool
    column: float
    layer: int
    whole_column: float
    whole_layer: int


class UpdateRow(Record):
    """An update edge: positions of items."""

    source: int
    target: int


class PageData(Record):
    """All data of the page; the memory's fields are those of `MemoryPicture`.

    Fields
        summary: the totals in a line
        unshared: bytes of all values if none shared
        colours: colours of blocks
        seconds: seconds of each step; empty if they were not measured
    """

    summary: str
    unshared: int
    colours: Sequence[str]
    boxes: Sequence[BoxRow]
    reserved: Sequence[ReservedRow]
    nbytes: int
    lower_bound: int
    peak: int
    peak_nbytes: int
    first: int
    last: int
    changes: Sequence[int]
    in_use: Sequence[int]
    items: Sequence[ItemRow]
    updates: Sequence[UpdateRow]
    seconds: Sequence[float]


TABLES: dict[str, type[Record]] = {
    "boxes": BoxRow,
    "reserved": ReservedRow,
    "items": ItemRow,
    "updates": UpdateRow,
}  # the fields of `PageData` that are lists of records


def page_data(
    memory: MemoryPicture, diagram: Diagram, summary: str, unshared: int, seconds: Sequence[float] = ()
) -> PageData:
    """Return the data of a page. Time O(n log n) for the positions of items."""
    return PageData(
        summary=summary,
        unshared=unshared,
        colours=COLOURS,
        boxes=box_rows(memory),
        reserved=[ReservedRow(x.nbytes, x.offset, x.first, x.last, x.block) for x in memory.reserved],
        nbytes=memory.nbytes,
        lower_bound=memory.lower_bound,
        peak=memory.peak,
        peak_nbytes=memory.peak_nbytes,
        first=memory.first,
        last=memory.last,
        changes=memory.changes.tolist(),
        in_use=memory.in_use.tolist(),
        items=item_rows(diagram),
        updates=[UpdateRow(*edge) for edge in diagram.updates],
        seconds=seconds,
    )


def box_rows(memory: MemoryPicture) -> list[BoxRow]:
    return [
        BoxRow(
            name=plain(x.name), spec=x.spec, where=plain(x.where), nbytes=x.nbytes, offset=x.offset,
            first=x.first, last=x.last, block=x.block, is_workspace=x.kind == WORKSPACE,
            over=x.over, inside=x.inside, until=until,
        )
        for x, until in zip(memory.boxes, last_drawn_steps(memory.boxes))
    ]  # fmt: skip


def item_rows(diagram: Diagram) -> list[ItemRow]:
    folded = folded_of(diagram)
    whole = [x.operands for x in diagram.items]
    visible = [i for i, is_folded in enumerate(folded) if not is_folded]
    number = {i: k for k, i in enumerate(visible)}
    few = [[number[x] for x in whole[i] if x in number] for i in visible]
    places, all_places = dict(zip(visible, zip(*layered(few)))), zip(*layered(whole))
    return [
        ItemRow(
            name=plain(x.name), kind=x.kind, spec=x.spec, where=plain(x.where), value=x.value, nbytes=x.nbytes,
            step=x.step, box=x.box, block=x.block, operands=x.operands, output=x.output, folded=folded[i],
            column=round(places.get(i, (0, 0))[0], 2), layer=places.get(i, (0, 0))[1],
            whole_column=round(column, 2), whole_layer=layer,
        )
        for i, (x, (column, layer)) in enumerate(zip(diagram.items, all_places))
    ]  # fmt: skip


def folded_of(diagram: Diagram) -> list[bool]:
    """Return for each item whether the page folds it away: constants and views of constants, except outputs."""
    folded: list[bool] = []
    for x in diagram.items:
        is_view = x.kind == VIEW and all(folded[i] for i in x.operands)
        folded.append((x.kind == CONST or is_view) and not x.output)
    return folded


def as_json(data: PageData) -> dict[str, Any]:
    """Return the data as JSON values."""
    return {name: as_table(name, value) if name in TABLES else value for name, value in fields_of(data)}


def as_table(name: str, rows: Sequence[Record]) -> dict[str, Any]:
    fields = TABLES[name]._fields
    return {"fields": fields, "rows": [[number_of(value) for _, value in fields_of(row)] for row in rows]}


def fields_of(record: Record) -> list[tuple[str, Any]]:
    return [(name, getattr(record, name)) for name in record._fields]


def number_of(value: Any) -> Any:
    """Return booleans as 0 or 1, which is shorter text."""
    return int(value) if isinstance(value, bool) else value
