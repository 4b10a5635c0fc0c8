"""NumPy functions without meaning for nodes, each with the reason and the nearest alternative."""

from typing import Any

import numpy as np

UNKNOWN_SHAPE = "the shape of the result depends on values; use "
CHANGES = "it changes its operand, and nodes do not change; use "
NO_DATA = "a node holds no data; use x.eval() first"
IN_PLACE = "out= writes into an array, and nodes are values; use function(..., out=array) of the compiled Function"
MASKED = "where= leaves elements undefined; use np.where(mask, np.{}(...), other)"
DISTINCT = UNKNOWN_SHAPE + "cg.unique(x, size=...)"

UNKNOWN_SHAPES = {
    np.argwhere: UNKNOWN_SHAPE + "cg.nonzero(x, size=...)[0].T",
    np.bincount: UNKNOWN_SHAPE + "cg.scatter_add(cg.zeros(length), positions, 1.0)",
    np.flatnonzero: UNKNOWN_SHAPE + "cg.nonzero(x.ravel(), size=...)",
    np.histogramdd: "cells along any number of axes are not counted; use np.histogram2d, or cg.scatter_add",
    np.intersect1d: DISTINCT + " and np.isin",
    np.nonzero: UNKNOWN_SHAPE + "cg.nonzero(x, size=...)",
    np.polydiv: "the lengths of the results depend on leading zeros; use np.polymul, or x.eval() first",
    np.roots: "the number of roots depends on leading zeros; use x.eval() first",
    np.setdiff1d: DISTINCT + " and np.isin",
    np.setxor1d: DISTINCT + " and np.isin",
    np.trim_zeros: UNKNOWN_SHAPE + "cg.nonzero(x, size=...), or x.eval() first",
    np.union1d: UNKNOWN_SHAPE + "cg.unique(np.concatenate([x, y]), size=...)",
    np.unique: DISTINCT,
    np.unique_all: DISTINCT,
    np.unique_counts: DISTINCT,
    np.unique_inverse: DISTINCT + " and np.searchsorted",
    np.unique_values: DISTINCT,
}
CHANGING = {
    np.copyto: CHANGES + "np.where(mask, source, x), or an update edge of cg.compile",
    np.fill_diagonal: CHANGES + "np.where(np.eye(n, dtype=bool), value, x)",
    np.place: CHANGES + "np.where(mask, values, x)",
    np.put: CHANGES + "cg.scatter(x.ravel(), positions, values)",
    np.put_along_axis: CHANGES + "cg.put_along_axis, which gives the new value",
    np.putmask: CHANGES + "np.where(mask, values, x)",
}
OF_DATA = dict.fromkeys(
    (
        np.array2string, np.array_repr, np.array_str, np.datetime_as_string, np.frombuffer, np.fromfile, np.fromiter,
        np.fromstring, np.genfromtxt, np.loadtxt, np.save, np.savetxt, np.savez, np.savez_compressed,
    ),
    NO_DATA,
)  # fmt: skip
PLACED = "nodes have no bytes until a plan places them; use function.compiled.views of a compiled Function"
OF_BYTES = {
    np.lib.stride_tricks.as_strided: "a node has no strides; use slices, or np.lib.stride_tricks.sliding_window_view",
    np.may_share_memory: PLACED,
    np.require: "a node has no layout in memory; use x.eval() first",
    np.shares_memory: PLACED,
}
OF_FUNCTIONS = {np.fromfunction: "the function is called without nodes; use np.fromfunction without like="}
OF_DATES = dict.fromkeys(
    (np.busday_count, np.busday_offset, np.is_busday, np.isnat), "nodes hold numbers, not dates; use x.eval() first"
)

REFUSED: dict[Any, str] = UNKNOWN_SHAPES | CHANGING | OF_DATA | OF_BYTES | OF_FUNCTIONS | OF_DATES
"""For each NumPy function that does not apply to nodes, the reason and the replacement."""
SCIPY_NAMES = {"expit": "sigmoid", "gammaln": "lgamma", "loggamma": "lgamma", "psi": "digamma"}
"""Names of SciPy's ufuncs whose op here has another name."""

ELSE = "it has no meaning for nodes; use x.eval() first"
"""Of functions of text, of records, and of those that NumPy may add."""
