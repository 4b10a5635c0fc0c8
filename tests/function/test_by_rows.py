"""Images that come and go by rows: the bits of the whole images, nothing of their size, and typed refusals."""

import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.budget.bands import fit_bands
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import BudgetError, FormatError, GraphError, InputError
from cgraph.ops.physical.conv_layer import PLAIN_CHANNELS
from cgraph.ops.physical.stream import Stream
from tests.support.emulated import PairsEngine
from tests.support.kernels import TARGETS
from tests.support.patience import PATIENCE
from tests.support.tolerance import assert_close


def loops(function):
    """How often bands come again, of each region."""
    frames = [n.op.frame for n in function.compiled.layout.steps if isinstance(n.op, Stream)]
    return [frame.loop.count for frame in frames if frame.loop]


def conv(rng, x, k, r=3, stride=1, groups=1, dilation=1):
    filters = rng.standard_normal((k, x.shape[1] // groups, r, r)) * (x.shape[1] * r * r // groups) ** -0.5
    pad = dilation * (r // 2)
    return cg.relu(cg.conv2d(x, cg.Const(filters.astype("f4")), stride, pad, dilation=dilation, groups=groups))


STEPS = {
    "direct": lambda rng, x: conv(rng, x, 5, 5),
    "winograd": lambda rng, x: conv(rng, x, 18),
    "strided": lambda rng, x: conv(rng, x, 7, 3, 2),
    "depthwise": lambda rng, x: conv(rng, x, x.shape[1], 3, 1, x.shape[1]),
    "dilated": lambda rng, x: conv(rng, x, 4, 3, 1, 1, 2),
    "residual": lambda rng, x: x + conv(rng, conv(rng, x, 6), x.shape[1]),
    "largest": lambda rng, x: cg.max_pool2d(x, min(3, *x.shape[2:]), 2, ceil=True),
    "mean": lambda rng, x: cg.avg_pool2d(x, 3, 1, pad=1),
    "concat": lambda rng, x: cg.concat([conv(rng, x, 3), x], 1),
    "twice as large": lambda rng, x: cg.resize(x, (2 * x.shape[2], 2 * x.shape[3]), "linear", "half_pixel"),
    "repeated": lambda rng, x: cg.resize(x, (2 * x.shape[2], 2 * x.shape[3]), "nearest", "asymmetric"),
    "pointwise": lambda rng, x: cg.sigmoid(x) * 2 - 0.5,
}


@settings(max_examples=25, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4),
    rows=st.integers(40, 240),
    n=st.integers(1, 2),
    target=st.sampled_from(TARGETS),
    threads=st.sampled_from((1, 3)),
    poison=st.booleans(),
    band=st.sampled_from((1, 2, 5, 16)),
    seed=st.integers(0, 99),
)
def test_rows_give_the_bits_of_whole_images(steps, rows, n, target, threads, poison, band, seed):
    """Where windows over plain images of few channels come first, whole images have another kernel."""
    rng = np.random.default_rng(seed)
    x = cg.Var((n, 3, rows, int(rng.integers(5, 20))), name="x")
    y = x
    for step in steps:
        y = STEPS[step](rng, y)
    value = rng.standard_normal(x.shape).astype("f4")
    whole = cg.compile(y, [x], engine=CpuEngine(target, 1))(value)
    with patch.object(fit_bands, "FREE_ROWS", y.shape[2]):
        want = cg.compile(y, [x], engine=CpuEngine(target, 1), rows=[x, y])(value)
    assert_close(want, whole, 10)
    if steps[0] in ("direct", "winograd", "strided"):
        np.testing.assert_array_equal(want, whole)
    with patch.object(fit_bands, "FREE_ROWS", band):
        function = cg.compile(y, [x], engine=CpuEngine(target, threads, poison), rows=[x, y])
    for part in (1, 7):
        given_rows = (value[:, :, i : i + part] for i in range(0, rows, part))
        np.testing.assert_array_equal(function(given_rows), want)


@pytest.mark.parametrize("c", [1, 4, 5])
def test_the_same_layers_round_by_rows_and_of_whole_images(c):
    """Layers of few channels read plain images, or channel-blocked ones that come by rows."""
    rng = np.random.default_rng(0)
    x = cg.Var((1, c, 24, 10), name="x")
    y = conv(rng, conv(rng, cg.max_pool2d(x, 3, 1, pad=1), 16), 16)
    options = {"engine": PairsEngine(), "precision": "bf16"}
    whole, rows = cg.compile(y, [x], **options), cg.compile(y, [x], rows=[x], **options)
    assert rows.precision.bf16_layers == whole.precision.bf16_layers
    assert len(rows.precision.bf16_layers) == (1 if c <= PLAIN_CHANNELS else 2)


def test_the_least_budget_of_rows_is_met_and_one_byte_less_is_refused():
    x, y = network(400)
    with pytest.raises(BudgetError, match="least budget") as refused:
        cg.compile(y, [x], rows=[x, y], budget=1)
    least = int(str(refused.value).split("least budget of this graph is ")[1].split()[0])
    assert cg.compile(y, [x], rows=[x, y], budget=least).nbytes == least
    with pytest.raises(BudgetError, match="1 bytes are missing"):
        cg.compile(y, [x], rows=[x, y], budget=least - 1)


def network(height, width=24, kind="float32"):
    """A filter, a network at half the size, and a map of as many pixels as the image has."""
    rng = np.random.default_rng(0)
    x = cg.Var((1, 1, height, width), kind, name="x")
    y = conv(rng, x.astype("float32") / 255, 8)
    a = conv(rng, conv(rng, y, 16, 3, 2), 16)
    b = cg.resize(a, (height, width), "linear", "half_pixel")
    return x, cg.sigmoid(conv(rng, cg.concat([y, b], 1), 1))


def picture(x, seed=1):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 255, x.shape).astype(x.dtype)


def test_neither_arena_nor_program_grow_with_the_height():
    found = []
    for height in (640, 6400):
        x, y = network(height)
        function = cg.compile(y, [x], rows=[x, y], budget=200_000)
        assert loops(function)
        found.append((function.nbytes, len(function.program.code.table), len(function.program.code.args)))
    assert found[0] == found[1]


def test_a_mapped_file_goes_through_rows_into_another(tmp_path):
    x, y = network(600, kind="uint8")
    whole = picture(x)
    np.save(tmp_path / "in.npy", whole)
    given_file = np.load(tmp_path / "in.npy", mmap_mode="r")
    out = np.lib.format.open_memmap(tmp_path / "out.npy", "w+", "float32", y.shape)
    function = cg.compile(y, [x], rows=[x, y], budget=200_000)
    assert function(given_file, out=out) is out
    out.flush()
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), cg.compile(y, [x])(whole))


