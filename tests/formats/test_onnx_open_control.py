"""Branches and loops whose turns, and whose results' lengths, are known only at run time, as onnxruntime has them."""

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from cgraph.errors import FormatError, InputError, PositionError
from cgraph.formats.onnx import load
from cgraph.ir.traverse import post_order
from tests.support.onnx_open import agrees, info, node, numbers, open_model

pytest.importorskip("onnxruntime")
X = ("f4", (4, 3))
ONE = ("i8", ())


def x_of(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).normal(size=shape or (4, 3)).astype("f4")


def given(name: str, *values: Any, **others: Any) -> list[dict[str, Any]]:
    return [{name: np.array(v, np.int64), **others} for v in values]


def body(*extra: Any, going: str = "c") -> Any:
    """A loop's body: adds a row, and collects twice the sum."""
    nodes = [
        node("Add", ["sum", "row"], ["more"]),
        *extra,
        node("Identity", [going], ["on"]),
        node("Mul", ["more", "two"], ["z"]),
    ]
    read = [info("turn", "i8", ()), info("c", "?", ()), info("sum", "f4", (3,))]
    return helper.make_graph(nodes, "b", read, [info("on", "?", ()), info("more", "f4", (3,)), info("z", "f4", (3,))])


WHILE = body(node("ReduceMax", ["more"], ["top"], keepdims=0), node("Less", ["top", "limit"], ["small"]), going="small")
LOOP = {"n0": np.int64(0), "two": np.float32(2), "c": np.array(True), "sum": np.zeros(3, "f4"), "limit": np.float32(2)}
ROW = node("Gather", ["x", "n0"], ["row"])


def test_a_loop_takes_as_many_turns_as_it_is_told_when_run():
    raw = open_model([ROW, node("Loop", ["n", "c", "sum"], ["y", "z"], body=body())], {"x": X, "n": ONE}, LOOP, "y z")
    agrees(raw, given("n", 0, 1, 4, 6, x=x_of()), {"n": 6})
    with pytest.raises(InputError, match="maximum gives 6 for 'n'; it is larger"):
        load(raw, maximum={"n": 6}).compile()(x=x_of(), n=np.int64(7))


def test_a_maximum_of_the_rounds_never_cuts_them():
    """The trip count of a run, or of the file, may be larger; the condition may still end the loop before."""
    raw = open_model([ROW, node("Loop", ["n", "c", "sum"], ["y", "z"], body=body())], {"x": X, "n": ONE}, LOOP, "y z")
    function = agrees(raw, given("n", 0, 2, 3, x=x_of()), {"y": 3})
    with pytest.raises(InputError, match=r"not ended after 3 turns; a larger maximum=\{'y': n\} allows more"):
        function(x=x_of(), n=np.int64(4))
    x = np.full((4, 3), 0.5, "f4")  # four rounds to the limit of 2
    for trips in (9, 2**63 - 1):
        constants = LOOP | {"n": np.int64(trips)}
        raw = open_model([ROW, node("Loop", ["n", "c", "sum"], ["y", "z"], body=WHILE)], {"x": X}, constants, "y z")
        agrees(raw, [{"x": x}], {"y": 4})
        with pytest.raises(InputError, match="not ended after 3 turns"):
            load(raw, maximum={"y": 3}).compile()(x=x)


