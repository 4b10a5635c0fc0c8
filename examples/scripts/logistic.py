"""Logistic regression by gradient descent with an early stop: derivatives by hand, and by `cg.value_and_grad`."""

import numpy as np

import cgraph as cg


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def cost(params, X, y):
    p = sigmoid(X @ params["w"] + params["b"])
    return -np.mean(y * np.log(p + 1e-12) + (1 - y) * np.log(1 - p + 1e-12))


def step(params, X, y, lr=0.5):
    p = sigmoid(X @ params["w"] + params["b"])
    slope = {"w": X.T @ (p - y) / len(y), "b": np.mean(p - y)}
    return {name: params[name] - lr * slope[name] for name in params}, cost(params, X, y)


def automatic(params, X, y, lr=0.5):
    value, slope = cg.value_and_grad(cost)(params, X, y)
    return {name: params[name] - lr * slope[name] for name in params}, value


def start(n=5000, d=20):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((n, d))
    y = (sigmoid(X @ rng.standard_normal(d)) > rng.random(n)).astype(float)
    return X, y


def run(step, X, y, steps=100, tol=1e-4):
    params, losses = {"w": np.zeros(X.shape[1]), "b": np.float64(0)}, []
    for _ in range(steps):
        params, loss = step(params, X, y)
        losses.append(loss)
        if len(losses) > 1 and abs(losses[-2] - losses[-1]) < tol:
            break
    return params["w"], params["b"], losses


if __name__ == "__main__":
    want = run(step, *start())
    for compiled in (cg.jit(step), cg.jit(automatic)):
        got = run(compiled, *start())
        np.testing.assert_allclose(got[0], want[0], rtol=1e-6)
        np.testing.assert_allclose(got[2], want[2], rtol=1e-9)
    print(f"loss {got[2][-1]:.6f} after {len(got[2])} steps, as NumPy's")
