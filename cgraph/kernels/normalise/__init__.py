"""Layer, group and local response normalisation, on the CPU and in blocks of a GPU's threads."""