def test_bands_go_to_a_function():
    x, y = network(300)
    value, bands = picture(x), []
    function = cg.compile(y, [x], rows=[x, y], budget=200_000)
    assert function(iter(value[0, 0][:, None, None]), out=bands.append) is None
    np.testing.assert_array_equal(np.concatenate(bands, 2), cg.compile(y, [x])(value))
    again = []
    function(x=value, out=again.append)
    assert all((a == b).all() for a, b in zip(bands, again))
    bands[0][...] = 0  # its own


def test_a_function_by_rows_says_what_it_takes_and_is_not_timed(tmp_path):
    x, y = network(100)
    function = cg.compile(y, [x], rows=[x, y])
    assert repr(function).startswith("<RowsFunction (x float32[1,1,100,24]) -> float32[1,1,100,24]; arena ")
    assert "stream" in str(function.report())
    with pytest.raises(GraphError, match="streamed rows arrive once"):
        function.trace(tmp_path / "trace.json", picture(x))


INTERRUPTED = """
import signal
import numpy as np
import cgraph as cg
from tests.function.test_by_rows import network, picture

signal.signal(signal.SIGINT, signal.default_int_handler)
x, y = network(200)
function = cg.compile(y, [x], rows=[x, y], budget=200_000)
value = picture(x)

def rows():
    for i in range(200):
        if i == 90:
            signal.raise_signal(signal.SIGINT)
        yield value[:, :, i]

try:
    function(rows())
except KeyboardInterrupt:
    print("interrupted")
np.testing.assert_array_equal(function(value), cg.compile(y, [x], rows=[x, y])(value))
print("equal")
"""


