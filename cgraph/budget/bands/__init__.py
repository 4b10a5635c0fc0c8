"""Regions of a graph that run in bands of rows: search, band buffers, checks."""
