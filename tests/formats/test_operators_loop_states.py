"""Loops whose states grow, or have dynamic lengths: their bodies are built once, with results as onnxruntime's."""

import re

import numpy as np
import onnx
import pytest
from onnx import helper

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError, InputError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.dynamic.value import Ragged
from cgraph.formats.onnx.operators.counted import MOST_TRIPS
from cgraph.formats.onnx.operators.loop_states import Growth, LoopState, entry_of, first_guess, next_nodes, revise
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import Var
from cgraph.ops.while_loop import WhileLoop
from tests.support.onnx_context import context, holds
from tests.support.onnx_decoder import HEADS, LONGEST, WIDTH, decoder
from tests.support.onnx_open import agrees, info, node, numbers, open_model
from tests.support.tolerance import assert_near

onnxruntime = pytest.importorskip("onnxruntime")


def loops_of(raw, **options):
    return [x.op for x in post_order(load(raw, **options).outputs) if isinstance(x.op, WhileLoop)]


# -- decoders ----------------------------------------------------------------------------------------------------------


def feed(first, last, go=True, batch=1, **others):
    return {"first": np.full((batch, 1), first), "last": np.int64(last), "go": np.array(go), **others}


def feeds(batch=1, **others):
    """Loops that end after various rounds, that only their bound ends, and that never begin."""
    given = [feed(first, last, True, batch, **others) for first in range(3) for last in (0, 3, 7, 99)]
    return [*given, feed(0, 0, False, batch, **others)]


BOUNDED = {
    "one layer": {"trips": "many"},
    "three layers, two samples, caches along axis 0": {"trips": "many", "layers": 3, "axis": 0, "batch": 2},
    "along axis 1, positions from the ids": {"trips": "many", "axis": 1, "position": "ids"},
    "along the last axis, from a start": {"trips": "many", "axis": 3, "caches": (2,)},
    "layers of unequal lengths": {"trips": "many", "layers": 3, "caches": (3, 0, 1)},
    "a huge trip count, ended by the table": {"trips": "huge", "ending": "table", "position": "counter"},
    "an If ends it": {"ending": "branch", "position": "round", "layers": 2},
    "the length of the cache is the position": {"trips": "huge", "ending": "table", "batch": 3},
}


@pytest.mark.parametrize("name", BOUNDED)
def test_decoders_that_their_file_bounds_need_no_option(name):
    options = BOUNDED[name]
    raw = decoder(**options)
    agrees(raw, feeds(options.get("batch", 1)))
    (loop,) = loops_of(raw)
    assert loop.maximum == (12 if options.get("trips") == "many" else LONGEST)


@pytest.mark.parametrize("trips", ["", "huge", "n"])
@pytest.mark.parametrize("most", [11, LONGEST, LONGEST + 9])
def test_the_option_that_a_refusal_advises_bounds_the_rounds(trips, most):
    raw = decoder(trips=trips)
    with pytest.raises(FormatError, match="in Loop '' -> final_t, .*nothing bounds") as refused:
        load(raw)
    (name,) = re.findall(r"maximum=\{'(final_t)': n\}", str(refused.value))
    others = {"n": np.int64(10)} if trips == "n" else {}
    agrees(raw, [feed(0, 0, **others), feed(0, 3, **others), feed(1, 7, **others)], {name: most})


def test_more_rounds_than_the_maximum_are_an_error_and_as_many_are_none():
    raw = decoder(trips="huge")
    agrees(raw, [feed(0, 3)], {"final_t": 9})
    with pytest.raises(InputError, match=r"has not ended after 8 turns; a larger maximum=\{'final_t': n\} allows more"):
        load(raw, maximum={"final_t": 8}).compile()(**feed(0, 3))
    counted = load(decoder(trips="n"), maximum={"final_t": 8}).compile()
    assert counted(**feed(0, 3, n=np.int64(8)))[0] == 8
    with pytest.raises(InputError, match="has not ended after 8 turns"):
        counted(**feed(0, 3, n=np.int64(9)))


def compares(function, raw, feeds_of):
    session = onnxruntime.InferenceSession(raw)
    for given in feeds_of:
        given = {name: np.asarray(x) for name, x in given.items()}
        for got, want in zip(function(**given), session.run(None, given), strict=True):
            assert got.shape == want.shape
            assert_near(got, want, "float32 products")


