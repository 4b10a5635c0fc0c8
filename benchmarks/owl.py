"""Figure 6 of the report on Owl's computation graph: seconds to build and to evaluate, and memory, compared with
torch.

    python -m benchmarks.owl [inception_v3 | resnet50 | mnist | mask_rcnn]

*cgraph* is the planned graph; *without* runs the graph without passes and with bytes of its own for every value
(``memory="one_each", passes=False``), as the report does without a computation graph; *in bands* has the trunk's large
images in bands of rows. Each measurement is a process of its own with one thread. Memory is the largest resident size
of the whole process, imports included, as in the report. Building consists of graph, passes, plan and cached kernels,
in processor seconds, which a busy machine affects less.

Pictures have 299 × 299 pixels, Mask R-CNN's 768 × 768. MNIST is the training of Owl's example lazy_mnist: a tenth of an
epoch, which is 60 steps of 100 pictures, with all 60,000 pictures in memory. Of Mask R-CNN, torch computes only the
dense part (`benchmarks.torch_mask_rcnn`): its figures there are lower bounds. Owl's figures are those of the report,
from a laptop with an i5-6300HQ.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fresh import Figures, child, compared, seconds_of
from benchmarks.start import peak_nbytes
from cgraph import Record

ROUNDS, THREADS, BANDS, SIDE = 1, 1, 3136, 299
EVALUATIONS, SECONDS = 30, 6.0  # runs of a process
STEPS, BATCH, PICTURES = 60, 100, 60_000
FOLDER = Path(__file__).resolve().parents[1] / "out" / "benchmarks"
WITHOUT: dict[str, Any] = {"memory": "one_each", "passes": False}
Run = Callable[[], Any]


class Printed(Record):
    """A row of the report: seconds and MB, with a computation graph and without."""

    seconds_without: float
    build: float
    seconds: float
    memory_without: float
    memory: float


OWL = {
    "inception_v3": Printed(0.5649, 0.1066, 0.2275, 625.76, 230.10),
    "resnet50": Printed(0.7933, 0.1395, 0.6090, 1309.9, 397.07),
    "mnist": Printed(20.422, 0.1436, 10.920, 3685.3, 895.32),
    "mask_rcnn": Printed(11.538, 0.3630, 8.379, 6483.4, 870.48),
}


def ways(row: str) -> tuple[str, ...]:
    return ("cgraph", *(["in bands"] if row == "mask_rcnn" else []), "without", "torch")


def measure(row: str, way: str) -> Figures:
    """Measure in this process. Weights exist before building begins: ours in a mapped file."""
    build = (torch_build if way == "torch" else cgraph_build)(row, way)
    start = time.process_time()
    run = build()
    built = time.process_time() - start
    return {"build": built, **seconds_of(run, EVALUATIONS, SECONDS), "peak": float(peak_nbytes())}


# -- cgraph ------------------------------------------------------------------------------------------------------------


def cgraph_build(row: str, way: str) -> Callable[[], Run]:
    import nn

    options: dict[str, Any] = {"threads": THREADS, **(WITHOUT if way == "without" else {})}
    if way == "in bands":
        options["bands"] = BANDS
    if row == "mnist":
        x, y = digits()
        return lambda: cgraph_training(x, y, options)
    model = nn.load_weights(file_of(row), network(row, None), mapped=True)
    image = picture(row)
    given = [image, window_of(image)] if row == "mask_rcnn" else [image]
    samples = [nn.Sample(x.shape[1:]) for x in given]

    def build() -> Run:
        predict = nn.compile(model, 1, samples, **options)
        return lambda: predict(*given)

    return build


def network(row: str, weights: int | None) -> Any:
    import nn
    from nn.models.mask_rcnn import mask_rcnn_owl

    return mask_rcnn_owl(weights) if row == "mask_rcnn" else getattr(nn.models, row)(weights)


def file_of(row: str) -> Path:
    return FOLDER / f"{row}.safetensors"


def write_weights(row: str) -> None:
    """Write the file of a network, once."""
    import nn

    if row != "mnist" and not file_of(row).exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        nn.save_weights(file_of(row), network(row, 0))


def picture(row: str) -> np.ndarray:
    side = 768 if row == "mask_rcnn" else SIDE
    return np.random.default_rng(0).normal(size=(1, 3, side, side)).astype(np.float32)


def window_of(image: np.ndarray) -> np.ndarray:
    return np.array([[0, 0, *image.shape[2:]]], np.float32)


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return as many pictures as MNIST has."""
    rng = np.random.default_rng(0)
    return rng.random((PICTURES, 1, 28, 28), np.float32), rng.integers(0, 10, PICTURES).astype(np.int32)


def cgraph_training(x: np.ndarray, y: np.ndarray, options: dict[str, Any]) -> Run:
    import nn

    optimiser = nn.Optimiser(nn.optim.Adagrad(), nn.optim.Const(0.005))
    step = nn.training_step(nn.models.lenet(), nn.losses.cross_entropy, optimiser, (x[:BATCH], y[:BATCH]), **options)
    return lambda: [step(x[i : i + BATCH], y[i : i + BATCH]) for i in range(0, STEPS * BATCH, BATCH)]


# -- torch -------------------------------------------------------------------------------------------------------------


def torch_build(row: str, way: str) -> Callable[[], Run]:
    import torch

    torch.set_num_threads(THREADS)
    if row == "mnist":
        x, y = map(torch.from_numpy, digits())
        return lambda: torch_training(torch, x, y.long())
    if row == "mask_rcnn":
        from benchmarks.torch_mask_rcnn import inference

        model = network(row, 0)
        config, image = model.config, picture(row)
        return lambda: inference(model, image, config.after, config.detections, THREADS)
    return lambda: torchvision_run(torch, row)


def torchvision_run(torch: Any, row: str) -> Run:
    from tests.support import torchvision

    options = {"aux_logits": False, "init_weights": False} if row == "inception_v3" else {}
    model = getattr(torchvision.load().models, row)(**options).eval()
    image = torch.from_numpy(picture(row))

    def run() -> Any:
        with torch.inference_mode():
            return model(image)

    return run


def torch_training(torch: Any, x: Any, y: Any) -> Run:
    from benchmarks.training import torch_lenet

    model = torch_lenet()
    optimiser = torch.optim.Adagrad(model.parameters(), 0.005)

    def run() -> None:
        for i in range(0, STEPS * BATCH, BATCH):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(x[i : i + BATCH]), y[i : i + BATCH]).backward()
            optimiser.step()

    return run


# -- the table ---------------------------------------------------------------------------------------------------------


def main() -> None:
    if child(measure):
        return
    print("| row | way | build s | evaluate s | processor s | memory MB |\n|---|---|---|---|---|---|")
    for row in sys.argv[1:] or OWL:
        write_weights(row)
        for way, found in compared("benchmarks.owl", row, ways(row), ROUNDS).items():
            times = f"{found['build']:.2f} | {found['seconds']:.3f} | {found['processor']:.3f}"
            print(f"| {row} | {way} | {times} | {found['peak'] / 1e6:.0f} |", flush=True)
        printed = OWL[row]
        print(f"| {row} | Owl, printed | {printed.build} | {printed.seconds} | | {printed.memory} |")
        print(
            f"| {row} | Owl without, printed | | {printed.seconds_without} | | {printed.memory_without} |", flush=True
        )


if __name__ == "__main__":
    main()
