"""The fewest elements alive when the paper's networks run in bands of one row, in the paper's own terms.

    python -m benchmarks.rows

As in Cipolletta and Calimera 2021 (`cgraph.budget.patches.tile_peak`), elements are counted, not bytes; the image
counts, a concat copies, there are no workspaces, unused channels or halos; steps run in the order of their tables.
Regions, their rings and in-place joins are those of `budget=` (`cgraph.budget.bands.regions`), and no operation is
added. As in the paper, only live elements count: an arena may lose bytes between in-place joins. By rows: the image is
never stored whole, but arrives row by row like any other value (`rows=`).
"""

from benchmarks.restructuring import TITLES, steps_of
from cgraph.budget.bands.regions import Search, Stage
from cgraph.budget.bands.row_rings import Read, Rows
from cgraph.budget.patches.image_steps import ImageStep
from cgraph.budget.patches.tile_peak import as_written, read_range, walk_order


def least(steps: list[ImageStep], by_rows: bool) -> int:
    """Return the fewest elements in regions of bands of one row."""
    order = walk_order(steps)
    place = {i: t for t, i in enumerate(order)}
    last = {i: place[i] for i in order}
    for i in order:
        last |= dict.fromkeys(steps[i].operands, place[i])
    stages = []
    for i in order:
        step = steps[i]
        is_cut = step.splits or (by_rows and not step.operands)
        whole = max((place[x] for x in step.operands), default=-1) if not is_cut else -1
        rows = rows_of(steps, i, place) if is_cut else None
        is_made = rows is not None and bool(step.operands)
        stages.append(Stage(step.size, last[i], rows=rows, columns=step.shape[2], whole=whole, by_rows=is_made))
    search = Search(stages, 1, (1,))
    return min((search.least, *(other.least for other in search.others(search.least))))


def rows_of(steps: list[ImageStep], i: int, place: dict[int, int]) -> Rows:
    """Return a step by its rows, which are elements of all channels and columns."""
    step, window = steps[i], steps[i].window
    count = step.shape[1]
    reads = []
    for x in step.operands:
        spans = (
            read_range(r, r + 1, window.stride[0], window.pad[0], window.extent[0], steps[x].shape[1])
            for r in range(count)
        )
        reads.append(Read(place[x], *map(tuple, zip(*spans))))
    return Rows(step.name, count, step.size // count, tuple(reads))


def row(name: str) -> tuple[float, float]:
    """Return savings in percent: with the image whole, and by rows."""
    steps = steps_of(name)
    before = as_written(steps).peak
    whole, by_rows = (100 * (1 - least(steps, x) / before) for x in (False, True))
    return whole, by_rows


def main() -> None:
    found = {title: row(name) for name, title in TITLES.items()}
    found["average"] = tuple(sum(x) / len(found) for x in zip(*found.values()))  # type: ignore[assignment]
    print("| network | saving, % | with the image by rows, % |\n|---|---|---|")
    for title, (whole, by_rows) in found.items():
        print(f"| {title} | {whole:.1f} | {by_rows:.1f} |")


if __name__ == "__main__":
    main()
