"""Every error names the op, the operands and the user's own line, and says the way out."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import (
    BudgetError,
    CgraphError,
    DTypeError,
    GraphError,
    InputError,
    NoGradientError,
    ShapeError,
    UnassignedError,
)
from cgraph.planning.options import CompileOptions

HERE = "test_errors.py"


def test_shapes_that_do_not_broadcast():
    x, y = cg.Var((3,), name="x"), cg.Var((4,), name="y")
    with pytest.raises(ShapeError, match=r"x float32\[3\].*y float32\[4\]"):
        x + y


def test_matmul_of_unfitting_shapes_names_operands_and_line():
    x, w = cg.Var((32, 784), name="x"), cg.Var((256, 128), name="w")
    with pytest.raises(
        ShapeError, match=rf"matmul at {HERE}:\d+: .*784.*256.*x float32\[32,784\].*w float32\[256,128\]"
    ):
        x @ w


def test_unsupported_dtypes():
    with pytest.raises(DTypeError, match="complex256"):
        cg.Var((2,), "clongdouble")
    with pytest.raises(DTypeError, match="float128"):
        cg.Const(np.zeros(2, "longdouble"))
    with pytest.raises(DTypeError):
        cg.Var((2,), bool) - cg.Var((2,), bool)


def test_inputs_of_a_call():
    x, y = cg.Var((2,), name="x"), cg.Var((2,), name="y")
    f = cg.compile(x + y, [x, y])
    one = np.ones(2, "float32")
    with pytest.raises(InputError, match="input y float32.2. is missing"):
        f(one)
    with pytest.raises(InputError, match="no input 'z'. Use one of x, y"):
        f(one, z=one)
    with pytest.raises(InputError, match="'x' is given twice"):
        f(one, x=one)
    with pytest.raises(InputError, match="the Function takes 2 inputs, got 3"):
        f(one, one, one)
    with pytest.raises(InputError, match=r"x expects float32\[2\], got float32\[3\]"):
        f(np.ones(3, "float32"), one)
    with pytest.raises(InputError, match=r"got int64\[2\]. Convert it with .astype\('float32'\)"):
        f(np.ones(2, "int64"), one)


def test_update_of_something_else_than_a_var():
    x = cg.Var((2,), name="x")
    with pytest.raises(GraphError, match="not a Var"):
        cg.compile(x, updates={x + 1: x})
    with pytest.raises(ShapeError, match=r"update of x float32\[2\]"):
        cg.compile(x, updates={x: cg.sum(x)})


def test_a_var_without_a_value():
    x = cg.Var((2,), name="weights")
    with pytest.raises(UnassignedError, match=rf"weights float32\[2\] \(made at {HERE}:\d+\) has no value"):
        (x + 1).eval()
    with pytest.raises(UnassignedError, match="weights"):
        _ = x.value


def test_compile_of_nothing():
    with pytest.raises(GraphError, match="at least one output"):
        cg.compile([])


X = cg.Var((2,), name="x")
REFUSED = {
    "what is no node": (lambda: cg.compile([X, 3.0]), "3.0 is not a node"),
    "an update with what is no node": (lambda: cg.compile([], updates={X: 3.0}), "3.0 is not a node"),
    "an input that is no Var": (lambda: cg.compile(X + 1, [X + 1]), "is not a Var: only a Var can be an input"),
    "two inputs of one name": (
        lambda: cg.compile(X, [X, cg.Var((3,), name="x")]),
        "two inputs are called 'x'; give each a different name",
    ),
    "an unknown option": (
        lambda: cg.compile(X, speed=9),
        "compile has no option 'speed'. Use one of outputs, inputs, updates",
    ),
    "an unknown strategy": (lambda: cg.compile(X, memory="best"), "no memory strategy 'best'; there are auto, "),
    "an unknown order": (lambda: cg.compile(X, order="best"), "there is no order 'best'; there are "),
    "an unknown engine": (lambda: cg.compile(X, engine="abacus"), "there is no engine 'abacus'. Choose one of "),
    "a plan of the reference engine": (lambda: cg.compile(X, engine="reference").nbytes, "there is no plan"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_compile_refuses_is_named(name):
    act, match = REFUSED[name]
    with pytest.raises(GraphError, match=match):
        act()


def test_negative_and_huge_sizes():
    with pytest.raises(ShapeError, match="negative"):
        cg.Var((2, -1))
    with pytest.raises(ShapeError, match=r"more than 2\*\*63 - 1 bytes"):
        cg.Var((2**31, 2**31, 2**31))
    with pytest.raises(ShapeError, match=r"more than 2\*\*63 - 1 bytes"):
        cg.broadcast_to(cg.Var((1,)), (2**40, 2**40))


def test_a_number_that_the_dtype_cannot_hold():
    with pytest.raises(DTypeError, match="300"):
        cg.Var((2,), "uint8") + 300


def test_a_node_has_no_truth_value():
    x = cg.Var((2,), name="x")
    with pytest.raises(ValueError, match="cg.where"):
        bool(x > 0)
    with pytest.raises(TypeError, match="eval"):
        np.asarray(x)


def test_indexing_out_of_range():
    x = cg.Var((2, 3), name="x")
    with pytest.raises(ShapeError, match="index 5"):
        x[5]
    with pytest.raises(ShapeError):
        x[0, 0, 0]


def test_an_op_without_gradient_says_its_name():
    x = cg.Var((3,), "float64", "x")
    with pytest.raises(NoGradientError, match="floor_divide"):
        cg.gradient(cg.sum(x // 2.0), x)


def test_a_budget_that_is_too_small():
    x = cg.Var((1000,), name="x")
    y = cg.sum(cg.sin(x)[::-1] @ cg.cos(x))
    with pytest.raises(BudgetError, match="the budget is 64 B"):
        cg.compile(y, [x], budget=64)


def test_out_of_the_wrong_kind():
    x = cg.Var((2,), name="x")
    f = cg.compile(x + 1, [x])
    with pytest.raises(InputError, match="out has"):
        f(np.zeros(2, "float32"), out=np.zeros(3, "float32"))


@pytest.mark.parametrize(
    "build",
    [
        lambda x: x + cg.Var((4,)),
        lambda x: cg.reshape(x, (2, 2)),
        lambda x: x[5],
        lambda x: cg.concat([x, cg.reshape(x, (1, 3))]),
        lambda x: cg.sum(x, axis=4),
        lambda x: cg.split(x, 2),
        lambda x: np.matmul(x, cg.Var((2, 2))),
    ],
)
def test_what_an_op_refuses_names_the_op_and_the_line_once(build):
    with pytest.raises(ShapeError, match=rf"^[a-z_0-9]+ at {HERE}:\d+: (?!.* at {HERE})"):
        build(cg.Var((3,), name="x"))


ODD = {
    "nothing": lambda: None,
    "less than none": lambda: -1,
    "half": lambda: 2.5,
    "no number": lambda: float("nan"),
    "endless": lambda: float("inf"),
    "huge": lambda: 10**30,
    "text": lambda: "best",
    "true": lambda: True,
    "an empty list": list,
    "a list of nothing": lambda: [None],
    "an array": lambda: np.zeros(3),
    "a dictionary": lambda: {"a": 1},
    "a pair": lambda: (1, 2),
    "a Var": lambda: cg.Var((2,)),
    "other Vars": lambda: [cg.Var((2,))],
    "an object": object,
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", [*CompileOptions._fields, "engine", "threads", "outputs", "inputs", "updates"])
def test_an_odd_choice_is_taken_or_refused_by_name(name, odd):
    x = cg.Var((1, 2, 8, 8), "float32", "x")
    given = {"outputs": cg.relu(x), "inputs": [x], name: ODD[odd]()}
    try:
        cg.compile(**given)
    except CgraphError as error:
        assert str(error)


@pytest.mark.parametrize("odd", ODD)
def test_odd_rooms_for_outputs_are_refused_by_name(odd):
    x = cg.Var((3,), "float32", "x")
    for function in (cg.compile(x + 1, [x]), cg.compile([x + 1], [x])):
        if odd != "nothing":
            with pytest.raises(InputError, match="out"):
                function(np.zeros(3, "float32"), out=ODD[odd]())


NO_NUMBERS = (None, "1", b"1", {}, object(), [None], ["a"], np.array([None] * 3), np.array(["1"] * 3), (x for x in "a"))


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda x: f"{x!r:.20}")
def test_what_holds_no_numbers_is_refused_as_such(value):
    x = cg.Var((3,), "int64", "x")
    for act in (cg.compile(x + 1, [x]), x.assign):
        with pytest.raises(InputError, match=r"x (expects )?int64\[3\](, got| is missing)") as found:
            act(value)
        assert "astype" not in str(found.value)


def test_numbers_that_are_not_whole_are_cut_off_nowhere():
    for dtype in ("int8", "uint8", "int64", "uint64"):
        x = cg.Var((2,), dtype, "x")
        for value in ([1.5, 2], (0.1, 1.0), [float("nan"), 1]):
            with pytest.raises(InputError, match="holds integers only"):
                x.assign(value)
        assert x.assign([1.0, 2]).value.tolist() == [1, 2]


CHOICES = (
    {"recompute": True},
    {"recompute": 0.05},
    {"recompute": 1},
    {"budget": 0},
    {"bands": 1},
    {"passes": False},
    {"order": "least_memory"},
    {"memory": "one_each"},
    {"precision": "bf16"},
    {"weights_dtype": "float16"},
)


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_every_choice_holds_for_graphs_in_which_nothing_runs(choice):
    for shape in ((1, 2, 4, 4), (1, 0, 4, 4)):
        x, w = cg.Var(shape, "float32", "x"), cg.Var(shape, "float32", "w").assign(np.ones(shape, "float32"))
        value = np.random.default_rng(0).normal(size=shape).astype("float32")
        for y, want in ((x, value), (x[..., ::-1], value[..., ::-1]), (w, np.ones(shape)), (cg.Const(value), value)):
            np.testing.assert_array_equal(cg.compile(y, [x], **choice)(value), want)


KINDS = {
    cg.errors.ShapeError: (CgraphError, ValueError),
    cg.errors.DTypeError: (CgraphError, TypeError),
    cg.errors.ArgumentError: (CgraphError, TypeError, ValueError),
    cg.errors.NoMeaningError: (CgraphError, TypeError, AttributeError),
    cg.errors.GraphError: (CgraphError, ValueError),
    cg.errors.OptionError: (GraphError, TypeError),
    cg.errors.UnassignedError: (CgraphError, ValueError),
    cg.errors.InputError: (CgraphError, ValueError),
    cg.errors.PositionError: (CgraphError, IndexError),
    cg.errors.NoKernelError: (CgraphError, NotImplementedError),
    cg.errors.NoGradientError: (CgraphError, NotImplementedError),
    cg.errors.PlanError: (CgraphError, ValueError),
    cg.errors.BudgetError: (CgraphError, MemoryError),
    cg.errors.ArenaError: (CgraphError, MemoryError),
    cg.errors.FormatError: (CgraphError, ValueError),
    cg.errors.WeightsError: (CgraphError, OSError),
    cg.errors.EngineError: (CgraphError, RuntimeError),
    cg.errors.UnavailableError: (CgraphError, RuntimeError),
    cg.errors.MemberError: (CgraphError, RuntimeError),
    cg.errors.CgraphError: (Exception,),
}


def test_each_error_is_also_pythons_error_of_its_kind():
    """Programs that catch Python's go on working."""
    assert {kind: kind.__bases__ for kind in KINDS} == KINDS
    own = {x for x in vars(cg.errors).values() if isinstance(x, type) and issubclass(x, Exception)}
    assert own == {*KINDS, cg.errors.MemoryWarning} and issubclass(cg.errors.MemoryWarning, UserWarning)
    assert not any(kind("text").is_located for kind in KINDS)


def test_a_file_whose_parts_contradict_one_another_is_damaged():
    error = cg.errors.damaged_file("a header of 3 bytes ends behind the file")
    assert isinstance(error, cg.errors.FormatError)
    assert str(error).endswith("behind the file. The file is damaged: export or download it again")
