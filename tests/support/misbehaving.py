"""Readers that do what none may do, for the tests of the fuzzer: ``python -m tests.support.misbehaving KIND``."""

import os
import sys
import time

from benchmarks.fuzz import child
from cgraph.errors import FormatError


def endless(path):
    while True:
        pass


def refuses(path):
    raise FormatError("no such thing")


def reads_well(path):
    return path.read_bytes()


READERS = {
    "model": reads_well,
    "refused": refuses,
    "untyped": lambda path: {}[path],
    "memory": lambda path: bytearray(100 << 20),
    "memory at once": lambda path: bytearray(8 << 30),
    "time": endless,
    "sleep": lambda path: time.sleep(600),
    "crash": lambda path: os.abort(),
}

if __name__ == "__main__":
    child.CPU_SECONDS = 1
    child.answer(READERS[sys.argv[1]])
