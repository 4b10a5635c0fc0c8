"""Names that stand for code and memory: another one whenever what they stand for is another."""

from collections.abc import Callable

import numpy as np
import pytest

from cgraph.kernels import host as host_module
from cgraph.kernels.isa.x86 import ARCHITECTURE, AVX2, AVX512
from cgraph.kernels.kernel import Pointer, View, contiguous, split_scratch
from cgraph.kernels.user_function import user_function
from cgraph.system.alignment import ALIGNMENT

SCALE = 2.0


def function(body: str, **values: object) -> Callable:
    """A function `f` from source; `values` are its globals."""
    space = dict(values)
    exec(body, space)
    return space["f"]


def closing_over(value: object) -> Callable:
    def f(x):
        return x * value

    return f


def nested(value: float) -> Callable:
    def g(x):
        return x + value

    def f(x):
        return g(x) * 2

    return f


PAIRS = {
    "a constant": (function("def f(x): return x * 2.0"), function("def f(x): return x * 3.0")),
    "a default": (function("def f(x, y=1.0): return x + y"), function("def f(x, y=2.0): return x + y")),
    "what it calls": (
        function("def f(x): return np.sin(x)", np=np),
        function("def f(x): return np.cos(x)", np=np),
    ),
    "an operation": (function("def f(x): return x + x"), function("def f(x): return x - x")),
    "a global": (function("def f(x): return x * s", s=2.0), function("def f(x): return x * s", s=3.0)),
    "a global's kind": (function("def f(x): return x * s", s=2), function("def f(x): return x * s", s=2.0)),
    "an array": (
        function("def f(x): return x * s[0]", s=np.array([1, 2])),
        function("def f(x): return x * s[0]", s=np.array([2, 2])),
    ),
    "an array's dtype": (
        function("def f(x): return x * s[0]", s=np.zeros(2, "i4")),
        function("def f(x): return x * s[0]", s=np.zeros(1, "i8")),
    ),
    "what it has closed over": (closing_over(2.0), closing_over(3.0)),
    "a function that it calls": (nested(2.0), nested(3.0)),
    "an order": (function("def f(x, y): return x - y"), function("def f(x, y): return y - x")),
}


@pytest.mark.parametrize("what", PAIRS)
def test_users_functions_that_differ_have_other_names(what):
    first, second = PAIRS[what]
    assert user_function(first).name != user_function(second).name
    assert user_function(first) != user_function(second)


def test_users_functions_that_compute_the_same_have_one_name():
    for make in (lambda: closing_over(2.0), lambda: nested(2.0), lambda: function("def f(x): return np.sin(x)", np=np)):
        assert user_function(make()) == user_function(make())


@pytest.mark.parametrize("sizes", [(1, 1), (3, 0, 5), (64, 1, 65), (0, 7), (100, 100, 100)])
def test_pieces_of_a_workspace_begin_at_cache_lines_and_do_not_meet(sizes):
    memory = contiguous(Pointer("memory", 128), (4096,), "u1")
    found = split_scratch(memory, *sizes)
    assert [view is None for view in found] == [n == 0 for n in sizes]
    places = [(view.at.offset, view.at.offset + view.size) for view in found if view is not None]
    assert all(start % ALIGNMENT == 0 for start, _ in places) and places[0][0] >= 128
    assert all(stop <= start for (_, stop), (start, _) in zip(places, places[1:]))


def test_pointers_are_equal_only_from_the_same_memory_at_the_same_byte():
    base = np.zeros(3)
    assert Pointer(base, 8) == Pointer(base, 8) and hash(Pointer(base, 8)) == hash(Pointer(base, 8))
    assert Pointer(base, 8) != Pointer(base, 16) and Pointer(base, 8) != Pointer(np.zeros(3), 8)


@pytest.mark.parametrize(
    ("shape", "strides", "other", "same"),
    [
        ((2, 3), (12, 4), (12, 4), True),
        ((2, 3), (4, 8), (4, 8), True),
        ((2, 3), (4, 8), (12, 4), False),
        ((2, 3), (24, 8), (12, 4), False),
    ],
)
def test_elements_are_in_one_order_only_if_their_strides_are(shape, strides, other, same):
    first, second = (View(Pointer("a"), shape, s, "f4") for s in (strides, other))
    assert first.in_order_of(second) is same is second.in_order_of(first)


LINUX = {"bmi": "bmi1", "lzcnt": "abm", "sse4.2": "sse4_2"}  # what /proc/cpuinfo calls LLVM's features


@pytest.mark.parametrize("target", ARCHITECTURE.targets, ids=lambda target: target.name)
def test_a_saved_function_asks_for_every_feature_that_its_code_is_made_with(target):
    features = {LINUX.get(x[1:], x[1:]) for x in target.features.split(",") if x.startswith("+")}
    assert features <= set(ARCHITECTURE.needs[target.name])
    assert set(ARCHITECTURE.needs[AVX2.name]) <= set(ARCHITECTURE.needs[AVX512.name])
    v4 = {f"avx512{x}" for x in ("f", "bw", "cd", "dq", "vl")}  # System V ABI, x86-64-v4
    assert target is not AVX512 or v4 <= set(ARCHITECTURE.needs[target.name])


@pytest.mark.parametrize("what", ["size", "time", "version", "processor"])
def test_what_is_remembered_of_this_machine_is_of_this_processor_and_this_llvm(monkeypatch, what):
    before = host_module.host_key()
    if before is None:
        pytest.skip("this system does not describe its processor")
    if what == "version":
        monkeypatch.setattr("llvmlite.__version__", "0.0.1")
    if what == "processor":
        changed = dict.fromkeys(host_module.cpuinfo(), "another")
        monkeypatch.setattr(host_module, "cpuinfo", lambda: changed)
    if what in ("size", "time"):
        known = host_module.Path.stat

        class Status:
            def __init__(self, status) -> None:
                self.st_size = status.st_size + (what == "size")
                self.st_mtime_ns = status.st_mtime_ns + (what == "time")

        monkeypatch.setattr(host_module.Path, "stat", lambda path: Status(known(path)))
    assert host_module.host_key() != before
