"""Conway's Game of Life on a torus (after N. Rougier): a step of plain NumPy, run by NumPy and by `cg.jit`."""

import numpy as np

import cgraph as cg


def step(Z):
    N = sum(np.roll(np.roll(Z, dy, 0), dx, 1) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0))
    birth = (N == 3) & (Z == 0)
    survive = ((N == 2) | (N == 3)) & (Z == 1)
    Z[...] = 0
    Z[birth | survive] = 1
    return Z


def start(n=256):
    return np.random.default_rng(0).integers(0, 2, (n, n), dtype=np.uint8)


def run(step, Z, steps=100):
    for _ in range(steps):
        Z = step(Z)
    return Z


if __name__ == "__main__":
    want, got = run(step, start()), run(cg.jit(step), start())
    np.testing.assert_array_equal(got, want)
    print(f"{got.sum()} cells live, as NumPy's")
