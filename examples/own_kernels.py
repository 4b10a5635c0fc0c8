"""Three kernels in plain Python: a soft threshold, a running maximum, a bilateral filter.

python examples/own_kernels.py
"""

import math

import numpy as np

import cgraph as cg


@cg.kernel(grad=lambda g, y, x, limit: (g * cg.not_equal(y, 0), None))
def soft(x, limit):
    """Numbers nearer to 0 than the limit become 0, the others come nearer by it. Source: Donoho 1995."""
    if x > limit:
        return x - limit
    return x + limit if x < -limit else x * 0


@cg.kernel(out=lambda x: x, tasks=lambda x: x.shape[0])
def running_largest(task, out, x):
    """The largest number so far, along each row."""
    best = x[task, 0]
    for j in range(x.shape[1]):
        best = max(best, x[task, j])
        out[task, j] = best


@cg.kernel(out=lambda x, *_: x, tasks=lambda x, *_: x.shape[0])
def bilateral(task, out, x, reach, space, tone):
    """The mean of the pixels around each one, near in place and in tone. Source: Tomasi and Manduchi 1998."""
    rows, columns = x.shape
    for j in range(columns):
        total = weights = np.float32(0)
        for r in range(max(task - reach, 0), min(task + reach + 1, rows)):
            for c in range(max(j - reach, 0), min(j + reach + 1, columns)):
                difference = x[r, c] - x[task, j]
                apart = np.float32((r - task) ** 2 + (c - j) ** 2)
                weight = math.exp(-space * apart - tone * difference * difference)
                total += weight * x[r, c]
                weights += weight
        out[task, j] = total / weights


def main() -> None:
    rng = np.random.default_rng(0)
    clean = np.kron(rng.random((6, 6), "float32"), np.ones((20, 20), "float32"))
    noisy = clean + 0.1 * rng.standard_normal(clean.shape, "float32")

    x = cg.Var(clean.shape, name="x")
    smooth = bilateral(x, 4, np.float32(0.03), np.float32(8))
    found = cg.compile([smooth, running_largest(smooth), cg.mean(abs(soft(x - smooth, 0.2)))], x)
    filtered, largest, left = found(noisy)
    print(f"error {np.abs(noisy - clean).mean():.3f} before, {np.abs(filtered - clean).mean():.3f} after the filter")
    print(f"largest of the first row {largest[0, -1]:.3f}; outliers of {left:.5f} a pixel; {found}")

    w = cg.Var(clean.shape, name="w").assign(np.ones_like(clean))
    loss = cg.mean(cg.square(soft(w, 0.05) - x))
    step = cg.compile(loss, x, updates={w: w - 0.25 * clean.size * cg.gradient(loss, w)})
    print("loss", *(f"{step(noisy):.4f}" for _ in range(4)))


if __name__ == "__main__":
    main()
