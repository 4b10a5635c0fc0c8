"""Loops among the calls of one op, written out for tests that run calls without an engine."""

from collections.abc import Callable, Iterator, Sequence

from cgraph.kernels.kernel import Call, End, Pointer, Repeat, Skip


def written_out(calls: Sequence[Call], byte_at: Callable[[Pointer], int]) -> Iterator[Call]:
    """The calls in running order, without markers; `byte_at` reads a condition when it is reached."""
    at = 0
    while at < len(calls):
        call = calls[at]
        if isinstance(call.kernel, End):  # of what left a loop
            at += 1
            continue
        if not isinstance(call.kernel, Repeat | Skip):
            yield call
            at += 1
            continue
        end = next(i for i, c in enumerate(calls) if isinstance(c.kernel, End) and c.kernel.of is call.kernel)
        inside = calls[at + 1 : end]
        if isinstance(call.kernel, Skip):
            inside = inside if byte_at(call.args[0]) == call.kernel.value else []
            yield from written_out(inside, byte_at)
        else:
            yield from rounds_of(call, inside, byte_at)
        at = end + 1


def rounds_of(call: Call, inside: Sequence[Call], byte_at: Callable[[Pointer], int]) -> Iterator[Call]:
    """The calls of all rounds; a Skip whose end lies behind the loop leaves it."""
    loop = call.kernel
    ends = {c.kernel.of for c in inside if isinstance(c.kernel, End)}
    for number in range(loop.rounds):
        places = {id(b): a + number * s for b, a, s in zip(loop.moving, call.args, loop.strides)}
        round_ = [moved(c, places) for c in inside]
        for i, c in enumerate(round_):
            if isinstance(c.kernel, Skip) and c.kernel not in ends:
                yield from written_out(round_[:i], byte_at)
                if byte_at(c.args[0]) != c.kernel.value:
                    return
                round_ = round_[i + 1 :]
                break
        yield from written_out(round_, byte_at)


def moved(call: Call, places: dict[int, Pointer]) -> Call:
    """A call with the addresses of one round."""
    args = tuple(
        places[id(a.base)] + a.offset if isinstance(a, Pointer) and id(a.base) in places else a for a in call.args
    )
    return Call(call.kernel, args, call.tasks, call.chunk)
