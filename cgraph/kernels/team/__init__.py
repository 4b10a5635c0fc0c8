"""Teams of a GPU's threads that compute one result together, and offsets of elements."""
