"""Limits of readers, made small: what just keeps to one is read, and one less refuses it."""

import io
import pickle
import re
import zipfile
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats import allowance, darknet, keras_h5, npz, plain_pickle, safetensors, torch_file, zip_archive
from cgraph.formats.allowance import Allowance
from cgraph.formats.darknet import config
from cgraph.formats.keras_h5 import read_contents
from cgraph.formats.npz import read_npz
from cgraph.formats.plain_pickle import ByteStream, read_pickle
from cgraph.formats.safetensors import read_safetensors, write_safetensors
from cgraph.formats.torch_file import read_torch
from cgraph.formats.zip_archive import CENTRAL, END, END_64, LOCATOR_64, members_of
from cgraph.ir.spec import LARGEST
from cgraph.ir.traverse import post_order
from cgraph.record import Record
from tests.formats.test_npz import HEADER, archive, npy
from tests.formats.test_safetensors import entry, packed
from tests.formats.test_torch_file import SIX, tensor, tree, zipped


class Limit(Record):
    """A limit and what just keeps to it.

    Fields
        module, name: where it stands
        least: its smallest value that lets the file be read
        make, read: write the file; read it
        refusal: what is said of one beyond
        others: limits of the module that must not be in the way
    """

    module: Any
    name: str
    least: int
    make: Callable[[Path], Any]
    read: Callable[[Path], Any]
    refusal: str
    others: dict[str, int] = {}


def npz_of(x: np.ndarray, save: Callable[..., Any] = np.savez) -> Callable[[Path], Any]:
    return lambda path: save(path.open("wb"), x=x)


def pickled(value: Any) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(pickle.dumps(value, 2))


def plain(path: Path) -> Any:
    raw = path.read_bytes()
    return read_pickle(ByteStream(memoryview(raw)), torch_file.ALLOWED, Allowance(len(raw)))


def torch_of(rank: int) -> Callable[[Path], Any]:
    body = tree(a=tensor(shape=(1,) * rank, strides=(1,) * rank))
    return lambda path: path.write_bytes(zipped(body, {"0": SIX}))


def groups(depth: int) -> Callable[[Path], Any]:
    def make(path: Path) -> None:
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            file.create_dataset("/".join("g" * depth + "x"), data=SIX)

    return make


