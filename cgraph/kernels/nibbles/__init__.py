"""Products of floats with a matrix of 4-bit numbers."""
