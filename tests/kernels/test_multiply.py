"""The sums of a register tile: by pixel, then by vector."""

import numpy as np

from cgraph.kernels.llvm.multiply import first_sums, multiply_add
from tests.support.emitted import every_target, run_emitted


@every_target
def test_each_sum_is_that_of_its_pixel_and_its_vector(target):
    lanes, vectors = 4, 3
    scalars, weights = np.array([2.0, -5]), np.arange(12.0).reshape(vectors, lanes) + 1
    sums = np.arange(24.0).reshape(2, vectors, lanes) * 100
    out = np.zeros_like(sums)

    def write(k, x, w, bias, place):
        before = [bias.load(i * lanes, lanes) for i in range(2 * vectors)]
        ws = [w.load(v * lanes, lanes) for v in range(vectors)]
        for i, y in enumerate(multiply_add(k, before, [x.load(0), x.load(1)], ws)):
            place.store(y, i * lanes)

    run_emitted(write, target, scalars, weights, sums, out)
    np.testing.assert_array_equal(out, sums + scalars[:, None, None] * weights)


@every_target
def test_sums_begin_with_the_bias_of_each_vector_for_every_pixel(target):
    bias, out = np.array([[1.0, 2], [3, 4]]), np.zeros((3, 2, 2))

    def write(k, source, place):
        for i, y in enumerate(first_sums([source.load(0, 2), source.load(2, 2)], 3)):
            place.store(y, 2 * i)

    run_emitted(write, target, bias, out)
    np.testing.assert_array_equal(out, np.broadcast_to(bias, out.shape))
