"""safetensors: round trips, agreement with the safetensors package, and what its rules refuse."""

import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.errors import FormatError
from cgraph.formats import safetensors
from cgraph.formats.safetensors import read_safetensors, write_safetensors
from tests.support.hostile import flipped, harmless, limited, refused

ARRAYS = {
    "weights": np.arange(12, dtype="float32").reshape(3, 4),
    "flag": np.array([True, False, True]),
    "empty": np.zeros((0, 5), "int16"),
    "number": np.array(7, "int64"),
    "half": np.array([1.5, -2.0], "float16"),
}


def packed(header, data=b"", length=None):
    """A file from a header (an object or bytes) and data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def test_a_round_trip_keeps_everything(tmp_path):
    write_safetensors(tmp_path / "x.safetensors", ARRAYS, {"by": "test"})
    found = read_safetensors(tmp_path / "x.safetensors")
    assert found.keys() == ARRAYS.keys()
    for name, x in ARRAYS.items():
        assert found[name].dtype == x.dtype and found[name].flags.aligned
        np.testing.assert_array_equal(found[name], x)


def test_the_safetensors_package_reads_what_we_write_and_we_what_it_writes(tmp_path):
    peer = pytest.importorskip("safetensors.numpy")
    write_safetensors(tmp_path / "ours", ARRAYS)
    theirs = peer.load_file(tmp_path / "ours")
    peer.save_file(ARRAYS, tmp_path / "theirs")
    ours = read_safetensors(tmp_path / "theirs")
    for name, x in ARRAYS.items():
        np.testing.assert_array_equal(theirs[name], x)
        np.testing.assert_array_equal(ours[name], x)


def test_arrays_are_views_of_the_mapped_file(tmp_path):
    write_safetensors(tmp_path / "x", {"a": np.ones(1000, "float32")})
    found = read_safetensors(tmp_path / "x")["a"]
    assert not found.flags.owndata and not found.flags.writeable


def test_bfloat16_is_widened(tmp_path):
    values = np.array([1.0, -2.5, 3.140625], "float32")
    raw = (values.view("uint32") >> 16).astype("<u2").tobytes()
    path = tmp_path / "x"
    path.write_bytes(packed({"a": entry("BF16", (3,), (0, 6))}, raw))
    np.testing.assert_array_equal(read_safetensors(path)["a"], values)


def test_writing_what_the_format_does_not_have_leaves_the_old_file(tmp_path):
    path = tmp_path / "x"
    write_safetensors(path, {"a": np.zeros(1)})
    before = path.read_bytes()
    refused(lambda p: write_safetensors(p, {"a": np.zeros(1, "complex64")}), path, "complex64")
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


ATTACKS = {
    "no file at all": (b"", "not a safetensors"),
    "a header longer than the file": (packed({}, length=1 << 40), "header"),
    "a header over 100 MB": (packed({}, length=100_000_001), "header"),
    "no JSON": (packed(b"{nonsense"), "JSON"),
    "deep JSON": (packed(b'{"a":' + b"[" * 100_000), "JSON"),
    "another beginning": (packed(b"[]"), "begin"),
    "a name twice": (packed(b'{"a":%b,"a":%b}' % ((json.dumps(entry()).encode(),) * 2), bytes(8)), "twice"),
    "ranges that overlap": (packed({"a": entry(), "b": entry(offsets=(4, 12))}, bytes(12)), "overlap"),
    "a hole between ranges": (packed({"a": entry(), "b": entry(offsets=(12, 20))}, bytes(20)), "hole"),
    "bytes behind the last": (packed({"a": entry()}, bytes(16)), "end at"),
    "a range behind the file": (packed({"a": entry(offsets=(0, 1 << 50))}, bytes(8)), "range"),
    "a negative range": (packed({"a": entry(offsets=(-8, 0))}, bytes(8)), "shape"),
    "a shape of more than is stored": (packed({"a": entry(shape=(1 << 40,))}, bytes(8)), "needs"),
    "a range longer than its shape": (packed({"a": entry(shape=(1,))}, bytes(8)), "needs 4 bytes"),
    "a range of a shape without elements": (packed({"a": entry(shape=(2, 0))}, bytes(8)), "needs 0 bytes"),
    "a shape that overflows": (packed({"a": entry(shape=(1 << 33, 1 << 33, 0))}, bytes(8)), "impossible"),
    "a negative axis": (packed({"a": entry(shape=(-2,))}, bytes(8)), "shape"),
    "a number that is no integer": (packed({"a": entry(shape=(2.0,))}, bytes(8)), "shape"),
    "true as a size": (packed({"a": entry(shape=(True, 2))}, bytes(8)), "shape"),
    "an unknown dtype": (packed({"a": entry("F8_E4M3")}, bytes(8)), "dtype"),
    "a key too many": (packed({"a": {**entry(), "x": 1}}, bytes(8)), "entry"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_malformed_file_is_refused(name, tmp_path):
    body, match = ATTACKS[name]
    path = tmp_path / "x"
    path.write_bytes(body)
    refused(read_safetensors, path, match)


def test_a_header_may_have_100_megabytes_and_no_more(tmp_path, monkeypatch):
    """The limit made small: a file that holds the header it declares is refused for its header alone."""
    assert safetensors.LARGEST_HEADER == 100_000_000
    body = packed({"a": entry()}, bytes(8))
    length = len(body) - 16
    path = tmp_path / "x"
    path.write_bytes(body)
    monkeypatch.setattr(safetensors, "LARGEST_HEADER", length)
    assert list(read_safetensors(path)) == ["a"]
    monkeypatch.setattr(safetensors, "LARGEST_HEADER", length - 1)
    refused(read_safetensors, path, f"a header of {length} bytes")


def test_bfloat16_takes_the_memory_of_its_result(tmp_path):
    count = 30 << 20
    path = tmp_path / "x"
    path.write_bytes(packed({"a": entry("BF16", (count,), (0, 2 * count))}))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + 2 * count)
    with limited(path, room=8 << 20):
        assert read_safetensors(path)["a"].nbytes == 4 * count


@pytest.mark.parametrize("path", ["a\0b", "missing", "."])
def test_a_path_that_is_no_file_is_refused(path):
    with pytest.raises(FormatError):
        read_safetensors(path)


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="not a regular file"):
        read_safetensors(tmp_path / "pipe")


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), min_size=1, max_size=4))
def test_flipped_bytes_give_arrays_or_a_typed_error(tmp_path_factory, flips):
    path = tmp_path_factory.mktemp("flips") / "x"
    write_safetensors(path, ARRAYS)
    path.write_bytes(flipped(path.read_bytes(), flips))
    harmless(read_safetensors, path)


@pytest.mark.parametrize("names", ["abc", "acb", "bac", "bca", "cab", "cba"])
def test_empty_arrays_may_stand_anywhere_in_the_header(names, tmp_path):
    """Two of them begin where an array of two floats does, and where it ends."""
    entries = {"a": entry(shape=(0,), offsets=(0, 0)), "b": entry(), "c": entry(shape=(3, 0), offsets=(8, 8))}
    (tmp_path / "x").write_bytes(packed({name: entries[name] for name in names}, bytes(8)))
    assert {name: x.shape for name, x in read_safetensors(tmp_path / "x").items()} == {
        "a": (0,),
        "b": (2,),
        "c": (3, 0),
    }


CODES = {
    "BOOL": "?", "I8": "i1", "U8": "u1", "I16": "i2", "U16": "u2", "I32": "i4", "U32": "u4", "I64": "i8", "U64": "u8",
    "F16": "f2", "F32": "f4", "F64": "f8",
}  # fmt: skip


def header_of(raw):
    """The header of a file, and the bytes behind it."""
    length = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


@pytest.mark.parametrize("name", CODES)
def test_numbers_of_every_dtype_reach_both_ends(name, tmp_path):
    """The least and the greatest number, which another dtype would read as something else."""
    dtype = np.dtype(CODES[name])
    ends = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype) if dtype.kind == "f" else None
    x = np.array([[False, True]] if ends is None else [[ends.min, ends.max]], dtype)
    write_safetensors(tmp_path / "x", {"a": x})
    assert header_of((tmp_path / "x").read_bytes())[0] == {
        "a": {"dtype": name, "shape": [1, 2], "data_offsets": [0, x.nbytes]}
    }
    found = read_safetensors(tmp_path / "x")["a"]
    np.testing.assert_array_equal(found, x, strict=True)
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0] = 0


def test_arrays_lie_from_wide_to_narrow_elements_behind_a_header_of_whole_words(tmp_path):
    """In any order of memory; arrays of one width by their names."""
    arrays = {
        "b": np.arange(3, dtype="u1"), "c": np.asfortranarray(np.arange(6, dtype="f8").reshape(2, 3)),
        "a": np.arange(8, dtype="i2")[::-2], "0": np.float64(7), "e": np.zeros((2, 0), "i2"),
    }  # fmt: skip
    write_safetensors(tmp_path / "x", arrays, {"by": "a test", "of": "é"})
    header, body = header_of(raw := (tmp_path / "x").read_bytes())
    assert (len(raw) - len(body)) % 8 == 0 and header.pop("__metadata__") == {"by": "a test", "of": "é"}
    assert list(header) == ["0", "c", "a", "e", "b"] and len(body) == 8 + 48 + 8 + 3
    for name, x in arrays.items():
        start, stop = header[name]["data_offsets"]
        assert header[name]["shape"] == list(np.shape(x)) and body[start:stop] == np.asarray(x).tobytes()
    for letters in range(8):
        write_safetensors(tmp_path / "x", arrays, {"by": "x" * letters} if letters else None)
        other, behind = header_of(raw := (tmp_path / "x").read_bytes())
        assert behind == body and (len(raw) - len(body)) % 8 == 0 and ("__metadata__" in other) == (letters > 0)


def test_another_order_of_bytes_is_refused_by_name(tmp_path):
    with pytest.raises(FormatError, match=r"x: 'second' is >f4. Convert it with astype to one of bool, int8"):
        write_safetensors(tmp_path / "x", {"first": np.zeros(2, "f4"), "second": np.zeros(2, ">f4")})
    assert not list(tmp_path.iterdir())


def test_arrays_that_begin_at_any_byte_are_aligned_when_they_are_read(tmp_path):
    header = {"a": entry("U8", (3,), (0, 3)), "b": entry(offsets=(3, 11)), "c": entry("F64", (1,), (11, 19))}
    data = bytes(3) + np.float32([1, 2]).tobytes() + np.float64([3]).tobytes()
    (tmp_path / "x").write_bytes(packed(header, data))
    found = read_safetensors(tmp_path / "x")
    assert all(x.flags.aligned for x in found.values())
    assert [found["b"].tolist(), found["c"].tolist()] == [[1, 2], [3]]


@pytest.mark.parametrize("axes", [64, 65])
def test_an_array_has_at_most_64_axes(axes, tmp_path):
    (tmp_path / "x").write_bytes(packed({"a": entry(shape=(1,) * (axes - 1) + (2,))}, bytes(8)))
    if axes == 64:
        assert read_safetensors(tmp_path / "x")["a"].ndim == 64
        return
    refused(read_safetensors, tmp_path / "x", "both must be lists of integers")


@pytest.mark.parametrize("offsets", [[0], [0, 4, 8], [0, 8.0], None, [8, 0], [False, 8], ["0", "8"]])
def test_a_range_has_two_integers_in_order(offsets, tmp_path):
    (tmp_path / "x").write_bytes(packed({"a": entry() | {"data_offsets": offsets}}, bytes(8)))
    refused(read_safetensors, tmp_path / "x", "both must be lists of integers|its range is 8 to 0")


@pytest.mark.parametrize("key", ["dtype", "shape", "data_offsets"])
def test_an_entry_lacks_nothing(key, tmp_path):
    whole = entry()
    del whole[key]
    for wrong in (whole, [], "F32", None):
        (tmp_path / "x").write_bytes(packed({"a": wrong}, bytes(8)))
        refused(read_safetensors, tmp_path / "x", "must have the keys dtype, shape and data_offsets")


@pytest.mark.parametrize("at", ["first", "last"])
def test_every_range_is_checked_against_its_shape_and_all_against_the_file(at, tmp_path):
    """One too short, and a hole before or behind."""
    entries = {"a": entry(), "b": entry(offsets=(8, 16)), "c": entry(offsets=(16, 24))}
    name = "a" if at == "first" else "c"
    begin, end = entries[name]["data_offsets"]
    for offsets in ([begin, end - 4], [begin + 4, end], [begin, end + 8]):
        (tmp_path / "x").write_bytes(packed(entries | {name: entry(offsets=offsets)}, bytes(24)))
        refused(read_safetensors, tmp_path / "x", "needs 8 bytes")
    moved = {n: entry(offsets=[k + 8 * (at == "first") for k in x["data_offsets"]]) for n, x in entries.items()}
    (tmp_path / "x").write_bytes(packed(moved, bytes(32)))
    refused(read_safetensors, tmp_path / "x", "leave a hole at byte 0" if at == "first" else "end at byte 24")


@pytest.mark.parametrize("more", [1, 7, 8, 9])
def test_a_header_lies_in_its_file_to_the_last_byte(more, tmp_path):
    """Also that of a file without arrays."""
    text = json.dumps({"a": entry("U8", (0,), (0, 0))}).encode()
    (tmp_path / "x").write_bytes(packed(text))
    assert read_safetensors(tmp_path / "x")["a"].shape == (0,)
    (tmp_path / "x").write_bytes(packed(text, length=len(text) + more))
    refused(read_safetensors, tmp_path / "x", f"a header of {len(text) + more} bytes is declared, the file has")


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize(("starts", "match"), [
    ((0, 8), None), ((0, 7), "overlap at byte 8"), ((0, 9), "hole at byte 8"), ((1, 9), "hole at byte 0"),
    ((0, 0), "overlap at byte 8"),
])  # fmt: skip
def test_ranges_follow_one_another_whatever_their_order_in_the_header(order, starts, match, tmp_path):
    entries = {name: entry("U8", (8,), (start, start + 8)) for name, start in zip("ab", starts)}
    data = bytes(range(starts[1] + 8))
    (tmp_path / "x").write_bytes(packed({name: entries[name] for name in order}, data))
    if match is None:
        found = read_safetensors(tmp_path / "x")
        assert list(found) == list(order) and found["b"].tolist() == list(range(8, 16))
        return
    refused(read_safetensors, tmp_path / "x", match)