def test_a_maximum_holds_in_each_round_of_an_unrolled_loop():
    """A speech model pads each utterance to a length that it computes from the sentence."""
    nodes = [
        node("Gather", ["lengths", "turn"], ["one"]),
        node("Reshape", ["one", "axis"], ["n"]),
        node("ConstantOfShape", ["n"], ["row"]),
        node("ReduceSum", ["row"], ["count"], keepdims=0),
        node("Add", ["sum", "count"], ["more"]),
        node("Identity", ["c"], ["on"]),
    ]
    read = [info("turn", "i8", ()), info("c", "?", ()), info("sum", "f4", ())]
    graph = helper.make_graph(nodes, "b", read, [info("on", "?", ()), info("more", "f4", ())])
    graph.node[2].attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.ones(1, "f4"))))
    raw = open_model(
        [node("Loop", ["trips", "c", "sum"], ["y"], body=graph)], {"lengths": ("i8", (3,))},
        {"trips": np.int64(3), "c": np.array(True), "sum": np.float32(0), "axis": np.array([1])}, "y",
    )  # fmt: skip
    function = agrees(raw, [{"lengths": numbers(2, 2, 2)}, {"lengths": numbers(4, 1, 3)}], {"n": 4})
    with pytest.raises(InputError, match="maximum gives 4 for 'n'; it is larger"):
        function(lengths=numbers(1, 2, 5))
    graph.output.append(info("row", "f4", None))
    collecting = open_model(
        [node("Loop", ["trips", "c", "sum"], ["y", "rows"], body=graph)], {"lengths": ("i8", (3,))},
        {"trips": np.int64(3), "c": np.array(True), "sum": np.float32(0), "axis": np.array([1])}, "y",
    )  # fmt: skip
    with pytest.raises(
        FormatError, match="a loop cannot collect values of a length known only at run time. Give shapes="
    ):
        load(collecting, maximum={"n": 4})


@pytest.mark.parametrize("rows", [0, 2])
def test_a_loop_appends_a_row_in_every_turn(rows):
    """Mask R-CNN pastes one mask in each turn."""
    nodes = [
        node("Gather", ["x", "turn"], ["r"]),
        node("Unsqueeze", ["r", "axis"], ["u"]),
        node("Concat", ["all", "u"], ["more"], axis=0),
        node("Identity", ["c"], ["on"]),
    ]
    read = [info("turn", "i8", ()), info("c", "?", ()), info("all", "f4", None)]
    append = helper.make_graph(nodes, "b", read, [info("on", "?", ()), info("more", "f4", None)])
    constants = {"c": np.array(True), "first": np.ones((rows, 3), "f4"), "axis": numbers(0)}
    raw = open_model([node("Loop", ["n", "c", "first"], ["y"], body=append)], {"x": X, "n": ONE}, constants)
    agrees(raw, given("n", 0, 1, 4, x=x_of()), {"n": 4})


@pytest.mark.parametrize(("trips", "maximum"), [("n", {}), ("", {"y": 7})])
def test_a_loop_ends_when_its_condition_fails(trips, maximum):
    raw = open_model(
        [ROW, node("Loop", [trips, "c", "sum"], ["y", "z"], body=WHILE)], {"x": X}, LOOP | {"n": np.int64(7)}, "y z"
    )
    agrees(raw, [{"x": np.abs(x_of()) * k + 0.3} for k in (0.1, 1, 5)], maximum)


def table_loop(trips: int) -> bytes:
    """A loop as Paddle exports it: each round writes a column of a table, and the first gives states their shapes."""
    nodes = [
        node("Add", ["i", "one"], ["more"]),
        node("Min", ["more", "width"], ["end"]),
        node("Slice", ["table", "i", "end", "one"], ["old"]),
        node("Gather", ["x", "i"], ["row"], axis=1),
        node("Add", ["old", "row"], ["new"]),
        *[node("Squeeze", [name], [f"{name}0"]) for name in ("i", "end", "one")],
        node("Range", ["i0", "end0", "one0"], ["places"]),
        node("Reshape", ["places", "flat"], ["column"]),
        node("Tile", ["column", "tall"], ["index"]),
        node("ScatterElements", ["table", "index", "new"], ["written"], axis=1),
        node("Less", ["more", "count"], ["on"]),
    ]
    read = [info("turn", "i8", ()), info("go", "?", (1,)), info("i", "i8", (1,)), info("latest", "f4", None)]
    read += [info("table", "f4", (4, 5))]
    written = [info("on", "?", (1,)), info("more", "i8", (1,)), info("row", "f4", None), info("written", "f4", (4, 5))]
    loop = node(
        "Loop",
        ["trips", "true", "zero", "nothing", "blank"],
        ["last", "y", "z"],
        body=helper.make_graph(nodes, "b", read, written),
    )
    constants = {
        "trips": np.int64(trips), "true": np.array([True]), "zero": numbers(0), "nothing": np.float32(0),
        "blank": np.zeros((4, 5), "f4"), "one": numbers(1), "width": numbers(5), "flat": numbers(1, -1),
        "tall": numbers(4, 1),
    }  # fmt: skip
    return open_model([loop], {"x": ("f4", (4, 5)), "count": ("i8", (1,))}, constants, "last y z")


