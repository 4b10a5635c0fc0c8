"""Conversion of pictures of any size to a network's input: resized, padded and normalised."""

import numpy as np

import cgraph as cg
from cgraph import InputError, Record
from nn.models.mask_rcnn.config import Config


class NetworkView(Record, eq=False):
    """A picture in the size of a network's input.

    Fields
        pixels: red, green and blue from 0 to 255, as floats ``[3, *config.image]``; zeros around the picture
        window: position of the picture in it: ``(x0, y0, x1, y1)``, ends excluded
        size: rows and columns of the original picture
    """

    pixels: np.ndarray
    window: tuple[int, int, int, int]
    size: tuple[int, int]

    def operands(self, config: Config) -> tuple[np.ndarray, np.ndarray]:
        """Return image ``[3, h, w]`` and window ``[4]`` as operands of `MaskRCNN`."""
        return normalise(self.pixels[None], [self.window], config)[0], as_box(self.window, config)


def network_view(picture: np.ndarray, config: Config) -> NetworkView:
    """Return a picture uint8 ``[h, w, 3]`` resized to fit: at the upper left by torchvision's rule, else centred.

    Raises
        InputError: not an RGB picture
    """
    if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8 or 0 in picture.shape:
        raise InputError(f"a picture is {picture.dtype}{list(picture.shape)}. Pass uint8[rows, columns, 3].")
    size, whole = picture.shape[:2], config.image
    share = min(n / m for n, m in zip(whole, size))
    rows, columns = (max(1, min(n, round(m * share))) for n, m in zip(whole, size))
    top, left = (0, 0) if config.is_torchvision else ((whole[0] - rows) // 2, (whole[1] - columns) // 2)
    pixels = np.zeros((3, *whole), np.float32)
    colours = np.ascontiguousarray(picture.transpose(2, 0, 1)[None], np.float32)
    picture_pixels = colours if (rows, columns) == size else resize_images(colours, (rows, columns))
    pixels[:, top : top + rows, left : left + columns] = picture_pixels[0]
    return NetworkView(pixels, (left, top, left + columns, top + rows), (size[0], size[1]))


def resize_images(images: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return float images ``[n, c, h, w]`` resized bilinearly to rows and columns."""
    x = cg.Var(images.shape, images.dtype)
    return cg.compile(cg.resize(x, shape, "linear"), [x])(images)


def normalise(pixels: np.ndarray, windows: "np.ndarray | list", config: Config) -> np.ndarray:
    """Return pixels ``[n, 3, h, w]`` in the network's range; by torchvision's rule 0 outside the windows."""
    mean, deviation = (np.array(x, np.float32)[:, None, None] for x in (config.mean, config.deviation))
    images = (pixels.astype(np.float32) - mean) / deviation
    if config.is_torchvision:
        for image, (left, top, right, bottom) in zip(images, np.asarray(windows, np.int64)):
            image[:, :top], image[:, bottom:], image[:, :, :left], image[:, :, right:] = 0, 0, 0, 0
    return images


def as_box(window: "np.ndarray | tuple", config: Config) -> np.ndarray:
    """Return a window, ends excluded, as a box by the network's rule."""
    return np.asarray(window, np.float32) - np.array([0, 0, config.far, config.far], np.float32)
