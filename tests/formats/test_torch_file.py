"""Torch files: the real ones are read, crafted ones are refused before anything happens."""

import io
import os
import pickle
import struct
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.errors import FormatError
from cgraph.formats import torch_file
from cgraph.formats.plain_pickle import PickledCall
from cgraph.formats.torch_file import MAGIC, PROTOCOL, read_torch
from cgraph.kernels.mapped import mapping_of
from tests.support.data import shared

NAMES = {
    "Dict": b"ccollections\nOrderedDict\n",
    "Float": b"ctorch\nFloatStorage\n",
    "Long": b"ctorch\nLongStorage\n",
    "tensor": b"ctorch._utils\n_rebuild_tensor_v2\n",
}


def number(n: int) -> bytes:
    return b"\x8a\x08" + struct.pack("<q", n)


def text(s: str) -> bytes:
    return b"X" + struct.pack("<I", len(s)) + s.encode()


def numbers(*ns: int) -> bytes:
    return b"(" + b"".join(map(number, ns)) + b"t"


def tensor(key="0", count=6, offset=0, shape=(2, 3), strides=(3, 1), kind="Float", view=b"N") -> bytes:
    """Instructions of one tensor, as torch writes them."""
    storage = b"(" + text("storage") + NAMES[kind] + text(key) + text("cpu") + number(count) + view + b"tQ"
    rest = number(offset) + numbers(*shape) + numbers(*strides) + b"\x89" + NAMES["Dict"] + b")R"
    return NAMES["tensor"] + b"(" + storage + rest + b"tR"


def tree(**tensors: bytes) -> bytes:
    items = b"".join(text(name) + body for name, body in tensors.items())
    return b"\x80\x02" + NAMES["Dict"] + b")R(" + items + b"u."


def legacy(tree_bytes: bytes, storages: dict[str, np.ndarray], counts: dict[str, int] | None = None) -> bytes:
    machine = {"protocol_version": PROTOCOL, "little_endian": True, "type_sizes": {}}
    head = b"".join(pickle.dumps(x, 2) for x in (MAGIC, PROTOCOL, machine))
    tail = pickle.dumps(list(storages), 2)
    for key, x in storages.items():
        tail += struct.pack("<q", (counts or {}).get(key, x.size)) + x.tobytes()
    return head + tree_bytes + tail


