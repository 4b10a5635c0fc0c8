"""Calls of compiled and saved functions: inputs, cells, arenas, update edges; images by rows."""
