"""Keras networks in NumPy and float64, channels last, by a walk of their own: what the graph is compared with."""

import numpy as np

from cgraph.formats.keras_h5 import KerasFile


def evaluate_keras(file: KerasFile, images: np.ndarray) -> np.ndarray:
    """The result of the last layer for images ``[n, h, w, c]``; layers are in order in the files at hand."""
    known: dict[str, np.ndarray] = {}
    for layer in file.config["config"]["layers"]:
        weights = {k: v.astype(np.float64) for k, v in file.weights.get(layer["name"], {}).items()}
        xs = [known[entry[0]] for entry in layer["inbound_nodes"][0]] if layer["inbound_nodes"] else []
        x = images.astype(np.float64) if not xs else evaluate_layer(layer, weights, xs)
        known[layer["name"]] = activate(x, layer["config"].get("activation"))
    return known[layer["name"]]


def evaluate_layer(layer: dict, w: dict, xs: list[np.ndarray]) -> np.ndarray:
    kind, config, x = layer["class_name"], layer["config"], xs[0]
    if kind in ("Conv2D", "DepthwiseConv2D"):
        kernel = w["kernel"] if kind == "Conv2D" else w["depthwise_kernel"]
        seen = windows(x, kernel.shape[:2], config, 0.0)  # [n, p, q, c, r, s]
        rule = "npqcrs,rsck->npqk" if kind == "Conv2D" else "npqcrs,rsck->npqc"
        return np.einsum(rule, seen, kernel, optimize=True) + w.get("bias", 0)
    if kind == "BatchNormalization":
        return (x - w["moving_mean"]) / np.sqrt(w["moving_variance"] + config["epsilon"]) * w["gamma"] + w["beta"]
    if kind == "Dense":
        return x @ w["kernel"] + w["bias"]
    if kind == "AveragePooling2D":
        return windows(x, config["pool_size"], config, np.nan).mean((-1, -2))
    if kind == "GlobalAveragePooling2D":
        return x.mean((1, 2))
    if kind in ("Flatten", "Reshape"):
        return x.reshape(len(x), *(config["target_shape"] if kind == "Reshape" else (-1,)))
    if kind == "Add":
        return sum(xs)
    assert kind in ("Activation", "Dropout"), kind
    return x


def windows(x: np.ndarray, size, config: dict, fill: float) -> np.ndarray:
    """What windows see: ``[n, p, q, c, r, s]``."""
    pads = [(0, 0)]
    for n, window, stride in zip(x.shape[1:3], size, config["strides"]):
        total = max((-(-n // stride) - 1) * stride + window - n, 0) if config["padding"] == "same" else 0
        pads.append((total // 2, total - total // 2))
    x = np.pad(x, [*pads, (0, 0)], constant_values=fill)
    seen = np.lib.stride_tricks.sliding_window_view(x, tuple(size), (1, 2))
    return seen[:, :: config["strides"][0], :: config["strides"][1]]


def activate(x: np.ndarray, name: str | None) -> np.ndarray:
    if name == "relu":
        return np.maximum(x, 0)
    if name == "softmax":
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)
    assert name in (None, "linear"), name
    return x
