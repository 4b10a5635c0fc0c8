"""What files cost that repeat a construct: every reader is measured, and growth that is too fast is flagged."""

import pytest

from benchmarks.fuzz.all_constructs import CONSTRUCTS
from benchmarks.fuzz.amplify import Construct, Measurement, Row, growing_files, measure_constructs
from benchmarks.fuzz.child import Outcome
from benchmarks.fuzz.constructs import probed
from benchmarks.fuzz.readers import READERS
from tests.support.tolerance import near

SMALL = 1 << 13  # bytes
SAME = {"h5_apart", "h5_archive_apart", "darknet_drawn"}  # read what another reader reads


def row(seconds: list[float], kind: str = "model") -> Row:
    """Files four times as long each time, that took so many seconds."""
    return Row("x", "y", tuple(Measurement(100 * 4**i, Outcome(kind, "", 0, s)) for i, s in enumerate(seconds)))


def test_time_that_grows_faster_than_the_file_is_flagged():
    assert row([0.1, 0.4, 1.6]).flag == ""
    assert row([0.0, 0.0, 0.25]).flag == "", "too little to say"
    quadratic = row([0.1, 1.6, 1.7])
    assert quadratic.flag == "steep" and quadratic.order == near(2, "float64 formulas")
    assert quadratic.text().startswith("| x | y | 1,600 | model | 1.7 | 0 | 1,062.50 | 0 | 2.0 | steep |")


def test_files_that_hardly_differ_in_length_say_nothing_of_growth():
    """A number of one more digit makes the file no longer."""
    files = [Measurement(100 + i, Outcome("model", "", 0, 10.0**i / 20)) for i in range(3)]
    assert Row("x", "y", tuple(files)).flag == "" and files[-1].outcome.seconds == 5


def test_a_construct_that_ends_must_be_refused_beyond_its_end():
    construct = Construct("", bytes, 100, True)
    assert [len(x) for x in growing_files(construct, 50)] == [16, 100, 200]
    ends = [
        Row("x", "y", (*row([0.1, 3.0]).measurements, Measurement(9, Outcome(k))), True) for k in ("refused", "model")
    ]
    assert [x.flag for x in ends] == ["", "not refused"]


def test_a_limit_that_is_exceeded_is_flagged_whatever_the_growth():
    assert row([0.1, 0.2], "time").flag == "time: "


def test_files_grow_up_to_the_first_one_that_is_large_enough():
    sizes = [len(x) for x in growing_files(Construct("", bytes), 10_000)]
    assert sizes == sorted(sizes) and sizes[-2] < 10_000 <= sizes[-1] < 50_000
    assert [len(x) for x in growing_files(Construct("", bytes, most=100), 10_000)][-1] == 100


def test_a_look_up_of_numbers_that_collide_walks_through_all_of_them():
    """Each place that is probed for the last number is that of another one, in a dictionary of that many numbers."""
    *places, key = probed(100)
    size = 1 << (150).bit_length()
    assert len(set(places)) == 100 and all(place < size for place in places)
    i = perturb = key
    seen = set()
    while i & (size - 1) in set(places):
        seen.add(i & (size - 1))
        perturb >>= 5
        i = i * 5 + perturb + 1
    assert seen == set(places)


def test_every_reader_has_constructs():
    assert set(CONSTRUCTS) == set(READERS)


@pytest.mark.slow
@pytest.mark.parametrize("reader", [name for name in CONSTRUCTS if name not in SAME])
def test_no_construct_of_a_small_file_is_flagged(reader):
    flags = {row.construct: row.flag for row in measure_constructs(reader, CONSTRUCTS[reader], SMALL) if row.flag}
    assert not flags
