"""Users' functions compiled by Numba, on the CPU and in blocks of a GPU's threads."""
