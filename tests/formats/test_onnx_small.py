"""ONNX's numbers of 2 and 4 bits and powers of 2: packed weights, read by conversions and moves alone."""

import numpy as np
import pytest

from cgraph.dtypes.convert import convert, resolve_dtype
from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx import load
from cgraph.formats.onnx.small import check_readers, packed_bytes, storage_dtype, unpack
from tests.support.tolerance import assert_near

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

KINDS = {"UINT4": (0, 16), "INT4": (-8, 8), "UINT2": (0, 4), "INT2": (-2, 2)}
FLOATS = {"FLOAT4E2M1": (4, "float8_e4m3fn"), "FLOAT8E8M0": (8, "bfloat16")}  # bits, and the dtype that stores them


@pytest.fixture
def rng():
    return np.random.default_rng(0)


every_kind = pytest.mark.parametrize("kind", KINDS)


def packed(values: np.ndarray, kind: str) -> bytes:
    """Numbers as the standard has them in bytes, the first in the lowest bits."""
    bits = int(kind[-1])
    rows = np.zeros(-(-values.size // (8 // bits)) * (8 // bits), np.int64)
    rows[: values.size] = values.reshape(-1) & ((1 << bits) - 1)
    return bytes((rows.reshape(-1, 8 // bits) << np.arange(0, 8, bits)).sum(1).astype(np.uint8))


def tensor(name: str, values: np.ndarray, kind: str, raw: bool = True):
    data = packed(values, kind)
    found = TensorProto(name=name, data_type=getattr(TensorProto, kind), dims=values.shape)
    if raw:
        found.raw_data = data
    else:
        found.int32_data.extend(data)
    return found


def model(nodes, initializers, shape=(3, 5), out=(3, 7), inputs=()):
    graph = helper.make_graph(
        nodes,
        "few bits",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape), *inputs],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)


def product(weights, zeros, scales, **attributes):
    """A product with weights of few bits, as exporters of quantised networks write it."""
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["f"], **attributes),
        helper.make_node("MatMul", ["x", "f"], ["y"]),
    ]
    return model(nodes, [weights, zeros, numpy_helper.from_array(scales, "s")])


@every_kind
@pytest.mark.parametrize("raw", [True, False])
def test_weights_are_the_numbers_that_were_packed(kind, raw, rng):
    w, z = rng.integers(*KINDS[kind], (5, 7)), rng.integers(*KINDS[kind], 7)
    s, x = rng.random(7, "float32"), rng.random((3, 5), "float32")
    file = product(tensor("w", w, kind, raw), tensor("z", z, kind, raw), s, axis=1).SerializeToString()
    found = load(file).compile()(x)[0]
    assert_near(found, x @ ((w - z).astype("float32") * s), "float32 products")


@pytest.mark.parametrize("kind", ["UINT4", "INT4"])
def test_blocks_of_weights_are_those_of_onnxruntime(kind, rng):
    onnxruntime = pytest.importorskip("onnxruntime")
    w, z = rng.integers(*KINDS[kind], (64, 6)), rng.integers(*KINDS[kind], (4, 6))
    s, x = rng.random((4, 6), "float32"), rng.random((3, 64), "float32")
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["f"], axis=0, block_size=16),
        helper.make_node("MatMul", ["x", "f"], ["y"]),
    ]
    parts = [tensor("w", w, kind), tensor("z", z, kind), numpy_helper.from_array(s, "s")]
    file = model(nodes, parts, (3, 64), (3, 6))
    file.opset_import[0].version, file.ir_version = 21, 10
    data = file.SerializeToString()
    options = onnxruntime.SessionOptions()  # as it is written: fused, its product rounds images to 8 bits
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    want = session.run(None, {"x": x})[0]
    assert_near(load(data).compile()(x)[0], want, "float32 products in blocks")


