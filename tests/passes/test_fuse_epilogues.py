"""What a convolution takes in, and what it must leave: each refusal from its other side."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ops.physical.conv import ConvEpilogue
from cgraph.passes.fuse_epilogues import fuse_epilogues
from tests.support.rewrites import assert_left, assert_same_values, ops_of

RNG = np.random.default_rng(0)
K = 8


def const(*shape: int) -> cg.Node:
    return cg.Const(RNG.normal(size=shape))


X = cg.Var((2, 8, 5, 5), "float64", "x")
Y = cg.Var((2, K, 5, 5), "float64", "y")
FILTERS, MORE = const(K, 8, 3, 3), const(K, 8, 3, 3)
FACTOR = cg.Const(RNG.normal(size=(K, 1, 1)))
TERM = cg.Const(RNG.normal(size=(1, K, 1, 1)))
CONV = cg.conv2d(X, FILTERS, 1, 1)
OF_VARS = cg.conv2d(X, cg.Var((K, 8, 3, 3), "float64", "f"), 1, 1)
DEPTHWISE = cg.conv2d(X, const(K, 1, 3, 3), 1, 1, groups=K)
GROUPED = cg.conv2d(X, const(K, 4, 3, 3), 1, 1, groups=2)
TRANSPOSED = cg.conv_transpose2d(X, const(8, K, 3, 3), 1, 1)
LOW, HIGH = -0.5, 6.0

TAKEN = {
    "nothing": CONV,
    "a factor": CONV * FACTOR,
    "a factor from the left": FACTOR * CONV,
    "a divisor": CONV / FACTOR,
    "a term": CONV + TERM,
    "a term from the left": TERM + CONV,
    "a term taken away": CONV - TERM,
    "a number": CONV * 2.0 + 1.0,
    "a factor, a term, a factor, a term": ((CONV * FACTOR + TERM) / 3.0 - FACTOR) * 0.5 + TERM,
    "a residual": CONV + Y,
    "a residual from the left": Y + CONV,
    "all of it": cg.relu(CONV * FACTOR + TERM + Y),
    "relu": cg.relu(CONV),
    "bounds": cg.minimum(cg.maximum(CONV, LOW), HIGH),
    "a lower bound": cg.maximum(LOW, CONV),
    "an upper bound of 0": cg.minimum(CONV, 0.0),
    "a lower bound of 0": cg.maximum(CONV, 0.0),
    "two lower bounds": cg.maximum(cg.relu(CONV), LOW),
    "two upper bounds": cg.minimum(cg.minimum(CONV, 3.0), HIGH),
    "a residual of convolutions in groups": cg.relu(GROUPED + Y),
    "a term of Vars' filters": cg.relu(OF_VARS + TERM),
    "a residual of Vars' filters": OF_VARS + Y,
    "a term of a depthwise convolution": cg.relu(DEPTHWISE * FACTOR + TERM),
    "a term of a transposed convolution": cg.relu(TRANSPOSED * FACTOR + TERM),
}
LEFT = {
    "a factor behind relu": (cg.relu(CONV) * FACTOR,),
    "a term behind relu": (cg.relu(CONV) + TERM,),
    "a residual behind relu": (cg.relu(CONV) + Y,),
    "a factor behind a bound": (cg.minimum(CONV, HIGH) * FACTOR,),
    "a factor behind a residual": ((CONV + Y) * FACTOR,),
    "a term behind a residual": ((CONV + Y) + TERM,),
    "a second residual": ((CONV + Y) + cg.sin(Y),),
    "a factor of Vars' filters": (OF_VARS * FACTOR,),
    "a divisor of zero": (CONV / np.where(np.arange(K) == 3, 0.0, 2.0)[:, None, None],),
    "an infinite factor": (CONV * np.where(np.arange(K) == 3, np.inf, 2.0)[:, None, None],),
    "a factor that is NaN": (CONV * np.where(np.arange(K) == 3, np.nan, 2.0)[:, None, None],),
    "a divisor whose inverse is infinite": (CONV / np.float64(1e-310),),
    "a factor that is no constant": (CONV * Y,),
    "a factor of each pixel": (CONV * const(5, 5),),
    "a factor of each row": (CONV * const(1, K, 5, 1),),
    "a factor of each image": (CONV * const(2, 1, 1, 1),),
    "a constant of each pixel": (CONV + const(2, K, 5, 5),),
    "a Var of each channel": (CONV + cg.Var((K, 1, 1), "float64", "b"),),
    "what it is taken from": (TERM - CONV,),
    "what it is taken from, of each pixel": (Y - CONV,),
    "a residual that is taken away": (CONV - Y,),
    "what it divides": (FACTOR / CONV,),
    "itself, added": (CONV + CONV,),
    "itself, multiplied": (CONV * CONV,),
    "a lower bound above 0": (cg.maximum(CONV, 0.5),),
    "an upper bound below 0": (cg.minimum(CONV, -0.5),),
    "a lower bound behind an upper one": (cg.maximum(cg.minimum(CONV, HIGH), LOW),),
    "a bound of each channel": (cg.maximum(CONV, -cg.abs(FACTOR)),),
    "a bound that is no constant": (cg.maximum(CONV, Y),),
    "another activation": (cg.tanh(CONV),),
    "a residual of a depthwise convolution": (DEPTHWISE + Y,),
    "a residual of a transposed convolution": (TRANSPOSED + Y,),
    "two users": (cg.relu(CONV), cg.tanh(CONV)),
    "an output that is read": (CONV, cg.relu(CONV)),
    "an output that is read, in the middle": (CONV * FACTOR, cg.relu(CONV * FACTOR)),
}


@pytest.mark.parametrize("name", TAKEN)
def test_taken_in(name):
    (found,) = fuse_epilogues((TAKEN[name],))
    assert isinstance(found.op, ConvEpilogue)
    assert [x.op for x in found.operands if isinstance(x.op, ConvEpilogue)] == []
    assert_same_values(fuse_epilogues, TAKEN[name])


@pytest.mark.parametrize("name", LEFT)
def test_not_taken_in(name):
    """The last op of the graph is there behind the pass; only what stands before it may have been taken in."""
    outputs = LEFT[name]
    found = fuse_epilogues(outputs)
    assert type(found[-1].op) is type(outputs[-1].op)
    assert_same_values(fuse_epilogues, *outputs)


def test_two_convolutions_that_are_added_are_taken_once():
    outputs = (cg.relu(CONV + cg.conv2d(X, MORE, 1, 1)),)
    found = fuse_epilogues(outputs)
    assert ops_of(found) == {"conv_epilogue": 2}
    assert_same_values(fuse_epilogues, *outputs)


def test_a_convolution_read_by_the_chain_of_another():
    first = cg.relu(CONV)
    outputs = (cg.relu(cg.conv2d(first, MORE, 1, 1) + first),)
    assert ops_of(fuse_epilogues(outputs)) == {"conv_epilogue": 2}
    assert_same_values(fuse_epilogues, *outputs)


WHOLE = cg.Var((1, 8, 5, 5), "int32", "n")
NOT_FUSIBLE = {
    "whole numbers": cg.conv2d(WHOLE, np.ones((K, 8, 3, 3), "int32")),
    "one axis": cg.conv1d(X[:, :, 0], const(K, 8, 3)),
    "few channels": cg.conv2d(X[:, :3], const(3, 3, 3, 3)),
    "no images": cg.conv2d(X[:0], FILTERS),
    "few filters of a Var": cg.conv2d(X, cg.Var((7, 8, 3, 3), "float64")),
    "some channels of a Var's filters": cg.conv2d(X[:, :7], cg.Var((K, 7, 3, 3), "float64")),
    "depthwise of three channels and few pixels": cg.conv2d(X[:, :3], const(3, 1, 3, 3), 1, 1, groups=3),
    "depthwise of a channel": cg.conv2d(X[:, :1], const(1, 1, 3, 3)),
    "two filters for each of few channels": cg.conv2d(X[:, :1], const(2, 1, 3, 3)),
    "groups of a Var's filters": cg.conv2d(X, cg.Var((K, 4, 3, 3), "float64"), groups=2),
}
FUSIBLE = {
    "filters enough": cg.conv2d(X[:, :3], const(4, 3, 3, 3)),
    "channels enough": cg.conv2d(X[:, :4], const(1, 4, 3, 3)),
    "filters of a Var": cg.conv2d(X, cg.Var((8, 8, 3, 3), "float64")),
    "few channels of a Var's filters": cg.conv2d(X[:, :4], cg.Var((8, 4, 3, 3), "float64")),
    "few constant filters": cg.conv2d(X, const(7, 8, 3, 3)),
    "constant filters in groups": GROUPED,
    "depthwise of two channels": cg.conv2d(cg.Var((1, 2, 64, 64), "float64"), const(2, 1, 3, 3), 2, 1, groups=2),
    "depthwise of three channels": cg.conv2d(cg.Var((1, 3, 32, 32), "float64"), const(3, 1, 5, 5), 1, 2, groups=3),
}


@pytest.mark.parametrize("name", NOT_FUSIBLE)
def test_a_convolution_that_blocks_do_not_serve_is_left(name):
    assert_left(fuse_epilogues, NOT_FUSIBLE[name])


@pytest.mark.parametrize("name", FUSIBLE)
def test_a_convolution_that_blocks_serve_is_taken(name):
    assert isinstance(fuse_epilogues((FUSIBLE[name],))[0].op, ConvEpilogue)
    assert_same_values(fuse_epilogues, FUSIBLE[name])


def test_nothing_is_left_the_second_time():
    once = fuse_epilogues(tuple(TAKEN.values()))
    assert_left(fuse_epilogues, *once)