@pytest.mark.parametrize("trips", ["", "many"])
def test_caches_begin_with_the_length_of_an_input(trips, tmp_path):
    """One function takes all lengths; it plans anew for each."""
    raw = decoder(layers=2, caches=("past", 1), trips=trips)
    path = tmp_path / "decoder.onnx"
    path.write_bytes(raw)
    maximum = {} if trips else {"final_t": 12}
    function = cg.load(str(path), maximum=maximum)
    for past in (0, 1, 5):
        rng = np.random.default_rng(past)
        caches = {f"start_{s}0": rng.normal(size=(1, HEADS, past, WIDTH // HEADS)).astype("f4") for s in "kv"}
        compares(function, raw, [feed(0, 3, **caches), feed(2, 0, **caches), feed(0, 0, False, **caches)])
        if not trips:
            with pytest.raises(FormatError, match=r"give maximum=\{'final_t': n\}$"):
                cg.load(str(path))(**feed(0, 3, **caches))


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_no_round_copies_a_cache(axis):
    raw = decoder(layers=2, trips="many", axis=axis, caches=(300,), position="round")
    function = load(raw).compile()
    (nbytes,) = [body.nbytes for (_, name), body in function.compiled.inner.items() if name == "a round"]
    assert nbytes < 300 * WIDTH * 4


# -- states by hand ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_slow", [False, True])
def test_a_run_checks_lengths_that_bounds_alone_limit(is_slow):
    """Bounds of a length do not hold for a NaN that it is computed from."""
    x, more, k = Var((2, 3), "float32", "x"), Var((2, 8), "float32", "more"), Var((), "int64", "k")
    c = context(x)
    c.limits.at_most(k, 1 if is_slow else 7, 0)
    state = LoopState(x, {1: Growth(1, 8, False)})
    entry = entry_of(c, state, Var((), "int64", "rounds"))
    before = entry.lengths[1]
    assert [v.shape for v in entry.names] == [(2, 8), ()] and (before.low, before.high) == (0, 7)
    after = Ragged(more, {1: c.limits.length(before.node + k if is_slow else cg.maximum(k, 0))})
    assert revise(c, state, entry, after, 5) is state
    array, length = next_nodes(c, state, entry, after)
    assert array is more and length is after.counts[1].node
    for most, n, is_held in ((1, 3, True), (2, 3, False)) if is_slow else ((7, 0, True), (8, 7, False)):
        assert holds(c, {k: most, before.node: n}) == is_held


def test_another_guess_follows_from_a_round_that_does_not_fit():
    x, more = Var((2, 3), "float32", "x"), Var((2, 9), "float32", "more")
    c = context(x)
    rounds, k = Var((), "int64", "rounds"), Var((), "int64", "k")
    c.limits.at_most(rounds, 4, 0)
    c.limits.at_most(k, 2, 0)
    state = LoopState(x, {1: Growth(1, 8, True)}, pads_zeros=True)
    entry = entry_of(c, state, rounds)
    n = entry.lengths[1]
    for length, want in (
        (n.node + 1, Growth(1, 8, True)),
        (n.node, Growth(1, 8, False)),
        (n.node + 2, Growth(2, 13, False)),
        (n.node + k, Growth(2, 13, False)),
        (cg.maximum(k, 2), Growth(1, 8, False)),
    ):
        assert revise(c, state, entry, Ragged(more, {1: c.limits.length(length)}), 5).axes == {1: want}
    unlimited = c.limits.length(Var((), "int64", "any"))
    assert revise(c, state, entry, Ragged(more, {1: unlimited}), 5) is None
    assert revise(c, state, entry, cg.astype(more, "float64"), 5) is None
    again = revise(c, state, entry, Ragged(more, {1: c.limits.length(n.node + 1)}), 5)
    assert (again.axes, again.pads_zeros) == (state.axes, False)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_counters_are_sums_of_the_rounds(dtype, shape):
    x, rounds = Var(shape, dtype, "x"), Var((), "int64", "rounds")
    c = context(x)
    state = first_guess(c, x, x - 3, 5)
    assert state.step == -3
    entry = entry_of(c, state, rounds)
    assert not entry.names and revise(c, state, entry, entry.value - 3, 5) is state
    assert revise(c, state, entry, entry.value + 1, 5).step is None
    (got,) = evaluate([entry.value], {x: np.full(shape, 7, dtype), rounds: np.array(4)})
    np.testing.assert_array_equal(got, np.full(shape, -5, dtype))
    assert got.dtype == dtype
    others = Var((2,), dtype, "two"), Var((), "uint8", "small"), Var((), "float32", "float")
    assert [first_guess(c, other, other + 1, 5).step for other in others] == [None] * 3


# -- other states ------------------------------------------------------------------------------------------------------


def grown(nodes, states, *, going="c", trips="n", inputs=None, outputs=None, before=(), constants=None, stacks=()):
    """A loop over `states`, by name the state after a round; the results are ``y0``, ``y1`` … and the stacks.

    Its initial values are inputs or constants of the same names with ``_0`` behind.
    """
    kinds = {name: "i8" if name[0] in "inmk" else "?" if name[0] == "b" else "f4" for name in states}
    read = [info("i", "i8", ()), info("c", "?", ()), *(info(name, kinds[name], None) for name in states)]
    written = [info("on", "?", ()), *(info(after, kinds[name], None) for name, after in states.items())]
    written += [info(name, "f4", (2,)) for name in stacks]
    body = helper.make_graph([*nodes, node("Identity", [going], ["on"])], "body", read, written)
    names = [f"y{i}" for i in range(len(states) + len(stacks))]
    loop = node("Loop", [trips, "go", *(f"{name}_0" for name in states)], names, body=body)
    numbers_of = {
        "go": np.array(True), "zero": numbers(0), "one": numbers(1), "two": numbers(2), "minus": numbers(-1),
        "one0": np.int64(1), "seven": np.int64(7), "zero0": np.int64(0), "half": np.float32(0.5),
    }  # fmt: skip
    return open_model(
        [*before, loop], {"n": ("i8", ()), **(inputs or {})}, {**numbers_of, **(constants or {})}, " ".join(names)
    )


def rounds(*counts, **others):
    return [{"n": np.int64(n), **others} for n in counts]


ROW = np.random.default_rng(5).normal(size=(2, 3)).astype("f4")
INPUT = {"x_0": ("f4", (2, 3))}
OF_ROW = [
    node("ReduceSum", ["x", "one"], ["total"], keepdims=1),  # [2, 1], over the present length
    node("Concat", ["x", "total"], ["more"], axis=1),
]


def branch(name, of, result="r"):
    return helper.make_graph([node("Identity", [of], [name])], name, [], [helper.make_empty_tensor_value_info(name)])


def choice(condition, then, other, to):
    return node("If", [condition], [to], then_branch=branch("t", then), else_branch=branch("e", other))


INNER = helper.make_graph(
    [node("Concat", ["z", "total"], ["wider"], axis=1), node("Identity", ["inner_c"], ["inner_on"])],
    "inner",
    [info("j", "i8", ()), info("inner_c", "?", ()), info("z", "f4", None)],
    [info("inner_on", "?", ()), info("wider", "f4", None)],
)
STATES = {
    "two columns a round, by a loop inside": {
        "nodes": [OF_ROW[0], node("Loop", ["two0", "go", "x"], ["more"], body=INNER)], "states": {"x": "more"},
        "constants": {"two0": np.int64(2)},
    },
    "as many columns as rounds before": {
        "nodes": [OF_ROW[0], node("Loop", ["i", "go", "x"], ["more"], body=INNER)], "states": {"x": "more"},
    },
    "a column a round": {"nodes": OF_ROW, "states": {"x": "more"}},
    "two columns a round": {
        "nodes": [*OF_ROW, node("Concat", ["more", "total"], ["most"], axis=1)], "states": {"x": "most"},
    },
    "in front of the old ones": {
        "nodes": [OF_ROW[0], node("Concat", ["total", "x"], ["more"], axis=1)], "states": {"x": "more"},
    },
    "a column in rounds that a branch selects": {
        "nodes": [
            *OF_ROW, node("Mod", ["i", "two"], ["odd"]), node("Squeeze", ["odd"], ["odd0"]),
            node("Equal", ["odd0", "zero0"], ["even"]), choice("even", "more", "x", "next"),
        ],
        "states": {"x": "next"},
    },
    "a window of at most four columns": {
        "nodes": [*OF_ROW, node("Slice", ["more", "last4", "end", "one"], ["next"])],
        "states": {"x": "next"}, "constants": {"last4": numbers(-4), "end": numbers(2**62)},
    },
    "all but the last column": {
        "nodes": [*OF_ROW, node("Concat", ["more", "total"], ["most"], axis=1),
                  node("Slice", ["most", "zero", "minus", "one"], ["next"])],
        "states": {"x": "next"},
    },
    "a mask of the length of another state": {
        "nodes": [
            *OF_ROW, node("Shape", ["x"], ["shape"]), node("Cast", ["shape"], ["sizes"], to=1),
            node("ConstantOfShape", ["shape"], ["blank"]), node("Add", ["blank", "half"], ["filled"]),
            node("Concat", ["w", "total"], ["wider"], axis=1), node("Sub", ["more", "wider"], ["difference"]),
            node("ReduceMax", ["difference", "one"], ["top"], keepdims=0),
        ],
        "states": {"x": "more", "v": "filled", "w": "wider"},
        "constants": {"v_0": np.ones((2, 3), "f4"), "w_0": np.ones((2, 3), "f4")}, "stacks": ["top"],
    },
    "a counter of the columns and one that is none": {
        "nodes": [
            *OF_ROW, node("Add", ["k", "two"], ["later"]), node("Add", ["m", "m"], ["twice"]),
            node("Cast", ["later"], ["factor"], to=1), node("Mul", ["x", "factor"], ["y"]),
            node("ReduceMax", ["y", "one"], ["top"], keepdims=0),
        ],
        "states": {"k": "later", "x": "more", "m": "twice"},
        "constants": {"k_0": numbers(3), "m_0": np.int64(1)}, "stacks": ["top"],
    },
    "a first round that adds more": {
        "nodes": [
            node("Concat", ["x", "part"], ["more"], axis=1),
            node("ReduceSum", ["more", "one"], ["rest"], keepdims=1),
        ],
        "states": {"x": "more", "part": "rest"}, "constants": {"part_0": np.ones((2, 4), "f4")},
    },
    "a state that doubles is written out": {
        "nodes": [node("Concat", ["x", "x"], ["more"], axis=1)], "states": {"x": "more"}, "loops": 0,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", STATES)
def test_states_grow_as_in_onnxruntime(name):
    options = dict(STATES[name])
    count = options.pop("loops", 1)
    raw = grown(inputs=INPUT, **options)
    agrees(raw, rounds(0, 1, 2, 3, 6, x_0=ROW), {"n": 6})
    agrees(raw, rounds(0, 1, x_0=ROW), {"n": 1})
    assert len(loops_of(raw, maximum={"n": 6})) == count


@pytest.mark.parametrize("kept", [0, 1, 4])
def test_a_state_of_a_dynamic_length_grows(kept):
    """What lies behind its length at the start is not zero."""
    before = [node("Compress", ["all", "mask"], ["x_0"], axis=1)]
    raw = grown(OF_ROW, {"x": "more"}, before=before, inputs={"all": ("f4", (2, 5)), "mask": ("?", (5,))})
    table = np.random.default_rng(2).normal(size=(2, 5)).astype("f4")
    agrees(raw, rounds(0, 1, 4, all=table, mask=np.arange(5) < kept), {"n": 4})
    assert len(loops_of(raw, maximum={"n": 4})) == 1


LENGTH = [node("Shape", ["more"], ["shape"]), node("Gather", ["shape", "one0"], ["length"])]
CONDITIONS = {
    "the number of the round": ([node("Less", ["i", "seven"], ["inside"])], "inside", 8),
    "from a length": ([*LENGTH, node("Less", ["length", "seven"], ["inside"])], "inside", 4),
    "a length, or what is computed": (
        [*LENGTH, node("Less", ["length", "seven"], ["inside"]), node("ReduceMax", ["more"], ["top"], keepdims=0),
         node("Less", ["top", "limit"], ["small"]), node("And", ["small", "inside"], ["both"])],
        "both", 4,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_bounds_the_rounds(name):
    nodes, going, most = CONDITIONS[name]
    options = {"inputs": INPUT, "constants": {"limit": np.float32(20)}}
    feeds_of = [*rounds(0, 1, 2**62, x_0=ROW), *rounds(2**62, x_0=abs(ROW) * 9)]
    raw = grown([*OF_ROW, *nodes], {"x": "more"}, going=going, **options)
    agrees(raw, feeds_of)
    assert [loop.maximum for loop in loops_of(raw)] == [most]
    top = node("ReduceMax", ["x", "one"], ["row"], keepdims=0)
    agrees(grown([*OF_ROW, *nodes, top], {"x": "more"}, going=going, stacks=["row"], **options), feeds_of)


TOP = [node("ReduceMax", ["more"], ["top"], keepdims=0), node("Less", ["top", "limit"], ["small"])]
ENDLESS = {
    "of data": TOP,
    "of data or the number of the round": [
        *TOP, node("Less", ["i", "seven"], ["early"]), node("Or", ["small", "early"], ["inside"])
    ],
    "of one number": [
        *TOP, node("Equal", ["i", "seven"], ["is_seven"]), node("Not", ["is_seven"], ["other"]),
        node("And", ["small", "other"], ["inside"]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", ENDLESS)
def test_a_condition_that_bounds_nothing_is_refused(name):
    """That the number is never seven bounds a loop as well, but the reader looks for a range of numbers."""
    nodes = ENDLESS[name]
    going, constants = nodes[-1].output[0], {"limit": np.float32(20)}
    raw = grown([*OF_ROW, *nodes], {"x": "more"}, going=going, trips="", inputs=INPUT, constants=constants)
    with pytest.raises(FormatError, match=f"to {MOST_TRIPS}; give maximum=.*'y0'"):
        load(raw)
    agrees(raw, [*rounds(0, x_0=abs(ROW)), *rounds(0, x_0=abs(ROW) * 20)], {"y0": 9})


def test_a_loop_whose_first_result_has_no_name_is_bounded_by_the_next_one():
    """onnxruntime crashes in a run of such a file, so the file with all names gives the result."""
    constants = {"w_0": ROW, "limit": np.float32(20)}
    states = {"w": "w", "x": "more"}
    raw = grown([*OF_ROW, *TOP], states, trips="", going="small", inputs=INPUT, constants=constants)
    named = agrees(raw, rounds(0, x_0=abs(ROW)), {"y0": 9})
    proto = onnx.load_model_from_string(raw)
    proto.graph.node[-1].output[0] = ""
    del proto.graph.output[0]
    with pytest.raises(FormatError, match=r"give maximum=\{'y1': n\}$"):
        load(proto.SerializeToString())
    feed = {"n": np.int64(0), "x_0": abs(ROW)}
    (got,) = load(proto.SerializeToString(), maximum={"y1": 9}).compile()(**feed)
    np.testing.assert_array_equal(got, named(**feed)[1])


def reduced(name, kind="ReduceSum", axis="one"):
    return node(kind, [name, axis], ["top"], keepdims=0)


READERS = {
    "a sum": [reduced("x")],
    "a mean": [reduced("x", "ReduceMean")],
    "the lowest": [reduced("x", "ReduceMin")],
    "the length of a row": [reduced("x", "ReduceL2")],
    "the place of the highest": [
        node("ArgMax", ["x"], ["place"], axis=1, keepdims=0), node("Cast", ["place"], ["top"], to=1),
    ],
    "a softmax": [node("Softmax", ["x"], ["p"], axis=1), node("Mul", ["p", "x"], ["px"]), reduced("px")],
    "sums so far": [node("CumSum", ["x", "one0"], ["sums"]), reduced("sums", "ReduceMax")],
    "the last column": [node("Gather", ["x", "minus0"], ["top"], axis=1)],
    "the column of the round": [node("Gather", ["x", "i"], ["top"], axis=1)],
    "all from the second column on": [node("Slice", ["x", "one", "end", "one"], ["part"]), reduced("part")],
    "all but the last column": [node("Slice", ["x", "zero", "minus", "one"], ["part"]), reduced("part")],
    "every other column": [node("Slice", ["x", "zero", "end", "one", "two"], ["part"]), reduced("part")],
    "from the last column on": [
        node("Slice", ["x", "minus", "low", "one", "minus"], ["part"]),
        node("CumSum", ["part", "one0"], ["sums"]), reduced("sums", "ReduceMin"),
    ],
    "its rows as one": [node("Reshape", ["x", "minus"], ["flat"]), node("ReduceMax", ["flat"], ["highest"], keepdims=1),
                        node("Expand", ["highest", "two"], ["top"])],
    "its columns as rows": [node("Transpose", ["x"], ["t"], perm=(1, 0)),
                            node("ReduceSum", ["t", "zero"], ["top"], keepdims=0)],
    "products of its columns": [
        node("Transpose", ["x"], ["t"], perm=(1, 0)), node("MatMul", ["x", "t"], ["xx"]), reduced("xx", "ReduceMax"),
    ],
    "products of its rows": [
        node("Transpose", ["x"], ["t"], perm=(1, 0)), node("MatMul", ["t", "x"], ["xx"]),
        node("MatMul", ["x", "xx"], ["xxx"]), reduced("xxx", "ReduceMax"),
    ],
    "twice itself": [node("Concat", ["x", "x"], ["both"], axis=1), reduced("both")],
    "below itself": [node("Concat", ["x", "x"], ["both"], axis=0),
                     node("ReduceSum", ["both", "one"], ["sums"], keepdims=0),
                     node("Slice", ["sums", "two", "end"], ["top"])],
    "behind a column": [node("Concat", ["total", "x"], ["both"], axis=1), node("CumSum", ["both", "one0"], ["sums"]),
                        reduced("sums", "ReduceMax")],
    "padded": [node("Pad", ["x", "pads", "half"], ["padded"]), reduced("padded")],
    "repeated": [node("Tile", ["x", "times"], ["tiled"]), reduced("tiled")],
    "split": [node("Split", ["x"], ["left", "right"], axis=1, num_outputs=2), reduced("right")],
    "the highest two": [
        node("TopK", ["x", "two"], ["best", "places"], axis=1), reduced("best"),
    ],
    "its size": [node("Size", ["x"], ["size"]), node("Cast", ["size"], ["number"], to=1),
                 node("Expand", ["number", "two"], ["top"])],
    "its positive elements": [
        node("Greater", ["x", "half"], ["high"]), node("NonZero", ["high"], ["places"]),
        node("Shape", ["places"], ["shape"]), node("Cast", ["shape"], ["top"], to=1),
    ],
    "a range of its length": [
        node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "one0"], ["length"]),
        node("Range", ["zero0", "length", "one0"], ["steps"]), node("Cast", ["steps"], ["places"], to=1),
        node("Mul", ["x", "places"], ["placed"]), reduced("placed"),
    ],
    "a norm of its columns": [
        node("LpNormalization", ["x"], ["norm"], axis=1, p=2), reduced("norm"),
    ],
}  # fmt: skip


GROWTHS = {
    "written behind the old columns": [node("Concat", ["x", "total"], ["more"], axis=1)],
    "turned over, so that what lies behind the length is not zero": [
        node("Neg", ["x"], ["over"]), node("Add", ["over", "half"], ["other"]),
        node("Concat", ["other", "total"], ["more"], axis=1),
    ],
}  # fmt: skip
FROM_THREE = "the highest two", "split", "the column of the round"  # a column alone has no second one


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize(("name", "start"), [(n, k) for n in READERS for k in (1, 3) if k == 3 or n not in FROM_THREE])
def test_a_round_reads_a_state_up_to_its_length(name, start, growth):
    constants = {
        "minus0": np.int64(-1), "end": numbers(2**40), "low": numbers(-(2**40)), "pads": numbers(0, 1, 0, 2),
        "times": numbers(1, 2),
    }  # fmt: skip
    nodes = [OF_ROW[0], *READERS[name], *GROWTHS[growth]]
    raw = grown(nodes, {"x": "more"}, stacks=["top"], inputs={"x_0": ("f4", (2, start))}, constants=constants)
    agrees(raw, rounds(0, 1, 2, 3, 5, x_0=ROW[:, :start]), {"n": 5})
    assert len(loops_of(raw, maximum={"n": 5})) == 1
