"""Packing of filters that are computed at run time, for the tiles of convolutions."""
