"""Calls of compiled and saved functions: inputs, cells, arenas, update edges; streamed images."""
