"""A report as HTML, for a part of a page: figures, values at the peak, and a folded table of steps."""

from cgraph.errors import bytes_text
from cgraph.view.figures import Figures, RegionRow
from cgraph.view.report_text import against_bounds, proof_text, region_text, saving_text, seconds_text
from cgraph.view.text import markup

STYLE = """
.cgraph{font:13px system-ui,sans-serif;line-height:1.45}
.cgraph table{font:inherit;border-collapse:collapse;margin:.5em 0}
.cgraph td,.cgraph th{padding:.15em .8em .15em 0;text-align:left;border-bottom:1px solid #8883;white-space:nowrap}
.cgraph .n{text-align:right;font-variant-numeric:tabular-nums}
.cgraph .bar{background:linear-gradient(#93c5fd,#93c5fd) no-repeat left}
.cgraph tr.peak td{background-color:#dc26261a}
.cgraph summary{cursor:pointer;margin:.4em 0}
"""


def report_html(report: Figures) -> str:
    """Return self-contained HTML; all names are escaped."""
    parts = [
        f'<div class="cgraph"><style>{STYLE}</style>',
        table((), _facts(report)),
        f"<b>In use at the peak, step {report.peak}</b>",
        table((), [(number(bytes_text(x.nbytes)), cell(x.name), cell(x.where)) for x in report.alive]),
        f"<details><summary>{len(report.steps)} steps</summary>",
        _steps(report),
        "</details>",
        *(f"<details><summary>{markup(region_text(x))}</summary>{_rings(x)}</details>" for x in report.regions),
        *(f"<details><summary>inside {markup(name)}</summary>{report_html(x)}</details>" for name, x in report.inner),
        "</div>",
    ]
    return "\n".join(parts)


def _rings(region: RegionRow) -> str:
    rows = ((bytes_text(x.nbytes), bytes_text(x.whole_nbytes), x.name) for x in region.rings)
    return table(("rows at once", "whole", "value"), [(number(a), number(b), cell(c)) for a, b, c in rows])


def _facts(report: Figures) -> list[tuple[str, ...]]:
    rows = [
        ("arena", report.nbytes, f"by {report.strategy}, {proof_text(report)}; order {report.order}"),
        ("lower bound", report.lower_bound, against_bounds(report)),
        ("unshared", report.unshared_nbytes, saving_text(report)),
        ("Vars", report.var_nbytes, "outside the arena"),
        ("Consts", report.const_nbytes, "outside the arena"),
    ]
    lines: list[tuple[str, ...]] = [
        (cell(name), number(bytes_text(n)), number(f"{n} bytes"), cell(note)) for name, n, note in rows
    ]
    if report.seconds is not None:
        lines.append((cell("time"), number(seconds_text(report.seconds)), cell(""), cell("steps one by one")))
    if report.weights:
        note = f"in {len(report.weights.pieces)} pieces through a ring of {bytes_text(report.weights.ring)}"
        lines.append((cell("weights"), number(bytes_text(report.weights.nbytes)), cell("from disk"), cell(note)))
    if report.precision is not None:
        for text in report.precision.summary():
            lines.append((cell("precision"), cell(""), cell(""), cell(text)))
    for label, nbytes in report.on_host:
        lines.append((cell("on the host"), number(bytes_text(nbytes)), cell(""), cell(f"{label}, carried")))
    if report.kernels:
        k = report.kernels
        note = f"{k.calls} calls; this process loaded {k.loaded} and compiled {k.compiled} in {k.compile_seconds:.2f} s"
        lines.append((cell("kernels"), number(str(k.kernels)), cell(""), cell(note)))
    return lines


def _steps(report: Figures) -> str:
    most = max((row.in_use for row in report.steps), default=0) or 1
    rows = []
    for row in report.steps:
        share = 100 * row.in_use / most
        bar = f'<td class="n bar" style="background-size:{share:.1f}% 80%">{bytes_text(row.in_use)}</td>'
        cells = [number(str(row.step)), cell(row.op), cell(row.spec), number(bytes_text(row.nbytes)), bar]
        if row.seconds is not None:
            cells.append(number(seconds_text(row.seconds)))
        rows.append((*cells, cell(row.where)))
    time = ("time",) if report.seconds is not None else ()
    return table(("step", "op", "result", "writes", "in use", *time, "where"), rows, report.peak)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]], peak: int = -1) -> str:
    lines = ["<table>", "<tr>" + "".join(f"<th>{name}</th>" for name in head) + "</tr>" if head else ""]
    for i, cells in enumerate(rows):
        lines.append(("<tr class='peak'>" if i == peak else "<tr>") + "".join(cells) + "</tr>")
    return "\n".join([*lines, "</table>"])


def cell(text: str) -> str:
    return f"<td>{markup(text)}</td>"


def number(text: str) -> str:
    return f'<td class="n">{markup(text)}</td>'
