"""Archives of Keras 3, written by hand as Keras writes them: ``config.json`` and ``model.weights.h5``."""

import io
import json
import zipfile
from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.keras_apart import read_keras_apart
from cgraph.formats.keras_archive import MappedFile, read_keras_model
from cgraph.formats.keras_graph import load_keras
from cgraph.kernels.mapped import mapping_of
from tests.formats.test_keras_config import INPUT, sequential
from tests.support.tolerance import assert_near

h5py = pytest.importorskip("h5py")
RNG = np.random.default_rng(0)
KERNELS = [RNG.normal(size=shape).astype("f4") for shape in ((4, 3), (3, 3), (3, 2))]
BIAS = RNG.normal(size=2).astype("f4")
X = RNG.normal(size=(5, 4)).astype("f4")
READERS = [read_keras_model, read_keras_apart]


def dense(name, **options):
    return {"class_name": "Dense", "config": {"name": name, "use_bias": False, **options}}


INNER = sequential(
    {"class_name": "InputLayer", "config": {"name": "i", "batch_shape": [None, 3]}}, dense("d"), name="m"
)
NETWORK = sequential(INPUT, dense("d"), INNER, dense("last", use_bias=True), name="net")
ARRAYS = {
    "layers/dense/vars/0": KERNELS[0],
    "layers/sequential/layers/dense/vars/0": KERNELS[1],
    "layers/dense_1/vars/0": KERNELS[2],
    "layers/dense_1/vars/1": BIAS,
}
WANT = X @ KERNELS[0] @ KERNELS[1] @ KERNELS[2] + BIAS


def weights(arrays=ARRAYS, userblock=0, **options) -> bytes:
    out = io.BytesIO()
    with h5py.File(out, "w", userblock_size=userblock) as file:
        for name, x in arrays.items():
            file.create_dataset(name, data=x, **options)
    return out.getvalue()


