"""A report as plain text."""

from cgraph.errors import bytes_text
from cgraph.view.figures import Figures, RegionRow, StepRow, WeightFigures
from cgraph.view.text import plain

BAR = 12  # characters of the column with bars of the bytes in use
MOST_NAME, MOST_SPEC = 40, 28
UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))


def report_text(report: Figures, most: int | None) -> str:
    """Return summary, peak and table; of more than `most` steps those with the most bytes or the longest times."""
    rows = table_rows(report, most)
    lines = [*_summary(report), "", *_peak(report), "", *_table(report, rows)]
    if len(rows) < len(report.steps):
        by = "bytes in use" if report.seconds is None else "time"
        lines.append(f"({len(report.steps) - len(rows)} of {len(report.steps)} steps with less {by} are left out)")
    if report.weights:
        lines += ["", *weights_lines(report.weights, most)]
    if report.precision is not None:
        first, *more = (plain(x) for x in str(report.precision).split("\n"))
        lines += ["", f"precision {first}", *(f"          {x}" for x in more)]
    for region in report.regions:
        lines += ["", *region_lines(region)]
    for name, inner in report.inner:
        lines += ["", f"inside    {plain(name)}, in its workspace:", report_text(inner, most)]
    return "\n".join(lines)


def table_rows(report: Figures, most: int | None) -> list[StepRow]:
    """Return the steps of a table of at most `most` rows, in running order."""
    if most is None or len(report.steps) <= most:
        return list(report.steps)
    largest = sorted(report.steps, key=lambda row: (-(row.seconds or 0.0), -row.in_use, row.step))[:most]
    return sorted(largest, key=lambda row: row.step)


def saving_text(report: Figures) -> str:
    """Return the bytes that sharing saves, as text."""
    if not report.unshared_nbytes:
        return "nothing to share"
    if report.nbytes >= report.unshared_nbytes:  # the arena is a multiple of 64 bytes
        return "sharing saves nothing"
    return f"sharing saves {100 * (1 - report.nbytes / report.unshared_nbytes):.1f} %"


def seconds_text(seconds: float | None) -> str:
    """Return a readable time: ``0.0123`` is ``12.3 ms``."""
    if seconds is None:
        return ""
    unit, size = next((x for x in UNITS if float(f"{seconds / x[1]:.3g}") >= 1), UNITS[-1])
    digits = f"{seconds / size:.3g}"
    return f"{digits if 'e' not in digits else round(seconds / size)} {unit}"


def proof_text(report: Figures) -> str:
    """Return the words that say whether the plan's size is proved to be minimal."""
    if report.nbytes == report.lower_bound:
        return "which no plan beats"
    return "proved the smallest of its kind" if report.proved else "not proved the smallest"


def against_bounds(report: Figures) -> str:
    """Return the arena compared with its bound, and with the bound if no value overwrote another."""
    plain = report.plain_lower_bound
    more = f"; {bytes_text(plain)} if nothing overwrote" if plain != report.lower_bound else ""
    return f"the arena is {report.ratio:.4f} × that{more}"


def _summary(report: Figures) -> list[str]:
    size, bound, unshared = report.nbytes, report.lower_bound, report.unshared_nbytes
    lines = [
        f"arena     {bytes_text(size)} ({size} bytes) by {report.strategy}, {proof_text(report)}; order {report.order}",
        f"bound     {bytes_text(bound)} ({bound} bytes); {against_bounds(report)}",
        f"unshared  {bytes_text(unshared)} ({unshared} bytes); {saving_text(report)}",
        f"outside   {bytes_text(report.var_nbytes)} in Vars, {bytes_text(report.const_nbytes)} in Consts",
    ]
    if report.kernels:
        k = report.kernels
        lines.append(
            f"kernels   {k.kernels} in {k.calls} calls; this process loaded {k.loaded} and compiled {k.compiled} "
            f"in {k.compile_seconds:.2f} s"
        )
    lines += [f"on the host  {plain(label)}, {bytes_text(n)} carried" for label, n in report.on_host]
    if report.seconds is not None:
        lines.append(f"time      {seconds_text(report.seconds)} in {len(report.steps)} steps")
    return lines


