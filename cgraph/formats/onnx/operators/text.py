"""Importer of TfIdfVectorizer."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.vocabulary import STRING_COST, Tokens
from cgraph.ir.graph import Node
from cgraph.record import replace


@operator("TfIdfVectorizer")
def tf_idf(c: Context) -> Node:
    """Import TfIdfVectorizer: count the listed n-grams of integers or strings in ``[..., length]``, with skips.

    Those of tokens are counted by each call, before the run.
    """
    names, tokens = c.attribute("pool_strings"), c.value(0)
    if isinstance(tokens, Tokens) and names:
        counts = counts_of_tokens(c, tokens, names)
    else:
        x = c.text(0)[0] if names else c[0]
        pool = c.vocabulary.codes(names).tolist() if names else c.required("pool_int64s")
        counts = counts_in_graph(c, x, pool)
    mode, places = c.required("mode"), c.required_numbers("ngram_indexes")
    weights = np.ones(counts.shape[-1], np.float32)
    if mode != "TF":
        weights[places] = c.numbers("weights", 1.0)
        counts = cg.minimum(counts, np.float32(1)) if mode == "IDF" else counts
    return counts * weights if mode != "TF" else counts


def grams_of(c: Context, pool: Sequence[Any]) -> list[tuple[tuple[Any, ...], int]]:
    """Return the n-grams that count, of a pool of words, with their columns. FormatError for positions outside it."""
    places, starts = c.required_numbers("ngram_indexes").tolist(), c.required("ngram_counts")
    ends = [*starts[1:], len(pool)]
    if min(places, default=-1) < 0 or any(not 0 <= a <= b <= len(pool) for a, b in zip(starts, ends)):
        raise FormatError(
            f"ngram_counts {starts[:8]} or ngram_indexes {places[:8]} do not fit the {len(pool)} values of "
            "the pool: counts must rise to at most that number, indexes be at least 0. Export the model again"
        )
    lengths, grams, number = runs(c), list[Any](), 0
    count = sum(-(-(stop - start) // n) for n, (start, stop) in enumerate(zip(starts, ends), start=1))
    if count > len(places):
        raise FormatError(
            f"the pool has {count} n-grams, ngram_indexes {len(places)}: each needs its column. Export the model again"
        )
    for n, (start, stop) in enumerate(zip(starts, ends), start=1):
        for at in range(start, stop, n):
            if n in lengths:
                grams.append((tuple(pool[at : at + n]), places[number]))
            number += 1
    return grams


def counts_in_graph(c: Context, x: Node, pool: Sequence[int]) -> Node:
    """Count n-grams of codes or integers by comparing them."""
    skips, columns = c.required("max_skip_count"), int(c.required_numbers("ngram_indexes").max()) + 1
    c.spend(nodes=columns + 6 * len(pool) * (max(skips, 0) + 1))
    parts: list[Any] = [None] * columns
    for gram, place in grams_of(c, pool):
        parts[place] = occurrences(x, list(gram), skips)
    zero = cg.zeros(x.shape[:-1], "float32")
    return cg.stack([zero if v is None else v for v in parts], -1)


def counts_of_tokens(c: Context, tokens: Tokens, names: Sequence[str]) -> Node:
    """Return the counts of n-grams of tokens, which each call computes of the texts of an input."""
    pairs, columns = grams_of(c, names), int(c.required_numbers("ngram_indexes").max()) + 1
    grams = dict(pairs)
    if len(grams) < len(pairs):
        raise FormatError("an n-gram of pool_strings is listed twice. Remove one of both")
    c.spend(nbytes=STRING_COST * len(names), work=STRING_COST * len(names))
    skips = max(c.required("max_skip_count"), 0)
    feature = replace(tokens.texts, grams=grams, skips=skips, columns=columns)
    c.spend(nbytes=8 * prod(feature.shape))
    return cg.astype(c.vocabulary.feature(tokens.source, feature), "float32")


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
