"""einsum: which letters are summed, in which order the result comes, what broadcasts, and its parts one by one."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from cgraph.ops.einsum import contraction_order, lengths_of, parse, product, stretch, sum_out, take_diagonals
from tests.autodiff.differences import check_first
from tests.support.computed import computed

RNG = np.random.default_rng(0)
SIZES = {"a": 2, "b": 3, "c": 4, "d": 1, "z": 0}
ROWS = """
ab->ba ab->a ab->b ab-> aa aa->a aba->ab aab->ba aaa->a ab,bc ab,bc->ca ab,ab->a a,b->ba a,a->a ,ab->b
abc,cb->a abc,abc->b ab,cb,ca->c bac,ad,ab->dc az,bz->ab az->z az->a ba,a ab,cd ca,ca,ca->ac
""".split()


def whole(*shape):
    return RNG.integers(-4, 5, shape).astype("float64")


@pytest.mark.parametrize("row", ROWS)
def test_sums_of_products_are_numpys(row):
    arrays = [whole(*(SIZES[c] for c in letters)) for letters in row.partition("->")[0].split(",")]
    np.testing.assert_array_equal(computed(cg.einsum(row, *map(cg.Var, arrays))), np.einsum(row, *arrays))


@pytest.mark.parametrize("row, shapes", [
    ("...a,ab", [(5, 2), (2, 3)]), ("a...->...", [(2, 5, 3)]), ("...a,...a->...", [(5, 2), (2,)]),
    ("a...b,b...->...a", [(2, 5, 3), (3, 4, 1)]), ("...,...", [(3, 1), (4,)]), ("...ab->...ba", [(2, 3)]),
    ("b...a->...", [(2, 5, 6, 3)]), ("... b, b ... -> ...", [(2, 3), (3, 2)]),
])  # fmt: skip
def test_an_ellipsis_stands_for_axes_that_broadcast(row, shapes):
    arrays = [whole(*shape) for shape in shapes]
    np.testing.assert_array_equal(computed(cg.einsum(row, *map(cg.Var, arrays))), np.einsum(row, *arrays))


def test_a_length_of_one_broadcasts_to_the_letters_length():
    arrays = [whole(2, 1), whole(3, 4), whole(1, 4)]
    np.testing.assert_array_equal(computed(cg.einsum("ab,bc,ac->ac", *map(cg.Var, arrays))),
                                  (arrays[0] * arrays[1].sum(0)) * arrays[2])  # fmt: skip


def test_operands_are_promoted_and_integers_stay_integers():
    x, y = cg.Var((2, 3), "int16"), cg.Var((3,), "float32")
    assert cg.einsum("ab,b", x, y).dtype == "float32"
    assert cg.einsum("ab->a", x).dtype == "int16"
    assert cg.einsum("ab,ab->", x, cg.Var((2, 3), "int64")).dtype == "int64"


def test_letters_of_the_result_come_in_order_without_an_arrow():
    x, y = cg.Var((2, 3)), cg.Var((3, 4))
    assert parse("ba,ac", [x, y]) == (["ba", "ac"], "bc")
    assert parse("ij,jk->ki", [x, y]) == (["ij", "jk"], "ki")
    assert parse("...b,ba", [x, y]) == (["cb", "ba"], "ca")  # free letters stand first


def test_one_letter_has_one_length():
    x, y = cg.Var((2, 3), name="x"), cg.Var((4, 3), name="y")
    assert lengths_of(["ab", "cb"], [x, y]) == {"a": 2, "b": 3, "c": 4}
    assert (
        lengths_of(["a", "a"], [cg.Var((1,)), cg.Var((5,))])
        == {"a": 5}
        == lengths_of(["a", "a"], [cg.Var((5,)), cg.Var((1,))])
    )
    with pytest.raises(ShapeError, match=r"'a' stands for length 2, but for 4 in y float32\[4,3\]; use another letter"):
        cg.einsum("ab,ab", x, y)
    with pytest.raises(ShapeError, match="names 3 operands, but there are 2; separate operands by commas"):
        cg.einsum("ab,ab,a", x, y)
    with pytest.raises(ShapeError, match=r"the result 'aa' repeats a letter or has one that is not in \['ab'\]"):
        cg.einsum("ab->aa", x)
    with pytest.raises(ShapeError, match="'abc' does not fit x"):
        cg.einsum("abc", x)
    for subscripts, shape in (("aa->a", (1, 3)), ("aa", (3, 1)), ("baa", (2, 2, 1)), ("...aa->...", (2, 1, 3))):
        with pytest.raises(ShapeError, match="'a' stands for lengths"):
            cg.einsum(subscripts, cg.Var(shape))


def test_the_parts_of_a_product():
    x, y = cg.Var(whole(2, 3, 4)), cg.Var(whole(4, 2))
    node, letters = product((x, "abc"), (y, "ca"), {"a", "b"}, {"a": 2, "b": 3, "c": 4})
    assert letters == "ab"
    np.testing.assert_array_equal(computed(node), np.einsum("abc,ca->ab", x.value, y.value))
    node, letters = sum_out((x, "abc"), {"c", "a"})
    np.testing.assert_array_equal(computed(node), x.value.sum(1))
    assert letters == "ac" and sum_out((x, "abc"), {"a", "b", "c"})[0] is x
    square = cg.Var(whole(3, 2, 3))
    node, letters = take_diagonals(square, "aba")
    assert letters == "ba"
    np.testing.assert_array_equal(computed(node), np.einsum("aba->ba", square.value))
    assert stretch(cg.Var((1, 1)), "ab", ["b"], {"a": 5, "b": 7}).shape == (1, 7)


def test_the_cheap_product_comes_first():
    shapes = [(2, 100), (100, 100), (100, 2)]
    assert contraction_order(["ab"], "a", [cg.Var((2, 3))]) == []
    order = contraction_order(["ab", "bc", "cd"], "ad", [cg.Var(s) for s in shapes])
    assert sorted(len(step) for step in order) == [2, 2] and {0, 2} != set(order[0])


def test_gradients_agree_with_differences():
    check_first(lambda x, y, z: cg.einsum("ab,bc,ad->cd", x, y, z), [whole(2, 3), whole(3, 2), whole(2, 2)])
    check_first(lambda x: cg.einsum("aba->b", x), [whole(3, 2, 3)])
    check_first(lambda x, y: cg.einsum("ab,b->a", x, y), [whole(2, 1), whole(3)])
