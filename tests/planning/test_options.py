"""Each option is a value: what is falsy means what is documented or is refused, and what contradicts is refused."""

from typing import Any

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.planning.options import CHECKS, CompileOptions, Request, options_of

FALSY: tuple[Any, ...] = (
    0, 0.0, False, None, "", (), [], {}, frozenset(), b"", np.int64(0), np.float64(0.0), np.False_, np.zeros(0), -0.0,
)  # fmt: skip
NOTHING_LISTED = {"changing", "freeze", "rows"}
"""Options that list Vars or nodes: an empty collection is the default."""
MEANINGS: dict[str, set[str]] = {
    "memory": set(), "order": set(), "weights": {"None"}, "weights_dtype": {"None"}, "precision": {"None"},
    "restructure": {"None"}, "bands": {"None", "0"}, "budget": {"None"}, "passes": {"False"}, "winograd": {"False"},
    "recompute": {"False", "0.0"},
}  # fmt: skip
"""Falsy values that an option takes, by what they mean; `budget` and `recompute` of 0 bytes are not met here."""


def network() -> tuple[cg.Var, cg.Node]:
    x = cg.Var((1, 3, 20, 20), name="x")
    y = cg.relu(cg.conv2d(x, cg.Const(np.ones((5, 3, 3, 3), "f4")), pad=1))
    return x, cg.conv2d(y, cg.Const(np.ones((4, 5, 3, 3), "f4")), pad=1)


def meaning(value: Any) -> str:
    """What kind of nothing a value is: NumPy's False is False, and its 0 is 0."""
    if isinstance(value, bool | np.bool_):
        return "False"
    if isinstance(value, int | np.integer):
        return "0"
    if isinstance(value, float | np.floating):
        return "0.0"
    if isinstance(value, tuple | list | dict | frozenset):
        return "empty"
    return repr(value)


def outcome(**options: Any) -> str:
    """What compile makes with some options: the plan's bytes, or the kind of refusal."""
    x, y = network()
    try:
        return str(cg.compile(y, [x], **options).nbytes)
    except cg.CgraphError as error:
        return type(error).__name__


def test_every_option_has_a_row_here():
    assert NOTHING_LISTED | MEANINGS.keys() == CHECKS.keys() == set(CompileOptions._fields)


@pytest.mark.parametrize("value", FALSY, ids=lambda x: f"{type(x).__name__}-{x}")
@pytest.mark.parametrize("name", CHECKS)
def test_a_falsy_option_is_a_value_with_a_meaning_or_a_typed_refusal(name, value):
    found, kind = outcome(**{name: value}), meaning(value)
    if (name, kind) in (("budget", "0"), ("recompute", "0")):
        assert found == "BudgetError", "no byte is a number of bytes"
    elif name in NOTHING_LISTED:
        is_collection = kind == "empty" or isinstance(value, bytes | np.ndarray)
        assert found == (outcome() if is_collection else "GraphError")
    elif kind not in MEANINGS[name]:
        assert found in ("GraphError", "DTypeError")
    elif kind == "None" or name == "recompute":
        assert found == outcome(), "the default"
    else:
        assert found.isdigit()


def test_no_bytes_are_enough_for_a_graph_without_an_arena():
    x = cg.Var((4,), name="x")
    for options in ({"budget": 0}, {"recompute": 0}):
        assert cg.compile(cg.reshape(x, (2, 2)), [x], **options).nbytes == 0


@pytest.mark.parametrize("option", ["budget", "recompute"])
def test_streamed_weights_keep_a_limit_of_no_bytes(option, tmp_path):
    x, y = network()
    with pytest.raises(cg.BudgetError):
        cg.compile(y, [x], weights=cg.StreamedWeights(str(tmp_path / "weights")), **{option: 0})


def test_numpy_s_true_is_true():
    assert outcome(recompute=np.True_) == outcome(recompute=True)


@pytest.mark.parametrize("value", [None, 0.0, "", (), False, -1])
def test_threads_are_a_number_of_them(value):
    x, y = network()
    with pytest.raises(cg.GraphError, match="threads"):
        cg.compile(y, [x], threads=value)


@pytest.mark.parametrize("value", ["", 0, None, (), False])
def test_an_engine_that_is_nothing_is_refused(value):
    x, y = network()
    with pytest.raises(cg.GraphError, match="engine"):
        cg.compile(y, [x], engine=value)


@pytest.mark.parametrize("value", ["", 0, None, False])
@pytest.mark.parametrize("place", ["outputs", "inputs", "updates"])
def test_what_is_no_collection_of_nodes_is_refused(place, value):
    x, y = network()
    given = {"outputs": y, "inputs": [x], "updates": {}} | {place: value}
    if place == "updates" and value is None:
        assert cg.compile(**given).nbytes > 0
        return
    with pytest.raises(cg.GraphError):
        cg.compile(**given)