def test_a_loop_whose_first_round_gives_states_their_shapes_is_built_twice_at_most():
    raw = table_loop(1000)
    agrees(raw, [{"x": x_of(4, 5), "count": numbers(n)} for n in (1, 2, 4, 5)])
    agrees(table_loop(3), [{"x": x_of(4, 5), "count": numbers(n)} for n in (1, 2, 3, 5)])
    sizes = [len(post_order(load(table_loop(trips)).outputs)) for trips in (20, 1000)]
    assert sizes[0] == sizes[1]


def test_a_loop_whose_condition_is_known_at_first_is_built_once():
    """Decoders run from a condition that is true to one that their results decide."""

    def size_with(trips: int) -> int:
        constants = {**LOOP, "n": np.int64(trips), "true": np.array(True)}
        raw = open_model([ROW, node("Loop", ["n", "true", "sum"], ["y", "z"], body=WHILE)], {"x": X}, constants, "y z")
        agrees(raw, [{"x": x_of()}, {"x": np.full((4, 3), 0.5, "f4")}, {"x": np.full((4, 3), 3, "f4")}])
        return len(post_order(load(raw).outputs))

    assert size_with(9) == size_with(900)


def test_a_loop_that_has_no_end_is_refused_and_one_that_finds_none_is_said():
    raw = open_model([ROW, node("Loop", ["", "c", "sum"], ["y", "z"], body=WHILE)], {"x": X}, LOOP, "y z")
    with pytest.raises(FormatError, match=r"nothing bounds the iterations of a loop.*maximum={'y': n}"):
        load(raw)
    with pytest.raises(InputError, match="has not ended after 4 turns"):
        load(raw, maximum={"y": 4}).compile()(x=x_of() * 0)


def test_a_loop_of_fixed_states_needs_no_maximum():
    """Two states, one of them an integer; the number of iterations, or a condition, is known only when run."""
    body = helper.make_graph(
        [
            node("Add", ["v", "one"], ["w"]),
            node("Cast", ["i"], ["f"], to=1),
            node("Add", ["w", "f"], ["w2"]),
            node("Add", ["k", "two"], ["k2"]),
            node("ReduceSum", ["w2"], ["sum"], keepdims=0),
            node("Less", ["sum", "limit"], ["goes"]),
        ],
        "body",
        [info("i", "i8", ()), info("c", "?", ()), info("v", "f4", (3,)), info("k", "i8", ())],
        [info("goes", "?", ()), info("w2", "f4", (3,)), info("k2", "i8", ())],
    )
    constants = {"one": np.float32(1), "two": np.int64(2), "zero": np.int64(0)}
    inputs = {"x": ("f4", (3,)), "limit": ("f4", ()), "n": ("i8", ())}
    for trips in ("n", ""):
        raw = open_model([node("Loop", [trips, "", "x", "zero"], ["y", "z"], body=body)], inputs, constants, "y z")
        given = [(1e9, n) for n in (0, 1, 5)] if trips else []
        given += [(limit, 12_000) for limit in (-1, 50, 300)]
        agrees(raw, [{"x": np.ones(3, "f4"), "limit": np.float32(a), "n": np.int64(n)} for a, n in given])


