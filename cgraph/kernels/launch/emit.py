"""Native code that passes a table of launches to the CUDA driver, with one call from Python per run."""

from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import INDEX, POINTER, Builder
from cgraph.kernels.llvm.emitter import called_as

COLUMNS = 5  # function, blocks, threads of a block, address of the arguments, tasks
WORD = ir.IntType(32)


@called_as(ir.FunctionType(INDEX, [INDEX] * 5))
def launch_rows(k: Builder):
    """``row = launch_rows(table, rows, stream, cuLaunchKernel, code)``: launch rows until one is refused.

    Return the number of launched rows; the driver's result for the next one is written to the int64 at `code`.
    """
    table, rows, stream, driver, code = (k.wrap(x, "i8") for x in k.function.args)
    parameters = k.stack_ptr("i8", 2)
    row, result = k.slot(0, "i8"), k.slot(0, "i8")
    at = k.b.inttoptr(driver.v, POINTER)
    nothing, one = ir.Constant(POINTER, None), ir.Constant(WORD, 1)
    with k.loop_while() as w:
        w.until((row.value >= rows) | (result.value != 0))
        entry = k.pointer(table, "i8") + row.value * COLUMNS
        parameters.store(entry.load(3), 0)
        parameters.store(k.wrap(k.b.ptrtoint((entry + 4).v, INDEX), "i8"), 1)
        function = k.b.inttoptr(entry.load(0).v, POINTER)
        blocks, threads = (k.cast(entry.load(i), "i4").v for i in (1, 2))
        queue, zero = k.b.inttoptr(stream.v, POINTER), ir.Constant(WORD, 0)
        grid = [function, blocks, one, one, threads, one, one, zero]
        status = k.b.call(at, [*grid, queue, parameters.v, nothing], WORD)
        result.value = k.cast(k.wrap(status, "i4"), "i8")
        row.value = row.value + k.select(result.value == 0, k.const(1, "i8"), 0)
    k.pointer(code, "i8").store(result.value)
    k.b.ret(row.value.v)