def test_large_weights_are_read_where_they_lie(tmp_path, rng):
    w, x = rng.integers(-8, 8, (512, 1000)), rng.random((2, 512), "float32")
    nodes = [helper.make_node("Cast", ["w"], ["f"], to=1), helper.make_node("MatMul", ["x", "f"], ["y"])]
    file = model(nodes, [tensor("w", w, "INT4")], (2, 512), (2, 1000))
    onnx.save(file, tmp_path / "inside.onnx")
    onnx.save(file, tmp_path / "beside.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    assert (tmp_path / "w.bin").stat().st_size == w.size // 2
    for name in ("inside.onnx", "beside.onnx"):
        assert_near(load(tmp_path / name).compile()(x)[0], x @ w.astype("float32"), "float32 long products")


@every_kind
def test_every_byte_is_unpacked_as_the_onnx_package_does(kind):
    each = 8 // int(kind[-1])
    proto = TensorProto(name="w", data_type=getattr(TensorProto, kind), dims=[256 * each], raw_data=bytes(range(256)))
    assert_unpacked_as_by_the_package(proto)


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("kind", FLOATS)
def test_every_byte_of_floats_is_unpacked_as_the_onnx_package_does(kind, raw):
    proto = TensorProto(name="w", data_type=getattr(TensorProto, kind), dims=[256 * 8 // FLOATS[kind][0]])
    if raw:
        proto.raw_data = bytes(range(256))
    else:
        proto.int32_data.extend(range(256))
    assert_unpacked_as_by_the_package(proto)
    assert unpack(packed_bytes(proto), proto, Allowance(0)).dtype == resolve_dtype(FLOATS[kind][1])


def assert_unpacked_as_by_the_package(proto):
    shape = tuple(proto.dims)
    nodes = [helper.make_node("Cast", ["w"], ["f"], to=1), helper.make_node("Mul", ["x", "f"], ["y"])]
    file = model(nodes, [proto], shape, shape).SerializeToString()
    want = numpy_helper.to_array(proto).astype("float32")
    assert len(set(want[~np.isnan(want)].tolist())) > 3
    np.testing.assert_array_equal(load(file).compile()(np.ones(shape, "float32"))[0], want)


@pytest.mark.parametrize("scales", ["FLOAT8E4M3FN", "FLOAT8E8M0"])
def test_weights_of_four_bits_have_scales_of_eight(scales, rng):
    """Blocks of 16 with scales of 8 bits, as NVFP4 and MXFP4 have them."""
    w = rng.integers(0, 256, 64 * 6 // 2, dtype="u1").tobytes()
    s = rng.integers(0x30, 0x48, (4, 6), dtype="u1") if scales != "FLOAT8E8M0" else rng.integers(124, 130, (4, 6))
    parts = [
        TensorProto(name="w", data_type=TensorProto.FLOAT4E2M1, dims=[64, 6], raw_data=w),
        TensorProto(
            name="s", data_type=getattr(TensorProto, scales), dims=[4, 6], raw_data=bytes(s.reshape(-1).tolist())
        ),
    ]
    nodes = [
        helper.make_node("Cast", ["s"], ["t"], to=1),
        helper.make_node("DequantizeLinear", ["w", "t"], ["f"], axis=0, block_size=16),
        helper.make_node("MatMul", ["x", "f"], ["y"]),
    ]
    file, x = model(nodes, parts, (3, 64), (3, 6)), rng.random((3, 64), "float32")
    want = ReferenceEvaluator(file).run(None, {"x": x})[0]
    assert_near(load(file.SerializeToString()).compile()(x)[0], want, "float32 products in blocks")


def test_rows_of_packed_weights_are_looked_up_before_they_are_converted(rng):
    w, places = rng.integers(-8, 8, (5, 7)), np.array([4, 0, 4])
    nodes = [
        helper.make_node("Transpose", ["w"], ["t"]),
        helper.make_node("Gather", ["t", "i"], ["g"], axis=1),
        helper.make_node("DequantizeLinear", ["g", "s"], ["f"]),
        helper.make_node("MatMul", ["x", "f"], ["y"]),
    ]
    parts = [tensor("w", w, "INT4"), numpy_helper.from_array(places, "i")]
    file = model(nodes, [*parts, numpy_helper.from_array(np.float32(0.5), "s")], (2, 7), (2, 3)).SerializeToString()
    x = rng.random((2, 7), "float32")
    assert_near(load(file).compile()(x)[0], x @ w.T[:, places].astype("float32") * 0.5, "float32 products")


@pytest.mark.parametrize(
    ("kind", "stored"), [("INT4", "int8"), ("UINT2", "uint8"), *((k, d) for k, (_, d) in FLOATS.items())]
)
def test_an_output_of_them_has_the_dtype_that_stores_them(kind, stored):
    number = getattr(TensorProto, kind)
    file = model([helper.make_node("Cast", ["x"], ["q"], to=number)], [], (4,), (4,))
    file.graph.output[0].CopyFrom(helper.make_tensor_value_info("q", number, [4]))
    (got,) = load(file.SerializeToString()).compile()(np.array([0, 0.5, 1, 2], "float32"))
    assert got.dtype == resolve_dtype(stored)
    want = {
        "INT4": [0, 0, 1, 2],
        "UINT2": [0, 0, 1, 2],
        "FLOAT4E2M1": [0, 0.5, 1, 2],
        "FLOAT8E8M0": [2.0**-127, 0.5, 1, 2],
    }
    assert convert(got, np.dtype("float32")).tolist() == want[kind]


@pytest.mark.parametrize("change", [-1, 1])
def test_another_number_of_bytes_is_refused(change, rng):
    w = tensor("w", rng.integers(-8, 8, (5, 7)), "INT4")
    w.raw_data = (w.raw_data + b"\0")[: 18 + change]
    with pytest.raises(FormatError, match=rf"'w' INT4\[5, 7\] needs 18 bytes, {18 + change} are stored"):
        load(product(w, tensor("z", np.zeros(7, int), "INT4"), np.ones(7, "float32"), axis=1).SerializeToString())


def test_a_shape_that_the_file_cannot_hold_is_refused_before_it_is_made():
    w = TensorProto(name="w", data_type=TensorProto.INT2, dims=[1 << 20, 1 << 20], raw_data=b"\0")
    with pytest.raises(FormatError, match="needs 274877906944 bytes, 1 are stored"):
        load(model([helper.make_node("Cast", ["w"], ["y"], to=1)], [w]).SerializeToString())


def test_numbers_that_are_no_bytes_are_refused(rng):
    w = tensor("w", rng.integers(-8, 8, 4), "INT4", raw=False)
    w.int32_data[0] = 256
    with pytest.raises(FormatError, match="holds values outside 0 to 255"):
        load(model([helper.make_node("Cast", ["w"], ["y"], to=1)], [w]).SerializeToString())


def inner_branch(name):
    """A condition whose branches hand a value of the graph around them on."""
    given = [helper.make_tensor_value_info("t", TensorProto.INT4, [4])]
    branch = helper.make_graph([helper.make_node("Identity", [name], ["t"])], "branch", [], given)
    return helper.make_node("If", ["c"], ["t"], then_branch=branch, else_branch=branch)


@pytest.mark.parametrize(
    "nodes",
    [
        [helper.make_node("Add", ["w", "w"], ["t"]), helper.make_node("Cast", ["t"], ["y"], to=1)],
        [helper.make_node("Transpose", ["w"], ["t"]), helper.make_node("Abs", ["t"], ["y"])],
        [helper.make_node("CastLike", ["x", "w"], ["t"]), helper.make_node("Abs", ["t"], ["y"])],
        [helper.make_node("QuantizeLinear", ["x", "s", "w"], ["t"]), helper.make_node("Relu", ["t"], ["y"])],
        [helper.make_node("QuantizeLinear", ["x", "s"], ["t"], output_dtype=22), helper.make_node("Neg", ["t"], ["y"])],
        [helper.make_node("Gather", ["x", "w"], ["y"])],
        [inner_branch("w"), helper.make_node("Cast", ["t"], ["y"], to=1)],
        [helper.make_node("Cast", ["w"], ["y"], domain="elsewhere", to=1)],
    ],
    ids=["add", "transpose", "like", "quantize", "told", "places", "branch", "domain"],
)
def test_whoever_else_reads_them_is_refused(nodes):
    parts = [tensor("w", np.zeros(4, int), "INT4"), numpy_helper.from_array(np.float32(1), "s")]
    parts.append(numpy_helper.from_array(np.bool_(True), "c"))
    file = model(nodes, parts, (4,), (4,))
    file.opset_import.append(helper.make_opsetid("elsewhere", 1))
    with pytest.raises(FormatError, match="numbers of 4 bits; only .* Insert a Cast|not supported"):
        load(file.SerializeToString())


@every_kind
def test_the_last_byte_may_be_partly_unused_and_others_are_counted(kind, rng):
    each = 8 // int(kind[-1])
    for count in (0, 1, each - 1, each, each + 1):
        values = rng.integers(*KINDS[kind], count)
        proto = tensor("w", values, kind)
        got = unpack(packed_bytes(proto), proto, Allowance(0))
        assert got.dtype == ("uint8" if kind[0] == "U" else "int8")
        np.testing.assert_array_equal(got, values)
        for raw in (packed(values, kind) + b"\0", packed(values, kind)[:-1]):
            if len(raw) != len(packed(values, kind)):
                with pytest.raises(FormatError, match=rf"tensor 'w' {kind}\[{count}\] needs .* bytes, {len(raw)} are"):
                    unpack(raw, proto, Allowance(0))


def test_bytes_of_numbers_are_bytes():
    proto = TensorProto(name="w", data_type=TensorProto.UINT4, dims=[2], int32_data=[0x5A])
    assert packed_bytes(proto) == b"\x5a" and unpack(b"\x5a", proto, Allowance(0)).tolist() == [10, 5]
    for value in (-1, 256):
        proto.int32_data[0] = value
        with pytest.raises(FormatError, match="tensor 'w' holds values outside 0 to 255"):
            packed_bytes(proto)


def test_unpacking_is_charged():
    proto = TensorProto(name="w", data_type=TensorProto.INT2, dims=[400])
    allowance = Allowance(0)
    before = allowance.nbytes
    unpack(bytes(100), proto, allowance)
    assert before - allowance.nbytes == 3 * 4 * 100


def test_inputs_and_results_of_few_bits_are_told_apart():
    assert storage_dtype(TensorProto.INT2, "x") == np.int8 and storage_dtype(TensorProto.UINT4, "x") == np.uint8
    assert storage_dtype(TensorProto.FLOAT, "x") == np.float32
    few, wide = (
        helper.make_tensor_value_info(n, k, (2,)) for n, k in (("q", TensorProto.INT4), ("f", TensorProto.FLOAT))
    )
    for name, place, is_read in (("q", 0, False), ("q", 1, True), ("q", 2, True), ("f", 0, True)):
        operands = ["f", "f", "f"]
        operands[place] = name
        nodes = [helper.make_node("QuantizeLinear", operands, ["y"])]
        graph = helper.make_graph(nodes, "g", [few, wide], [helper.make_tensor_value_info("y", 1, (2,))])
        if is_read:
            check_readers(graph)
        else:
            with pytest.raises(FormatError, match="QuantizeLinear reads 'q', which has numbers of 4 bits"):
                check_readers(graph)
    cast = helper.make_node("Cast", ["q"], ["y"], to=1, domain="other")
    with pytest.raises(FormatError, match="Cast reads 'q'"):
        check_readers(helper.make_graph([cast], "g", [few], []))
    assert check_readers(helper.make_graph([], "g", [few, wide], [few])) == {"q": TensorProto.INT4}


def test_what_becomes_of_them_is_known_by_name():
    w = tensor("w", np.zeros(4, int), "INT2")
    nodes = [
        helper.make_node("Constant", [], ["c"], value=w),
        helper.make_node("Identity", ["c"], ["i"]),
        helper.make_node("CastLike", ["x", "i"], ["like"]),
        helper.make_node("Cast", ["like"], ["wide"], to=1),
        helper.make_node("Cast", ["wide"], ["powers"], to=24),
        helper.make_node("QuantizeLinear", ["x", "s", "i"], ["zero"]),
        helper.make_node("QuantizeLinear", ["x", "s", ""], ["told"], output_dtype=23),
        helper.make_node("QuantizeLinear", ["x", "s"], ["bytes"]),
    ]
    nodes += [
        helper.make_node(kind, [], [kind]) for kind in ("Identity", "CastLike", "QuantizeLinear", "Cast")
    ]  # faulty
    want = {"c": 26, "i": 26, "like": 26, "powers": 24, "zero": 26, "told": 23}
    assert check_readers(helper.make_graph(nodes, "g", [], [])) == want
    attributes = [
        helper.make_node("Cast", ["x"], ["down"], saturate=0, to=24, round_mode="down"),
        helper.make_node("Cast", ["x"], ["plain"], saturate=24, to=1),
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"], axis=22, output_dtype=21, block_size=23),
        helper.make_node("QuantizeLinear", ["x", "s"], ["p"], axis=22, block_size=23),
        helper.make_node("Constant", [], ["n"], value_int=22),
    ]
    assert check_readers(helper.make_graph(attributes, "g", [], [])) == {"down": 24, "q": 21}
    exponents = helper.make_node("Exp", ["powers"], ["y"])
    with pytest.raises(FormatError, match="Exp reads 'powers', which has numbers of exponents alone"):
        check_readers(helper.make_graph([*nodes, exponents], "g", [], []))
