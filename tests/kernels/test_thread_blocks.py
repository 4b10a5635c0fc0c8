"""Kernels for blocks of a GPU's threads are asked for on targets that have them, and nowhere else."""

from cgraph.kernels.target import host_target
from cgraph.kernels.views.thread_blocks import in_blocks
from tests.support.gpu import BLOCKS, GPU


def test_calls_are_made_with_all_arguments_only_where_there_are_blocks():
    asked = []

    def calls(*args):
        asked.append(args)
        return None if args[0] == "no" else args

    assert in_blocks(BLOCKS, calls, "a", 2) == ("a", 2)
    assert in_blocks(BLOCKS, calls, "no") is None
    assert in_blocks(GPU, calls, "a") is None and in_blocks(host_target(), calls, "a") is None
    assert asked == [("a", 2), ("no",)]
