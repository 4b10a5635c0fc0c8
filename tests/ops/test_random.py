"""Keyed random numbers: what a key fixes, what splitting gives, moments, dropout, an update edge that carries a key."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, ShapeError
from tests.support.tolerance import assert_near

KEY = cg.random_key(2024)


def test_equal_keys_give_equal_numbers_and_others_do_not():
    draw = cg.Var((2,), "uint32", "key")
    f = cg.compile(cg.random_uniform(draw, (100,)), [draw])
    np.testing.assert_array_equal(f(KEY), f(KEY))
    assert not np.array_equal(f(KEY), f(cg.random_key(2025)))


def test_numbers_do_not_depend_on_the_size_drawn():
    few, many = cg.random_uniform(KEY, (7,)).eval(), cg.random_uniform(KEY, (1000,)).eval()
    np.testing.assert_array_equal(few, many[:7])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_moments(dtype):
    n = 200_000
    u = cg.random_uniform(KEY, (n,), -1, 3, dtype).eval()
    z = cg.random_normal(KEY, (n,), 2, 3, dtype).eval()
    b = cg.random_bernoulli(KEY, (n,), 0.3).eval()
    assert u.dtype == z.dtype == dtype
    assert u.min() >= -1 and u.max() < 3
    sigma = 1 / np.sqrt(n)
    assert abs(u.mean() - 1) < 5 * sigma * 4 / np.sqrt(12)
    assert abs(z.mean() - 2) < 5 * sigma * 3
    assert abs(z.std() - 3) < 5 * sigma * 3
    assert abs(b.mean() - 0.3) < 5 * sigma * 0.5


def test_split_keys_are_unlike_one_another():
    keys = [k.eval() for k in cg.split_key(KEY, 50)]
    assert len({k.tobytes() for k in (*keys, KEY)}) == 51
    draws = np.stack([cg.random_normal(k, (2000,)).eval() for k in keys[:8]])
    off_diagonal = np.corrcoef(draws)[~np.eye(8, dtype=bool)]
    assert np.abs(off_diagonal).max() < 5 / np.sqrt(2000)


def test_an_update_edge_carries_the_key_to_the_next_run():
    key = cg.Var((2,), "uint32", "key").assign(KEY)
    own, following = cg.split_key(key)
    f = cg.compile(cg.random_uniform(own, (3,)), updates={key: following})
    first, second = f(), f()
    assert not np.array_equal(first, second)
    key.assign(KEY)
    np.testing.assert_array_equal(f(), first)


def test_dropout_keeps_the_mean():
    x = cg.Var((100, 300), name="x")
    y = cg.compile(cg.dropout(x, KEY, 0.4), [x])(np.ones((100, 300), "f4"))
    kept = y != 0
    assert_near(y[kept], 1 / 0.6, "float32 formulas")
    assert abs(kept.mean() - 0.6) < 0.02


def test_what_is_no_key_seed_or_probability_is_refused():
    with pytest.raises(ShapeError, match="random_key or split_key"):
        cg.random_uniform(cg.Var((3,), "uint32"), (2,))
    with pytest.raises(ShapeError, match="2\\*\\*64"):
        cg.random_key(-1)
    with pytest.raises(ShapeError, match="probability"):
        cg.random_bernoulli(KEY, (2,), 1.5)
    with pytest.raises(ShapeError, match="rate"):
        cg.dropout(cg.Var((2,)), KEY, 1.0)


@pytest.mark.parametrize("draw", [cg.random_bits, cg.random_uniform, cg.random_normal, cg.random_bernoulli])
def test_without_a_shape_one_number_is_drawn_and_a_shape_in_place_of_the_key_is_refused(draw):
    assert draw(KEY).shape == ()
    np.testing.assert_array_equal(draw(KEY).eval(), draw(KEY, ()).eval())
    with pytest.raises(ShapeError, match="key is int64.1., but must be uint32.2.; create one with random_key"):
        draw((3,))


def test_a_seed_is_both_words_of_a_key_up_to_the_largest():
    assert cg.random_key(5 + (7 << 32)).tolist() == [5, 7] and cg.random_key(0).tolist() == [0, 0]
    largest = cg.random_key(2**64 - 1)
    assert largest.dtype == np.uint32 and largest.tolist() == [2**32 - 1] * 2
    with pytest.raises(ShapeError, match="seed=18446744073709551616 is outside"):
        cg.random_key(2**64)


def test_one_option_of_a_distribution_leaves_the_other_at_its_default():
    unit, normal = (draw(KEY, (50,), dtype="float64").eval() for draw in (cg.random_uniform, cg.random_normal))
    for options, want in (({"low": 0.5}, 0.5 + unit * 0.5), ({"high": 3.0}, 3 * unit), ({"low": -1.0}, 2 * unit - 1)):
        assert_near(
            cg.random_uniform(KEY, (50,), **options, dtype="float64").eval(), want, "float64 formulas near zero"
        )
    for options, want in (({"mean": 2.0}, normal + 2), ({"std": 3.0}, normal * 3)):
        assert_near(cg.random_normal(KEY, (50,), **options, dtype="float64").eval(), want, "float64 formulas near zero")


def test_sure_events_and_rates_at_their_limits():
    assert cg.random_bernoulli(KEY, (99,), 1).eval().all() and not cg.random_bernoulli(KEY, (99,), 0).eval().any()
    x = cg.Var((2,), name="x")
    assert cg.dropout(x, KEY, 0) is x
    for rate in (-0.1, 1.0):
        with pytest.raises(ShapeError, match=f"rate={rate} is outside"):
            cg.dropout(x, KEY, rate)
    for probability in (-0.1, 1.1):
        with pytest.raises(ShapeError, match=f"probability={probability} is outside"):
            cg.random_bernoulli(KEY, (2,), probability)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (3, 0), (2, 3, 5)])
def test_every_shape_is_filled_in_order(shape, engine):
    draws = [
        lambda s: cg.random_bits(KEY, s), lambda s: cg.random_bits(KEY, s, "uint64"),
        lambda s: cg.random_uniform(KEY, s, dtype="float64"), lambda s: cg.random_normal(KEY, s),
        lambda s: cg.random_bernoulli(KEY, s, 0.3),
    ]  # fmt: skip
    count = int(np.prod(shape))
    got = cg.compile([draw(shape) for draw in draws], [], engine=engine)()
    for x, draw in zip(got, draws, strict=True):
        assert x.shape == shape
        np.testing.assert_array_equal(x.reshape(-1), draw((64,)).eval()[:count])


def test_bits_and_floats_of_other_dtypes_are_refused():
    with pytest.raises(DTypeError, match="dtype=int32 is not supported for random bits; use uint32 or uint64"):
        cg.random_bits(KEY, (2,), "int32")
    with pytest.raises(DTypeError, match="dtype=complex64 is not supported for random floats"):
        cg.random_normal(KEY, (2,), dtype="complex64")
