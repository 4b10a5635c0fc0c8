"""k-means, Lloyd's algorithm until nothing moves (after VanderPlas): the test stays outside the step."""

import numpy as np

import cgraph as cg


def step(X, centers):
    d2 = ((X[:, None, :] - centers[None]) ** 2).sum(-1)
    labels = d2.argmin(1)
    member = (labels[:, None] == np.arange(len(centers))).astype(float)
    count = member.sum(0)[:, None]
    new = np.where(count > 0, member.T @ X / np.maximum(count, 1), centers)
    return new, np.abs(new - centers).max()


def start(n=5000, d=8, k=10):
    rng = np.random.default_rng(6)
    X = np.concatenate([rng.normal(c, 1.0, (n // k, d)) for c in rng.uniform(-10, 10, (k, d))])
    return X, X[rng.permutation(n)[:k]]


def run(step, X, centers, tol=1e-6, most=100):
    rounds, moved = 0, np.inf
    while moved >= tol and rounds < most:
        centers, moved = step(X, centers)
        rounds += 1
    return centers, rounds


if __name__ == "__main__":
    want, got = run(step, *start()), run(cg.jit(step), *start())
    np.testing.assert_allclose(got[0], want[0], rtol=1e-10)
    assert got[1] == want[1]
    print(f"{len(got[0])} centers after {got[1]} rounds, as NumPy's")
