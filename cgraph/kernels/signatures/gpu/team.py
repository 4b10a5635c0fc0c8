"""Teams of threads: how many of a block's threads work at one result together."""

THREADS = 256  # of a block
FEW, MANY = 16, 1024  # elements from which on a warp, and a whole block, work at one result
WARP = 32
COLUMNS = 32  # results side by side in memory, of a block whose threads go across them