def test_an_interrupt_while_rows_are_asked_for_ends_the_run():
    """In a process of its own, since an interrupt that comes late would end the run of all tests."""
    command, root = [sys.executable, "-c", INTERRUPTED], Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=root)
    assert (done.stdout.split(), done.returncode) == (["interrupted", "equal"], 0), done.stderr


def test_what_is_read_whole_of_rows_may_be_small():
    x, y = network(200)
    mean, value = cg.mean(y, (2, 3)), picture(x)
    function = cg.compile(mean, [x], rows=[x])
    np.testing.assert_array_equal(function(value), cg.compile(mean, [x])(value))
    assert function.nbytes < cg.compile(mean, [x]).nbytes / 2


def test_an_image_as_input_and_a_var_beside_it():
    x, y = network(200)
    gain, total = cg.Var((), name="gain"), cg.Var((), name="total")
    total.assign(0.0)
    z = y * gain
    function = cg.compile([z, gain + 1], [gain, x], {total: total + gain}, rows=[x, z], budget=200_000)
    value = picture(x)
    found, more = function(2.0, value)
    np.testing.assert_array_equal(found, cg.compile(z, [gain, x])(2.0, value))
    assert more == 3
    assert total.value == 2
    room = np.empty_like(found)
    assert function(3.0, value, out=[room, np.empty((), "f4")])[0] is room
    assert total.value == 5


def test_results_beside_rows_stay_what_they_are_in_later_runs():
    x, y = network(60)
    gain = cg.Var((), name="gain")
    function = cg.compile([y, gain + 1.0], [gain, x], rows=[x, y])
    image = picture(x)
    first = function(2.0, image)
    second = function(5.0, image)
    assert (first[1], second[1]) == (3, 6) and not np.shares_memory(first[1], second[1])
    shared = function(7.0, image, copy=False)[1]
    assert shared == 8 and not shared.flags.owndata


def test_filters_that_are_vars_are_packed_before_the_rows_come():
    rng = np.random.default_rng(0)
    x, w = cg.Var((1, 8, 200, 24), name="x"), cg.Var((16, 8, 3, 3), name="w")
    w.assign(rng.standard_normal(w.shape).astype("f4"))
    y = cg.max_pool2d(cg.relu(cg.conv2d(x, w, 1, 1)), 2)
    by_rows, whole = cg.compile(y, [x], rows=[x, y], budget=150_000), cg.compile(y, [x])
    value = rng.standard_normal(x.shape).astype("f4")
    for factor in (1, 2):
        w.assign(w.value * np.float32(factor))
        np.testing.assert_array_equal(by_rows(value), whole(value))


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def wrong_rows(value, at, instead):
    """Rows, at one of which something else comes."""
    for i in range(value.shape[2]):
        if i != at:
            yield value[:, :, i]
        elif isinstance(instead, BaseException):
            raise instead
        elif instead is not None:
            yield instead
        else:
            return


