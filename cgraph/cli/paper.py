"""The tables of ``cgraph plan MODEL --paper``: bytes saved and operations added by patches around the peak."""

from cgraph.budget.patches.image_steps import image_steps
from cgraph.budget.patches.tile_peak import ALPHAS, SLICES, Restructured, as_written, restructure
from cgraph.cli.model import CliModel
from cgraph.errors import FormatError
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import Var

QUARTERS = (2, 2)


def paper_lines(model: CliModel) -> list[str]:
    """Return savings and extra operations by `alpha` in four patches, then by patches at the best `alpha`.

    These are the rows behind tables II and III of Cipolletta and Calimera 2021; of equal savings the larger `alpha`.
    """
    inputs = model.inputs or tuple(x for x in post_order(model.outputs) if isinstance(x, Var) and not x.is_assigned)
    steps = image_steps(model.outputs, inputs)
    before = as_written(steps)
    if not any(step.splits for step in steps):
        raise FormatError("the model has no images to be cut into patches. Give a model with convolutions")
    by_alpha = {alpha: restructure(steps, alpha, QUARTERS) for alpha in ALPHAS}
    best = min(by_alpha, key=lambda alpha: (by_alpha[alpha].peak, -alpha))
    by_slices = {slices: restructure(steps, best, slices) for slices in SLICES}
    return [
        f"{before.peak} elements are alive at the peak, inputs among them; {before.work} operations",
        f"{'alpha':<12}{'saving, %':>10}{'extra, %':>10}   2h, 2w",
        *(row(f"{alpha:.1f}", before, plan) for alpha, plan in by_alpha.items()),
        f"{'patches':<12}{'saving, %':>10}{'extra, %':>10}   alpha {best:.1f}",
        *(row(f"{h}h, {w}w", before, plan) for (h, w), plan in by_slices.items()),
    ]


def row(name: str, before: Restructured, after: Restructured) -> str:
    return f"{name:<12}{100 * (1 - after.peak / before.peak):>10.1f}{100 * (after.work / before.work - 1):>10.1f}"
