"""Packing of int8 matrices that are computed at run time, for the tiles of int8 products."""
