"""Names of a graph's outputs. Files may repeat a name; results by name may not."""

from collections.abc import Iterable, Sequence


def distinct_names(names: Sequence[str], others: Iterable[str] = ()) -> tuple[str, ...]:
    """Return each name once: the first of equal ones stays, the others become ``y_1``, ``y_2``, …

    Parameters
        others: further names that a new one must not be
    """
    used = {*names, *others}
    counts: dict[str, int] = {}
    labels: dict[str, None] = {}
    for name in names:
        label = name
        while label in labels or (label != name and label in used):
            counts[name] = counts.get(name, 0) + 1
            label = f"{name}_{counts[name]}"
        labels[label] = None
    return tuple(labels)
