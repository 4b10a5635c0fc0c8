"""PageRank by power iteration on a dense matrix of links: the test of convergence stays outside of the step."""

import numpy as np

import cgraph as cg


def step(M, v, d=0.85):
    new = d * (M @ v) + (1 - d) / len(v)
    return new, np.abs(new - v).sum()


def start(n=1000):
    A = (np.random.default_rng(7).random((n, n)) < 0.01).astype(float)
    A[:, A.sum(0) == 0] = 1.0
    return A / A.sum(0)


def run(step, M, eps=1e-10):
    n = len(M)
    v, change, it = np.ones(n) / n, 1.0, 0
    while change >= eps:
        v, change = step(M, v)
        it += 1
    return v, it


if __name__ == "__main__":
    want, got = run(step, start()), run(cg.jit(step), start())
    np.testing.assert_allclose(got[0], want[0], rtol=1e-9)
    assert abs(got[1] - want[1]) <= 1
    print(f"{got[1]} rounds, largest rank {got[0].max():.6f}, as NumPy's")