@pytest.mark.parametrize(
    "options", [{"shapes": {}}, {"most": {}}, {"most": 0}, {"most": ()}, {"budget": 0}, {"shapes": {"x": ()}}]
)
def test_sizes_that_are_nothing_are_refused(options):
    def build(sizes: Any) -> tuple:
        x = cg.Var((sizes["n"],), name="x")
        return cg.sort(x) * 2, [x]

    with pytest.raises((cg.GraphError, cg.BudgetError)):
        cg.compile_sizes(build, **{"shapes": {"x": ("n",)}, **options})(np.ones(100, "float32"))


@pytest.mark.parametrize("options", [{"samples": []}, {"samples": ()}, {"batch": 0}])
def test_a_model_s_options_that_are_nothing_are_refused(options):
    model = nn.initialise(nn.Sequential(nn.Input((3,)), nn.Linear(3, 2)))
    assert model.samples
    with pytest.raises(cg.InputError, match="samples"):
        nn.compile(model, **options)
    if "samples" in options:
        with pytest.raises(cg.InputError, match="samples"):
            nn.summary(model, options["samples"])


# -- options that contradict one another ------------------------------------------------------------------------------


def cell(name: str) -> cg.Var:
    return cg.Var((3,), "float64", name).assign(np.ones(3))


def test_what_is_frozen_is_no_input_no_target_of_an_update_and_does_not_change():
    x, w = cg.Var((3,), "float64", "x"), cell("w")
    for inputs, updates, options, role in (
        ([x, w], None, {}, "an input"),
        ([x], {w: w * 2}, {}, "the target of an update"),
        ([x], None, {"changing": [w]}, "changing"),
    ):
        with pytest.raises(cg.GraphError, match=f"freeze has w .*{role}"):
            cg.compile(x * w, inputs, updates, freeze=[w], **options)
        with pytest.raises(cg.GraphError, match=f"freeze has w .*{role}"):
            cg.compile(x * w, inputs, updates, freeze=[cell("other"), w], **options)


def test_what_is_named_twice_counts_once():
    x, w = cg.Var((3,), "float64", "x"), cell("w")
    assert cg.compile(x * w, [x], freeze=[w, w])(np.ones(3)).tolist() == [1, 1, 1]
    assert cg.compile(x * w, [x], changing=[w, w])(np.ones(3)).tolist() == [1, 1, 1]
    with pytest.raises(cg.GraphError, match="two inputs are called 'x'"):
        cg.compile(x * w, [x, x])


SAVING: tuple[dict[str, Any], ...] = (
    {"recompute": 0}, {"recompute": 1 / 16}, {"recompute": True}, {"bands": 0}, {"bands": 8},
    {"restructure": (0.5, (2, 2))},
)  # fmt: skip


@pytest.mark.parametrize("options", SAVING)
def test_rows_go_with_no_other_way_to_save_memory(options):
    x, y = network()
    with pytest.raises(cg.GraphError, match=f"rows= goes with budget=, not with {next(iter(options))}="):
        cg.compile(y, [x], rows=[x], **options)


@pytest.mark.parametrize(
    "options", [{"budget": 0}, {"budget": 1 << 20}, {"weights_dtype": "float16"}, {"precision": "bf16"}]
)
def test_the_reference_engine_refuses_what_it_would_ignore(options):
    x, y = network()
    with pytest.raises(cg.GraphError, match=f"the engine reference does not support {next(iter(options))}="):
        cg.compile(y, [x], engine="reference", **options)


@pytest.mark.parametrize("engine", ["cuda-sim", "reference"])
def test_weights_are_streamed_on_the_cpu_alone(engine, tmp_path):
    x, y = network()
    with pytest.raises(cg.GraphError, match="does not support weights="):
        cg.compile(y, [x], engine=engine, weights=cg.StreamedWeights(str(tmp_path / "weights")))


@pytest.mark.parametrize("options", [{"memory": "nonsense"}, {"order": "nonsense"}])
@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_a_name_that_there_is_not_is_refused_on_each_engine(engine, options):
    x, y = network()
    with pytest.raises(cg.GraphError, match="nonsense"):
        cg.compile(y, [x], engine=engine, **options)


@pytest.mark.parametrize(
    "options", [{"weights_dtype": "float16"}, {"precision": "bf16"}, {"precision": cg.Tolerance(0.1, [])}]
)
def test_without_passes_no_weights_are_rounded(options):
    x, y = network()
    with pytest.raises(cg.GraphError, match="passes=False"):
        cg.compile(y, [x], passes=False, **options)


def test_an_engine_has_its_own_number_of_threads():
    x, y = network()
    with pytest.raises(cg.GraphError, match="threads is 2"):
        cg.compile(y, [x], engine=CpuEngine(threads=1), threads=2)
    assert cg.compile(y, [x], engine=CpuEngine(threads=2), threads=2).nbytes > 0


# -- values at the ends of what an option accepts ---------------------------------------------------------------------

