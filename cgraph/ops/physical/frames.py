"""Volumes as frames: images ``[n * d, c, h, w]``, one for each depth of each volume ``[n, c, d, h, w]``.

Blocked frames of one volume are adjacent in memory, so `t` neighbours together are one image of `t` times as many
channels. A convolution over volumes is thus one over images that overlap, with the kernels of two dimensions.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.mapped import copy_to
from cgraph.kernels.move.calls import copy_calls, fill_calls
from cgraph.kernels.pool.calls import pool_calls
from cgraph.kernels.target import Target
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.window import Window
from cgraph.ops.conv import Conv2d
from cgraph.record import Record, replace


class Depth(Record):
    """Windows along the depth of frames.

    Fields
        volumes: number of volumes
        taps: frames of a window, all inside the volume
        stride: frames from one window to the next
    """

    volumes: int
    taps: int
    stride: int = 1

    def frames(self, n: int) -> int:
        """Return the frames of a volume, of `n` in all."""
        return n // self.volumes

    def windows(self, n: int) -> int:
        """Return the windows of a volume, of `n` frames in all."""
        return max((self.frames(n) - self.taps) // self.stride + 1, 0)

    def stack(self, x: np.ndarray, channels: int) -> np.ndarray:
        """Return frames as images of windows ``[windows, taps * channels, h, w]``; channels beyond `c` are zero."""
        n, c, *pixels = x.shape
        wide = np.zeros((self.volumes, self.frames(n), channels, *pixels), x.dtype)
        wide[:, :, :c] = x.reshape(self.volumes, -1, c, *pixels)
        first = np.arange(self.windows(n)) * self.stride
        return wide[:, first[:, None] + np.arange(self.taps)].reshape(-1, self.taps * channels, *pixels)

    def stacked(self, x: Any, volume: int) -> Any:
        """Return the windows of one volume as images that overlap."""
        if isinstance(x, View):
            n, c, *pixels = x.shape
            frame, plane, *rest = x.strides
            if frame != c * plane:
                raise ValueError(f"frames of strides {x.strides} are not adjacent; copy them first")
            shape = (self.windows(n), self.taps * c, *pixels)
            at = x.at + volume * self.frames(n) * frame
            return replace(x, at=at, shape=shape, strides=(self.stride * frame, plane, *rest))
        if x.image != x.blocks * x.plane:
            raise ValueError(f"frames that are {x.image} elements apart are not adjacent; copy them first")
        at = x.at + volume * self.frames(x.n) * x.image * x.itemsize
        steps = self.stride * x.image, x.plane, x.row
        return replace(x, at=at, n=self.windows(x.n), c=self.taps * x.blocks * x.lanes, steps=steps)

    def results(self, x: BlockedView, volume: int) -> BlockedView:
        """Return the images of one volume among those of all."""
        count = x.n // self.volumes
        return replace(x, at=x.at + volume * count * x.image * x.itemsize, n=count, steps=(x.image, x.plane, x.row))


def stack_filters(filters: np.ndarray, channels: int) -> np.ndarray:
    """Return filters ``[k, c, t, r, s]`` as those of stacked frames ``[k, t * channels, r, s]``."""
    k, c, t, r, s = filters.shape
    out = np.zeros((k, t, channels, r, s), filters.dtype)
    copy_to(out[:, :, :c], filters.transpose(0, 2, 1, 3, 4))
    return out.reshape(k, t * channels, r, s)


class FramesConv(Op):
    """Convolution of volumes as frames ``[n * d, c, h, w]`` with filters ``[k, c, t, r, s]``; see Conv3d.

    Fields
        stride, pad, dilation, groups: of the frames; groups is 1
        depth: the windows along the depth, without padding
    """

    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    depth: Depth

    def infer(self, x: Spec, f: Spec) -> Spec:
        if f.ndim != 5 or f.shape[2] != self.depth.taps or x.ndim != 4 or f.shape[1] != x.shape[1]:
            raise ShapeError(f"filters {f} do not fit frames {x} and {self.depth}")
        windows = self.depth.volumes * self.depth.windows(x.shape[0])
        return self.flat.infer(
            Spec((windows, self.depth.taps * x.shape[1], *x.shape[2:]), x.dtype),
            Spec((f.shape[0], self.depth.taps * f.shape[1], *f.shape[3:]), f.dtype),
        )

    @property
    def flat(self) -> Conv2d:
        """The convolution of stacked frames."""
        return Conv2d(self.stride, self.pad, self.dilation, 1)

    def meaning(self, x, f):
        return self.flat.meaning(self.depth.stack(x, x.shape[1]), stack_filters(f, x.shape[1]))


class ToFrames(Op):
    """Volumes ``[n, c, d, h, w]`` as frames ``[n * d, c, h, w]``."""

    def infer(self, x: Spec) -> Spec:
        n, c, d, *pixels = x.shape
        return Spec((n * d, c, *pixels), x.dtype)

    def meaning(self, x):
        n, c, d, *pixels = x.shape
        return x.swapaxes(1, 2).reshape(n * d, c, *pixels)

    def work(self, target: Target, x: Spec) -> Work:
        n = x.shape[0]

        def calls(out: View, x: View) -> list[Call]:
            return copy_calls(target, with_depth(out, n), swap_depth(x))

        return Work(calls)


class FromFrames(Op):
    """Frames ``[n * d, c, h, w]`` as volumes ``[n, c, d, h, w]``.

    Fields
        volumes: n
    """

    volumes: int

    def infer(self, x: Spec) -> Spec:
        n, c, *pixels = x.shape
        return Spec((self.volumes, c, n // self.volumes, *pixels), x.dtype)

    def meaning(self, x):
        return np.ascontiguousarray(x.reshape(self.volumes, -1, *x.shape[1:]).swapaxes(1, 2))

    def work(self, target: Target, x: Spec) -> Work:
        def calls(out: View, x: View) -> list[Call]:
            return copy_calls(target, swap_depth(out), with_depth(x, self.volumes))

        return Work(calls)


class PadFrames(Op):
    """Frames with frames of zeros before and after each volume.

    Fields
        volumes: number of volumes
        before, after: frames of zeros
    """

    volumes: int
    before: int
    after: int

    def infer(self, x: Spec) -> Spec:
        return Spec((x.shape[0] + self.volumes * (self.before + self.after), *x.shape[1:]), x.dtype)

    def meaning(self, x):
        frames = x.reshape(self.volumes, -1, *x.shape[1:])
        edges = [(0, 0), (self.before, self.after), *[(0, 0)] * (x.ndim - 1)]
        return np.pad(frames, edges).reshape(-1, *x.shape[1:])

    def work(self, target: Target, x: Spec) -> Work:
        return Work(lambda out, x: self.calls(target, out, x))

    def calls(self, target: Target, out: View, x: View) -> list[Call]:
        to, source = with_depth(out, self.volumes), with_depth(x, self.volumes)
        end = self.before + source.shape[1]
        calls = copy_calls(target, part_of(to, self.before, end), source)
        for first, stop in ((0, self.before), (end, to.shape[1])):
            calls += fill_calls(target, part_of(to, first, stop), 0) if stop > first else []
        return calls


class PoolFrames(Op):
    """The largest or the mean element of windows along the depth of frames.

    Fields
        volumes: number of volumes
        frames: frames of a volume of the result
        kind: ``max`` or ``mean``
        window, stride, pad, dilation, count_pad: as in Pool and AvgPool; `pad` is the frames before and after
    """

    volumes: int
    frames: int
    kind: str
    window: int
    stride: int
    pad: tuple[int, int]
    dilation: int
    count_pad: bool = False

    def infer(self, x: Spec) -> Spec:
        return Spec((self.volumes * self.frames, *x.shape[1:]), x.dtype)

    def meaning(self, x):
        volumes = x.reshape(self.volumes, -1, *x.shape[1:])
        size, reduce = volumes.shape[1], np.max if self.kind == "max" else np.sum
        parts = []
        for i in range(self.frames):
            at = i * self.stride - self.pad[0] + np.arange(self.window) * self.dilation
            inside = at[(at >= 0) & (at < size)]
            part = reduce(volumes[:, inside], axis=1)
            count = ((at >= -self.pad[0]) & (at < size + self.pad[1])).sum() if self.count_pad else len(inside)
            parts.append(part if self.kind == "max" else part / np.asarray(count, x.dtype))
        return np.stack(parts, 1).reshape(-1, *x.shape[1:]).astype(x.dtype)

    def work(self, target: Target, x: Spec) -> Work:
        return Work(lambda out, x: self.calls(target, out, x))

    def calls(self, target: Target, out: View, x: View) -> list[Call]:
        """Pool images whose rows are whole frames."""
        window = Window((self.window, 1), (self.stride, 1), (self.pad[0], 0, self.pad[1], 0), (self.dilation, 1))
        lanes = target.channels_of(x.dtype)
        elements = x.size // x.shape[0] if x.shape[0] else 0
        to, source = (rows_of_frames(v, self.volumes, elements, lanes) for v in (out, x))
        return list(pool_calls(target, to, source, window, self.kind, self.count_pad).calls)


def rows_of_frames(x: View, volumes: int, elements: int, lanes: int) -> BlockedView | View:
    """Return contiguous frames as images whose rows are frames: in blocks of lanes if they divide the elements."""
    frames = x.shape[0] // volumes
    if elements % lanes:
        size = x.itemsize
        strides = (frames * elements * size, frames * elements * size, elements * size, size)
        return replace(x, shape=(volumes, 1, frames, elements), strides=strides)
    steps = frames * elements, frames * elements, elements
    return BlockedView(x.at, volumes, lanes, frames, elements // lanes, lanes, dtype=x.dtype, steps=steps)


def with_depth(x: View, volumes: int) -> View:
    """Return frames ``[n * d, ...]`` as ``[n, d, ...]``."""
    frames = x.shape[0] // volumes
    return replace(x, shape=(volumes, frames, *x.shape[1:]), strides=(frames * x.strides[0], *x.strides))


def swap_depth(x: View) -> View:
    """Return volumes ``[n, c, d, ...]`` as ``[n, d, c, ...]``."""
    n, c, d, *pixels = x.shape
    to_n, to_c, to_d, *steps = x.strides
    return replace(x, shape=(n, d, c, *pixels), strides=(to_n, to_d, to_c, *steps))


def part_of(x: View, first: int, stop: int) -> View:
    """Return the elements ``first .. stop`` along axis 1."""
    shape = (x.shape[0], stop - first, *x.shape[2:])
    return replace(x, at=x.at + first * x.strides[1], shape=shape)


def volumes_of(x: View, volumes: int) -> Sequence[View]:
    """Return volumes ``[n, c, d, h, w]``, one by one, as plain images ``[d, c, h, w]``."""
    swapped = swap_depth(x)
    return [
        replace(swapped, at=swapped.at + i * swapped.strides[0], shape=swapped.shape[1:], strides=swapped.strides[1:])
        for i in range(volumes)
    ]
