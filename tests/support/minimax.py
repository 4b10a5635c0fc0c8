"""Best polynomials in the weighted maximum norm: where the coefficients of the vector mathematics come from.

Remez exchange in 90 digits: a polynomial whose weighted error takes its largest size with alternating sign at
``degree + 2`` points is the best one (Chebyshev).
"""

from collections.abc import Callable
from functools import reduce

import mpmath
from mpmath import mpf

Real = Callable[[mpf], mpf]
DIGITS, POINTS, ROUNDS = 90, 500, 12


def minimax(f: Real, weight: Real, low: mpf, high: mpf, degree: int) -> tuple[list[mpf], mpf]:
    """Coefficients, lowest power first, and the largest ``weight * |polynomial - f|`` on [low, high]."""
    with mpmath.workdps(DIGITS):
        grid = [(x, f(x), weight(x)) for x in chebyshev(low, high, POINTS)]
        nodes = [grid[i * (POINTS - 1) // (degree + 1)] for i in range(degree + 2)]
        for _ in range(ROUNDS):
            coefficients = levelled(nodes)
            errors = [w * (value(coefficients, x) - fx) for x, fx, w in grid]
            extremes = alternating(errors, degree + 2)
            if len(extremes) < degree + 2:
                break
            nodes = [grid[i] for i in extremes]
        return coefficients, max(abs(e) for e in errors)


def chebyshev(low: mpf, high: mpf, count: int) -> list[mpf]:
    """Points that crowd at the ends."""
    middle, half = (mpf(low) + high) / 2, (mpf(high) - low) / 2
    return [middle - half * mpmath.cos(mpmath.pi * (i + mpf(1) / 2) / count) for i in range(count)]


def levelled(nodes: list[tuple[mpf, mpf, mpf]]) -> list[mpf]:
    """The polynomial whose weighted errors at the nodes have one size and alternating signs."""
    n = len(nodes)
    a, b = mpmath.matrix(n, n), mpmath.matrix(n, 1)
    for i, (x, fx, w) in enumerate(nodes):
        for j in range(n - 1):
            a[i, j] = w * x**j
        a[i, n - 1], b[i] = (-1) ** i, w * fx
    return list(mpmath.lu_solve(a, b))[: n - 1]


def value(coefficients: list[mpf], x: mpf) -> mpf:
    return reduce(lambda y, c: y * x + c, reversed(coefficients), mpmath.mpf(0))


def alternating(errors: list[mpf], wanted: int) -> list[int]:
    """Places of the largest error of each sign in turn, the `wanted` largest neighbours."""
    places, start = [], 0
    for i in range(1, len(errors) + 1):
        if i == len(errors) or (errors[i] > 0) != (errors[start] > 0):
            places.append(max(range(start, i), key=lambda j: abs(errors[j])))
            start = i
    while len(places) > wanted:
        places.pop(0 if abs(errors[places[0]]) < abs(errors[places[-1]]) else -1)
    return places
