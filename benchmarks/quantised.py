"""Quantised networks: files written by onnxruntime's static quantiser, run here and there, compared with float
networks.

python -m benchmarks.quantised [networks] [u8s8|s8s8] [1|2]
python -m benchmarks.quantised processor [networks] [u8s8|s8s8]     the same by processor time, on a loaded machine
python -m benchmarks.quantised products     products of matrices beside the peak of one thread
python -m benchmarks.quantised dynamic      a GPT of onnxruntime's dynamic quantiser, by processor time of one thread
python -m benchmarks.quantised encoder      blocks of attention of its static quantiser, the same
python -m benchmarks.quantised nibbles      products with weights of 4 bits, the same
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

import nn
from benchmarks import networks, sequences
from benchmarks.peak import peak_of_bytes
from benchmarks.prepared import aligned, alternate, workspace
from benchmarks.prepared import prepare as prepare_calls
from benchmarks.runner import Absent, Row, compare
from cgraph.formats.onnx import load, save
from cgraph.function import compile
from cgraph.kernels.conv8.calls import ByteShape, Result
from cgraph.kernels.conv8.packed_weights import pack_conv8, pack_numbers
from cgraph.kernels.kernel import Pointer, View, contiguous
from cgraph.kernels.target import host_target
from cgraph.ops.blocks import block_matmul
from cgraph.ops.leaf import Var
from cgraph.ops.physical.integer import PackedIntegerMatmul
from nn.compile import freeze

NETWORKS = ("resnet50", "mobilenet_v2", "squeezenet1_1", "efficientnet_b0", "unet")
FORMS = ("u8s8", "s8s8")
ROUNDS = 15
SAMPLES = 4  # random pictures for calibration
PRODUCTS = ((512, 512, 512), (64, 512, 128))
TOKENS = (64, 1)
ENGINES = ("cgraph", "onnxruntime", "float")


class Pictures:
    """Random pictures for onnxruntime's calibration. Changes: each is returned once."""

    def __init__(self, image: np.ndarray, name: str = "image") -> None:
        rng = np.random.default_rng(2)
        drawn = (rng.standard_normal(image.shape, np.float32) for _ in range(SAMPLES))
        self.left: Iterator[dict] = ({name: x} for x in drawn)

    def get_next(self) -> dict | None:
        return next(self.left, None)


def quantised(case: str) -> Path:
    """Return a network's file with quantised values (QDQ, filters by channel), written once."""
    name, form = case.split()
    path = networks.FOLDER / f"{name}_{form}.onnx"
    if path.exists():
        return path
    pictures = Pictures(networks.image_of(networks.NETWORKS[name](None)))
    return written(networks.exported(name), path, pictures, form)


def written(plain: Path, path: Path, pictures: Pictures, form: str) -> Path:
    """Return a float file with quantised values."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    ready, temporary = path.with_suffix(f".ready{os.getpid()}"), path.with_suffix(f".{os.getpid()}")
    quant_pre_process(str(plain), str(ready), skip_symbolic_shape=True)
    images = QuantType.QUInt8 if form == "u8s8" else QuantType.QInt8
    kinds = {"activation_type": images, "weight_type": QuantType.QInt8, "per_channel": True}
    quantize_static(str(ready), str(temporary), pictures, quant_format=QuantFormat.QDQ, **kinds)
    ready.unlink()
    os.replace(temporary, path)
    return path


def prepare(engine: str, case: str, threads: int) -> networks.Run:
    name = case.split()[0]
    image = networks.image_of(networks.NETWORKS[name](None))
    if engine == "float":
        return networks.cgraph_run(name, threads)
    if engine == "onnxruntime":
        return onnxruntime_run(case, image, threads)
    function = load(quantised(case)).compile(threads=threads)
    return lambda: function(image)


def onnxruntime_run(case: str, image: np.ndarray, threads: int) -> networks.Run:
    try:
        import onnxruntime
    except ImportError as error:
        raise Absent(str(error)) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(quantised(case)), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"image": image})


def processor_times(case: str) -> dict[str, float]:
    """Return processor seconds of one thread of each."""
    return least_times({name: prepare(name, case, 1) for name in ENGINES})


def least_times(runs: Mapping[str, networks.Run]) -> dict[str, float]:
    """Return processor seconds of each: the minimum of some runs in turns, in one process."""
    found = dict.fromkeys(runs, float("inf"))
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = time.process_time()
            run()
            found[name] = min(found[name], time.process_time() - start)
    return found


def processor(names: Sequence[str], forms: Sequence[str]) -> None:
    for case in (f"{name} {form}" for form in forms for name in names):
        times = processor_times(case)
        ratios = "".join(f", {times[n] / times['cgraph']:.2f} times as fast as {n}" for n in ENGINES[1:])
        print(f"{case}: " + ", ".join(f"{n} {1e3 * t:.3g} ms" for n, t in times.items()) + ratios, flush=True)


def session_run(model: bytes | str, **values: np.ndarray) -> networks.Run:
    """Return a run of a model by onnxruntime on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, values)


