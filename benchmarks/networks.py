"""Table 1: whole networks with random weights, the same in all engines by ONNX files.

python -m benchmarks.networks [networks] [engines] [1|2]       one image; resnet18@8 for 8 images, which cgraph computes
                                                               one by one, resnet18@8/4 four at a time
python -m benchmarks.networks processor [networks] [engines]   the same by processor time of one thread
python -m benchmarks.networks bf16 int8 ...                    rows of these precisions instead of float32: cgraph's
                                                               precision="bf16" beside openvino as it comes, and 8-bit
                                                               files of onnxruntime's quantiser in each engine
"""

import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import cgraph as cg
import nn
from benchmarks.byte_networks import efficientnet_b0, unet
from benchmarks.fpn import fpn
from benchmarks.peers import Run, onnxruntime_run, openvino_run
from benchmarks.runner import PROCESSOR, ROUNDED, Absent, precision_of, print_table
from cgraph.formats.onnx import load, serialised
from nn.compile import freeze
from nn.layer import Layer

ENGINES = ("cgraph", "onnxruntime", "openvino", "ncnn")
NETWORKS: dict[str, Callable[..., Layer]] = {
    "resnet18": nn.models.resnet18,
    "resnet50": nn.models.resnet50,
    "resnet152": nn.models.resnet152,
    "vgg16": nn.models.vgg16,
    "inception_v3": nn.models.inception_v3,
    "mobilenet_v1": nn.models.mobilenet_v1,
    "mobilenet_v2": nn.models.mobilenet_v2,
    "squeezenet1_1": nn.models.squeezenet1_1,
    "densenet201": nn.models.densenet201,
    "resnet101_fpn": fpn,
    "efficientnet_b0": efficientnet_b0,
    "unet": unet,
}
FOLDER = Path(__file__).resolve().parents[1] / "out" / "benchmarks"


def image_of(model: Layer, batch: int = 1) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((batch, *model.samples[0].shape), np.float32)


def named(case: str) -> tuple[str, int]:
    """Return the network and the number of images of a case."""
    name, _, batch = precision_of(case)[0].partition("/")[0].partition("@")
    return name, int(batch or 1)


def exported(case: str) -> Path:
    """Return the network as an ONNX file, written once and by rename, since several workers may write it at once."""
    path = FOLDER / f"{precision_of(case)[0].partition('/')[0]}.onnx"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        name, batch = named(case)
        model = freeze(NETWORKS[name](0))
        x = cg.Var((batch, *model.samples[0].shape), name="image")
        found = model(x)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_bytes(serialised(found if isinstance(found, tuple) else [found], [x]))
        os.replace(temporary, path)
    return path


def prepare(engine: str, case: str, threads: int) -> Run:
    (name, batch), (plain, precision) = named(case), precision_of(case)
    if precision == "int8":
        return int8_run(engine, name, threads)
    if engine == "cgraph":
        options = {"precision": precision} if precision else {}
        return cgraph_run(name, threads, batch, int(plain.partition("/")[2] or 1), **options)
    if precision and engine != "openvino":
        raise Absent("it computes in float32 only, or bfloat16 is not its default")
    if engine == "ncnn":
        return ncnn_run(case, threads)
    feeds = {"image": image_of(NETWORKS[name](None), batch)}
    if precision:
        return openvino_run(str(exported(case)), feeds, threads, as_it_comes=True)
    return PEERS[engine](str(exported(case)), feeds, threads)


def cgraph_run(name: str, threads: int, batch: int = 1, at_once: int = 1, **options: Any) -> Run:
    model = NETWORKS[name](0)
    images = image_of(model, batch)
    predict = nn.compile(model, batch=at_once, threads=threads, **options)
    return lambda: predict(images)


def int8_run(engine: str, name: str, threads: int) -> Run:
    """Return a run of the 8-bit file that onnxruntime's quantiser writes, in any engine that reads it."""
    if engine == "ncnn":
        raise Absent("it does not read 8-bit ONNX files")
    path = import_module("benchmarks.quantised").quantised(f"{name} u8s8")
    feeds = {"image": image_of(NETWORKS[name](None))}
    if engine != "cgraph":
        return PEERS[engine](str(path), feeds, threads)
    function = load(path).compile(threads=threads)
    return lambda: function(feeds["image"])


def ncnn_run(name: str, threads: int) -> Run:
    import ncnn

    if named(name)[1] > 1:
        raise Absent("it computes one image at a time")
    param, weights = converted(name)
    net = ncnn.Net()
    net.opt.num_threads = threads
    net.opt.use_bf16_storage = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    net.opt.use_fp16_packed = net.opt.use_int8_inference = False
    if net.load_param(str(param)) or net.load_model(str(weights)):
        raise Absent(f"ncnn cannot read {param.name}")
    array = image_of(NETWORKS[name](None))[0]
    image = ncnn.Mat(array).clone()  # the first Mat only borrows the array
    results = net.output_names()

    def run() -> list[np.ndarray]:
        extractor = net.create_extractor()
        extractor.input("in0", image)
        return [np.array(extractor.extract(x)[1]) for x in results]

    return run


def converted(name: str) -> tuple[Path, Path]:
    """Return the network converted for ncnn by pnnx."""
    source = exported(name)
    found = source.with_suffix(".ncnn.param"), source.with_suffix(".ncnn.bin")
    if not all(x.exists() for x in found):
        program = Path(sys.executable).parent / "pnnx"
        if not program.exists():
            raise Absent("pnnx, which converts ONNX for ncnn, is not installed")
        subprocess.run([program, source.name, "fp16=0"], cwd=FOLDER, check=False, capture_output=True)
    if not all(x.exists() for x in found):
        raise Absent(f"pnnx cannot convert {source.name}")
    return found


PEERS = {"onnxruntime": onnxruntime_run, "openvino": openvino_run}


def main(words: list[str]) -> None:
    names = [x for x in words if named(x)[0] in NETWORKS] or list(NETWORKS)
    precisions = [x for x in ROUNDED if x in words]
    names = [f"{name} {x}" for name in names for x in precisions] or names
    engines = [x for x in ENGINES if x in words] or ENGINES
    if "processor" in words:
        print_table("benchmarks.networks", names, engines, (1,), PROCESSOR)
    else:
        print_table("benchmarks.networks", names, engines, [n for n in (1, 2) if str(n) in words] or (1, 2))


if __name__ == "__main__":
    main(sys.argv[1:])
