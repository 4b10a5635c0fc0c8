"""Files that a command reads: whatever is wrong with a .npy file is an error of one line that names it."""

import argparse
import io
import re
import struct
import zipfile

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli.arrays import read_array
from cgraph.cli.model_arguments import constant
from cgraph.errors import FormatError
from cgraph.formats.npz import read_npy


def npy(header: bytes, data: bytes = bytes(4)) -> bytes:
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + data


def zipped(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, b"x")
    return file.getvalue()


HEADER = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }"
WRONG = {
    "an archive": zipped("a.npy"),
    "a cut archive": b"PK\3\4" + bytes(100),
    "open brackets": npy(b"{'descr': (\n"),
    "signs without end": npy(b"-" * 9000 + b"1"),
    "an unhashable key": npy(b"{[]: 1}"),
    "a long sum": npy(b"(1" + b"+1j" * 3000 + b")"),
    "a huge axis": npy((HEADER % ("<f4", "(9999999999999999999,)")).encode()),
    "a huge product": npy((HEADER % ("<f4", "(1099511627776, 1099511627776)")).encode()),
    "a truth for a size": npy((HEADER % ("<f4", "(True,)")).encode()),
    "too little": npy((HEADER % ("<f4", "(2,)")).encode()),
    "too much": npy((HEADER % ("<f4", "(1,)")).encode(), bytes(8)),
    "objects": npy((HEADER % ("|O", "(1,)")).encode()),
    "texts": npy((HEADER % ("<U1", "(1,)")).encode()),
    "no header": b"\x93NUMPY\1\0",
    "another version": b"\x93NUMPY\x09\0" + bytes(20),
    "bytes that are no text": npy(bytes(range(128, 200))),
    "nothing": b"",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_an_npy_file_is_an_error_that_names_it(name, tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(WRONG[name])
    with pytest.raises(FormatError, match=f"^{re.escape(str(path))}: "):
        read_array(path, cg.Var((1,), name="x"))
    with pytest.raises(argparse.ArgumentTypeError, match=f"^{re.escape(str(path))}: "):
        constant(f"x={path}")


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<f2", "|i1", "<u8", ">i4", "|b1", "<c8"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 4), (1, 2, 3)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_npy_file_is_the_array_that_numpy_wrote(dtype, shape, order, tmp_path):
    values = np.asarray(np.random.default_rng(0).integers(0, 2, shape).astype(dtype), order=order)
    np.save(tmp_path / "x.npy", values)
    array = read_npy(tmp_path / "x.npy")
    assert array.dtype == values.dtype and array.shape == shape and not array.flags.writeable
    np.testing.assert_array_equal(array, values)


def test_files_that_are_none_are_named(tmp_path):
    for path in (tmp_path, tmp_path / "absent.npy"):
        with pytest.raises(FormatError, match=f"^{re.escape(str(path))}"):
            read_npy(path)
