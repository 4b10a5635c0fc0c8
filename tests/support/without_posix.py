"""A process as on Windows, as far as Python's own names go: without the modules, functions and constants of POSIX.

Run as a program: it imports every module of cgraph and nn, compiles a function, runs it on threads, and prints what it
has done. Native code stays that of this machine.
"""

import ctypes
import importlib
import mmap
import os
import pkgutil
import select
import signal
import sys
import tempfile
import time

MODULES = "fcntl grp posix pty pwd readline resource syslog termios tty".split()
FUNCTIONS = """
WCOREDUMP WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED WSTOPSIG WTERMSIG chown chroot confstr
copy_file_range ctermid eventfd fchdir fchmod fchown fdatasync fork forkpty fpathconf fstatvfs getegid geteuid getgid
getgrouplist getgroups getloadavg getpgid getpgrp getpriority getrandom getresgid getresuid getsid getuid getxattr
initgroups killpg lchown listxattr lockf major makedev memfd_create minor mkfifo mknod nice openpty pathconf
pidfd_open pipe2 posix_fadvise posix_fallocate posix_spawn posix_spawnp pread preadv pwrite pwritev readv
register_at_fork removexattr sched_get_priority_max sched_getaffinity sched_getscheduler sched_setaffinity sched_yield
sendfile setegid seteuid setgid setgroups setpgid setpriority setregid setreuid setsid setuid setxattr splice statvfs
sync sysconf sysconf_names tcgetpgrp tcsetpgrp ttyname uname wait wait3 wait4 waitid writev
""".split()
CONSTANTS = """
O_ACCMODE O_ASYNC O_CLOEXEC O_DIRECT O_DIRECTORY O_DSYNC O_LARGEFILE O_NDELAY O_NOATIME O_NOCTTY O_NOFOLLOW O_NONBLOCK
O_PATH O_RSYNC O_SYNC POSIX_FADV_DONTNEED POSIX_FADV_WILLNEED
""".split()
OTHERS = {
    mmap: [x for x in dir(mmap) if x.startswith(("MAP_", "MADV_", "PROT_"))],
    select: [x for x in dir(select) if x.startswith(("poll", "POLL", "epoll", "EPOLL"))],
    signal: "SIGALRM SIGBUS SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGUSR1 alarm setitimer pthread_kill".split(),
    time: [x for x in dir(time) if x.startswith(("CLOCK_", "clock_"))],
}
LOADED = """
PIL.Image asyncio concurrent.futures distributed h5py llvmlite.binding matplotlib.figure multiprocessing mypy.plugin
numba numpy onnx psutil rich.console safetensors.numpy scipy.linalg scipy.optimize scipy.sparse secrets selectors
shutil socket ssl subprocess tempfile tensorboardX threadpoolctl urllib.request uuid webbrowser zipfile
""".split()
PROCESSORS, ALL_PROCESSORS, MEMORY = 0b1011, 0xFFF, 1 << 33


class Library:
    """kernel32's functions that tell the processors and the memory."""

    def GlobalMemoryStatusEx(self, status):
        assert status._obj.length == ctypes.sizeof(status._obj) == 64
        status._obj.total = MEMORY
        return 1

    def GetProcessAffinityMask(self, process, own, system):
        assert process.value == (1 << 64) - 1
        own._obj.value, system._obj.value = PROCESSORS, ALL_PROCESSORS
        return 1


def leave_posix() -> None:
    """Remove what Windows lacks, after the packages that are not ours have found it."""
    for name in LOADED:
        try:
            importlib.import_module(name)
        except ImportError:  # an extra that is not installed
            continue
    for name in MODULES:
        sys.modules[name] = None
    for name in (*FUNCTIONS, *CONSTANTS):
        if hasattr(os, name):
            delattr(os, name)
    for module, names in OTHERS.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    os.supports_dir_fd, os.supports_fd = set(), {os.stat, os.truncate}
    library = ctypes.CDLL
    ctypes.CDLL = lambda name, *args: Library() if name == "kernel32" else library(name, *args)
    sys.platform = "win32"


def import_all() -> int:
    """Import every module of both packages and return how many there are."""
    names = []
    for package in ("cgraph", "nn"):
        root = importlib.import_module(package)
        names += [package, *(x.name for x in pkgutil.walk_packages(root.__path__, f"{package}."))]
    for name in names:
        if not name.endswith("__main__"):
            importlib.import_module(name)
    return len(names)


def compile_and_run(home: str) -> dict[str, object]:
    """Compile a function with state, run it on threads, and find its kernels in the cache of a Windows profile."""
    import numpy as np

    import cgraph as cg
    from cgraph.engine.cpu.cores import cores
    from cgraph.engine.cpu.memory import memory_nbytes
    from cgraph.errors import WeightsError
    from cgraph.kernels.store import store
    from tests.support.tolerance import assert_close

    x, total = cg.Var((400, 300), name="x"), cg.Var((400, 300), name="total")
    total.assign(np.zeros(total.shape, "float32"))
    f = cg.compile(cg.tanh(x) @ x.T, [x], updates={total: total + x}, threads=2)
    value = np.linspace(-1, 1, 120_000, dtype="float32").reshape(400, 300)
    for _ in range(3):
        assert_close(f(value), np.tanh(value) @ value.T)
    try:
        cg.StreamedWeights("weights.bin")
        refusal = ""
    except WeightsError as problem:
        refusal = str(problem)
    folder = store().folder
    return {
        "same": bool((total.value == 3 * value).all()),
        "cores": cores(),
        "nbytes": memory_nbytes("nowhere", "nowhere"),
        "files": len([x for x in folder.entries() if x[2].endswith(".o")]),
        "inside": str(folder.path).startswith(home) and isinstance(folder.handle, str),
        "refusal": refusal,
    }


if __name__ == "__main__":
    leave_posix()
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"HOME": home, "LOCALAPPDATA": os.path.join(home, "AppData", "Local")}
        os.environ.pop("XDG_CACHE_HOME", None)
        facts = {"modules": import_all(), **compile_and_run(os.path.realpath(home))}
    sys.stdout.write(repr(facts))