def chunked(path: Path) -> None:
    """A dataset of 4,000 bytes of which four are stored."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        data = file.create_dataset("layer/x", (1000,), "<f4", chunks=(1,), fillvalue=0)
        data[3] = 1


def sections(path: Path) -> None:
    path.write_text("[net]\nwidth=1\n" + "[maxpool]\n" * 4)


def described(path: Path) -> Any:
    return config.read_config(path, Allowance(0))


def listed(path: Path) -> Any:
    return described(path)[0].ints("mask")


LISTED = "[net]\nmask=1,2,3\n"
X = np.zeros((2, 3, 4), "f4")
ROWS = {
    "npz: a header": Limit(npz, "LONGEST_HEADER", 118, npz_of(X), read_npz, "no header"),
    "npz: axes": Limit(npz, "MOST_AXES", 3, npz_of(X), read_npz, "impossible shape"),
    "npz: bytes": Limit(npz, "LARGEST_FILE", 224, npz_of(X), read_npz, "it declares 224 B; at most 223 B are read"),
    "safetensors: axes": Limit(
        safetensors, "MOST_AXES", 3, lambda path: write_safetensors(path, {"x": X}), read_safetensors, "the shape"
    ),
    "pickle: a text": Limit(plain_pickle, "LONGEST_TEXT", 9, pickled("nine text"), plain, "text or number of 9"),
    "pickle: a line": Limit(
        plain_pickle, "LONGEST_LINE", 19, lambda path: path.write_bytes(tree(a=tensor())), plain, "a line of over 18"
    ),
    "pickle: a key": Limit(plain_pickle, "LARGEST_KEY", 8, pickled({7: 1, -7: 2}), plain, "neither text nor numbers"),
    "torch: axes": Limit(torch_file, "MOST_AXES", 3, torch_of(3), read_torch, "impossible"),
    "h5: groups in groups": Limit(keras_h5, "MOST_DEPTH", 5, groups(5), read_contents, "too deep"),
    "h5: groups and arrays": Limit(
        keras_h5, "MOST_OBJECTS", 6, groups(5), read_contents, "more than 5 groups and arrays"
    ),
    "h5: a ratio": Limit(keras_h5, "MOST_RATIO", 1000, chunked, read_contents, "declares"),
    "Darknet: sections": Limit(config, "MOST_SECTIONS", 5, sections, described, r"not a \[section\] header"),
    "Darknet: numbers": Limit(config, "MOST_NUMBERS", 2, lambda path: path.write_text(LISTED), listed, "more than 1 n"),
    "Darknet: a line": Limit(config, "LONGEST_LINE", 11, sections, described, "line 3 has over 10 characters"),
    "Darknet: bytes": Limit(config, "LARGEST_FILE", 54, sections, described, "at most 53 B"),
}


@pytest.mark.parametrize("name", ROWS)
def test_what_keeps_to_a_limit_is_read_and_one_less_refuses_it(name, tmp_path, monkeypatch):
    row = ROWS[name]
    path = tmp_path / "file"
    row.make(path)
    row.read(path)
    for other, value in row.others.items():
        monkeypatch.setattr(row.module, other, value)
    monkeypatch.setattr(row.module, row.name, row.least)
    row.read(path)
    monkeypatch.setattr(row.module, row.name, row.least - 1)
    with pytest.raises(FormatError, match=row.refusal):
        row.read(path)


DOCS = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()


@pytest.mark.parametrize(("name", "number"), re.findall(r"^\| `([\w.]+)` \| ([\d,]+) \|", DOCS, re.MULTILINE))
def test_a_limit_is_the_one_that_is_documented(name, number):
    module, _, constant = name.rpartition(".")
    assert getattr(import_module(f"cgraph.formats.{module}"), constant) == int(number.replace(",", ""))


def test_what_a_file_may_cost_is_documented():
    rows = re.findall(r"^\| (?:bytes|elements|nodes) .* \| ([\d/]+) \| (.*) \|$", DOCS, re.MULTILINE)
    amounts = [(allowance.NBYTES, "64 MiB"), (allowance.WORK, "2²⁸"), (allowance.NODES, "50,000")]
    assert [(float(Fraction(each)), least) for each, least in rows] == amounts
    assert (allowance.NBYTES_AT_LEAST, allowance.WORK_AT_LEAST, allowance.NODES_AT_LEAST) == (64 << 20, 2**28, 50_000)


def test_arrays_may_need_as_many_bytes_as_the_caller_says(tmp_path):
    np.savez(tmp_path / "x.npz", x=X)
    assert read_npz(tmp_path / "x.npz", largest=128 + X.nbytes)["x"].shape == X.shape
    with pytest.raises(FormatError, match="at most 223 B"):
        read_npz(tmp_path / "x.npz", largest=127 + X.nbytes)


@pytest.mark.parametrize("dtype", ["|i1", "<f8"])
def test_arrays_without_elements_may_be_as_long_as_bytes_can_be_counted(dtype, tmp_path):
    most = LARGEST // np.dtype(dtype).itemsize
    for long, is_read in ((most, True), (most + 1, False)):
        path = archive(tmp_path / "x.npz", [("a.npy", npy(HEADER.format(dtype, (0, long))))])
        if is_read:
            assert read_npz(path)["a"].shape == (0, long)
        else:
            with pytest.raises(FormatError, match="impossible"):
                read_npz(path)


@pytest.mark.parametrize(("name", "itemsize"), [("U8", 1), ("F64", 8)])
def test_so_may_those_of_safetensors(name, itemsize, tmp_path):
    path, most = tmp_path / "x", LARGEST // itemsize
    path.write_bytes(packed({"a": entry(name, (0, most), (0, 0))}))
    assert read_safetensors(path)["a"].shape == (0, most)
    path.write_bytes(packed({"a": entry(name, (0, most + 1), (0, 0))}))
    with pytest.raises(FormatError, match="shape"):
        read_safetensors(path)


def test_a_header_of_nothing_is_none(tmp_path):
    for body in (b"\x93NUMPY\x01\x00\x00\x00", b"\x93NUMPY\x01\x00", b"\x93NUMPY\x03\x00\x04\x00{}  "):
        with pytest.raises(FormatError, match="no header"):
            read_npz(archive(tmp_path / "x.npz", [("a.npy", body)]))


@pytest.mark.parametrize("length", range(9))
def test_eight_bytes_or_fewer_are_no_safetensors_file(length, tmp_path):
    (tmp_path / "x").write_bytes(bytes(length))
    with pytest.raises(FormatError, match="does not begin" if length == 8 else f"{length} bytes are no"):
        read_safetensors(tmp_path / "x")


def zip_of(comment: bytes = b"", **bodies: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.comment = comment
        for name, body in bodies.items():
            file.writestr(name, body)
    return out.getvalue()


def members(raw: bytes) -> dict[str, zip_archive.Member]:
    return members_of(memoryview(raw), Allowance(len(raw)))


def test_a_zip_archive_may_end_in_the_longest_comment():
    assert list(members(zip_of(b"." * 0xFFFF, a=b"body"))) == ["a"]


def with_end_64(raw: bytes, **change: int) -> bytes:
    """The same archive with a table of members that 64 bits describe; the end of 32 bits says nothing."""
    at = raw.rfind(b"PK\x05\x06")
    _, _, _, _, count, nbytes, start, _ = END.unpack_from(raw, at)
    found = {"count": count, "nbytes": nbytes, "start": start, "at": at} | change
    end = END_64.pack(
        b"PK\x06\x06", END_64.size - 12, 45, 45, 0, 0, count, *(found[x] for x in ("count", "nbytes", "start"))
    )
    locator = LOCATOR_64.pack(b"PK\x06\x07", 0, found["at"], 1)
    return raw[:at] + end + locator + END.pack(b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)


def test_a_table_that_64_bits_describe_is_read():
    raw = zip_of(a=b"body", b=b"")
    assert members(with_end_64(raw)) == members(raw)


@pytest.mark.parametrize("change", [{"count": 3}, {"count": 1}, {"nbytes": CENTRAL.size}, {"start": 0}, {"at": 0}])
def test_a_table_that_64_bits_describe_wrongly_is_refused(change):
    with pytest.raises(FormatError, match="its table of|its 64-bit end record"):
        members(with_end_64(zip_of(a=b"body", b=b""), **change))


NET = "[net]\nheight=8\nwidth=8\nchannels=2\ntime_steps=40\n"
REPEATED = {
    "local": NET + "[local]\nsize=40\npad=1\n",
    "route": NET + "[activation]\nactivation=relu\n" + f"[route]\nlayers={'-1,' * 60}\ngroups=2\n",
    "shortcut": NET + "[maxpool]\nsize=2\nstride=2\n" + f"[shortcut]\nfrom={'-1,' * 60}\nactivation=mish\n",
    **{
        f"{kind} {options}": NET.replace("height=8\nwidth=8\nchannels=2", "inputs=5") + f"[{kind}]\noutput=3\n{options}"
        for kind in ("rnn", "gru")
        for options in ("", "batch_normalize=1\nactivation=mish\n")
    },
}


@pytest.mark.parametrize("name", REPEATED)
def test_nodes_are_said_before_they_are_made(tmp_path, monkeypatch, name):
    """What a few letters of a description repeat; each layer may have a few nodes besides."""
    said = []
    real = Allowance.spend

    def spend(self, what, nbytes=0, work=0, nodes=0):
        said.append(nodes)
        real(self, what, nbytes, work, nodes)

    monkeypatch.setattr(Allowance, "spend", spend)
    (tmp_path / "x.cfg").write_text(REPEATED[name])
    model = darknet.load(tmp_path / "x.cfg")
    made = post_order([*model.outputs, *model.values.values(), *model.updates.values()])
    assert len(made) <= sum(said) + 60
