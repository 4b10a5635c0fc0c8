"""What is compiled for one structure: results arranged as the function returns them, numbers, the cache."""

import gc
import weakref

import numpy as np

import cgraph as cg
from cgraph.transforms.executable import EXECUTABLES, Executable, Executables, node_or_constant, number_of
from cgraph.transforms.trees import LEAF, flatten

A, B = np.array([1.0, 2.0]), np.array(3.0)


def test_a_single_result_comes_as_it_is_and_of_rank_0_as_a_number():
    plain = Executable(None, LEAF, [0], 0)
    assert plain.is_plain and plain.result([A]) is A
    number = plain.result([B])
    assert number == 3 and isinstance(number, np.float64)
    assert not Executable(None, LEAF, [0], 1).is_plain and not Executable(None, LEAF, [1], 0).is_plain
    assert Executable(None, LEAF, [1], 0).result([A, B]) == 3


def test_results_are_arranged_with_constants_that_nobody_else_holds():
    constant = np.zeros(2)
    structure = flatten({"x": (0.0, 0.0), "y": [0.0], "z": None}, [])
    executable = Executable(None, structure, [1, [constant], ["text"]], 0)
    got = executable.result([A, B])
    assert got["x"][0] == 3 and isinstance(got["x"][0], np.float64) and got["y"] == ["text"] and got["z"] is None
    got["x"][1][:] = 9
    assert constant.tolist() == [0, 0] and executable.result([A, B])["x"][1].tolist() == [0, 0]


def test_a_function_without_results_runs_nothing():
    assert Executable(None, None, [], 0).run(1, 2, 3) == []
    function = cg.compile(cg.Const(1.0) + cg.Var(()), [])
    assert Executable(function, LEAF, [0], 0).run is function


def test_leaves_that_are_not_computed_are_copies_in_a_list():
    array = np.array([1.0])
    (held,) = node_or_constant(array)
    array[0] = 5
    assert held.tolist() == [1] and node_or_constant("text") == ["text"]
    node = cg.Var((2,))
    assert node_or_constant(node) is node


def test_a_function_has_one_number_for_each_recipe_and_gives_it_back_at_its_end():
    def f(x):
        return x

    def g(x):
        return x

    number = number_of(f, ("jit", 1))
    assert number_of(f, ("jit", 1)) == number
    assert len({number, number_of(f, ("jit", 2)), number_of(g, ("jit", 1))}) == 3
    assert number_of(f, ["not hashable"]) != number_of(f, ["not hashable"])
    assert number_of(np.sin, ()) != number_of(np.sin, ())  # not a Python function
    EXECUTABLES.add((number, "key"), Executable(None, LEAF, [0], 0))
    other = weakref.ref(f)
    del f
    gc.collect()
    assert other() is None and EXECUTABLES.get((number, "key")) is None


def test_the_cache_counts_what_it_compiled_and_drops_one_function_at_a_time():
    cache = Executables(10, 1 << 30)
    compiled = cg.jit(lambda x: np.exp(x)).compiled(np.zeros(1000))
    cache.add((1, "a"), Executable(None, LEAF, [0], 0))
    before = cache.info()
    assert (before.entries, before.compilations, before.most, before.most_nbytes) == (1, 0, 10, 1 << 30)
    cache.add((1, "b"), Executable(compiled, LEAF, [0], 0))
    cache.add((2, "a"), Executable(compiled, LEAF, [0], 0))
    after = cache.info()
    assert (after.entries, after.compilations) == (3, 2) and after.nbytes > before.nbytes
    cache.drop(1)
    assert cache.info().entries == 1 and cache.get((2, "a")).function is compiled and cache.get((1, "a")) is None
    cache.drop(7)