GATHERS = {
    "rows": ([node("Gather", ["x", "at"], ["r"])], 0),
    "elements": ([node("Expand", ["at", "three"], ["e"]), node("GatherElements", ["x", "e"], ["r"])], numbers(0)),
    "pairs": ([node("GatherND", ["x", "at"], ["r"])], numbers(0)),
    "written": (
        [node("Expand", ["at", "three"], ["e"]), node("ScatterElements", ["x", "e", "new"], ["s"]),
         node("ReduceSum", ["s", "zero"], ["r"], keepdims=0)], numbers(0)),
    "written rows": (
        [node("ScatterND", ["x", "at", "flat"], ["s"]), node("ReduceSum", ["s", "zero"], ["r"], keepdims=0)],
        numbers(0)),
}  # fmt: skip
WRITTEN = {
    "new": np.ones((1, 3), "f4"),
    "flat": np.ones(3, "f4"),
    "three": np.array([1, 3], np.int64),
    "zero": numbers(0),
}


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("name", GATHERS)
def test_a_round_that_is_not_active_has_no_position_outside_its_axis(name, is_open):
    """The maximum is larger than the axis, as where a mask is pasted for each box that counts."""
    nodes, first = GATHERS[name]
    turns = [
        node("Add", ["turn", "first"], ["at"]), *nodes, node("Reshape", ["r", "flat_shape"], ["row"]),
        node("Add", ["sum", "row"], ["more"]), node("Identity", ["c"], ["on"]),
    ]  # fmt: skip
    read = [info("turn", "i8", ()), info("c", "?", ()), info("sum", "f4", (3,))]
    loop = helper.make_graph(turns, "b", read, [info("on", "?", ()), info("more", "f4", (3,))])
    constants = {**WRITTEN, "first": np.asarray(first), "flat_shape": numbers(3), "c": np.array(True)}
    nodes = [node("NonZero", ["m"], ["k"]), node("Squeeze", ["k", "zero"], ["i"]), node("Gather", ["all", "i"], ["x"])]
    outer = [*nodes * is_open, node("Loop", ["n", "c", "start"], ["y"], body=loop)]
    inputs = {"all" if is_open else "x": X, "n": ONE, **({"m": ("?", (4,))} if is_open else {})}
    raw = open_model(outer, inputs, constants | {"start": np.zeros(3, "f4")})
    feeds = [{"all" if is_open else "x": x_of(), "n": np.int64(n)} for n in (0, 2, 3)]
    agrees(raw, [f | ({"m": np.array([1, 1, 0, 1], bool)} if is_open else {}) for f in feeds], {"n": 7})
    with pytest.raises(PositionError, match="outside its axis"):
        load(raw, maximum={"n": 7}).compile()(
            **feeds[0] | {"n": np.int64(6)} | ({"m": np.ones(4, bool)} if is_open else {})
        )


@pytest.mark.parametrize("chosen", [True, False])
def test_a_branch_that_is_not_active_has_no_position_outside_its_axis(chosen):
    then = helper.make_graph([node("Gather", ["x", "i"], ["t"])], "t", [], [info("t", "f4", None)])
    other = helper.make_graph([node("Identity", ["few"], ["o"])], "o", [], [info("o", "f4", None)])
    graphs = {"then_branch": then, "else_branch": other}
    nodes = [node("If", ["p"], ["y"], **graphs)]
    raw = open_model(nodes, {"x": X, "i": ("i8", (2,)), "p": ("?", ())}, {"few": x_of(2, 3)})
    feed = {"x": x_of(), "p": np.array(chosen)}
    agrees(raw, [feed | {"i": numbers(0, 3 if chosen else 9)}])
    if chosen:
        with pytest.raises(PositionError, match="outside its axis"):
            load(raw).compile()(**feed, i=numbers(0, 9))


def branches(then: Any, other: Any) -> dict[str, Any]:
    graphs = [
        helper.make_graph([node("Identity", [read], [name])], name, [], [info(name, "f4", None)])
        for read, name in (then, other)
    ]
    return dict(zip(("then_branch", "else_branch"), graphs))