def zipped(tree_bytes: bytes, storages: dict[str, np.ndarray], method: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("archive/data.pkl", tree_bytes)
        for key, x in storages.items():
            archive.writestr(f"archive/data/{key}", x.tobytes())
    return out.getvalue()


SIX = np.arange(6, dtype=np.float32)
LAYOUTS = pytest.mark.parametrize("layout", [legacy, zipped])


def read(tmp_path, contents: bytes) -> dict[str, np.ndarray]:
    path = tmp_path / "x.pth"
    path.write_bytes(contents)
    return read_torch(path)


@LAYOUTS
def test_tensors_come_back(tmp_path, layout):
    body = tree(a=tensor(), b=tensor(shape=(3, 2), strides=(1, 3)), c=tensor("1", 2, 1, (), (), "Long"))
    got = read(tmp_path, layout(body, {"0": SIX, "1": np.array([5, 7])}))
    np.testing.assert_array_equal(got["a"], SIX.reshape(2, 3))
    np.testing.assert_array_equal(got["b"], SIX.reshape(2, 3).T)
    assert got["c"] == 7
    assert got["c"].dtype == np.int64


@pytest.mark.parametrize(
    ("name", "tensors", "values"),
    [
        ("blazeface/blazeface.pth", 74, 101_390),
        ("blazeface/blazefaceback.pth", 138, 136_240),
        ("resnet_cifar10/resnet20-12fca82f.th", 97, 271_098),
    ],
)
def test_real_files_are_read(name, tensors, values):
    found = read_torch(shared(name))
    assert len(found) == tensors
    assert sum(x.size for x in found.values()) == values


def test_real_files_equal_what_torch_reads():
    torch = pytest.importorskip("torch")
    for name in ("blazeface/blazeface.pth", "blazeface/blazefaceback.pth"):
        want = torch.load(shared(name), weights_only=True)
        for key, x in read_torch(shared(name)).items():
            np.testing.assert_array_equal(x, want[key].numpy())


class Harm:
    """Runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@LAYOUTS
def test_nothing_in_a_file_is_run(tmp_path, layout):
    body = pickle.dumps(OrderedDict(a=Harm(tmp_path / "ran")), 2)
    with pytest.raises(FormatError, match="not allowed"):
        read(tmp_path, layout(body, {}))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "name", ["os system", "builtins eval", "torch load", "torch.FloatStorage x", "collections deque"]
)
def test_other_names_are_refused(tmp_path, name):
    module, function = name.split(" ")
    body = b"\x80\x02" + f"c{module}\n{function}\n".encode() + b")R."
    with pytest.raises(FormatError, match="not allowed"):
        read(tmp_path, legacy(body, {}))


IMPOSSIBLE, BEYOND = "an impossible offset, size or strides", "reaches beyond the 6 elements of storage '0'"
SIZES = [
    (tensor(count=7), "storage '0' .*has another length than its tensors say"),
    (tensor(count=5, shape=(5,), strides=(1,)), "storage '0' .*has another length than its tensors say"),
    (tensor(shape=(2, 4), strides=(3, 1)), rf"tensor \[2, 4\] {BEYOND}"),
    (tensor(strides=(4, 1)), BEYOND),
    (tensor(offset=1), BEYOND),
    (tensor(shape=(2**40,), strides=(0,)), BEYOND),
    (tensor(shape=(7,), strides=(0,)), BEYOND),
    (tensor(shape=(-1, 3)), IMPOSSIBLE),
    (tensor(strides=(-3, 1)), IMPOSSIBLE),
    (tensor(offset=-1), IMPOSSIBLE),
    (tensor(shape=(2,), strides=(1, 1)), IMPOSSIBLE),
    (tensor(count=2**47, shape=(2**47,), strides=(1,)), "another length|impossible size"),
    (tensor(count=-6), "-6, None is not a storage"),
    (tensor(count=2**48), f"{2**48}, None is not a storage"),
    (tensor(key="other"), "storage 'other' is missing|the list of storages differs from the 1"),
    (tensor(view=numbers(1, 2, 3)), "storage '0' is a view of another one"),
    (tensor() + b"\x85R", "not allowed"),
]


@LAYOUTS
@pytest.mark.parametrize(("bad", "match"), SIZES)
def test_sizes_that_do_not_fit_are_refused(tmp_path, layout, bad, match):
    with pytest.raises(FormatError, match=match):
        read(tmp_path, layout(tree(a=bad), {"0": SIX}))


def test_a_storage_longer_than_the_file_is_refused_before_memory_is_taken(tmp_path):
    huge = tensor(count=2**40, shape=(2**40,), strides=(1,))
    with pytest.raises(FormatError, match="beyond the"):
        read(tmp_path, legacy(tree(a=huge), {"0": SIX}, {"0": 2**40}))


def test_a_storage_in_two_dtypes_is_refused(tmp_path):
    with pytest.raises(FormatError, match="in two ways"):
        read(tmp_path, legacy(tree(a=tensor(), b=tensor(kind="Long")), {"0": SIX}))


def test_tensors_lie_in_the_mapped_file_and_share_their_storage(tmp_path):
    for more in range(4):
        name = "a" + "x" * more
        turned, part = tensor(shape=(3, 2), strides=(1, 3)), tensor(shape=(4,), strides=(1,), offset=2)
        raw = zipped(tree(**{name: tensor(), "b": turned, "c": part}), {"0": SIX})
        if raw.index(SIX.tobytes()) % 4 == 0:
            break
    found = read(tmp_path, raw)
    assert all(mapping_of(x) is not None and not x.flags.writeable for x in found.values())
    assert np.shares_memory(found[name], found["b"]) and np.shares_memory(found[name], found["c"])


def test_a_storage_that_lies_unaligned_is_copied_once(tmp_path):
    for more in range(4):
        name = "a" + "x" * more  # so that the storage begins at each remainder of 4
        found = read(tmp_path, legacy(tree(**{name: tensor(), "b": tensor()}), {"0": SIX}))
        assert np.shares_memory(found[name], found["b"]) and found[name].flags.aligned
        np.testing.assert_array_equal(found[name], SIX.reshape(2, 3))


@pytest.mark.parametrize("order", [b"big", b"", b"little\n"])
def test_another_byte_order_is_refused(tmp_path, order):
    raw = zipped(tree(a=tensor()), {"0": SIX})
    out = io.BytesIO(raw)
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("archive/byteorder", order)
    with pytest.raises(FormatError, match="byte order"):
        read(tmp_path, out.getvalue())


def test_another_byte_order_of_the_old_layout_is_refused(tmp_path):
    raw = legacy(tree(a=tensor()), {"0": SIX})
    at = raw.index(b"\x88", raw.index(b"little_endian"))  # true
    with pytest.raises(FormatError, match="byte order"):
        read(tmp_path, raw[:at] + b"\x89" + raw[at + 1 :])


def test_a_member_that_claims_more_than_the_file_is_refused(tmp_path):
    raw = bytearray(zipped(tree(a=tensor(count=2**20, shape=(1,), strides=(1,))), {"0": SIX}))
    at = raw.rindex(b"PK\x01\x02")
    raw[at + 20 : at + 28] = struct.pack("<2I", 2**22, 2**22)
    with pytest.raises(FormatError, match="outside the file"):
        read(tmp_path, bytes(raw))


@LAYOUTS
def test_a_file_cut_in_its_last_storage_is_refused(tmp_path, layout):
    whole = layout(tree(a=tensor()), {"0": SIX})
    with pytest.raises(FormatError):
        read(tmp_path, whole[:-1])


@pytest.mark.parametrize("path", ["a\0b", "missing.pt", "."])
def test_a_path_that_is_no_file_is_refused(path):
    with pytest.raises(FormatError):
        read_torch(path)


def test_a_compressed_entry_is_refused(tmp_path):
    with pytest.raises(FormatError, match="compressed"):
        read(tmp_path, zipped(tree(a=tensor()), {"0": np.zeros(6, np.float32)}, zipfile.ZIP_DEFLATED))


def test_two_entries_of_one_name_are_refused(tmp_path):
    out = io.BytesIO(zipped(tree(a=tensor()), {"0": SIX}))
    with zipfile.ZipFile(out, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("archive/data/0", SIX.tobytes())
    with pytest.raises(FormatError, match="two members"):
        read(tmp_path, out.getvalue())


@LAYOUTS
def test_every_truncation_is_refused(tmp_path, layout):
    whole = layout(tree(a=tensor()), {"0": SIX})
    for length in range(0, len(whole) - 1, 3):
        with pytest.raises(FormatError):
            read(tmp_path, whole[:length])


@LAYOUTS
@given(data=st.data())
def test_changed_bytes_give_arrays_or_a_refusal(tmp_path_factory, layout, data):
    whole = bytearray(layout(tree(a=tensor(), b=tensor(offset=2, shape=(4,), strides=(1,))), {"0": SIX}))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = read(tmp_path_factory.mktemp("fuzz"), bytes(whole))
    except FormatError:
        return
    assert sum(x.nbytes for x in found.values()) <= 2 * len(whole)


def test_dictionaries_that_contain_each_other_end(tmp_path):
    body = b"\x80\x02}q\x00" + text("again") + b"h\x00s" + text("a") + tensor() + b"s."
    np.testing.assert_array_equal(read(tmp_path, legacy(body, {"0": SIX}))["a"], SIX.reshape(2, 3))


PARAMETER = b"ctorch._utils\n_rebuild_parameter\n"


@LAYOUTS
def test_parameters_are_their_tensors_and_tensors_may_be_empty(tmp_path, layout):
    body = tree(a=PARAMETER + b"(" + tensor() + b"\x88tR", b=tensor(shape=(0, 3), strides=(3, 1)), c=PARAMETER + b")R")
    found = read(tmp_path, layout(body, {"0": SIX}))
    np.testing.assert_array_equal(found["a"], SIX.reshape(2, 3))
    assert found.keys() == {"a", "b"} and found["b"].shape == (0, 3) and found["b"].dtype == np.float32


@LAYOUTS
def test_tensors_have_the_order_of_the_file_and_the_keys_on_their_way(tmp_path, layout):
    inner = NAMES["Dict"] + b")R(" + text("y") + tensor() + text("b") + tensor("1", 1, 0, (), ()) + b"u"
    body = tree(z=tensor(), inner=inner, a=tensor("1", 1, 0, (1,), (1,)))
    found = read(tmp_path, layout(body, {"1": SIX[5:], "0": SIX}))
    assert list(found) == ["z", "inner.y", "inner.b", "a"]
    assert [x.ravel().tolist() for x in found.values()] == [SIX.tolist(), SIX.tolist(), [5], [5]]
    alone = b"\x80\x02" + tensor() + b"."
    assert list(read(tmp_path, layout(alone, {"0": SIX}))) == ["tensor"]


SHORT = NAMES["tensor"] + b"(" + tensor()[len(NAMES["tensor"]) + 1 :].partition(number(0))[0] + b"tR"
NOT_TENSORS = {
    "no size": (SHORT, "lacks its size"),
    "not a storage": (NAMES["tensor"] + b")R", "None is not a storage"),
    "a number for a storage": (NAMES["tensor"] + b"(K\x01tR", "1 is not a storage"),
    "a storage of two words": (
        NAMES["tensor"] + b"((" + text("storage") + text("0") + b"tQtR",
        "a PersistentId is not a storage",
    ),
    "another word": (tensor().replace(text("storage"), text("stowage")), "a PersistentId is not a storage"),
    "a size that overflows": (tensor(shape=(0, 2**40, 2**40), strides=(0, 0, 0)), "impossible size"),
}


@LAYOUTS
@pytest.mark.parametrize("name", NOT_TENSORS)
def test_what_is_no_tensor_is_refused(tmp_path, layout, name):
    body, match = NOT_TENSORS[name]
    with pytest.raises(FormatError, match=match):
        read(tmp_path, layout(tree(a=body), {"0": SIX}))


CODES = {
    "Float": "f4", "Double": "f8", "Half": "f2", "Long": "i8", "Int": "i4", "Short": "i2", "Char": "i1", "Byte": "u1",
    "Bool": "?",
}  # fmt: skip


@pytest.mark.parametrize("kind", CODES)
def test_storages_of_every_type_have_their_numbers(tmp_path, kind):
    """The least and the greatest number of each type, which another type would read as something else."""
    dtype = np.dtype(CODES[kind])
    bounds = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype) if dtype.kind == "f" else None
    x = np.array([True, False] if bounds is None else [bounds.min, bounds.max], dtype)
    body = tensor(count=2, shape=(2,), strides=(1,)).replace(NAMES["Float"], f"ctorch\n{kind}Storage\n".encode())
    found = read(tmp_path, zipped(tree(a=body), {"0": x}))["a"]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, x)


@LAYOUTS
def test_older_tensors_and_storages_that_are_no_views_are_read_and_other_values_are_left_out(tmp_path, layout):
    """A storage may be described in five words or in six."""
    older = tensor().replace(NAMES["tensor"], b"ctorch._utils\n_rebuild_tensor\n")
    body = tree(a=older, n=b"N", b=tensor(view=b""), k=b"K\x07", t=b")", l=b"]")
    found = read(tmp_path, layout(body, {"0": SIX}))
    assert list(found) == ["a", "b"]
    for x in found.values():
        np.testing.assert_array_equal(x, SIX.reshape(2, 3))


def test_storages_of_the_old_layout_follow_one_another_whatever_their_widths(tmp_path):
    half = tensor("h", 3, 0, (3,), (1,)).replace(NAMES["Float"], b"ctorch\nHalfStorage\n")
    body = tree(a=half, b=tensor("l", 2, 0, (2,), (1,), "Long"), c=tensor("f", 1, 0, (1,), (1,)))
    values = {"h": np.float16([1, 2, 3]), "l": np.array([2**62, -1]), "f": np.float32([0.5])}
    found = read(tmp_path, legacy(body, values))
    for got, want in zip(found.values(), values.values(), strict=True):
        np.testing.assert_array_equal(got, want, strict=True)


@LAYOUTS
@pytest.mark.parametrize("axes", [16, 17])
def test_a_tensor_has_at_most_16_axes(tmp_path, layout, axes):
    body = tree(a=tensor(shape=(1,) * (axes - 1) + (6,), strides=(1,) * axes))
    if axes == 16:
        assert read(tmp_path, layout(body, {"0": SIX}))["a"].ndim == 16
        return
    with pytest.raises(FormatError, match=IMPOSSIBLE):
        read(tmp_path, layout(body, {"0": SIX}))


@LAYOUTS
@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [((6,), (1,), 0), ((2, 3), (3, 1), 0), ((3,), (2,), 1), ((2, 2), (1, 4), 0), ((3, 2), (0, 5), 0), ((), (), 5),
     ((2, 2), (1, 1), 3), ((1, 1), (99, 99), 5)],
)  # fmt: skip
def test_a_tensor_reaches_to_the_last_element_of_its_storage_and_no_further(tmp_path, layout, shape, strides, offset):
    found = read(tmp_path, layout(tree(a=tensor(shape=shape, strides=strides, offset=offset)), {"0": SIX}))["a"]
    for at in np.ndindex(*shape):
        assert found[at] == offset + sum(i * s for i, s in zip(at, strides))
    with pytest.raises(FormatError, match=BEYOND):
        read(tmp_path, layout(tree(a=tensor(shape=shape, strides=strides, offset=offset + 1)), {"0": SIX}))


def test_members_of_a_zipped_file_beside_its_tensors_are_left_out(tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, body in (
            ("version", b"3"),
            ("data.pkl", tree(a=tensor())),
            ("byteorder", b"little"),
            (".data/x", b""),
        ):
            file.writestr(f"net/{name}", body)
        file.writestr("net/data/0", SIX.tobytes())
        file.writestr("net/data/7", bytes(3))
    assert list(read(tmp_path, out.getvalue())) == ["a"]


@pytest.mark.parametrize("wrong", ["protocol", "keys", "order of keys", "repeated keys", "length", "end"])
def test_each_part_of_the_old_layout_is_checked(tmp_path, wrong):
    body, storages = tree(a=tensor(), b=tensor("1", 2, 0, (2,), (1,), "Long")), {"0": SIX, "1": np.array([5, 7])}
    whole = legacy(body, storages)
    assert len(read(tmp_path, whole)) == 2
    if wrong == "order of keys":  # which decides where storages lie
        turned = legacy(body, dict(reversed(storages.items())))
        assert read(tmp_path, turned)["b"].tolist() == [5, 7]
        return
    changes = {
        "protocol": (pickle.dumps(PROTOCOL, 2), pickle.dumps(PROTOCOL + 1, 2), "protocol 1002"),
        "keys": (pickle.dumps(["0", "1"], 2), pickle.dumps(["0", "2"], 2), "the list of storages differs from the 2"),
        "repeated keys": (pickle.dumps(["0", "1"], 2), pickle.dumps(["0", "0"], 2), "the list of storages differs"),
        "length": (struct.pack("<q", 2) + storages["1"].tobytes(), struct.pack("<q", 1) + bytes(16), "another length"),
        "end": (storages["1"].tobytes(), storages["1"].tobytes()[:-1], "reaches beyond the"),
    }
    old, new, match = changes[wrong]
    at = whole.rindex(old)
    with pytest.raises(FormatError, match=match):
        read(tmp_path, whole[:at] + new + whole[at + len(old) :])


STORAGE = b"(" + text("storage") + NAMES["Float"] + text("0") + text("cpu") + number(6) + b"NtQ"
NO_STORAGES = {
    "a type that is text": (NAMES["Float"], text("FloatStorage"), "'FloatStorage', '0', 'cpu', 6, None"),
    "a type that is no storage": (NAMES["Float"], NAMES["Dict"], "collections.OrderedDict, '0', 'cpu', 6, None"),
    "a key that is a number": (text("0"), b"K\x00", "torch.FloatStorage, 0, 'cpu', 6, None"),
    "a length that is true": (number(6), b"\x88", "torch.FloatStorage, '0', 'cpu', True, None"),
    "a length that is a fraction": (number(6), b"G" + struct.pack(">d", 6.0), "'0', 'cpu', 6.0, None"),
    "a length that is text": (number(6), text("6"), "'0', 'cpu', '6', None"),
}


@LAYOUTS
@pytest.mark.parametrize("name", NO_STORAGES)
def test_a_storage_has_a_type_a_key_and_a_length(tmp_path, layout, name):
    old, new, match = NO_STORAGES[name]
    body = tensor()
    assert body.count(STORAGE) == 1
    body = body.replace(STORAGE, STORAGE.replace(old, new, 1))
    with pytest.raises(FormatError, match=f"{match} is not a storage. Save tensors only"):
        read(tmp_path, layout(tree(a=body), {"0": SIX}))


@LAYOUTS
@pytest.mark.parametrize("word", [b"K\x01", b"N", b"\x88"])
def test_a_storage_begins_with_its_word(tmp_path, layout, word):
    body = tensor().replace(text("storage"), word)
    with pytest.raises(FormatError, match="a PersistentId is not a storage"):
        read(tmp_path, layout(tree(a=body), {"0": SIX}))


@LAYOUTS
@pytest.mark.parametrize("part", ["shape", "strides"])
@pytest.mark.parametrize("value", ["list", "number", "true", "fraction"])
def test_sizes_and_strides_are_tuples_of_numbers(tmp_path, layout, part, value):
    """A list of the same numbers is none, nor is a tuple with True for 1."""
    shape, strides = ((1, 6), (6, 1))
    old = numbers(*(shape if part == "shape" else strides))
    ones = {"list": None, "number": b"K\x06", "true": b"\x88", "fraction": b"G" + struct.pack(">d", 1.0)}
    if value == "list":
        new = b"](" + old[1:-1] + b"e"
    elif value == "number":
        new = ones[value]
    else:
        new = old.replace(number(1), ones[value])
    body = tensor(shape=shape, strides=strides)
    assert body.count(old) == 1 and read(tmp_path, layout(tree(a=body), {"0": SIX}))["a"].shape == shape
    with pytest.raises(FormatError, match=f"tensor of storage '0' has {IMPOSSIBLE}"):
        read(tmp_path, layout(tree(a=body.replace(old, new)), {"0": SIX}))


@pytest.mark.parametrize("machine", [[], "little", None, {}, {"little_endian": 1}, {"little_endian": "True"}])
def test_the_old_layout_says_of_its_machine_that_it_is_little_endian(tmp_path, machine):
    whole = legacy(tree(a=tensor()), {"0": SIX})
    old = pickle.dumps({"protocol_version": PROTOCOL, "little_endian": True, "type_sizes": {}}, 2)
    assert whole.count(old) == 1
    with pytest.raises(FormatError, match="protocol 1001 or byte order is not supported"):
        read(tmp_path, whole.replace(old, pickle.dumps(machine, 2)))


@pytest.mark.parametrize("keys", [("0",), {"0": 1}, "0", [0], [None], 7])
def test_the_old_layout_lists_the_keys_of_its_storages(tmp_path, keys):
    """Only a list of texts will do."""
    whole = legacy(tree(a=tensor()), {"0": SIX})
    old = pickle.dumps(["0"], 2)
    assert whole.count(old) == 1
    with pytest.raises(FormatError, match="the list of storages differs from the 1 that the tensors name"):
        read(tmp_path, whole.replace(old, pickle.dumps(keys, 2)))


@pytest.mark.parametrize("names", [("a/data", "a/data/0"), ("a/data.pkl", "b/data.pkl"), ("data.pkl", "x")])
def test_a_zipped_file_has_one_description_in_one_folder(tmp_path, names):
    """None; in two folders, of which neither is meant; in no folder."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name in names:
            file.writestr(name, tree(a=tensor()))
    with pytest.raises(FormatError, match="it has no data.pkl, or two members of one name"):
        read(tmp_path, out.getvalue())


def test_two_storages_of_one_key_in_two_folders_are_refused(tmp_path):
    out = io.BytesIO(zipped(tree(a=tensor()), {"0": SIX}))
    with zipfile.ZipFile(out, "a") as file:
        file.writestr("other/data/0", SIX[::-1].tobytes())
    with pytest.raises(FormatError, match="two members of one name"):
        read(tmp_path, out.getvalue())


def test_a_path_is_charged_with_its_letters_and_those_before_it():
    """Four bytes for each letter of a path that is not ASCII, as such texts take in memory."""
    for outer, inner, letters in (("ab", "cde", 2 + 2 + 3), ("äb", "cde", 4 * (2 + 2 + 3)), ("ab", "é", 2 + 4 * 3)):
        allowance = torch_file.Allowance(0)
        before = allowance.nbytes
        call = PickledCall(torch_file.TENSORS[0], ())
        assert torch_file.tensors_of({outer: {inner: call}}, allowance) == {f"{outer}.{inner}": call}
        assert before - allowance.nbytes == 2 * torch_file.PATH + letters


def test_a_dictionary_under_two_keys_is_visited_once_and_a_tensor_under_two_keys_stands_twice():
    call, allowance = PickledCall(torch_file.TENSORS[1], ()), torch_file.Allowance(0)
    inner = {"x": call}
    found = torch_file.tensors_of({"a": inner, "b": inner, "c": call}, allowance)
    assert list(found) == ["a.x", "c"] and all(x is call for x in found.values())


@pytest.mark.parametrize("kind", ["Byte", "Short"])
def test_a_tensor_that_repeats_one_element_may_say_so_in_each_axis(tmp_path, kind):
    """The elements that a shape counts are bounded by its storage, also where all of them are one."""
    code = f"ctorch\n{kind}Storage\n".encode()
    body = tensor(count=6, shape=(2, 3), strides=(0, 0), offset=5).replace(NAMES["Float"], code)
    x = np.arange(6, dtype=CODES[kind])
    assert read(tmp_path, zipped(tree(a=body), {"0": x}))["a"].tolist() == [[5] * 3] * 2


def test_what_torch_writes_today_is_what_torch_reads(tmp_path):
    """Both layouts, with views, scalars, empty tensors, every dtype and nested dictionaries."""
    torch = pytest.importorskip("torch")
    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    state = {
        "whole": base, "turned": base.permute(2, 0, 1), "part": base[1, 1:, ::2], "one": torch.tensor(7),
        "empty": torch.zeros(0, 3), "inner": {"deep": {"half": torch.tensor([1.5, -2], dtype=torch.float16)}},
        "parameter": torch.nn.Parameter(torch.tensor([[0.5]])), "flags": torch.tensor([True, False]),
        "bytes": torch.tensor([0, 255], dtype=torch.uint8), "wide": torch.tensor([2**40, -1]),
    }  # fmt: skip
    wanted = {k: x for k, x in state.items() if k != "inner"} | {"inner.deep.half": state["inner"]["deep"]["half"]}
    for zips in (True, False):
        path = tmp_path / f"{zips}.pt"
        torch.save(state, path, _use_new_zipfile_serialization=zips)
        found = read_torch(path)
        assert found.keys() == wanted.keys()
        for name, x in found.items():
            np.testing.assert_array_equal(x, wanted[name].detach().numpy(), strict=True)
