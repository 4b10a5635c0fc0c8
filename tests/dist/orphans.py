"""A preload of dask's workers: they end with the process that started them, however it ends."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def dask_setup(worker: object) -> None:
    """Ask Linux to kill this process when its parent is gone; also a worker that is stopped or computes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == 1:
            os._exit(1)  # the parent was gone before