def weights_lines(weights: WeightFigures, most: int | None) -> list[str]:
    """Return lines about the ring; with times, of more than `most` pieces those with the longest waits."""
    lines = [
        f"weights   {bytes_text(weights.nbytes)} in {len(weights.pieces)} pieces from {plain(weights.path)} through a "
        f"ring of {bytes_text(weights.ring)}"
    ]
    if weights.measured is None or weights.predicted is None:
        return lines
    reads = sum(piece.read or 0.0 for piece in weights.pieces)
    rate = f" ({bytes_text(int(weights.nbytes / reads))} a second)" if reads else ""
    waits = [sum(times) for times in zip(*((x.predicted or 0.0, x.measured or 0.0) for x in weights.pieces))]
    lines += [
        f"          kernels {seconds_text(weights.kernels)}, reading {seconds_text(reads)}{rate}, each alone",
        f"          a run {seconds_text(weights.measured)}, of which {seconds_text(waits[1])} waiting; predicted "
        f"{seconds_text(weights.predicted)}, of which {seconds_text(waits[0])}",
        f"{'bytes':>12}{'read':>10}{'waits: predicted':>18}{'measured':>10}  step",
    ]
    rows = sorted(range(len(weights.pieces)), key=lambda i: -(weights.pieces[i].measured or 0.0))[:most]
    for i in sorted(rows):
        x = weights.pieces[i]
        times = f"{seconds_text(x.read):>10}{seconds_text(x.predicted):>18}{seconds_text(x.measured):>10}"
        lines.append(f"{bytes_text(x.nbytes):>12}{times}  {plain(x.name)}")
    if len(rows) < len(weights.pieces):
        lines.append(
            f"({len(weights.pieces) - len(rows)} of {len(weights.pieces)} pieces with less waiting are left out)"
        )
    return lines


def region_text(region: RegionRow) -> str:
    """Return the savings and costs of a region in one line."""
    return (
        f"step {region.step}, {plain(region.name)}: {len(region.rings) + 1} values in {region.bands} bands, "
        f"{bytes_text(region.nbytes)} in place of {bytes_text(region.whole_nbytes)}; {region.slides} slides copy "
        f"{bytes_text(region.slid_nbytes)}; calls take about {seconds_text(region.seconds)} more"
    )


def region_lines(region: RegionRow) -> list[str]:
    """Return lines about a region, with the most rows of each value in use at one time."""
    rings = (f"{bytes_text(x.nbytes):>12} of {bytes_text(x.whole_nbytes):>10}  {plain(x.name)}" for x in region.rings)
    return [f"region    {region_text(region)}", *rings]


def _peak(report: Figures) -> list[str]:
    lines = [f"peak      at step {report.peak} {bytes_text(report.peak_nbytes)} are in use:"]
    return lines + [f"{bytes_text(x.nbytes):>12}  {plain(x.name)}  {plain(x.where)}".rstrip() for x in report.alive]


def _table(report: Figures, rows: list[StepRow]) -> list[str]:
    timed = report.seconds is not None
    most = max((row.in_use for row in report.steps), default=0) or 1
    name = max([len("op"), *(min(len(plain(row.op)), MOST_NAME) for row in rows)])
    spec = max([len("result"), *(min(len(row.spec), MOST_SPEC) for row in rows)])
    head = f"{'step':>6}  {'op':<{name}}  {'result':<{spec}}  {'writes':>10}  {'in use':>10}  {'':<{BAR}}"
    lines = [f"{head}{'time':>10}  where" if timed else f"{head}  where"]
    for row in rows:
        bar = "█" * round(BAR * row.in_use / most)
        line = f"{row.step:>6}  {plain(row.op)[:MOST_NAME]:<{name}}  {row.spec[:MOST_SPEC]:<{spec}}  "
        line += f"{bytes_text(row.nbytes):>10}  {bytes_text(row.in_use):>10}  {bar:<{BAR}}"
        lines.append(f"{line}{seconds_text(row.seconds) if timed else '':>{10 * timed}}  {plain(row.where)}")
    return lines
