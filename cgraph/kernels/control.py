"""Program rows that are not kernels, and the words that a run shares with the thread that reads its weights.

The interpreter and the engine both use these numbers; the engine does so without LLVM.
"""

# In place of a kernel's address. The arguments are the words below, the task count is a number of pieces.
WAIT, PASSED = 1, 2  # wait until that many pieces are read; release that many pieces
# Words: number of pieces read and of pieces free for overwriting, a cache line each; the result of `pread`; stop; and
# from STALLED on, for each piece in reading order, the nanoseconds that runs have waited for it
READ, FREED, FAILED, HALT, STALLED = 0, 16, 32, 33, 48
READ_FAILED = 2  # in a run's stop word
DAMAGED = -2  # in place of the result of `pread`: the checksum of a piece differs
