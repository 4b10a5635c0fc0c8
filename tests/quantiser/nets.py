"""Small float networks for the quantiser, with every group that becomes bytes."""

import numpy as np

import cgraph as cg

SHAPE = (2, 3, 18, 18)


class Net:
    """Draws constants. Changes: its random numbers advance."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)

    def normal(self, *shape, size=1.0):
        return (self.rng.standard_normal(shape) * size).astype("float32")

    def conv(self, x, k, window=3, stride=1, groups=1):
        c = x.shape[1] // groups
        filters = self.normal(k, c, window, window, size=(c * window**2) ** -0.5)
        return cg.conv2d(x, filters, stride, window // 2, 1, groups) + self.normal(k, 1, 1, size=0.1)

    def linear(self, x, n):
        return x @ self.normal(x.shape[-1], n, size=x.shape[-1] ** -0.5) + self.normal(n, size=0.1)


def every_group(seed=0):
    """An image and scores: residual, concat, gate, swish, batch norm, pad, pools, mean and products."""
    net, x = Net(seed), cg.Var(SHAPE, name="image")
    first = cg.relu(net.conv(x, 16, 3, 2))
    deep = cg.relu6(net.conv(first, 16, 3, 1, 16))
    norm = [net.normal(24), net.normal(24), net.normal(24), np.abs(net.normal(24)) + np.float32(0.5)]
    wide = cg.batch_norm(cg.conv2d(deep, net.normal(24, 16, 1, 1, size=0.25)), *norm)
    added = cg.relu(wide + net.conv(first, 24, 1))
    swish = net.conv(added, 20)
    swish = swish * cg.sigmoid(swish)
    joined = cg.concat([swish, cg.max_pool2d(added, 3, 1, 1), net.conv(added, 12, 1)], 1)
    small = cg.pad(joined[:, :, ::2, ::2], [(0, 0), (2, 2), (0, 0), (0, 0)])
    gate = cg.sigmoid(net.conv(cg.mean(small, (2, 3), keepdims=True), 60, 1))
    pooled = cg.avg_pool2d(small * gate, 2, 1)
    mean = cg.mean(net.conv(pooled, 32, 1), (2, 3))
    return x, cg.softmax(net.linear(cg.relu(net.linear(mean, 24)), 10))


def pictures(count=4, seed=1):
    return [np.random.default_rng([seed, i]).standard_normal(SHAPE).astype("float32") for i in range(count)]