@pytest.mark.parametrize(("then", "other"), [("x", "r"), ("r", "x"), ("r", "few"), ("few", "x")])
def test_branches_may_differ_in_lengths(then, other):
    nodes = [
        node("NonZero", ["m"], ["n"]),
        node("Squeeze", ["n", "zero"], ["i"]),
        node("Gather", ["x", "i"], ["r"]),
        node("If", ["p"], ["y"], **branches((then, "t"), (other, "o"))),
    ]
    raw = open_model(nodes, {"x": X, "m": ("?", (4,)), "p": ("?", ())}, {"zero": numbers(0), "few": x_of(2, 3)})
    masks = [np.array(m, bool) for m in ([1, 0, 1, 1], [0] * 4, [1] * 4)]
    agrees(raw, [{"x": x_of(), "m": m, "p": np.array(p)} for m in masks for p in (True, False)])


@pytest.mark.parametrize("axis", [0, 1])
def test_branches_of_one_dynamic_length_have_it(axis):
    """Both branches return a value of one length, known only at run time; so does a loop that keeps it."""
    perm = [0, 1] if axis == 0 else [1, 0]
    graphs = {
        key: helper.make_graph([node("Mul", ["t", factor], [key])], key, [], [info(key, "f4", None)])
        for key, factor in (("then_branch", "two"), ("else_branch", "three"))
    }
    doubled = helper.make_graph(
        [node("Add", ["s", "s"], ["next"]), node("Identity", ["c"], ["on"])], "b",
        [info("turn", "i8", ()), info("c", "?", ()), info("s", "f4", None)],
        [info("on", "?", ()), info("next", "f4", None)],
    )  # fmt: skip
    nodes = [
        node("NonZero", ["m"], ["n"]),
        node("Squeeze", ["n", "zero"], ["i"]),
        node("Gather", ["x", "i"], ["r"]),
        node("Transpose", ["r"], ["t"], perm=perm),
        node("If", ["p"], ["y"], **graphs),
        node("Loop", ["k", "go", "t"], ["z"], body=doubled),
    ]
    constants = {"zero": numbers(0), "two": np.float32(2), "three": np.float32(3), "go": np.array(True)}
    raw = open_model(nodes, {"x": X, "m": ("?", (4,)), "p": ("?", ()), "k": ONE}, constants, "y z")
    masks = [np.array(m, bool) for m in ([1, 0, 1, 1], [0] * 4, [1] * 4)]
    feeds = [
        {"x": x_of(), "m": m, "p": np.array(p), "k": np.int64(k)} for m in masks for p in (True, False) for k in (0, 2)
    ]
    agrees(raw, feeds, {"k": 3})


def test_a_branch_may_have_constants_of_names_that_the_graph_around_it_has():
    """Each name is that of the innermost graph; the outer one is what it was behind the branch."""
    own = numpy_helper.from_array(np.array([[7.0, 8.0, 9.0]], "f4"), "few")
    then = helper.make_graph([node("Add", ["x", "few"], ["t"])], "t", [], [info("t", "f4", None)], [own])
    other = branches(("x", "t"), ("x", "o"))["else_branch"]
    nodes = [node("If", ["p"], ["b"], then_branch=then, else_branch=other), node("Mul", ["b", "few"], ["y"])]
    function = load(open_model(nodes, {"x": X, "p": ("?", ())}, {"few": np.float32(2)})).compile()
    for p, added in ((True, [7, 8, 9]), (False, 0)):
        np.testing.assert_array_equal(function(x=x_of(), p=np.array(p))[0], (x_of() + np.float32(added)) * 2)


def test_what_a_branch_that_is_not_taken_would_refuse_does_not_matter():
    reshaped = helper.make_graph([node("Reshape", ["x", "n"], ["t"])], "t", [], [info("t", "f4", None)])
    other = branches(("x", "t"), ("flat", "o"))["else_branch"]
    raw = open_model(
        [node("If", ["p"], ["y"], then_branch=reshaped, else_branch=other)],
        {"x": X, "n": ("i8", (1,)), "p": ("?", ())},
        {"flat": x_of(5)},
    )
    function = load(raw).compile()
    assert function(x=x_of(), n=numbers(7), p=np.array(False))[0].shape == (5,)
    with pytest.raises(InputError, match="lengths known only at run time do not fit"):
        function(x=x_of(), n=numbers(7), p=np.array(True))


