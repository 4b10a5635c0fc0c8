"""The 80 classes of COCO, in the numberings of torchvision and matterport."""

NAMES = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow", "elephant",
    "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee", "skis", "snowboard",
    "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard", "tennis racket", "bottle",
    "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple", "sandwich", "orange", "broccoli",
    "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch", "potted plant", "bed", "dining table", "toilet",
    "tv", "laptop", "mouse", "remote", "keyboard", "cell phone", "microwave", "oven", "toaster", "sink", "refrigerator",
    "book", "clock", "vase", "scissors", "teddy bear", "hair drier", "toothbrush",
)  # fmt: skip
UNUSED = (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)
"""Numbers of COCO's own list without objects, which torchvision's numbering has and matterport's has not."""


def in_a_row() -> tuple[str, ...]:
    """Return matterport's 81 names, the background first."""
    return ("background", *NAMES)


def with_gaps() -> tuple[str, ...]:
    """Return torchvision's 91 names, the background first."""
    rest = iter(NAMES)
    return ("background", *("unused" if i in UNUSED else next(rest) for i in range(1, 91)))
