"""Region features (RoiAlign) and their gradient, on the CPU and in blocks of a GPU's threads."""
