"""Lists among the arguments of exported kernels: constants, narrow words, numbers that are only known in a run."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Kernel
from cgraph.kernels.reduce.signature import ALONG
from cgraph.kernels.signature import WordTable
from cgraph.kernels.target import host_target
from tests.support.emitted import run_family

HOST = host_target()
ADD = (("load", "f4", 0),)
PARAMS = ("sum", ADD, (0,), "v", ("f4",), 1, ())
KEPT, REDUCED = 2, 3
NAMES = ["outputs", "each", "parts", "blocks", "block", "rows_each", "rows", "columns", "kept_rank", "reduced_rank"]
LISTS = 1 + 4  # part_steps, and two words for each of two arrays
WORDS = np.arange(100, 100 + len(NAMES) + LISTS + 3 * KEPT + 2 * REDUCED)
WORDS[8:10] = KEPT, REDUCED


def table_of(words: np.ndarray, constants: list[int], width: int) -> tuple[WordTable, np.ndarray]:
    """Return the form with some words as constants, and the table of the others."""
    others = [i for i in range(len(NAMES) + LISTS) if i not in constants]
    form = WordTable({i: int(words[i]) for i in constants}, {x: width * n for n, x in enumerate(others)}, width)
    stored = np.concatenate([words[others], words[len(NAMES) + LISTS :]])
    return form, stored.astype(f"i{width}")


def read(words: np.ndarray, constants: list[int], width: int) -> dict[str, list[int]]:
    """Return all arguments that a kernel of `reduce.along` reads, lists by numbers of a loop too."""
    form, table = table_of(words, constants, width)
    places = {name: np.zeros(12, "i8") for name in (*NAMES, "part_steps", "streams", "kept_axes", "reduced_axes")}

    def emit(k, *_):
        k.word_table = form
        a = k.args()
        for name, at in places.items():
            out = k.pointer(k.const(at.ctypes.data, "i8"), "i8")
            if name in NAMES:
                out.store(getattr(a, name))
            elif name in ("part_steps", "streams"):
                for i in range(1 if name == "part_steps" else 4):
                    out.store((getattr(a, name) + i // 2).load(i - i // 2), i)
            else:
                with k.loop(0, 3 * KEPT if name == "kept_axes" else 2 * REDUCED) as i:
                    out.store((getattr(a, name) + i).load(), i)

    run_family(emit, Kernel("reduce.along", PARAMS), HOST, table)
    return {name: x.tolist() for name, x in places.items()}


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("constants", [[], [0, 3], [8, 9], [10, 11, 14], list(range(len(NAMES) + LISTS))])
def test_every_argument_has_its_value(constants, width):
    named = ALONG.named(PARAMS, WORDS.tolist())
    for name, got in read(WORDS, constants, width).items():
        values = list(np.atleast_1d(named[name]))
        assert got[: len(values)] == values, name


def test_negative_words_of_32_bits_keep_their_sign():
    words = WORDS.copy()
    words[12], words[-1] = -7, -(2**31)
    assert read(words, [], 4)["streams"][1] == -7
    assert read(words, [0, 10], 4)["reduced_axes"][2 * REDUCED - 1] == -(2**31)


def test_words_before_the_first_list_that_a_kernel_indexes_are_known():
    assert len(ALONG.unrolled_kinds(PARAMS)) == len(NAMES) + LISTS
    assert ALONG.unrolled_kinds(PARAMS)[len(NAMES) :] == ["i8", "address", "i8", "address", "i8"]


def test_words_that_may_be_constants_are_not_indexed():
    form, table = table_of(WORDS, [0], 8)

    def emit(k, *_):
        k.word_table = form
        with k.loop(0, 2) as i:
            (k.args().streams + i).load()

    with pytest.raises(TypeError, match="reads word 11 and following by a computed number"):
        run_family(emit, Kernel("reduce.along", PARAMS), HOST, table)