WRONG = {
    "an early end": (None, InputError, "rows end after 120 of 200"),
    "another dtype": (np.zeros((1, 1, 24)), InputError, r"must be float32\[1,1,24\] .*got float64\[1,1,24\]"),
    "another width": (np.zeros((1, 1, 23), "f4"), InputError, r"got float32\[1,1,23\]"),
    "no rows": (np.zeros((1, 1, 0, 24), "f4"), InputError, r"got float32\[1,1,0,24\]"),
    "too many": (np.zeros((1, 1, 90, 24), "f4"), InputError, "more than its 200 rows"),
    "a list": ([1.0], InputError, "must yield arrays"),
    "an exception": (ZeroDivisionError("mine"), ZeroDivisionError, "mine"),
    "an interrupt": (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
}


@pytest.mark.parametrize("threads", (1, 2))
@pytest.mark.parametrize("wrong", WRONG)
def test_a_run_whose_rows_fail_changes_nothing_and_the_next_one_runs(wrong, threads):
    instead, kind, text = WRONG[wrong]
    x, y = network(200)
    count = cg.Var((), name="count")
    count.assign(0.0)
    function = cg.compile(y, [x], {count: count + 1}, rows=[x, y], budget=200_000, threads=threads)
    value = picture(x)
    want = function(value)
    with pytest.raises(kind, match=text):
        function(wrong_rows(value, 120, instead))
    assert count.value == 1
    np.testing.assert_array_equal(function(value), want)
    assert count.value == 2


def test_a_sink_that_fails_ends_the_run():
    x, y = network(200)
    function = cg.compile(y, [x], rows=[x, y], budget=200_000)

    def full(band):
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        function(picture(x), out=full)
    with pytest.raises(InputError, match="out has float64"):
        function(picture(x), out=np.empty(y.shape))
    assert function(picture(x)).shape == y.shape


def test_an_iterator_says_whose_rows_were_asked_for():
    x, y = network(200)
    function = cg.compile(y, [x], rows=[x, y])
    with pytest.raises(ZeroDivisionError) as failed:
        function(wrong_rows(picture(x), 3, ZeroDivisionError()))
    assert failed.value.__notes__ == ["while reading rows of x"]
    with pytest.raises(InputError, match="or an iterator of its rows"):
        function(3)
    with pytest.raises(InputError, match=r"got float32\[1,1,199,24\]"):
        function(picture(x)[:, :, 1:])


def test_refusals_name_what_does_not_go_by_rows(tmp_path):
    x, y = network(80)
    z = cg.Var((1, 1, 80, 24), name="z")
    flat = cg.reshape(y, (1, -1))
    more, flipped = y + 1, cg.flip(y, 2)
    refused = [
        (y, {"rows": [z]}, "not an input or output"),
        (y, {"rows": [y]}, "names outputs only. Add the inputs"),
        (flat, {"rows": [x, flat]}, "only images .* have rows"),
        ([y, more], {"rows": [x, y, more]}, "at most one can be streamed"),
        (flipped, {"rows": [x, flipped]}, "slice cannot be streamed by rows"),
        (y, {"rows": [x, y], "bands": 56}, "not with bands="),
        (y, {"rows": [x, y], "engine": "reference"}, "takes images whole"),
    ]
    for outputs, options, text in refused:
        with pytest.raises(GraphError, match=text):
            cg.compile(outputs, [x], **options)
    with pytest.raises(GraphError, match="lead to one value"):
        cg.compile([cg.mean(y, (2, 3)), cg.mean(x, (2, 3))], [x], rows=[x])
    with pytest.raises(FormatError, match="row_sink.*row_source"):
        cg.compile(y, [x], rows=[x, y]).save(tmp_path / "saved")


PROGRAM = """
import resource
import numpy as np
import cgraph as cg

h, w = 100_000, 1_000
x = cg.Var((1, 1, h, w), name="x")
blurred = cg.conv2d(x, cg.Const(np.full((1, 1, 3, 3), 1 / 9, "float32")), 1, 1)
y = cg.max_pool2d(cg.abs(x - blurred), 4, 4)
function = cg.compile(y, [x], rows=[x, y], budget=8 << 20)
row = np.ones((1, 1, 500, w), "float32")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = []
function((row for _ in range(h // 500)), out=lambda band: rows.append(band.shape[2]))
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(sum(rows), x.nbytes >> 10, grown, function.nbytes >> 10)
"""


@pytest.mark.slow
def test_a_picture_of_400_mb_takes_no_more_than_its_plan():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=PATIENCE, check=True)
    rows, picture_kib, grown, plan = map(int, done.stdout.split())
    assert rows == 25_000
    assert picture_kib > 380_000
    assert plan <= 8 << 10
    assert grown < plan + 16_000
