"""Sums over members: the bits of the tree over shards, whoever has which; and every way in which a round ends."""

import time

import numpy as np
import pytest

from cgraph.dist import sums
from cgraph.dist.limits import Limits
from cgraph.dist.sockets import LostError
from cgraph.dist.sums import sum_over_members
from tests.dist.members import parts, shards_of, together, tree_sum


@pytest.mark.parametrize("n", [0, 3, 100_001])
@pytest.mark.parametrize("deal", [[8], [4, 4], [2, 2, 2, 2], [1] * 8, [3, 3, 2], [1, 7], [2, 1, 1, 3, 1], [5, 1, 2]])
def test_the_sum_has_the_bits_of_the_tree_whoever_has_which_shards(deal, n):
    x = shards_of(8, n)

    def work(mesh):
        first = sum(deal[: mesh.me])
        return [sum_over_members(mesh, step, deal, parts(x, first, deal[mesh.me])) for step in range(3)]

    want = tree_sum(x)
    for found in together(deal, work):
        assert len(found) == 3, found
        for one in found:
            np.testing.assert_array_equal(one.view(np.uint32), want.view(np.uint32))


@pytest.mark.parametrize("piece", [1, 7, 100])
@pytest.mark.parametrize("deal", [[4, 4], [2, 2, 2, 2]])
def test_pieces_are_added_as_they_come_with_the_same_bits(monkeypatch, piece, deal):
    monkeypatch.setattr(sums, "PIECE", piece)
    x = shards_of(8, 101)
    first = [0, *np.cumsum(deal)]

    def work(mesh):
        return sum_over_members(mesh, 3, deal, parts(x, first[mesh.me], deal[mesh.me]))

    for total in together(deal, work):
        np.testing.assert_array_equal(total, tree_sum(x))


def test_an_order_of_its_own_would_have_other_bits():
    x = shards_of(8, 1000)
    assert (np.add.reduce(x, axis=0) != tree_sum(x)).any()


@pytest.mark.parametrize("deal", [[1, 1], [2, 1, 1], [1, 1, 1, 1]])
def test_who_goes_away_ends_the_round_for_all_at_once(deal):
    def work(mesh):
        if mesh.me == 1:
            return None
        with pytest.raises(LostError) as error:
            for step in range(10):
                sum_over_members(
                    mesh, step, deal, parts(shards_of(sum(deal), 5000), sum(deal[: mesh.me]), deal[mesh.me])
                )
        return error.value

    found = together(deal, work)
    assert found.pop(1) is None and all(isinstance(x, LostError) for x in found), found


def test_who_is_busy_is_waited_for_and_who_takes_too_long_is_not():
    def work(mesh, seconds):
        if mesh.me == 1:
            time.sleep(seconds)
        return sum_over_members(mesh, 0, [1, 1], parts(shards_of(2, 10), mesh.me, 1))

    for found in together([1, 1], lambda mesh: work(mesh, 0.4)):
        np.testing.assert_array_equal(found, tree_sum(shards_of(2, 10)))
    first, _ = together([1, 1], lambda mesh: work(mesh, 1.0), Limits(silence=0.05, answer=10.0, step=0.2))
    assert isinstance(first, LostError) and "sent nothing for 0.2 s" in str(first)
