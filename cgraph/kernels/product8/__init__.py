"""Products of two int8 matrices that are computed at run time; composed of the families `pack8` and `conv8`."""
