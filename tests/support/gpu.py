"""Run kernel calls over NumPy arrays on a simulated GPU, without an engine."""

from collections.abc import Callable, Iterable

import numpy as np

from cgraph.engine.cuda.simulator.launch import Simulator
from cgraph.kernels.isa.ptx import gpu_target
from cgraph.kernels.isa.records import Target
from cgraph.kernels.kernel import STOP, Call, Kernel, Pointer, Repeat
from cgraph.kernels.store import store
from cgraph.record import replace
from tests.support.kernels import STOP_WORD, argument
from tests.support.markers import written_out

GPU = gpu_target(9, 0)
BLOCKS = replace(GPU, has_blocks=True)


def run_on_gpu(calls: Iterable[Call], change: Callable[[str], str] = str) -> None:
    """Run `calls` one after the other; every array they name is copied there and back.

    `change`: of the text of each kernel.
    """
    device, places = Simulator(), {}
    calls = tuple(calls)
    pointers = [a for call in calls for a in call.args if isinstance(a, Pointer) and not is_moving(a, calls)]
    for array in {id(root_of(a)): root_of(a) for a in pointers}.values():
        places[id(array)] = (array, device.memory.take(array.nbytes, array is not STOP_WORD))
        device.memory.bytes_at(places[id(array)][1], array.nbytes)[:] = bytes_of(array)
    for call in written_out(calls, lambda at: int(device.memory.bytes_at(address(at, places), 1)[0])):
        assert isinstance(call.kernel, Kernel)
        words = [address(a, places) if isinstance(a, Pointer) else argument(a) for a in call.args]
        symbol, text = store().ptx(call.kernel, -(-len(words) // 8) * 8, GPU)
        kernel = device.load(change(text.decode()), symbol)
        blocks = call.tasks if call.kernel.is_block else -(-call.tasks // kernel.kernel.threads)
        device.launch(kernel, blocks, np.array(words, np.int64), call.tasks)
    for array, at in places.values():
        if array.flags.writeable:
            bytes_of(array)[:] = device.memory.bytes_at(at, array.nbytes)


def run_on_gpu_as(calls: Iterable[Call], target: Target, order: str = "all") -> None:
    """`run_on_gpu` in the place of `tests.support.kernels.run_calls`."""
    run_on_gpu(calls)


def is_moving(pointer: Pointer, calls: Iterable[Call]) -> bool:
    """True for an address that a loop moves."""
    return any(pointer.base is b for call in calls if isinstance(call.kernel, Repeat) for b in call.kernel.moving)


def root_of(pointer: Pointer) -> np.ndarray:
    """The array that owns the bytes."""
    found = STOP_WORD if pointer.base is STOP else pointer.base
    while isinstance(found.base, np.ndarray):
        found = found.base
    return found


def bytes_of(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


def address(pointer: Pointer, places: dict[int, tuple[np.ndarray, int]]) -> int:
    root, at = places[id(root_of(pointer))]
    return at + argument(pointer) - root.ctypes.data
