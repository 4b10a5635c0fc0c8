"""Run what a test writes with a Builder: for the tests of the language of kernels.

The text goes the way of every kernel: `cgraph.kernels.llvm.compile`, our linker, executable memory.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cgraph.engine.cuda.simulator.launch import Simulator
from cgraph.kernels.code_image import place_image
from cgraph.kernels.isa.records import Target
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.llvm import compile as compiler
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Ptr
from cgraph.kernels.objects import link_objects
from cgraph.kernels.target import target_named
from tests.support.gpu import GPU
from tests.support.kernels import KERNEL, TARGETS

OWN = Kernel("tests.own")
Write = Callable[..., None]
every_target = pytest.mark.parametrize("target", [target_named(name) for name in TARGETS], ids=TARGETS)


def emitter_over(write: Write, arrays: tuple[np.ndarray, ...]) -> Write:
    """Return an emitter whose arguments are the addresses of the arrays: `write` gets them with their dtypes."""

    def emit(k: Builder, *params: Any) -> None:
        words = Ptr(k, k.function.args[0], "i8")
        write(k, *(k.pointer(words.load(i), code(x)) for i, x in enumerate(arrays)))

    for mark in ("is_final", "block_threads", "resident"):
        if hasattr(write, mark):
            setattr(emit, mark, getattr(write, mark))
    return emit


def code(x: np.ndarray) -> str:
    """The short code of an array's dtype."""
    return f"{x.dtype.kind}{x.dtype.itemsize}"


def run_emitted(write: Write, target: Target, *arrays: np.ndarray, first: int = 0, last: int = 1) -> None:
    """Compile ``write(k, *pointers)`` and run its tasks on the arrays, in place."""
    memory, kernel = compiled(emitter_over(write, arrays), OWN, target)
    kernel(words_of(*(x.ctypes.data for x in arrays)).ctypes.data, first, last)
    assert memory.size


def compiled(emit: Write, kernel: Kernel, target: Target) -> tuple[np.ndarray, Callable[[int, int, int], None]]:
    """Return the memory that must stay alive, and the function of an emitter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "emitter_of", lambda _: emit)
        raw, _ = compiler.compile_kernel(kernel, "own", target)
    memory, addresses = place_image(link_objects({"own": raw}))
    return memory, KERNEL(addresses["own"])


def run_emitted_on_gpu(write: Write, *arrays: np.ndarray, tasks: int = 1) -> None:
    """The same for a simulated GPU: blocks if `write` is marked ``@block(threads)``, else a thread for each task."""
    is_block, words = hasattr(write, "block_threads"), -(-len(arrays) // 8) * 8
    kernel = Kernel("tests.gpu.own") if is_block else OWN
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "emitter_of", lambda _: emitter_over(write, arrays))
        text, _ = compiler.compile_ptx(kernel, "own", words, GPU)
    device = Simulator()
    loaded = device.load(text.decode(), "own")
    places = [device.memory.take(x.nbytes, True) for x in arrays]
    for x, at in zip(arrays, places):
        device.memory.bytes_at(at, x.nbytes)[:] = x.reshape(-1).view(np.uint8)
    blocks = tasks if is_block else -(-tasks // loaded.kernel.threads)
    device.launch(loaded, blocks, words_of(*places, size=words), tasks)
    for x, at in zip(arrays, places):
        x.reshape(-1).view(np.uint8)[:] = device.memory.bytes_at(at, x.nbytes)


def words_of(*addresses: int, size: int = 0) -> np.ndarray:
    """The arguments of a call."""
    words = np.zeros(max(size, len(addresses), 1), np.int64)
    words[: len(addresses)] = addresses
    return words


def applied(write: Callable[..., Any], target: Target, *xs: np.ndarray, dtypes: tuple[str, ...] = (), lanes: int = 8):
    """Return the arrays of what ``write(k, *values)`` returns for elements, `lanes` at a time; 0: one by one.

    Parameters
        dtypes: of the results; as many as there are, the first operand's dtype by default
    """
    outs = [np.zeros(len(xs[0]), d) for d in dtypes or (xs[0].dtype.str[1:],)]

    def body(k: Builder, *places: Ptr) -> None:
        with k.loop(0, len(xs[0]), max(lanes, 1)) as i:
            results = write(k, *(p.load(i, lanes) for p in places[: len(xs)]))
            for place, x in zip(places[len(xs) :], results if isinstance(results, tuple | list) else [results]):
                place.store(x, i)

    assert not lanes or len(xs[0]) % lanes == 0
    run_emitted(body, target, *xs, *outs)
    return outs if dtypes[1:] else outs[0]


def run_family(emit: Write, kernel: Kernel, target: Target, words: np.ndarray, tasks: tuple[int, int] = (0, 1)) -> None:
    """Compile `emit` under the name of a family, so that ``k.args()`` reads its signature, and run it on the words."""
    memory, function = compiled(emit, kernel, target)
    function(words.ctypes.data, *tasks)
    assert memory.size
