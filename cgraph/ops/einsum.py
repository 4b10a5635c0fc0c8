"""einsum: sums of products named by letters, expanded into transposes and matrix products."""

from collections.abc import Iterable
from string import ascii_letters
from typing import Any

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.graph import Node, public
from cgraph.ops.diagonal import diagonal
from cgraph.ops.family import common_dtype
from cgraph.ops.leaf import as_node
from cgraph.ops.linear import matmul
from cgraph.ops.shape import broadcast_to, reshape, transpose

Term = tuple[Node, str]


@public
def einsum(subscripts: str, *operands: Any) -> Node:
    """Sum products by subscripts, as ``np.einsum``: ``einsum("ij,jk->ik", x, y)`` is the matrix product.

    A greedy search chooses the order of the products.

    Raises
        ShapeError: the subscripts do not fit the operands, or one letter stands for different lengths
    """
    dtype = common_dtype(*operands)
    nodes = [as_node(x, dtype).astype(dtype) for x in operands]
    inputs, result = parse(subscripts, nodes)
    lengths = lengths_of(inputs, nodes)
    terms = [take_diagonals(x, letters) for x, letters in zip(nodes, inputs)]
    for positions in contraction_order(inputs, result, nodes):
        first, *others = [terms[i] for i in positions]
        terms = [t for i, t in enumerate(terms) if i not in positions]
        for i, other in enumerate(others, 1):
            letters_left = set(result).union(*(letters for _, letters in (*terms, *others[i:])))
            first = product(first, other, letters_left, lengths)
        terms.append(first)
    x, letters = sum_out(terms[0], set(result))
    return transpose(x, [letters.index(c) for c in result])


def parse(subscripts: str, nodes: list[Node]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result; an ellipsis becomes unused letters."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    inputs = left.split(",")
    if len(inputs) != len(nodes):
        raise ShapeError(
            f"{subscripts!r} names {len(inputs)} operands, but there are {len(nodes)}; separate operands by commas"
        )
    free = [c for c in ascii_letters if c not in subscripts]
    widths = [x.ndim - len(letters.replace("...", "")) for x, letters in zip(nodes, inputs)]
    for x, letters, width in zip(nodes, inputs, widths):
        if width < 0 or (width and "..." not in letters):
            raise ShapeError(
                f"{letters!r} does not fit {x.name} {x.spec}; use one letter for each axis, or an ellipsis"
            )
    most = "".join(free[: max(widths, default=0)])
    inputs = [s.replace("...", most[len(most) - width :]) for s, width in zip(inputs, widths)]
    if not arrow:
        counts = "".join(inputs)
        named = sorted(c for c in set(counts) if counts.count(c) == 1 and c not in most)
        return inputs, (most if "..." in left else "") + "".join(named)
    right = right.replace("...", most)
    if any(c not in "".join(inputs) for c in right) or len(set(right)) != len(right):
        raise ShapeError(f"the result {right!r} repeats a letter or has one that is not in {inputs}. Name each once")
    return inputs, right


def lengths_of(inputs: Iterable[str], nodes: Iterable[Node]) -> dict[str, int]:
    """Return the length of each letter; a length of 1 broadcasts."""
    lengths: dict[str, int] = {}
    for letters, x in zip(inputs, nodes):
        for c, n in zip(letters, x.shape):
            if lengths.get(c, 1) != 1 and n not in (1, lengths[c]):
                raise ShapeError(
                    f"{c!r} stands for length {lengths[c]}, but for {n} in {x.name} {x.spec}; use another letter"
                )
            lengths[c] = n if lengths.get(c, 1) == 1 else lengths[c]
    return lengths


def contraction_order(inputs: list[str], result: str, nodes: list[Node]) -> list[tuple[int, ...]]:
    """Return the terms to multiply, step by step; each product is appended to the list."""
    if len(nodes) < 2:
        return []
    shapes = [np.broadcast_to(np.zeros((), "float32"), x.shape) for x in nodes]
    path, _ = np.einsum_path(f"{','.join(inputs)}->{result}", *shapes, optimize="greedy")
    return [tuple(step) for step in path[1:]]


def take_diagonals(x: Node, letters: str) -> Term:
    """Replace axes of equal letters by their diagonal. ShapeError if their lengths differ, also for 1 and others."""
    for c in dict.fromkeys(letters):
        while letters.count(c) > 1:
            i = letters.index(c)
            j = letters.index(c, i + 1)
            if x.shape[i] != x.shape[j]:
                raise ShapeError(
                    f"{c!r} stands for lengths {x.shape[i]} and {x.shape[j]} of {x.name} {x.spec}; use another letter"
                )
            x = diagonal(x, axis1=i, axis2=j)
            letters = letters[:i] + letters[i + 1 : j] + letters[j + 1 :] + c
    return x, letters


def sum_out(term: Term, keep: set[str]) -> Term:
    """Sum a term over the letters that are not in `keep`."""
    x, letters = term
    gone = tuple(i for i, c in enumerate(letters) if c not in keep)
    return (x.sum(gone, dtype=x.dtype) if gone else x), "".join(c for c in letters if c in keep)


def product(left: Term, right: Term, keep: set[str], lengths: dict[str, int]) -> Term:
    """Multiply two terms and sum over common letters that are not in `keep`."""
    (x, xs), (y, ys) = sum_out(left, keep | set(right[1])), sum_out(right, keep | set(left[1]))
    common = [c for c in xs if c in ys]
    batch, over = [c for c in common if c in keep], [c for c in common if c not in keep]
    rows, columns = [c for c in xs if c not in common], [c for c in ys if c not in common]
    x, y = stretch(x, xs, common, lengths), stretch(y, ys, common, lengths)
    left_shape, right_shape = dict(zip(xs, x.shape)), dict(zip(ys, y.shape))

    def size(letters: Iterable[str], shape: dict[str, int]) -> int:
        return int(np.prod([shape[c] for c in letters], dtype=np.int64))

    b = tuple(left_shape[c] for c in batch)
    m, k, n = size(rows, left_shape), size(over, left_shape), size(columns, right_shape)
    x = reshape(transpose(x, [xs.index(c) for c in (*batch, *rows, *over)]), (*b, m, k))
    y = reshape(transpose(y, [ys.index(c) for c in (*batch, *over, *columns)]), (*b, k, n))
    matrices = matmul(x, y)
    shape = (*b, *(left_shape[c] for c in rows), *(right_shape[c] for c in columns))
    return reshape(matrices, shape), "".join((*batch, *rows, *columns))


def stretch(x: Node, letters: str, shared: list[str], lengths: dict[str, int]) -> Node:
    """Repeat axes of one element along the lengths of shared letters."""
    return broadcast_to(x, tuple(lengths[c] if c in shared else n for c, n in zip(letters, x.shape)))
