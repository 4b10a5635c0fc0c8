"""Train ResNet-20 on CIFAR-10's pictures by four processes: the weights are the same by any number of them.

    python examples/train_cluster.py [--scheduler tcp://host:8786] [--data folder of data_batch_1.bin …]

Without --data it takes the pictures of the shared data, and where there are none, pictures that it makes.
"""

import argparse
import tarfile
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

import nn
from cgraph.formats.pictures import read_rgb

OUT = Path("out")
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "cifar10" / "cifar10_test_100_per_class.tar"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train ResNet-20 by several processes.")
    parser.add_argument("--scheduler", help="of a dask cluster; otherwise processes are started here")
    parser.add_argument("--workers", type=int, default=4, help="processes to start")
    parser.add_argument("--data", type=Path, help="a folder of CIFAR-10's binary files")
    parser.add_argument("--epochs", type=float, default=2.0)
    return parser.parse_args()


def pictures(folder: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Images ``[n, 3, 32, 32]`` from -1 to 1 and their classes, in a fixed random order."""
    if folder is not None:
        files = sorted(folder.glob("*_batch_*.bin"))
        records = np.concatenate([np.fromfile(path, np.uint8) for path in files]).reshape(-1, 3073)
        pixels, classes = records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0]
    else:
        pixels, classes = shared() if SHARED.exists() else made(2000)
    order = np.random.default_rng(0).permutation(len(classes))
    return pixels[order].astype(np.float32) / 127.5 - 1, classes[order].astype(np.int32)


def shared() -> tuple[np.ndarray, np.ndarray]:
    """1,000 of CIFAR-10's test pictures, in a folder for each class."""
    with tarfile.open(SHARED) as tar:
        files = [x for x in tar.getmembers() if x.name.endswith(".jpg")]
        pixels = np.stack([np.asarray(read_rgb(tar.extractfile(x), x.name)).transpose(2, 0, 1) for x in files])
    names = [x.name.split("/")[-2] for x in files]
    return pixels, np.unique(names, return_inverse=True)[1]


def made(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Stripes, whose direction is the class, in noise."""
    rng = np.random.default_rng(1)
    classes = rng.integers(0, 10, count)
    angle, (rows, columns) = (classes * np.pi / 10)[:, None, None], np.mgrid[:32, :32]
    stripes = np.sin(0.8 * (rows * np.sin(angle) + columns * np.cos(angle)) + rng.uniform(0, 6, (count, 1, 1)))
    return np.clip(128 + 60 * stripes[:, None] + rng.normal(0, 40, (count, 3, 32, 32)), 0, 255), classes


def main() -> None:
    given = arguments()
    images, classes = pictures(given.data)
    model, held_out = nn.models.resnet20(0), len(images) // 10
    data = nn.Loader((images[held_out:], classes[held_out:]), batch=128, change=nn.random_shift(4))
    local = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}  # which nobody else can reach
    cluster = given.scheduler or LocalCluster(n_workers=given.workers, **local)
    with Client(cluster) as client:
        print(f"{len(client.nthreads())} workers, {data.steps_per_epoch} steps an epoch, 8 shards a step")
        check = {"validation": (images[:held_out], classes[:held_out]), "metrics": [nn.metrics.accuracy()]}
        kept = nn.Checkpoint(OUT / "cluster.json", epochs=1)
        history = nn.data_parallel(client, model, data, epochs=given.epochs, checkpoint=kept, **check)
    nn.save_weights(OUT / "resnet20.safetensors", model)
    print(f"loss {history.loss[0]:.3f} -> {history.loss[-1]:.3f}; right", history.validation_metrics["accuracy"][-1:])


if __name__ == "__main__":
    main()
