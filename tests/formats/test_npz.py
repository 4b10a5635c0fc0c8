"""npz: what NumPy writes is read, objects and bombs are refused before anything is allocated."""

import io
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.fuzz.child import outcome_of
from cgraph.errors import FormatError
from cgraph.formats.npz import read_npy, read_npz, write_npz
from cgraph.kernels.mapped import mapping_of
from tests.support.hostile import flipped, harmless, refused

ARRAYS = {
    "a": np.arange(6, dtype="float32").reshape(2, 3),
    "b": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "c": np.zeros((0, 4), "int8"),
    "d": np.array(True),
}


def npy(header, data=b""):
    """A member from a header's text."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def archive(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, body in members:
            file.writestr(name, body)
    return path


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_writes_is_read(save, tmp_path):
    save(tmp_path / "x.npz", **ARRAYS)
    found = read_npz(tmp_path / "x.npz")
    assert list(found) == list(ARRAYS)
    for name, x in ARRAYS.items():
        assert found[name].dtype == x.dtype
        np.testing.assert_array_equal(found[name], x)


def test_what_we_write_is_read_by_numpy_and_is_always_the_same(tmp_path):
    for name in ("one", "two"):
        write_npz(tmp_path / name, ARRAYS)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with np.load(tmp_path / "one", allow_pickle=False) as found:
        for name, x in ARRAYS.items():
            np.testing.assert_array_equal(found[name], x)


HEADER = "{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}"


def object_member():
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([{}], object), allow_pickle=True)
    return buffer.getvalue()


MEMBERS = {
    "objects": ([("a.npy", object_member())], "object"),
    "a record": (
        [("a.npy", npy("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,)}", bytes(4)))],
        "only",
    ),
    "more declared than stored": ([("a.npy", npy(HEADER.format("<f4", (1 << 40,)), bytes(4)))], "stored"),
    "less declared than stored": ([("a.npy", npy(HEADER.format("<f4", (1,)), bytes(8)))], "stored"),
    "an overflowing shape": ([("a.npy", npy(HEADER.format("<f8", (1 << 40, 1 << 40)), bytes(8)))], "impossible"),
    "a negative axis": ([("a.npy", npy(HEADER.format("<f4", (-1,)), bytes(4)))], "impossible"),
    "code as a header": ([("a.npy", npy("__import__('os').getcwd()"))], "header"),
    "no array at all": ([("a.npy", b"nothing")], "header"),
    "another name": ([("../a.txt", b"nothing")], "not a .npy"),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_a_malformed_member_is_refused(name, tmp_path):
    members, match = MEMBERS[name]
    refused(read_npz, archive(tmp_path / "x.npz", members), match)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    size = 100 << 20
    body = npy(HEADER.format("|i1", (size,))) + bytes(size)
    path = archive(tmp_path / "x.npz", [("a.npy", body)], zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1 << 20
    refused(read_npz, path, r"member 'a.npy' \(largest= allows more\) would take 104,857,676 bytes")


def test_more_than_the_limit_is_refused(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros(1000))
    refused(lambda p: read_npz(p, largest=4000), tmp_path / "x.npz", "at most 3.91 KiB")


@pytest.mark.parametrize("order", ["C", "F"])
def test_what_the_caller_allows_is_unpacked(tmp_path, order):
    """Zeros that need more memory than a file of that size may cost."""
    x = np.zeros((80, 1 << 20), "i1", order)
    np.savez_compressed(tmp_path / "x.npz", a=x)
    with pytest.raises(FormatError, match="largest= allows more"):
        read_npz(tmp_path / "x.npz")
    found = read_npz(tmp_path / "x.npz", largest=x.nbytes + 128)["a"]
    assert found.shape == x.shape and not found.any()


def test_two_members_of_one_name_are_refused(tmp_path):
    body = npy(HEADER.format("|i1", (1,)), bytes(1))
    with pytest.warns(UserWarning):
        path = archive(tmp_path / "x.npz", [("a.npy", body), ("a.npy", body)])
    refused(read_npz, path, "two members")


def test_members_that_share_bytes_are_refused(tmp_path):
    path = archive(tmp_path / "x.npz", [(f"{n}.npy", npy(HEADER.format("|i1", (4,)), bytes(4))) for n in "ab"])
    raw = bytearray(path.read_bytes())
    first = raw.find(b"PK\x01\x02")
    second = raw.find(b"PK\x01\x02", first + 1)
    raw[second + 42 : second + 46] = raw[first + 42 : first + 46]  # both entries point at the first member
    path.write_bytes(raw)
    refused(read_npz, path)


def test_arrays_that_are_stored_plain_lie_in_the_mapped_file(tmp_path):
    x = np.asfortranarray(np.arange(6, dtype="i1").reshape(2, 3))  # bytes, which lie aligned anywhere
    np.savez(tmp_path / "plain.npz", x=x)
    np.savez_compressed(tmp_path / "packed.npz", x=x)
    for name, is_mapped in (("plain.npz", True), ("packed.npz", False)):
        found = read_npz(tmp_path / name)["x"]
        assert (mapping_of(found) is not None) is is_mapped
        assert found.flags.f_contiguous and not found.flags.writeable


HEADERS = {  # a header, and what of its array is as NumPy says
    "version 2": b"\x93NUMPY\x02\x00\x46\x00\x00\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"
    + b" " * 12
    + b"\n",
    "another order of bytes": npy("{'descr': '>i4', 'fortran_order': False, 'shape': (1,), }"),
    "the old long": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1L,), }"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_that_numpy_reads_are_read(name, tmp_path):
    body = HEADERS[name] + b"\x00\x00\x80\x3f"
    found = read_npz(archive(tmp_path / "x.npz", [("a.npy", body)]))["a"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's own, about the old long
        np.testing.assert_array_equal(found, np.load(tmp_path / "x.npz")["a"])


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    write_npz(path, ARRAYS)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="allow_pickle"):
        write_npz(path, {"a": np.zeros(3), "b": np.array([{}], object)})
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_no_archive_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(b"PK nonsense")
    refused(read_npz, path)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), min_size=1, max_size=4))
def test_flipped_bytes_give_arrays_or_a_typed_error(tmp_path_factory, flips):
    path = tmp_path_factory.mktemp("flips") / "x.npz"
    write_npz(path, ARRAYS)
    path.write_bytes(flipped(path.read_bytes(), flips))
    harmless(read_npz, path)


def test_a_header_of_many_digits_is_refused_within_the_time_that_any_file_may_take():
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"1" * 9000 + b"), }\n"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header)
    assert outcome_of("npz", file.getvalue()).kind == "refused"


@pytest.mark.parametrize(
    ("code", "match"),
    [("<U3", "holds <U3; only numbers"), ("|S3", "only numbers"), ("|V4", "only numbers"), ("<M8", "only numbers")]
    + [("<m8", "only numbers"), ("|O", "only numbers"), ("<f3", "holds '<f3', which is not a dtype")],
)
def test_a_dtype_other_than_numbers_is_refused(code, match, tmp_path):
    path = archive(tmp_path / "x.npz", [("a.npy", npy(HEADER.format(code, (1,)), bytes(12)))])
    with pytest.raises(FormatError, match=rf"x\.npz: member 'a\.npy' .*{match}"):
        read_npz(path)


def test_names_lose_their_ending_once_and_arrays_keep_their_order_of_memory(tmp_path):
    arrays = {"a.npy": np.arange(8, dtype=">i2")[::-2], "b": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "": 2.5}
    write_npz(tmp_path / "x", arrays)
    found = read_npz(tmp_path / "x")
    assert list(found) == list(arrays) and found["b"].flags.f_contiguous
    for name, x in arrays.items():
        np.testing.assert_array_equal(found[name], np.asarray(x), strict=True)


@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("version", [1, 2])
def test_a_header_has_a_longest_length(extra, version, tmp_path):
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"
    text = text.ljust(9_999 + extra) + "\n"
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    body = b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + bytes(4)
    (tmp_path / "x.npy").write_bytes(body)
    if not extra:
        assert read_npy(tmp_path / "x.npy").shape == (1,)
        return
    with pytest.raises(FormatError, match=r"x\.npy: the file has no header of a .npy file"):
        read_npy(tmp_path / "x.npy")


@pytest.mark.parametrize("axes", [64, 65])
def test_an_array_has_at_most_64_axes(axes, tmp_path):
    (tmp_path / "x.npy").write_bytes(npy(HEADER.format("|i1", (1,) * axes), bytes(1)))
    if axes == 64:
        assert read_npy(tmp_path / "x.npy").ndim == 64
        return
    with pytest.raises(FormatError, match="impossible shape"):
        read_npy(tmp_path / "x.npy")


@pytest.mark.parametrize("version", [b"\x00\x00", b"\x03\x00", b"\x01\x01"])
def test_headers_of_other_versions_are_refused(version, tmp_path):
    body = npy(HEADER.format("<f4", (1,)), bytes(4))
    (tmp_path / "x.npy").write_bytes(body[:6] + version + body[8:])
    with pytest.raises(FormatError, match="has no header of a .npy file. Save it with numpy.save"):
        read_npy(tmp_path / "x.npy")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("code", ["?", "<i2", ">u4", "<f2", "<c8", ">f8"])
def test_one_array_of_any_dtype_and_order_is_read(code, order, tmp_path):
    x = np.asarray(np.arange(24).reshape(2, 3, 4), code, order=order)
    np.save(tmp_path / "x.npy", x)
    found = read_npy(tmp_path / "x.npy")
    np.testing.assert_array_equal(found, x)
    assert found.dtype == x.dtype and found.flags.f_contiguous == (order == "F") and not found.flags.writeable


@pytest.mark.parametrize("missing", [0, 1])
def test_all_members_together_have_a_limit(missing, tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros(100), b=np.zeros(200))
    with zipfile.ZipFile(tmp_path / "x.npz") as file:
        declared = sum(x.file_size for x in file.infolist())
    if not missing:
        assert len(read_npz(tmp_path / "x.npz", declared)) == 2
        return
    with pytest.raises(FormatError, match="it declares .*; at most .* are read. Raise largest= to read more"):
        read_npz(tmp_path / "x.npz", declared - 1)


@pytest.mark.parametrize(("code", "shape"), [
    ("<f8", (1 << 60,)), ("<f8", (1 << 30, 1 << 30)), ("<c16", (1 << 59, 0)), ("<i4", (0, 1 << 61)),
    ("|i1", (1 << 63,)),
])  # fmt: skip
def test_bytes_of_a_shape_are_bounded_whatever_its_elements(code, shape, tmp_path):
    (tmp_path / "x.npy").write_bytes(npy(HEADER.format(code, shape)))
    with pytest.raises(FormatError, match=r"x\.npy: the file has the impossible shape"):
        read_npy(tmp_path / "x.npy")


@pytest.mark.parametrize("code", ["f4,i4", "V8", "<U3", "|S4", "<m8[s]", "<M8[D]", "(2,)f4", "O", "nothing"])
def test_only_numbers_are_read(code, tmp_path):
    (tmp_path / "x.npy").write_bytes(npy(HEADER.format(code, (1,)), bytes(8)))
    with pytest.raises(FormatError, match="only numbers are read|is not a dtype|has the header"):
        read_npy(tmp_path / "x.npy")