def dynamic() -> None:
    """Return a decoder of 4 layers of 256, for some tokens at once."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    networks.FOLDER.mkdir(parents=True, exist_ok=True)
    for count in TOKENS:
        tokens = Var((1, count), "int64", name="tokens")
        plain, small = (networks.FOLDER / f"gpt_{count}{end}.onnx" for end in ("", "_int8"))
        save(plain, freeze(nn.models.gpt(0, 1000, count, 256, 4, 4))(tokens), [tokens])
        quantize_dynamic(str(plain), str(small), weight_type=QuantType.QInt8)
        value = np.random.default_rng(0).integers(0, 1000, (1, count))
        functions = {"ours": load(small).compile(threads=1), "our floats": load(plain).compile(threads=1)}
        runs = {name: partial(function, value) for name, function in functions.items()}
        show(f"{count} tokens", runs | {"onnxruntime": session_run(str(small), tokens=value)})


def encoder() -> None:
    """Return 6 blocks of 384 with 128 tokens that attend to all others."""
    networks.FOLDER.mkdir(parents=True, exist_ok=True)
    for form in FORMS:
        outputs, inputs, (value,) = sequences.encoder(6, 384)
        plain = networks.FOLDER / "encoder.onnx"
        save(plain, outputs, inputs)
        small = written(plain, networks.FOLDER / f"encoder_{form}.onnx", Pictures(value, inputs[0].name), form)
        functions = {"ours": load(small).compile(threads=1), "our floats": load(plain).compile(threads=1)}
        runs: dict[str, networks.Run] = {name: partial(function, value) for name, function in functions.items()}
        runs["onnxruntime"] = session_run(str(small), **{inputs[0].name: value})
        show(f"encoder {form}", runs)


def nibbles() -> None:
    """Return rows times 4096 x 4096 weights of 4 bits in blocks of 32."""
    from onnx import helper, numpy_helper

    rng, size, block = np.random.default_rng(0), 4096, 32
    y, scales = rng.integers(0, 256, (size, size // block, block // 2), "u1"), rng.random((size, size // block), "f4")
    given = [numpy_helper.from_array(y, "y"), numpy_helper.from_array(scales.reshape(-1), "scales")]
    for rows in (1, 4, 64):
        x, value = Var((rows, size), name="x"), rng.standard_normal((rows, size), "f4")
        runs = {"ours": partial(compile(block_matmul(x, y, scales), [x], threads=1), value)}
        runs["our floats"] = partial(compile(x @ rng.random((size, size), "f4"), [x], threads=1), value)
        for level in (0, 4):
            more = {"K": size, "N": size, "bits": 4, "block_size": block, "accuracy_level": level}
            made = helper.make_node("MatMulNBits", ["x", "y", "scales"], ["z"], domain="com.microsoft", **more)
            ends = [helper.make_tensor_value_info(name, 1, [rows, size]) for name in "xz"]
            graph = helper.make_graph([made], "one", ends[:1], ends[1:], given)
            opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
            body = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
            runs[f"onnxruntime, accuracy_level {level}"] = session_run(body, x=value)
        show(f"{rows} rows", runs)


def show(case: str, runs: Mapping[str, networks.Run]) -> None:
    times = least_times(runs)
    print(f"{case}: " + ", ".join(f"{name} {1e3 * seconds:.3g} ms" for name, seconds in times.items()), flush=True)


def placed(array: np.ndarray) -> View:
    """Return an array's values at the beginning of a cache line, as the engine lays constants out."""
    made = aligned(array.nbytes).view(array.dtype)
    made[:] = array.ravel()
    return contiguous(Pointer(made), array.shape, f"{array.dtype.kind}{array.dtype.itemsize}")


def products() -> None:
    """Return products of bytes by constant bytes, with float results, on one thread."""
    most = peak_of_bytes()
    for m, k, n in PRODUCTS:
        rng = np.random.default_rng(0)
        x = rng.integers(0, 256, (m, k)).astype("u1")
        shape = ByteShape(k, 1, m, n, host_target())
        filters = rng.integers(-128, 128, (n, k, 1, 1)).astype("i1")
        arrays = (
            pack_conv8(shape, filters),
            pack_numbers(shape, np.zeros(n, "i4")),
            pack_numbers(shape, np.ones(n, "f4")),
        )
        op = PackedIntegerMatmul(shape, 0, Result("f4"))
        views = [placed(a) for a in (x, *arrays)]
        out = contiguous(Pointer(aligned(4 * m * n)), (m, n), "f4")
        run = prepare_calls(op.calls(out, *views, workspace=workspace(op.rows.spec.nbytes)))
        seconds = min(min(times) for times in alternate({"": run}).values())
        rate = 2 * m * k * n / seconds / 1e9
        print(f"{m} x {k} x {n}: {1e6 * seconds:.1f} us, {rate:.0f} Gop/s, {rate / most:.0%} of the peak")


def text(row: Row) -> str:
    """Return a line of the table: milliseconds, and the speed relative to the others."""
    times = " | ".join(f"{1e3 * row.times[n].median:.3g}" if n in row.times else "-" for n in ENGINES)
    ratios = " | ".join(f"{row.ratios[n]:.2f}" if n in row.ratios else "-" for n in ENGINES[1:])
    return f"| {row.case:20} | {row.threads} | {times} | {ratios} | {row.error.get('onnxruntime', 0.0):.0e} |"


def main(words: list[str]) -> None:
    for name, run in {"products": products, "dynamic": dynamic, "encoder": encoder, "nibbles": nibbles}.items():
        if name in words:
            run()
            return
    names = [x for x in NETWORKS if x in words] or NETWORKS
    forms = [x for x in FORMS if x in words] or FORMS
    if "processor" in words:
        processor(names, forms)
        return
    threads = [n for n in (1, 2) if str(n) in words] or (1, 2)
    print("| case | threads | ours, ms | onnxruntime | our floats | x onnxruntime | x our floats | difference |")
    print("|---|---|---|---|---|---|---|---|")
    for form in forms:
        for name in names:
            for count in threads:
                print(text(compare("benchmarks.quantised", f"{name} {form}", ENGINES, count)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