def archive(path, members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as file:
        for name, contents in members.items():
            file.writestr(name, contents)
    return path


def members(**options):
    return {"config.json": json.dumps(NETWORK), "model.weights.h5": weights(**options)}


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("options", [{}, {"userblock": 512}, {"chunks": True}, {"chunks": True, "compression": "gzip"}])
def test_arrays_are_those_of_the_file_however_it_stores_them(tmp_path, read, method, options):
    file = read(archive(tmp_path / "m.keras", members(**options), method))
    for name, x in ARRAYS.items():
        group, _, number = name.partition("/vars/")
        np.testing.assert_array_equal(file.weights[group][number], x)


@pytest.mark.parametrize("read", READERS)
def test_arrays_stay_in_the_file_where_they_are_aligned(tmp_path, read):
    """The bytes before a member of a zip file decide: one in four of them is right for float32."""
    mapped = []
    for length in range(4):
        path = archive(tmp_path / f"{length}.keras", {"metadata.json": " " * length} | members())
        file = read(path)
        mapped.append({mapping_of(x) is not None for arrays in file.weights.values() for x in arrays.values()})
    assert sorted(mapped, key=str) == [{False}, {False}, {False}, {True}]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("packed", list(product([False, True], repeat=3)))
def test_only_the_packing_of_the_weights_decides_whether_they_stay_in_the_file(tmp_path, read, packed):
    mapped = set()
    for length in range(4):
        path = tmp_path / f"{length}.keras"
        with zipfile.ZipFile(path, "w") as file:
            contents = {"metadata.json": " " * length} | members()
            for (name, x), is_packed in zip(contents.items(), packed):
                file.writestr(name, x, zipfile.ZIP_DEFLATED if is_packed else zipfile.ZIP_STORED)
        found = read(path).weights
        for name, x in ARRAYS.items():
            group, _, number = name.partition("/vars/")
            np.testing.assert_array_equal(found[group][number], x)
            mapped.add(mapping_of(found[group][number]) is not None)
    assert (True in mapped) == (not packed[2])


@pytest.mark.parametrize("apart", [False, True])
def test_each_layer_gets_its_own_arrays(tmp_path, apart):
    graph = load_keras(archive(tmp_path / "m.keras", members()), len(X), apart=apart)
    assert_near(cg.compile(graph.outputs[0], graph.inputs)(X), WANT, "float32 sums near zero")


@pytest.mark.parametrize("name", ["m.keras", "model"])
def test_load_knows_an_archive_by_its_name_or_contents(tmp_path, name):
    f = cg.load(archive(tmp_path / name, members()))
    for n in (1, 5):
        assert_near(f(X[:n])[0], WANT[:n], "float32 sums near zero")


@pytest.mark.parametrize("inner", ["m/m/d", "m/d", "m/net/d"])
def test_an_h5_file_has_the_arrays_of_an_inner_layer_in_the_outermost_group(tmp_path, inner):
    """Their path in the group has all, some or none of the names of the networks around the layer."""
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        file.attrs["model_config"] = json.dumps(NETWORK)
        names = ["d/d/kernel:0", f"{inner}/kernel:0", "last/last/kernel:0", "last/last/bias:0"]
        for name, x in zip(names, ARRAYS.values()):
            file.create_dataset(f"model_weights/{name}", data=x)
    assert_near(cg.load(path)(X)[0], WANT, "float32 sums near zero")


def test_inner_layers_of_one_name_are_told_apart_by_the_networks_around_them(tmp_path):
    first, second = (sequential(INNER["config"]["layers"][0], dense("d"), name=x) for x in ("p", "q"))
    start = {"class_name": "InputLayer", "config": {"name": "i", "batch_shape": [None, 3]}}
    path, a, b, c = tmp_path / "m.h5", *(RNG.normal(size=(3, 3)).astype("f4") for _ in range(3))
    with h5py.File(path, "w") as file:
        file.attrs["model_config"] = json.dumps(sequential(sequential(start, first, second, dense("d"), name="m")))
        for name, x in zip(("p/d", "q/d", "m/d"), (a, b, c)):
            file.create_dataset(f"model_weights/m/{name}/kernel:0", data=x)
    x = RNG.normal(size=(2, 3)).astype("f4")
    assert_near(cg.load(path)(x)[0], x @ a @ b @ c, "float32 products")


def without(name):
    return {k: v for k, v in ARRAYS.items() if k != name}


def changed(**changes):
    return {k: v for k, v in (members() | changes).items() if v is not None}


CASES = {
    "no description": ({"model.weights.h5": weights()}, "no member 'config.json'"),
    "no weights": ({"config.json": json.dumps(NETWORK)}, "no member 'model.weights.h5'"),
    "a description that is not JSON": (members() | {"config.json": "{"}, "config.json"),
    "a description of no network": (members() | {"config.json": "{}"}, "weights without a network"),
    "weights that are not HDF5": (members() | {"model.weights.h5": b"zeros"}, "is not a readable HDF5 file"),
    "an array that is missing": (
        members() | {"model.weights.h5": weights(without("layers/dense_1/vars/1"))},
        "layer 'last' has 1 arrays in 'layers/dense_1', not kernel, bias",
    ),
    "a layer without arrays": (
        members() | {"model.weights.h5": weights(without("layers/sequential/layers/dense/vars/0"))},
        "layer 'm/d' has 0 arrays in 'layers/sequential/layers/dense', not kernel",
    ),
    "texts as weights": (members() | {"model.weights.h5": weights({"layers/dense/vars/0": "text"})}, "only numbers"),
}


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_damaged_archives_are_refused(tmp_path, name, apart):
    contents, message = CASES[name]
    path = archive(tmp_path / "m.keras", contents)
    with pytest.raises(FormatError, match=message) as error:
        load_keras(path, apart=apart)
    assert str(path) in str(error.value)


def test_weights_that_lead_to_another_file_are_refused(tmp_path):
    out = io.BytesIO()
    with h5py.File(out, "w") as file:
        file["layers"] = h5py.ExternalLink("other.h5", "/")
    path = archive(tmp_path / "m.keras", members() | {"model.weights.h5": out.getvalue()})
    with pytest.raises(FormatError, match="ExternalLink"):
        read_keras_model(path)


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path):
    path = archive(tmp_path / "m.keras", members() | {"model.weights.h5": bytes(1 << 28)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(FormatError, match=r"member 'model.weights.h5' would take"):
        read_keras_model(path)


@pytest.mark.parametrize("read", READERS)
def test_truncated_archives_are_refused(tmp_path, read):
    path = archive(tmp_path / "m.keras", members())
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, 97 if read is read_keras_model else len(whole) // 3):
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError):
            read(path)


def test_bytes_in_memory_are_read_as_a_file():
    file = MappedFile(memoryview(b"0123456789"))
    assert (file.readable(), file.seekable(), file.read(3), file.tell()) == (True, True, b"012", 3)
    assert (file.seek(-2, 1), file.read(2)) == (1, b"12")
    assert (file.seek(-3, 2), file.read(9), file.read(1)) == (7, b"789", b"")
    assert file.seek(20) == 20 and file.read(1) == b""


@pytest.mark.parametrize("read", READERS)
def test_arrays_behind_other_bytes_of_a_file_are_copied(tmp_path, read):
    """Versions of HDF5 do not agree from where they count places in such a file."""
    for length in range(4):
        path = archive(tmp_path / f"{length}.keras", {"metadata.json": " " * length} | members(userblock=512))
        assert not any(mapping_of(x) for arrays in read(path).weights.values() for x in arrays.values())
    with h5py.File(tmp_path / "x.h5", "w", userblock_size=512) as file:
        file.create_dataset("model_weights/a/a/kernel:0", data=KERNELS[0])
    found = read(tmp_path / "x.h5").weights["a"]["kernel"]
    assert mapping_of(found) is None
    np.testing.assert_array_equal(found, KERNELS[0])
