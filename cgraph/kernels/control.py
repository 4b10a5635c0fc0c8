"""Program rows that are not kernels: jumps, and those that wait for weights; the words shared with the reader.

The interpreter and the engine both use these numbers; the engine does so without LLVM.
"""

# In place of a kernel's address. The arguments are the words below, the task count is a number of pieces.
WAIT, PASSED = 1, 2  # wait until that many pieces are read; release that many pieces
# The chunk is the distance of a jump in rows.
BEGIN = 3  # args: the address of the words of a REPEAT. Begin its first round, or jump forward if it has none
REPEAT = 4  # args: the words below. Begin the next round and jump back behind BEGIN, or go on after the last one
SKIP = 5  # args: the address of a byte, and a value. Jump forward unless the byte has the value
BETWEEN = 6  # args: the address of an int64, low and high. Jump forward unless low < number <= high
CONTROLS = 6  # addresses up to this one are no kernels
# Words of a REPEAT: the present round, the number of rounds, the number of moving addresses; then for each of these
# where it is stored, its value in the first round, and the bytes from one round to the next
ROUND, ROUNDS, MOVES, FIRST_MOVE, MOVE_WORDS = 0, 1, 2, 3, 3
# Words: number of pieces read and of pieces free for overwriting, a cache line each; the result of `pread`; stop; and
# from STALLED on, for each piece in reading order, the nanoseconds that runs have waited for it
READ, FREED, FAILED, HALT, STALLED = 0, 16, 32, 33, 48
# In a run's stop word; 1 is a position outside its axis
READ_FAILED, SINGULAR, NOT_POSITIVE = 2, 3, 4
NO_EIGENVALUES, NO_SINGULAR_VALUES, NOT_FINITE = 5, 6, 7  # an iteration did not converge; NaN or infinity
# Words of a call with arrays: the address of the function that runs rows, those of its operands, and the slice; the
# addresses of the arguments and of the arena's ends; the number of arrays, the address of their type, and the bytes of
# an object's head and before a tuple's items. Then for each array a dtype's word, the number of axes, the number of
# places, the sizes, and for each place its number among the arguments and its offset from the array's address
ARRAYS = tuple("alone cores table rows stop slice args first last count kind head items".split())
OTHER_ARRAYS, STOPPED = -1, -2  # in place of the number of rows that ran: other arrays; STOPPED less that number
DAMAGED = -2  # in place of the result of `pread`: the checksum of a piece differs
