"""Faces from BlazeFace's raw results: boxes and points in picture coordinates; overlapping faces are blended."""

import numpy as np

from cgraph import Record

MOST_SCORE = 100.0


class Face(Record):
    """A face in coordinates from 0 to 1.

    Fields
        box: left, top, right, bottom
        points: x and y of right eye, left eye, nose, mouth, right ear, left ear ``[6, 2]``
        probability: probability of a face
    """

    box: tuple[float, float, float, float]
    points: np.ndarray
    probability: float


def faces_of(
    raw: np.ndarray,
    scores: np.ndarray,
    anchors: np.ndarray,
    pixels: int = 128,
    least: float = 0.75,
    overlap: float = 0.3,
) -> list[Face]:
    """Return the faces of one picture, the most probable first.

    Parameters
        raw, scores: the network's results for the picture, ``[896, 16]`` and ``[896, 1]``
        anchors: centre and size of every anchor ``[896, 4]``
        pixels: width of the network's input, the unit of the raw numbers
        least: minimum probability of a face
        overlap: intersection over union above which two boxes are one face, whose probability is their mean
    Source
        weighted suppression of Bazarevsky et al. 2019, section 3.3
    """
    probability = 1 / (1 + np.exp(-np.clip(scores[:, 0].astype(np.float64), -MOST_SCORE, MOST_SCORE)))
    likely = np.flatnonzero(probability >= least)
    rows = decode_boxes(raw[likely].astype(np.float64) / pixels, anchors[likely])
    probability = probability[likely]
    waiting = np.argsort(-probability, kind="stable")
    faces = []
    while len(waiting):
        same = intersection_over_union(rows[waiting[0], :4], rows[waiting, :4]) > overlap
        same[0] = True
        group = waiting[same]
        weights = probability[group] / probability[group].sum()
        mean = weights @ rows[group]
        box = (float(mean[0]), float(mean[1]), float(mean[2]), float(mean[3]))
        faces.append(Face(box, mean[4:].reshape(6, 2), float(probability[group].mean())))
        waiting = waiting[~same]
    return sorted(faces, key=lambda face: -face.probability)


def decode_boxes(raw: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """Return left, top, right, bottom and points, from 0 to 1 ``[n, 16]``."""
    centre, size = anchors[:, :2], anchors[:, 2:]
    middle = raw[:, :2] * size + centre
    half = raw[:, 2:4] * size / 2
    points = raw[:, 4:].reshape(-1, 6, 2) * size[:, None] + centre[:, None]
    return np.concatenate([middle - half, middle + half, points.reshape(-1, 12)], axis=1)


def intersection_over_union(box: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Return the intersection over union of one box with each of several."""
    sides = np.maximum(np.minimum(box[2:], boxes[:, 2:]) - np.maximum(box[:2], boxes[:, :2]), 0)
    shared = sides.prod(axis=1)
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    return shared / np.maximum((box[2:] - box[:2]).prod() + areas - shared, 1e-12)
