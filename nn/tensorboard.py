"""TensorBoard: a callback that writes TensorBoard's event files."""

import time
from pathlib import Path
from typing import Any

from cgraph.system.extras import missing_package
from nn.callbacks import Epoch


class TensorBoard:
    """A callback that writes the figures of every epoch as event files into `folder`. Needs tensorboardX (extra
    `tensorboard`). Changes: opens its file at the first epoch.

    The steps are those of training. A resumed run hides the older figures of the steps that it repeats.

    Raises
        UnavailableError: tensorboardX is not installed
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from tensorboardX.event_file_writer import EventsWriter
            from tensorboardX.proto.event_pb2 import Event
        except ImportError:
            raise missing_package("tensorboardX", "TensorBoard's event files") from None
        self.folder = Path(folder)
        self._writer_class, self._event_class = EventsWriter, Event
        self._writer: Any = None

    def __call__(self, epoch: Epoch) -> None:
        """Write the figures of an epoch; arrays are left out."""
        event = self._event_class(step=epoch.step, wall_time=time.time())
        if self._writer is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._writer = self._writer_class(str(self.folder / "events"), f".{epoch.step}")
            start = self._event_class(step=epoch.step, wall_time=event.wall_time)
            start.session_log.status = start.session_log.START  # hides what earlier runs wrote for later steps
            self._writer.write_event(start)
        for name, figure in epoch.figures.items():
            if not figure.ndim:
                event.summary.value.add(tag=name.replace(" ", "_"), simple_value=float(figure))
        self._writer.write_event(event)
        self._writer.flush()  # tensorboardX's SummaryWriter leaves figures in a queue, which a killed run loses
