"""Importer of TfIdfVectorizer."""

from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.ir.graph import Node


@operator("TfIdfVectorizer")
def tf_idf(c: Context) -> Node:
    """Import TfIdfVectorizer: count the listed n-grams of integers or strings in ``[..., length]``, with skips."""
    names = c.attribute("pool_strings")
    x, places = c.text(0)[0] if names else c[0], c.required("ngram_indexes")
    pool = c.vocabulary.codes(names).tolist() if names else c.required("pool_int64s")
    lengths, starts = runs(c), c.required("ngram_counts")
    ends = [*starts[1:], len(pool)]
    if min(places, default=-1) < 0 or any(not 0 <= a <= b <= len(pool) for a, b in zip(starts, ends)):
        raise FormatError(
            f"ngram_counts {starts[:8]} or ngram_indexes {places[:8]} do not fit the {len(pool)} values of "
            "the pool: counts must rise to at most that number, indexes be at least 0. Export the model again"
        )
    skips = c.required("max_skip_count")
    c.spend(nodes=max(places) + 1 + 6 * len(pool) * (max(skips, 0) + 1))
    columns: list[Any] = [None] * (max(places) + 1)
    number = 0
    for n, (start, stop) in enumerate(zip(starts, ends), start=1):
        for at in range(start, stop, n):
            if n in lengths:
                columns[places[number]] = occurrences(x, pool[at : at + n], skips)
            number += 1
    zero = cg.zeros(x.shape[:-1], "float32")
    counts = cg.stack([zero if v is None else v for v in columns], -1)
    mode, weights = c.required("mode"), np.ones(len(columns), np.float32)
    if mode != "TF":
        listed_weights = c.attribute("weights", [1.0] * len(places))
        weights[places] = listed_weights
        counts = cg.minimum(counts, np.float32(1)) if mode == "IDF" else counts
    return counts * weights if mode != "TF" else counts


def runs(c: Context) -> range:
    """Return the lengths of n-grams that count."""
    return range(c.required("min_gram_length"), c.required("max_gram_length") + 1)


def occurrences(x: Node, run: list[int], skips: int) -> Any:
    """Count an n-gram whose elements are 1 to ``skips + 1`` apart; None if it is too long."""
    total = None
    for step in range(1, (skips if len(run) > 1 else 0) + 2):
        count = x.shape[-1] - (len(run) - 1) * step
        if count < 1:
            continue
        hit: Any = None
        for i, token in enumerate(run):
            same = cg.equal(x[..., i * step : i * step + count], np.asarray(token, x.dtype))
            hit = same if hit is None else cg.logical_and(hit, same)
        hits = cg.astype(cg.sum(cg.astype(hit, "int32"), -1), "float32")
        total = hits if total is None else total + hits
    return total
