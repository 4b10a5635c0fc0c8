"""map_batches: a compiled function over the rows of dask arrays larger than memory."""

import string
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from cgraph.dist.folders import OPENED, Shipped, Source, ship
from cgraph.errors import GraphError, InputError
from cgraph.ir.spec import Spec
from cgraph.record import Record
from cgraph.running.runner import Runner
from cgraph.storage.batches import in_batches
from cgraph.system.extras import missing_package


class BatchPlan(Record):
    """The facts of a function that every block needs.

    Fields
        batch: rows of a call
        results: specs of its results
        single: True if it returns one array, not a list
        threads: threads of one call
    """

    batch: int
    results: tuple[Spec, ...]
    single: bool
    threads: int


def map_batches(function: Source, *arrays: Any, threads: int = 1, trust: bool = False) -> Any:
    """Apply a function of a fixed batch to any number of rows, block by block, when the result is computed.

    Blocks may have any number of rows, including none: within a block the function runs batch by batch, the last one
    padded with zeros and cut again. So rows must not depend on one another; in networks for inference they do not. Bits
    do not depend on which worker computes a block. (In other blocks, rows have other positions in their batches, which
    changed no bit of any network that was tried.)

    Parameters
        function: a compiled Function without update edges, which is sent as a saved folder; the path of a saved folder;
            or a factory, a function without arguments that each process calls. All inputs and outputs begin with the
            same batch axis
        arrays: a dask.array for each input, ``[rows, ...]``, with equally many rows; blocks along other axes are merged
        threads: threads of one call. A worker runs as many calls at once as it has threads, so one is enough
        trust: run the machine code of a saved folder even if others may have written it, as in `cgraph.load`
    Returns
        a dask.array ``[rows, ...]``, or a tuple of them where the function gives several; nothing has run yet
    Raises
        InputError: an array does not fit its input, or rows differ
        GraphError: the function has update edges, or inputs and outputs do not begin with one batch
        FormatError: it cannot be saved; give a factory. Or a saved folder is damaged, or other users can write to it
        UnavailableError: dask is not installed
    """
    da, delayed = dask_part("dask.array"), dask_part("dask").delayed
    travels = ship(function, trust)
    runner = function if isinstance(function, Runner) else OPENED.get(travels, threads)
    plan = BatchPlan(batch_of(runner), tuple(runner.results), runner.single, threads)
    inputs = check_arrays(da, arrays, runner)
    axes, letters = [], iter(string.ascii_letters[1:])
    for x in inputs:
        axes.append("a" + "".join(next(letters) for _ in range(x.ndim - 1)))
    source = delayed(travels, name=f"cgraph-{travels.key}", traverse=False)
    pairs = [y for pair in zip(inputs, axes) for y in pair]
    nothing = np.empty((0,), object)
    blocks = da.blockwise(
        run_block, "a", *pairs, function=source, plan=plan, concatenate=True, dtype=object, meta=nothing
    )
    outputs = tuple(select_result(da, blocks, i, spec) for i, spec in enumerate(plan.results))
    return outputs[0] if plan.single else outputs


def run_block(*blocks: np.ndarray, function: Shipped, plan: BatchPlan) -> list[np.ndarray]:
    """Return all results for the rows of one block."""
    runner = OPENED.get(function, plan.threads)
    inputs = [np.ascontiguousarray(x) for x in blocks]

    def several(*rows: np.ndarray, copy: bool) -> Sequence[np.ndarray]:
        outputs = runner(*rows, copy=copy)
        return [outputs] if plan.single else outputs

    return in_batches(several, inputs, plan.batch, plan.results)


def select_result(da: Any, blocks: Any, number: int, spec: Spec) -> Any:
    """Return one of the results as an array."""
    more = spec.shape[1:]
    return da.map_blocks(
        result,
        blocks,
        number=number,
        chunks=(blocks.chunks[0], *((n,) for n in more)),
        new_axis=list(range(1, 1 + len(more))),
        dtype=spec.dtype,
        meta=np.empty((0,) * len(spec.shape), spec.dtype),
    )


def result(block: list[np.ndarray], number: int) -> np.ndarray:
    return block[number]


def check_arrays(da: Any, arrays: Sequence[Any], function: Runner) -> list[Any]:
    """Return the arrays. InputError if one does not fit its input."""
    if len(arrays) != len(function.inputs):
        raise InputError(
            f"the function takes {len(function.inputs)} inputs, got {len(arrays)}. Pass one dask array for each"
        )
    for x, array in zip(function.inputs, arrays):
        if not isinstance(array, da.Array):
            raise InputError(
                f"{x.name} expects a dask array {x.spec}, got {array!r:.60}. Convert it with dask.array.from_array"
            )
        if array.dtype != x.spec.dtype or array.shape[1:] != x.spec.shape[1:] or not array.ndim:
            sizes = ",".join(map(str, ("any", *x.spec.shape[1:])))
            raise InputError(
                f"{x.name} expects {x.spec.dtype}[{sizes}], got {array.dtype}{list(array.shape)}. Convert it"
            )
    counts = {x.shape[0] for x in arrays}
    if len(arrays) > 1 and (len(counts) > 1 or np.isnan([*counts]).any()):
        raise InputError(
            f"the arrays have {', '.join(str(x.shape[0]) for x in arrays)} rows. "
            "Give each the same known number, with compute_chunk_sizes()"
        )
    return list(arrays)


def batch_of(function: Runner) -> int:
    """Return the batch size of all inputs and outputs. GraphError if they differ."""
    if function.updated:
        raise GraphError(
            f"the function updates {len(function.updated)} Vars, so its result depends on the calls before, and blocks "
            "run in no fixed order. Compile it without updates="
        )
    specs = [x.spec for x in function.inputs] + function.results
    sizes = {spec.shape[0] if spec.shape else 0 for spec in specs}
    if not function.inputs or len(sizes) != 1 or 0 in sizes:
        raise GraphError(
            f"inputs and outputs begin with one batch; these are {', '.join(map(str, specs))}. "
            "Compile it with one batch for all"
        )
    (batch,) = sizes
    return batch


def dask_part(name: str) -> Any:
    """Import a module of dask. UnavailableError if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        raise missing_package("distributed", "several machines") from None