VARS = cg.Var((3,), name="a"), cg.Var((3,), name="b")
LARGEST = 2**62 - 1
ACCEPTED: dict[str, tuple[tuple[Any, Any], ...]] = {
    "bands": ((0, 0), (LARGEST, LARGEST), (np.int64(3), 3), (None, None)),
    "budget": ((0, 0), (LARGEST, LARGEST), ("2MiB", 2 << 20), (np.int32(5), 5), (None, None)),
    "recompute": (
        (True, True), (np.False_, False), (0, 0), (LARGEST, LARGEST), ("1KiB", 1024), (0.0, False), (-0.0, False),
        (np.float32(0.25), 0.25), (5e-324, 5e-324), (1 - 2**-53, 1 - 2**-53),
    ),
    "restructure": ((None, None), ((0.5, (2, 3)), (0.5, (2, 3))), ([1, [0, 3]], [1, [0, 3]])),
    "passes": ((False, False), (np.True_, True)),
    "winograd": ((np.False_, False), (True, True)),
    "changing": ((VARS[0:1], VARS[0:1]), ([*VARS], VARS), ({}, ()), (iter(VARS), VARS)),
    "freeze": (([VARS[1]], VARS[1:]), ((), ())),
    "rows": (([VARS[0], VARS[1] * 2], (VARS[0], VARS[1] * 2)), ([], ())),
    "weights_dtype": ((None, None), ("bfloat16", "bfloat16"), (np.float16, np.float16)),
    "precision": ((None, None), ("bf16", "bf16")),
    "order": (("auto", "auto"), ("any text", "any text")),
    "memory": (("any text", "any text"), (len, len)),
}  # fmt: skip
REFUSED_VALUES: dict[str, tuple[Any, ...]] = {
    "bands": (-1, LARGEST + 1, True, np.True_, 1.0, "8"),
    "budget": (-1, LARGEST + 1, 0.5, True, "2 apples", "-1"),
    "recompute": (1.0, -0.1, np.float64(1), float("nan"), -1, LARGEST + 1, "2 apples", None),
    "restructure": ((0.5,), (0.5, 2), (0.5, (2,)), (0.5, (2, 2, 2)), ("1", (2, 2)), (0.5, (2, -1)), (0.5, (2.0, 2))),
    "passes": (0, 1, None, "no"),
    "winograd": (0, 1, None, "no"),
    "changing": (VARS[0], "a", None, 5, [VARS[0] * 2], [VARS[0], "b"]),
    "freeze": (VARS[0], "a", None, [VARS[0], VARS[1] * 2]),
    "rows": (VARS[0], "a", None, [VARS[0], 5]),
    "weights_dtype": ("float32", np.int32, 5),
    "precision": ("float16", 1e-2, True),
    "order": (None, 5, len),
    "memory": (None, 5, VARS[0]),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_option_takes_its_values_up_to_both_ends_as_numbers_and_collections_of_python(name):
    for value, want in ACCEPTED[name]:
        got = getattr(options_of({name: value}), name)
        assert got == want and type(got) is type(want), value


@pytest.mark.parametrize("name", REFUSED_VALUES)
def test_an_option_refuses_values_beyond_its_ends_and_of_other_kinds(name):
    for value in REFUSED_VALUES[name]:
        with pytest.raises(cg.GraphError, match=f"^{name} takes "):
            options_of({name: value})


def test_options_that_are_left_out_have_their_defaults_beside_others():
    arguments = {"budget": "1KiB", "order": "auto"}
    assert options_of(arguments) == CompileOptions(budget=1024) and options_of({}) == CompileOptions()
    assert arguments == {"budget": "1KiB", "order": "auto"}, "the caller's arguments stay as they are"


def test_a_storage_dtype_and_products_of_pairs_are_those_of_their_options():
    assert (CompileOptions().storage_dtype, CompileOptions().in_pairs) == (None, False)
    assert CompileOptions(weights_dtype="float16").storage_dtype == np.float16
    both = CompileOptions(precision="bf16")
    assert both.in_pairs and both.rounded_layers is None and both.storage_dtype is None


def test_a_request_of_other_roots_has_outputs_first_and_sources_in_the_order_of_its_edges():
    (a, b), v, w = VARS, cell("v"), cell("w")
    request = Request((a + 1, b * 2), (b, a), {w: w * 3, v: v - 1})
    assert tuple(request.roots) == (a + 1, b * 2, w * 3, v - 1)
    other = request.of((a, b, w, v))
    assert (other.outputs, other.inputs, list(other.updates.items())) == ((a, b), (b, a), [(w, w), (v, v)])
    assert Request((), (), {v: v - 1}).of((w,)).updates == {v: w}


@pytest.mark.parametrize("name", ["float16", "bfloat16", np.float16])
def test_weights_are_stored_in_the_dtype_of_the_name(name):
    dtype = CompileOptions(weights_dtype=name).storage_dtype
    assert dtype.itemsize == 2 and dtype == CompileOptions(weights_dtype=dtype).storage_dtype
    assert CompileOptions().storage_dtype is None
