"""Random numbers by Philox 4x32-10, on the CPU and in blocks of a GPU's threads."""
