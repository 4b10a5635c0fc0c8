"""The constructs of every reader."""

from collections.abc import Sequence

from benchmarks.fuzz import constructs, constructs_of_graphs, constructs_of_pictures
from benchmarks.fuzz.amplify import Construct

CONSTRUCTS: dict[str, Sequence[Construct]] = {
    "onnx": constructs_of_graphs.ONNX,
    "tflite": constructs_of_graphs.TFLITE,
    "h5": constructs_of_graphs.KERAS,
    "h5_apart": constructs_of_graphs.KERAS,
    "h5_archive": constructs_of_graphs.KERAS_ARCHIVE,
    "h5_archive_apart": constructs_of_graphs.KERAS_ARCHIVE,
    "saved": constructs_of_graphs.SAVED,
    "safetensors": constructs.SAFETENSORS,
    "npz": constructs.NPZ,
    "npy": constructs.NPY,
    "torch": constructs.TORCH,
    "darknet": constructs.DARKNET,
    "darknet_drawn": constructs.DARKNET,
    "darknet_boxes": constructs.DARKNET_BOXES,
    "darknet_weights": constructs.WEIGHTS,
    "csv": constructs.CSV,
    "picture": constructs_of_pictures.PICTURE,
    "sound": constructs.SOUND,
    "coco": constructs.COCO,
}
