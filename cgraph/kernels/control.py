"""Rows of a table that are no kernels, and the words that a run shares with the reader of its weights.

The interpreter and the engine read these numbers, the engine without LLVM.
"""

# Instead of a kernel's address; the arguments are the words below, the tasks a number of pieces.
WAIT, PASSED = 1, 2  # until so many have been read; so many are not needed any more
# Words: pieces that are there, and that may be overwritten, a cache line each; what `pread` said; stop; and from
# STALLED on, for each piece in the order of reading, the nanoseconds that runs have waited for it
READ, FREED, FAILED, HALT, STALLED = 0, 16, 32, 33, 48
READ_FAILED = 2  # in a run's stop word
DAMAGED = -2  # instead of what `pread` said: a piece was read whose checksum is another one
