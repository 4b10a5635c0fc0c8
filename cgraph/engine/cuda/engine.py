"""The CUDA engine: kernels as PTX, on a GPU or a simulated one, over an arena in the device's memory."""

from functools import cache, partial

import llvmlite
import numpy as np

from cgraph.budget.refusal import device_refusal
from cgraph.engine.cpu.code import Code
from cgraph.engine.cpu.make_code import code_of, update_calls
from cgraph.engine.cuda.cells import DeviceCells
from cgraph.engine.cuda.device import Allocation, Device, LoadedKernel
from cgraph.engine.cuda.gpu import Gpu
from cgraph.engine.cuda.program import CudaProgram, round_words
from cgraph.engine.cuda.simulated import SimulatedDevice
from cgraph.errors import EngineError, NoKernelError
from cgraph.ir.graph import Node
from cgraph.ir.work import Part
from cgraph.kernels.kernel import Callback, Kernel
from cgraph.kernels.move.calls import fill_calls
from cgraph.kernels.store import store
from cgraph.kernels.target import Target
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import lower_graph
from cgraph.memory.calls import CallsOfSteps
from cgraph.planning.compiled import Compiled
from cgraph.planning.options import CompileOptions, Request
from cgraph.planning.plan import plan_request
from cgraph.record import Record, replace

LEAST_LLVMLITE = (0, 50)
SIMULATED = -1
POISON = 0xFF


class CudaEngine(Record):
    """Kernels on one device.

    Fields
        device: the number of a GPU; -1 is the simulated one
        host: run LAPACK, Fourier transforms and users' functions on the host and copy operands and results; False
            refuses them when compiling
        poison: fill dead bytes with a pattern (NaN in floats), to test that nothing reads them
        check: wait for each launch, so that errors name the failing step: slow
        graphs: launch segments from the third run with the same addresses on as one CUDA graph
        blocks: use kernels written for blocks of threads where a family has them; False runs the CPU's kernels, one
            task per thread, which is slow and serves as a reference in tests
    """

    device: int = 0
    host: bool = True
    poison: bool = False
    check: bool = False
    graphs: bool = True
    blocks: bool = True
    name = "cuda"
    feeds_rows = False
    refuses = ("precision", "weights")
    alignment = 256

    def lower(self, roots: tuple[Node, ...], options: CompileOptions) -> tuple[Node, ...]:
        """Run all passes, then choose layouts; Winograd's transforms are for the CPU only."""
        how = LoweringOptions(options.passes, winograd=False, storage_dtype=options.storage_dtype)
        return lower_graph(roots, self._target, how)

    def plan(self, request: Request, options: CompileOptions) -> Compiled:
        """Plan memory at multiples of 256 bytes. BudgetError if the device has less memory than the plan."""
        device = self._opened()
        compiled = plan_request(request, self._target, self.alignment, options)
        if compiled.nbytes > device.nbytes:
            raise device_refusal(compiled.nbytes, device.name, device.nbytes)
        return compiled

    def code(self, request: Request, compiled: Compiled) -> Code:
        """Return the kernel calls of all steps, by name and over symbolic addresses."""
        target = self._target
        calls = CallsOfSteps(partial(fill_calls, target, value=POISON) if self.poison else None)
        parts = [list(map(self._allowed, calls.parts(step))) for step in compiled.steps]
        return code_of([*parts, [Part("update edges", update_calls(target, compiled))]], compiled)

    def _allowed(self, part: Part) -> Part:
        """Return the part if it may run here."""
        if not self.host and any(isinstance(call.kernel, Callback) for call in part.calls):
            raise NoKernelError(f"{part.label} runs on the host, which host=False forbids. Allow it with host=True")
        return part

    def program(self, code: Code) -> CudaProgram:
        """Load the code's kernels and constants onto the device."""
        device = self._opened()
        keys = keys_of(code)
        kernels: dict[tuple[Kernel | Callback, int], LoadedKernel] = {}
        for kernel, words in dict.fromkeys(keys):
            if isinstance(kernel, Kernel):
                kernels[kernel, words] = device.load(*store().ptx(kernel, words, device.target))
        constants = tuple(upload_constant(device, array) for array in code.constants)
        loaded, poison = tuple(kernels.get(key) for key in keys), POISON if self.poison else None
        return CudaProgram(code, device, cells_of(self.device), loaded, constants, poison, self.check, self.graphs)

    @property
    def _target(self) -> Target:
        """The target of calls; the kernels themselves are compiled for the device."""
        target = self._opened().target
        return replace(target, has_blocks=self.blocks)

    def _opened(self) -> Device:
        """Return the device. EngineError if it cannot be used."""
        return open_device(self.device)


@cache
def open_device(number: int) -> Device:
    """Open a device by its number, once."""
    version = tuple(map(int, llvmlite.__version__.split(".")[:2]))
    if version < LEAST_LLVMLITE:
        raise EngineError(
            f"engine 'cuda' needs llvmlite 0.50 or newer; {llvmlite.__version__} is installed. Upgrade llvmlite"
        )
    if number == SIMULATED:
        return SimulatedDevice()
    try:
        return Gpu(number)
    except EngineError as error:
        raise EngineError(
            f"engine 'cuda' cannot run here: {error}. Use engine='cuda-sim', which runs the same kernels on the CPU"
        ) from None


@cache
def cells_of(number: int) -> DeviceCells:
    """Return the Vars' values on a device."""
    return DeviceCells(open_device(number))


def keys_of(code: Code) -> list[tuple[Kernel | Callback, int]]:
    """Return for each call its kernel and the number of arguments that the kernel is compiled for."""
    counts = np.diff([*code.table[:, 1].tolist(), len(code.args)])
    return [(code.kernels[n], round_words(c)) for n, c in zip(code.table[:, 0].tolist(), counts.tolist())]


def upload_constant(device: Device, array: np.ndarray) -> Allocation:
    """Copy an array into the device's memory, permanently."""
    memory, queue = Allocation(device, array.nbytes), device.queue()
    queue.upload(memory.address, np.ascontiguousarray(array))
    queue.wait()
    return memory