NEGATIVE = [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Less", ["s", "zero"], ["c"])]
SIGNS = [{"x": x_of() - 100}, {"x": x_of() + 100}]
SQUEEZED = helper.make_graph([node("Squeeze", ["r", "axis"], ["t"])], "t", [], [info("t", "f4", None)])
CONSTANTS = {"axis": numbers(0), "zero": np.float32(0), "first": np.zeros(1, np.int64), "bad": numbers(5)}


def squeeze_if(*after: Any, name: str = "y", first: Any = (), kept: str = "r", inputs: Any = None) -> bytes:
    """`If` of a negative sum, which squeezes `r` of one row, or keeps it; then other nodes."""
    whole = helper.make_graph([node("Identity", [kept], ["e"])], "e", [], [info("e", "f4", None)])
    start = first or [node("Gather", ["x", "first"], ["r"])]
    chosen = node("If", ["c"], [name], name="if", then_branch=SQUEEZED, else_branch=whole)
    return open_model([*NEGATIVE, *start, chosen, *after], inputs or {"x": X}, CONSTANTS)


def test_an_output_may_have_another_number_of_axes_in_each_branch():
    """KNNImputer of scikit-learn writes such an If."""
    agrees(squeeze_if(), SIGNS)


@pytest.mark.parametrize(
    "after",
    [
        [node("Mul", ["v", "v"], ["y"])],
        [node("Mul", ["v", "x"], ["y"])],
        [node("ReduceSum", ["v"], ["w"], keepdims=0), node("Add", ["w", "x"], ["y"])],
        [node("Shape", ["v"], ["y"])],
        [node("Concat", ["v", "v"], ["y"], axis=0)],
        [node("If", ["c"], ["y"], **branches(("v", "t"), ("v", "o")))],
    ],
    ids=["both", "joined", "reduced", "shape", "copied", "in a branch"],
)
def test_what_reads_such_a_value_is_computed_for_both(after):
    agrees(squeeze_if(*after, name="v"), SIGNS)


def test_a_second_if_of_the_same_condition_undoes_the_first():
    wide = helper.make_graph([node("Unsqueeze", ["v", "axis"], ["t"])], "t", [], [info("t", "f4", None)])
    same = branches(("v", "t"), ("v", "o"))["else_branch"]
    raw = squeeze_if(node("If", ["c"], ["y"], then_branch=wide, else_branch=same), name="v")
    agrees(raw, SIGNS)
    assert [x.shape for x in load(raw).outputs] == [(1, 3)] and not load(raw).is_open


def test_a_length_of_one_decides_whether_an_axis_is_squeezed():
    """What torch writes for a squeeze of an axis of unknown length."""
    first = [
        node("NonZero", ["m"], ["n"]),
        node("Squeeze", ["n", "axis"], ["i"]),
        node("Gather", ["x", "i"], ["r"]),
        node("Shape", ["r"], ["shape"], end=1),
        node("Squeeze", ["shape", "axis"], ["rows"]),
        node("Equal", ["rows", "one"], ["single"]),
    ]
    whole = helper.make_graph([node("Identity", ["r"], ["e"])], "e", [], [info("e", "f4", None)])
    chosen = node("If", ["single"], ["y"], then_branch=SQUEEZED, else_branch=whole)
    constants = CONSTANTS | {"one": np.int64(1)}
    raw = open_model([*first, chosen], {"x": X, "m": ("?", (4,))}, constants)
    agrees(raw, [{"x": x_of(), "m": np.array(m, bool)} for m in ([0, 1, 0, 0], [0] * 4, [1] * 4, [1, 0, 1, 0])])


def test_two_conditions_give_up_to_four_numbers_of_axes():
    more = helper.make_graph([node("Unsqueeze", ["v", "axis"], ["t"])], "t", [], [info("t", "f4", None)])
    same = branches(("v", "t"), ("v", "o"))["else_branch"]
    second = node("If", ["p"], ["y"], then_branch=more, else_branch=same)
    raw = squeeze_if(second, name="v", inputs={"x": X, "p": ("?", ())})
    agrees(raw, [{**x, "p": np.array(p)} for x in SIGNS for p in (True, False)])


def test_a_node_that_one_of_them_fits_settles_the_condition():
    raw = squeeze_if(node("Transpose", ["v"], ["y"], name="turn", perm=[1, 0]), name="v")
    function = load(raw).compile()
    np.testing.assert_array_equal(function(**SIGNS[1])[0], SIGNS[1]["x"][:1].T)
    with pytest.raises(
        InputError, match="If 'if' takes then_branch, which was refused when the file was read: in Tran"
    ):
        function(**SIGNS[0])


def test_a_node_that_neither_fits_is_refused():
    with pytest.raises(
        FormatError, match="neither branch of If 'if' fits: with else_branch in Transpose.*; with then_bra"
    ):
        load(squeeze_if(node("Transpose", ["v"], ["y"], perm=[1, 0, 2]), name="v"))


@pytest.mark.parametrize("holds", [True, False])
def test_constants_give_the_branch_and_a_run_checks_it(holds):
    raw = squeeze_if()
    model = load(raw, constants={"c": holds})
    assert model.outputs[0].shape == ((3,) if holds else (1, 3)) and not model.choices
    function = model.compile()
    assert function(**SIGNS[1 - holds])[0].shape == model.outputs[0].shape
    with pytest.raises(InputError, match=f"constants gives {holds} for 'c', the condition of If 'if'; it differs"):
        function(**SIGNS[holds])


def test_a_loop_does_not_take_such_a_state_and_the_advice_works():
    nodes = [
        node(
            "If",
            ["c"],
            ["more"],
            name="if",
            then_branch=SQUEEZED,
            else_branch=branches(("r", "t"), ("r", "o"))["else_branch"],
        ),
        node("Identity", ["on"], ["going"]),
    ]
    read = [info("turn", "i8", ()), info("on", "?", ()), info("state", "f4", None)]
    step = helper.make_graph(nodes, "b", read, [info("going", "?", ()), info("more", "f4", None)])
    start = [*NEGATIVE, node("Gather", ["x", "first"], ["r"])]
    loop = node("Loop", ["trips", "", "r"], ["y"], body=step)
    raw = open_model([*start, loop], {"x": X}, CONSTANTS | {"trips": np.int64(2)})
    with pytest.raises(FormatError, match=r"result 'more' of its body is .* give constants={'c': value}"):
        load(raw)
    agrees_with = load(raw, constants={"c": False}).compile()(**SIGNS[1])
    np.testing.assert_array_equal(agrees_with[0], SIGNS[1]["x"][:1])


def test_many_open_numbers_of_axes_are_refused():
    nodes, inputs = [], {"x": X, **{f"p{i}": ("?", ()) for i in range(6)}}
    for i in range(6):
        name = f"v{i - 1}" if i else "x"
        more = helper.make_graph([node("Unsqueeze", [name, "axis"], ["t"])], "t", [], [info("t", "f4", None)])
        nodes.append(
            node(
                "If",
                [f"p{i}"],
                [f"v{i}"],
                then_branch=more,
                else_branch=branches((name, "t"), (name, "o"))["else_branch"],
            )
        )
    raw = open_model([*nodes, node("Shape", ["v5"], ["y"])], inputs, CONSTANTS)
    with pytest.raises(FormatError, match=r"leave more than 16 dtypes and numbers of axes open; give constants={'p"):
        load(raw)


def test_each_of_two_results_is_selected_whatever_its_lengths():
    """One of a length that differs, and one of numbers; a loop exchanges two states, and collects two."""
    then = helper.make_graph(
        [node("Mul", ["r", "two"], ["t"]), node("Neg", ["x"], ["u"])],
        "t",
        [],
        [info("t", "f4", None), info("u", "f4", None)],
    )
    other = helper.make_graph(
        [node("Add", ["x", "x"], ["o"]), node("Abs", ["x"], ["w"])],
        "o",
        [],
        [info("o", "f4", None), info("w", "f4", None)],
    )
    step = helper.make_graph(
        [
            node("Add", ["p", "q"], ["more"]), node("Identity", ["p"], ["last"]), node("Identity", ["c"], ["on"]),
            node("Sub", ["p", "q"], ["first"]), node("Mul", ["q", "two"], ["second"]),
        ],
        "b",
        [info("turn", "i8", ()), info("c", "?", ()), info("p", "f4", (4, 3)), info("q", "f4", (4, 3))],
        [info("on", "?", ()), *(info(name, "f4", (4, 3)) for name in ("more", "last", "first", "second"))],
    )  # fmt: skip
    nodes = [
        node("NonZero", ["m"], ["n"]), node("Squeeze", ["n", "zero"], ["i"]), node("Gather", ["x", "i"], ["r"]),
        node("If", ["p0"], ["y", "z"], then_branch=then, else_branch=other),
        node("Loop", ["trips", "go", "x", "z"], ["a", "b", "d", "e"], body=step),
    ]  # fmt: skip
    constants = {"zero": numbers(0), "two": np.float32(2), "go": np.array(True)}
    inputs = {"x": X, "m": ("?", (4,)), "p0": ("?", ())}
    feeds = [
        {"x": x_of(), "m": np.array(m, bool), "p0": np.array(p)} for m in ([1, 0, 1, 1], [0] * 4) for p in (True, False)
    ]
    agrees(open_model(nodes, inputs, constants | {"trips": np.int64(3)}, "y z a b d e"), feeds)
    opened = open_model(nodes, inputs | {"trips": ONE}, constants, "y z a b d e")
    agrees(opened, [feed | {"trips": np.int64(n)} for feed, n in zip(feeds, (0, 1, 3, 2))], {"trips": 3})


def inner_if(name: str, condition: str, more: Any, result: str) -> Any:
    """An If of which one branch has another number of axes, as the body of a branch."""
    same = helper.make_graph([node("Identity", ["r"], ["i"])], "i", [], [info("i", "f4", None)])
    chosen = node("If", [condition], [result], name=name, then_branch=more, else_branch=same)
    return helper.make_graph([chosen], name, [], [info(result, "f4", None)])


WIDE = helper.make_graph([node("Unsqueeze", ["r", "axis"], ["w"])], "w", [], [info("w", "f4", None)])


def test_a_branch_may_leave_the_number_of_axes_open():
    """Ifs inside of both branches of an If; results of up to three numbers of axes."""
    nodes = [
        node("Gather", ["x", "first"], ["r"]),
        node(
            "If", ["p"], ["y"], then_branch=inner_if("a", "q", WIDE, "t"), else_branch=inner_if("b", "s", SQUEEZED, "o")
        ),
    ]
    inputs = {"x": X, **dict.fromkeys("pqs", ("?", ()))}
    flags = [{name: np.array(bool(i >> k & 1)) for k, name in enumerate("pqs")} for i in range(8)]
    agrees(open_model(nodes, inputs, CONSTANTS), [{"x": x_of(), **f} for f in flags])


def test_a_node_may_read_several_values_of_open_numbers_of_axes():
    """Of one condition, and of two: each combination is computed."""
    whole = helper.make_graph([node("Identity", ["r"], ["e"])], "e", [], [info("e", "f4", None)])
    nodes = [
        node("Gather", ["x", "first"], ["r"]),
        node("If", ["p"], ["v"], then_branch=SQUEEZED, else_branch=whole),
        node("If", ["p"], ["w"], then_branch=WIDE, else_branch=whole),
        node("If", ["q"], ["u"], then_branch=WIDE, else_branch=whole),
        node("Add", ["v", "w"], ["y"]), node("Sub", ["w", "u"], ["z"]), node("Shape", ["y"], ["n"]),
        node("Mul", ["z", "v"], ["m"]),
    ]  # fmt: skip
    inputs = {"x": X, "p": ("?", ()), "q": ("?", ())}
    raw = open_model(nodes, inputs, CONSTANTS, "y z n m v w u")
    agrees(raw, [{"x": x_of(), "p": np.array(p), "q": np.array(q)} for p in (True, False) for q in (True, False)])
